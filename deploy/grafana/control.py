"""The row of the control server on the dashboard of a fleet: does it hear all nodes, and how do they stand?"""

from __future__ import annotations

from deploy.grafana.model import Panel, Query, Row, quantile

_SERVER = 'job="checkstream-control"'

ROW = Row(
    "How do nodes stand at the control server?",
    (
        Panel(
            title="Control server",
            says="Servers whose store answers. None: see CheckstreamControlDown in the runbook. Nodes go on alone.",
            queries=(Query("sum(checkstream_control_store_up) or vector(0)"),),
            kind="stat",
            steps=((None, "red"), (1, "green")),
            width=4,
        ),
        Panel(
            title="Nodes not as they should be",
            says="Astray, refused or stale. `checkstream control status` says which, and why.",
            queries=(
                Query(
                    'sum(max by (fleet, state) (checkstream_control_nodes{state=~"astray|refused|stale"})) or vector(0)'
                ),
            ),
            kind="stat",
            steps=((None, "green"), (1, "orange")),
            width=4,
        ),
        Panel(
            title="Chains not proven",
            says="Broken or silent audit chains. More than none: see CheckstreamChainUnproven in the runbook.",
            queries=(Query('sum(max by (state) (checkstream_control_chains{state=~"broken|silent"})) or vector(0)'),),
            kind="stat",
            steps=((None, "green"), (1, "red")),
            width=4,
        ),
        Panel(
            title="Records that don't come",
            says="Of audit chains: skipped, since too much waited, or removed from a log. Nodes may still have them.",
            queries=(Query("max(checkstream_control_records_missing)"),),
            kind="stat",
            steps=((None, "green"), (1, "orange")),
            width=4,
        ),
        Panel(
            title="Faults of chains",
            says="That are known. The control server's events name each, `checkstream control events`.",
            queries=(Query("max(checkstream_control_chain_faults)"),),
            kind="stat",
            steps=((None, "green"), (1, "red")),
            width=4,
        ),
        Panel(
            title="Bytes still to come",
            says="Of audit logs, as nodes say. It falls after an outage; else the server is too slow for them.",
            queries=(Query("max(checkstream_control_waiting_bytes)"),),
            kind="stat",
            unit="bytes",
            width=4,
        ),
        Panel(
            title="Nodes",
            says="By fleet and how they stand. Servers of one store tell the same of it.",
            queries=(Query("max by (fleet, state) (checkstream_control_nodes)", "{{fleet}} {{state}}"),),
            stacked=True,
        ),
        Panel(
            title="Rollouts",
            says="Where the newest rollout of each fleet stands. `rolled_back`: the events say what it did.",
            queries=(Query("max by (fleet, stage) (checkstream_control_rollouts) > 0", "{{fleet}} {{stage}}"),),
        ),
        Panel(
            title="Exchanges in the last hour",
            says="As nodes count them: all, and of those the ones that were refused, stopped, or failed.",
            queries=(Query("max by (fleet, outcome) (checkstream_control_exchanges)", "{{fleet}} {{outcome}}"),),
        ),
        Panel(
            title="Records a second",
            says="Of audit chains, as they arrive. None while nodes serve: see their deliveries above.",
            queries=(Query("max(rate(checkstream_control_records_total[$__rate_interval]))"),),
        ),
        Panel(
            title="Time to answer nodes (p95)",
            says="Attestations and deliveries. Above a second: see CheckstreamControlSlow in the runbook.",
            queries=(
                Query(
                    quantile(
                        0.95, "checkstream_api_seconds", "path", f'{_SERVER},path=~"/v1/attestations|/v1/telemetry"'
                    ),
                    "{{path}}",
                ),
            ),
            unit="s",
            steps=((None, "green"), (1, "red")),
        ),
        Panel(
            title="Time of a transaction (p95)",
            says="In the store, the wait for its turn included. What all else at the server waits for.",
            queries=(Query(quantile(0.95, "checkstream_control_store_seconds", "instance", _SERVER), "{{instance}}"),),
            unit="s",
        ),
        Panel(
            title="Alerts that stand",
            says="At the control server, by severity; notices that have failed did not reach anybody.",
            queries=(
                Query("max by (severity) (checkstream_control_troubles)", "{{severity}}"),
                Query("max by (state) (checkstream_control_notices)", "notices {{state}}"),
            ),
        ),
        Panel(
            title="Right, of what was reviewed",
            says="By rule, in the last whole week. 5 points below the week before: see CheckstreamPrecisionFell.",
            queries=(
                Query('max by (rule_id, week) (checkstream_control_review_precision{week="last"})', "{{rule_id}}"),
            ),
            unit="percentunit",
            most=1,
        ),
        Panel(
            title="Reviewed, and waiting",
            says="Findings of the last whole week that people have judged, and all that wait for them. Too few: raise "
            "`review_per_day`; too many wait: lower it.",
            queries=(
                Query('sum(max by (rule_id) (checkstream_control_reviewed{week="last"}))', "reviewed"),
                Query("max(checkstream_control_reviews_waiting)", "waiting"),
            ),
        ),
    ),
)
