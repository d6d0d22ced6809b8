"""The dashboard of a fleet: which node is not like the others, what is in force where, what is left of the budgets."""

from __future__ import annotations

from deploy.grafana import control
from deploy.grafana.model import Board, Panel, Query, Row, Variable, quantile, quantiles, rate, share

_I = 'instance=~"$instance"'
_HIGH = f'{_I},outcome=~"refused|stopped"'

_NODES = Row(
    "Is every node well?",
    (
        Panel(
            title="Nodes",
            says="Nodes that Prometheus reaches. Fewer than you run: look at CheckstreamDown in the runbook.",
            queries=(Query(f"count(count by (instance) (checkstream_workers{{{_I}}} > 0))"),),
            kind="stat",
            width=4,
        ),
        Panel(
            title="Nodes that can't record",
            says="Nodes with a process that can't write its audit chain. More than none: free the disk, restart it.",
            queries=(Query(f"count(checkstream_audit_failed{{{_I}}} > 0) or vector(0)"),),
            kind="stat",
            steps=((None, "green"), (1, "red")),
            width=4,
        ),
        Panel(
            title="Different policies",
            says="Policies that some node has on a route and another has not. More than none for long: a node does "
            "not follow, see the table of policies below.",
            queries=(
                Query(
                    f"count(count by (route, policy) (checkstream_route_policies{{{_I}}}) "
                    f"< scalar(count(count by (instance) (checkstream_workers{{{_I}}} > 0)))) or vector(0)"
                ),
            ),
            kind="stat",
            steps=((None, "green"), (1, "orange")),
            width=4,
        ),
        Panel(
            title="Machines that count as one",
            says="What each machine of a `fleet` sees of the others; the least. 0: there is no `fleet`, or its store "
            "is away and each counts alone.",
            queries=(Query(f"min(checkstream_fleet_machines{{{_I}}})"),),
            kind="stat",
            width=4,
        ),
        Panel(
            title="Requests a second",
            says="Requests that all nodes answer, refusals too.",
            queries=(Query(rate("checkstream_requests_total", "", _I)),),
            kind="stat",
            unit="reqps",
            width=4,
        ),
        Panel(
            title="Most drift",
            says="The highest PSI of any classifier on any node. From 0.25 on thresholds mean something else.",
            queries=(Query(f"max(checkstream_drift_psi{{{_I}}})"),),
            kind="stat",
            steps=((None, "green"), (0.1, "orange"), (0.25, "red")),
            width=4,
        ),
    ),
)

_LIKE = Row(
    "Which node is not like the others?",
    (
        Panel(
            title="Requests a second",
            says="A node with none gets nothing from the load balancer: look at its `/readyz`.",
            queries=(Query(rate("checkstream_requests_total", "instance", _I), "{{instance}}"),),
            unit="reqps",
        ),
        Panel(
            title="Streams, of those that may run",
            says="A node near 100 % refuses: check how the load balancer shares out, it must count streams.",
            queries=(
                Query(
                    f"sum by (instance) (checkstream_streams{{{_I}}}) / "
                    f'sum by (instance) (checkstream_capacity{{{_I},of="streams"}})',
                    "{{instance}}",
                ),
            ),
            unit="percentunit",
            most=1,
        ),
        Panel(
            title="Bytes held, of those that may be",
            says="A node that holds more than the others has slower checks or slower callers.",
            queries=(
                Query(
                    f"sum by (instance) (checkstream_held_bytes{{{_I}}}) / "
                    f'sum by (instance) (checkstream_capacity{{{_I},of="held_bytes"}})',
                    "{{instance}}",
                ),
            ),
            unit="percentunit",
            most=1,
        ),
        Panel(
            title="Refused or stopped",
            says="The share of exchanges. A node apart from the others has other policies, or other callers.",
            queries=(
                Query(
                    share(
                        rate("checkstream_exchanges_total", "instance", _HIGH),
                        rate("checkstream_exchanges_total", "instance", _I),
                    ),
                    "{{instance}}",
                ),
            ),
            unit="percentunit",
        ),
        Panel(
            title="Time to a decision (p95)",
            says="Of texts of answers. A node apart from the others has less processor than it needs.",
            queries=(
                Query(
                    quantile(0.95, "checkstream_decision_seconds", "instance", f'{_I},stage="midstream"'),
                    "{{instance}}",
                ),
            ),
            unit="s",
            steps=((None, "green"), (0.015, "red")),
        ),
        Panel(
            title="Added before the first text (p95)",
            says="By node. See the dashboard of that node for which route it is.",
            queries=(Query(quantile(0.95, "checkstream_added_ttft_seconds", "instance", _I), "{{instance}}"),),
            unit="s",
        ),
        Panel(
            title="Checks that did less",
            says="By node. A node that does this alone is short of processor.",
            queries=(Query(rate("checkstream_degraded_total", "instance", _I), "{{instance}}"),),
        ),
        Panel(
            title="Failures of model servers",
            says="By node. One node alone: its network. All at once: the model server.",
            queries=(Query(rate("checkstream_upstream_errors_total", "instance", _I), "{{instance}}"),),
        ),
        Panel(
            title="Processes that ended unasked",
            says="In 15 minutes, by node and cause.",
            queries=(
                Query(
                    f"sum by (instance, cause) (increase(checkstream_worker_exits_total{{{_I}}}[15m]))",
                    "{{instance}} {{cause}}",
                ),
            ),
        ),
    ),
)

_FORCE = Row(
    "What is in force where?",
    (
        Panel(
            title="Policies",
            says="Each route's policies and on how many nodes they are in force. All of a route must have the number "
            "of nodes; else find out which node has not followed.",
            queries=(Query(f"count by (route, policy) (checkstream_route_policies{{{_I}}})"),),
            kind="table",
            width=12,
        ),
        Panel(
            title="Looks for newer bundles",
            says="In 15 minutes, by outcome. `refused`: what is published can't be trusted or doesn't work here. "
            "`unreachable`: the source is away; nodes go on with what they have.",
            queries=(
                Query(
                    f"sum by (instance, outcome) (increase(checkstream_bundle_looks_total{{{_I}}}[15m]))",
                    "{{instance}} {{outcome}}",
                ),
            ),
            width=12,
        ),
        Panel(
            title="Reloads",
            says="In 15 minutes, by outcome. `refused`: what was in force stays.",
            queries=(
                Query(
                    f"sum by (instance, outcome) (increase(checkstream_reloads_total{{{_I}}}[15m]))",
                    "{{instance}} {{outcome}}",
                ),
            ),
            width=12,
        ),
        Panel(
            title="Until certificates end",
            says="By node and listener. Within a week: renew the files, which are read anew by themselves.",
            queries=(
                Query(
                    f"min by (instance, face) (checkstream_tls_ends_seconds{{{_I}}}) - time()", "{{instance}} {{face}}"
                ),
            ),
            unit="s",
            width=12,
        ),
        Panel(
            title="Changes of certificates",
            says="In 15 minutes, by outcome. `refused`: a pair that can't be used; the one before stays in use.",
            queries=(
                Query(
                    f"sum by (face, outcome) (increase(checkstream_tls_reloads_total{{{_I}}}[15m]))",
                    "{{face}} {{outcome}}",
                ),
            ),
            width=12,
        ),
        Panel(
            title="Audit entries a second",
            says="By node. None while its requests run: see CheckstreamAuditSilent in the runbook.",
            queries=(Query(rate("checkstream_audit_entries_total", "instance", _I), "{{instance}}"),),
            width=12,
        ),
    ),
)


def _burns(slo: str) -> tuple[Query, ...]:
    return tuple(
        Query(f"max(checkstream:{slo}:error_ratio_rate{window})", window) for window in ("5m", "1h", "6h", "3d")
    )


_BUDGET = Row(
    "What is left of the error budgets?",
    (
        Panel(
            title="Violations after the fact",
            says="The share of scored answers that evidence calls a high risk, over four windows (recorded by "
            "`rules.yaml`). The objective is 0.1 %; see CheckstreamViolationsBurnFast in the runbook.",
            queries=_burns("violation"),
            unit="percentunit",
            steps=((None, "green"), (0.001, "red")),
            width=12,
        ),
        Panel(
            title="Cut-offs that took more than half a second",
            says="Their share of all cut-offs, over four windows. The objective is 1 %; see CheckstreamCutoffBurnFast.",
            queries=_burns("slow_cutoff"),
            unit="percentunit",
            steps=((None, "green"), (0.01, "red")),
            width=12,
        ),
    ),
)

_TOLD = Row(
    "Does the control server hear of it?",
    (
        Panel(
            title="Bytes of the audit log that wait",
            says="By node. It grows while the control server is away; past `spool_bytes` the oldest are skipped.",
            queries=(Query(f"sum by (instance) (checkstream_telemetry_waiting_bytes{{{_I}}})", "{{instance}}"),),
            unit="bytes",
        ),
        Panel(
            title="Deliveries",
            says="By outcome. Refused or unreadable ones: the node's log says why, `telemetry.` events.",
            queries=(Query(rate("checkstream_telemetry_attempts_total", "outcome", _I), "{{outcome}}"),),
        ),
        Panel(
            title="Records",
            says="By outcome. Skipped ones stay in the node's own log, and the control server is told how many.",
            queries=(Query(rate("checkstream_telemetry_records_total", "outcome", _I), "{{outcome}}"),),
        ),
        Panel(
            title="Evidence",
            says="Exchanges whose texts go sealed to their owner. `sealed` without `sent`: the control server is away, "
            "or has no room; of `dropped`, `too_large` and `overload` nothing is kept.",
            queries=(Query(rate("checkstream_evidence_total", "outcome", _I), "{{outcome}}"),),
        ),
    ),
)

_CANDIDATE = Row(
    "What does the candidate of a rollout by callers do?",
    (
        Panel(
            title="Exchanges that it decides",
            says="A second, by outcome. None: no rollout goes round by callers now, or no node has its bundle yet.",
            queries=(Query(rate("checkstream_candidate_exchanges_total", "outcome", _I), "{{outcome}}"),),
        ),
        Panel(
            title="Time of the guard for one of them",
            says="All turns of the guard for one exchange; beside that of all, on the dashboard of the proxy.",
            queries=quantiles("checkstream_candidate_policy_seconds", _I),
            unit="s",
        ),
        Panel(
            title="Scores of their texts",
            says="How many texts got which score, of all classifiers. A rollout is judged by them, too.",
            queries=(
                Query(
                    f"sum by (le) (increase(checkstream_candidate_score_bucket{{{_I}}}[$__rate_interval]))", "{{le}}"
                ),
            ),
            kind="heatmap",
        ),
    ),
)

BOARD = Board(
    uid="checkstream-fleet",
    title="Checkstream: fleet",
    says="All nodes beside each other: which is not like the others, what is in force where, what is left of the "
    "error budgets. Made by `python -m deploy.grafana` of the table of metrics.",
    rows=(_NODES, _LIKE, _FORCE, _TOLD, control.ROW, _BUDGET, _CANDIDATE),
    variables=(Variable("instance", "Node", "label_values(checkstream_workers, instance)"),),
    events=(
        (
            "Newer bundle",
            f'sum by (instance) (increase(checkstream_bundle_looks_total{{{_I},outcome="accepted"}}[1m])) > 0',
            "{{instance}}",
        ),
        (
            "Reload",
            f"sum by (instance, outcome) (increase(checkstream_reloads_total{{{_I}}}[1m])) > 0",
            "{{instance}}: {{outcome}}",
        ),
    ),
)
