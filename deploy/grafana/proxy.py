"""The dashboard of proxies: what callers get, how long they wait, what the guard decides, what goes wrong."""

from __future__ import annotations

from deploy.grafana import trouble
from deploy.grafana.model import Board, Panel, Query, Row, Steps, Variable, quantile, quantiles, rate, share

_I = 'instance=~"$instance"'
_R = f'{_I},route=~"$route"'
_M = f'{_R},model=~"$model"'
_HIGH = 'outcome=~"refused|stopped"'
_ALL = rate("checkstream_exchanges_total", "", _R)
_C = f'{_I},classifier=~"$classifier"'


def _above_half(name: str) -> str:
    """Return the share of a histogram's scores that is above one half; its buckets are gauges."""
    up_to = f'sum by (classifier, stage) ({name}{{{_C},le="0.5"}})'
    return f'1 - {up_to} / (sum by (classifier, stage) ({name}{{{_C},le="+Inf"}}) > 0)'


_RED_FROM_1: Steps = ((None, "green"), (1, "red"))

_WELL = Row(
    "Is it well?",
    (
        Panel(
            title="Processes that serve",
            says="Processes that take callers. Fewer than are configured: look at `worker.ended` in the log.",
            queries=(Query(f"sum(checkstream_workers{{{_I}}})"),),
            kind="stat",
            steps=((None, "red"), (1, "green")),
            width=4,
        ),
        Panel(
            title="Requests a second",
            says="All requests that got an answer, refusals too.",
            queries=(Query(rate("checkstream_requests_total", "", _R)),),
            kind="stat",
            unit="reqps",
            width=4,
        ),
        Panel(
            title="Refused or stopped",
            says="Exchanges that a rule refused or stopped, of all. Ten times as many as usual: see the alert "
            "CheckstreamHighRiskSpike in the runbook.",
            queries=(Query(share(rate("checkstream_exchanges_total", "", f"{_R},{_HIGH}"), _ALL)),),
            kind="stat",
            unit="percentunit",
            width=4,
        ),
        Panel(
            title="Answered with a failure",
            says="Answers with a status of 500 and more. Look at 'What goes wrong' below for whose fault it is.",
            queries=(
                Query(
                    share(
                        rate("checkstream_requests_total", "", f'{_R},status=~"5.."'),
                        rate("checkstream_requests_total", "", _R),
                    )
                ),
            ),
            kind="stat",
            unit="percentunit",
            steps=((None, "green"), (0.01, "orange"), (0.05, "red")),
            width=4,
        ),
        Panel(
            title="Room that is taken",
            says="Of the streams that may run, and of the bytes that may be held. At 100 % new requests get 429: add "
            "processes.",
            queries=tuple(
                Query(f'sum(checkstream_{of}{{{_I}}}) / sum(checkstream_capacity{{{_I},of="{of}"}})', of)
                for of in ("streams", "held_bytes")
            ),
            kind="stat",
            unit="percentunit",
            steps=((None, "green"), (0.7, "orange"), (0.9, "red")),
            most=1,
            width=4,
        ),
        Panel(
            title="Audit chains that failed",
            says="Processes that can't write their audit chain. More than none: free the disk and restart them; "
            "routes that fail closed answer nothing meanwhile.",
            queries=(Query(f"sum(checkstream_audit_failed{{{_I}}})"),),
            kind="stat",
            steps=_RED_FROM_1,
            width=4,
        ),
    ),
)

_GET = Row(
    "What do callers get?",
    (
        Panel(
            title="Answers by status",
            says="What callers got. 429: they ask for more than they may have, or the proxy is full. 502 to 504: the "
            "model server fails. 400 with a rule: a refusal.",
            queries=(Query(rate("checkstream_requests_total", "status", _R), "{{status}}"),),
            unit="reqps",
            stacked=True,
        ),
        Panel(
            title="How exchanges ended",
            says="`complete` is as it should be, `refused` and `stopped` are rules at work. `detector_failed`, "
            "`overloaded` and `failed` are the proxy's own: look at 'What goes wrong'.",
            queries=(Query(rate("checkstream_exchanges_total", "outcome", _R), "{{outcome}}"),),
            unit="reqps",
            stacked=True,
        ),
        Panel(
            title="What was done to them",
            says="The strictest that was done to each exchange, as a share. A share that jumps after a reload is a "
            "rule that does more than was meant: try it in `mode: shadow`.",
            queries=(
                Query(
                    f"{rate('checkstream_actions_total', 'action', _M)} / ignoring (action) group_left () "
                    f"({rate('checkstream_actions_total', '', _M)} > 0)",
                    "{{action}}",
                ),
            ),
            unit="percentunit",
            stacked=True,
            most=1,
        ),
        Panel(
            title="Tokens a second by model",
            says="Tokens of answers that were released, and of prompts. They are reckoned from characters, four to "
            "one.",
            queries=(Query(rate("checkstream_tokens_total", "model, direction", _M), "{{model}} {{direction}}"),),
        ),
        Panel(
            title="Tokens a second by policy",
            says="Tokens of answers on routes that have the policy in force; a route with several counts for each.",
            queries=(
                Query(
                    f"sum by (policy) (checkstream_route_policies{{{_R}}} * on (instance, route) group_left () "
                    + rate("checkstream_tokens_total", "instance, route", f'{_R},direction="out"')
                    + ")",
                    "{{policy}}",
                ),
            ),
        ),
        Panel(
            title="Running streams",
            says="Exchanges that run now, beside the most that may. Near it: add processes, or raise "
            "`server.limits.streams` if there is memory.",
            queries=(
                Query(f"sum(checkstream_streams{{{_I}}})", "running"),
                Query(f'sum(checkstream_capacity{{{_I},of="streams"}})', "at most"),
            ),
        ),
    ),
)

_WAIT = Row(
    "How long do they wait?",
    (
        Panel(
            title="Time to the first text",
            says="From a request that has been read to the first text of its stream. Compare with 'added', to see "
            "whether it is the model or the guard.",
            queries=quantiles("checkstream_ttft_seconds", _M),
            unit="s",
        ),
        Panel(
            title="Time to the first text by model (p95)",
            says="The same, model by model. `other` is what is not told apart.",
            queries=(Query(quantile(0.95, "checkstream_ttft_seconds", "model", _M), "{{model}}"),),
            unit="s",
        ),
        Panel(
            title="Added before the first text",
            says="How long the guard held the first text. Patterns add next to nothing; classifiers add their check.",
            queries=quantiles("checkstream_added_ttft_seconds", _R),
            unit="s",
        ),
        Panel(
            title="Checks of prompts",
            says="From a request that has been read to its forwarding. Long prompts take long: see `budget` of routes.",
            queries=quantiles("checkstream_ingress_seconds", _R),
            unit="s",
        ),
        Panel(
            title="Speed of streams (tokens a second, half are slower)",
            says="Streamed answers of 16 tokens and more, by model. A fall with a calm 'Held' is the model server's.",
            queries=(Query(quantile(0.5, "checkstream_stream_tokens_per_second", "model", _M), "{{model}}"),),
        ),
        Panel(
            title="Between two writes",
            says="What a reader sees as stutter. Above 0.25 s people notice.",
            queries=quantiles("checkstream_inter_token_seconds", _R),
            unit="s",
        ),
        Panel(
            title="Held",
            says="How long text waited that had to wait. Set by `holdback`; it grows when classifiers are busy.",
            queries=quantiles("checkstream_hold_seconds", _R),
            unit="s",
        ),
        Panel(
            title="Bytes held",
            says="Received and not sent yet, beside the most that may be. Near it new requests get 429.",
            queries=(
                Query(f"sum(checkstream_held_bytes{{{_I}}})", "held"),
                Query(f'sum(checkstream_capacity{{{_I},of="held_bytes"}})', "at most"),
            ),
            unit="bytes",
        ),
        Panel(
            title="Until a stream was cut off",
            says="From when the eldest held text came to the cut. The objective is 0.5 s: beyond it ask for more "
            "checks (`holdback`) or more processes.",
            queries=quantiles("checkstream_cutoff_seconds", _R),
            unit="s",
            steps=((None, "green"), (0.5, "red")),
        ),
    ),
)

_DECIDE = Row(
    "What does the guard decide?",
    (
        Panel(
            title="Rules that fired",
            says="The ten that fire most. One that fires on everything is wrong, or under attack: look at the log's "
            "`verdict` lines of its id.",
            queries=(
                Query(
                    f"topk(10, {rate('checkstream_verdicts_total', 'rule_id, action', _I)})", "{{rule_id}} {{action}}"
                ),
            ),
        ),
        Panel(
            title="Verdicts by policy",
            says="Rules that fired, by their pack and whether they are enforced or only watched (`shadow`).",
            queries=(Query(rate("checkstream_verdicts_total", "policy, mode", _I), "{{policy}} {{mode}}"),),
        ),
        Panel(
            title="Verdicts by stage",
            says="`ingress` is prompts, `midstream` answers as they come, `egress` their ends.",
            queries=(Query(rate("checkstream_verdicts_total", "stage", _I), "{{stage}}"),),
        ),
        Panel(
            title="Time to a decision",
            says="From asking classifiers about a text of an answer to what came of it, waits included. The budget is"
            " 15 ms for 95 of 100: beyond it use fewer or smaller models, or more processes.",
            queries=quantiles("checkstream_decision_seconds", f'{_R},stage="midstream"'),
            unit="s",
            steps=((None, "green"), (0.015, "red")),
        ),
        Panel(
            title="Time of a check by detector (p95)",
            says="What each classifier takes by itself, its wait left out.",
            queries=(Query(quantile(0.95, "checkstream_check_seconds", "detector", _I), "{{detector}}"),),
            unit="s",
        ),
        Panel(
            title="Time of the guard for an exchange",
            says="All turns of the guard for one exchange: patterns, rules, edits. It grows with the text.",
            queries=quantiles("checkstream_policy_seconds", _R),
            unit="s",
        ),
        Panel(
            title="Scores",
            says="How many texts got which score, of the classifiers chosen above. A band that moves is drift.",
            queries=(Query(f"sum by (le) (increase(checkstream_score_bucket{{{_C}}}[$__rate_interval]))", "{{le}}"),),
            kind="heatmap",
        ),
        Panel(
            title="Scores above one half, today and in the reference",
            says="The share of texts of the last 24 hours that scored above 0.5, beside that of calm texts. See "
            "`checkstream models watch` for all bins.",
            queries=(
                Query(_above_half("checkstream_score_day"), "{{classifier}} {{stage}} today"),
                Query(_above_half("checkstream_score_reference"), "{{classifier}} {{stage}} reference"),
            ),
            unit="percentunit",
        ),
        Panel(
            title="Drift of scores",
            says="How far today's scores are from the reference. PSI from 0.1 on has moved, from 0.25 on it has "
            "changed: look whose texts are new before you trust thresholds. KS is the widest gap.",
            queries=tuple(
                Query(
                    f"max by (classifier, stage) (checkstream_drift_{what.lower()}{{{_C}}})",
                    f"{what} {{{{classifier}}}} {{{{stage}}}}",
                )
                for what in ("PSI", "KS")
            ),
            steps=((None, "green"), (0.1, "orange"), (0.25, "red")),
        ),
    ),
)

BOARD = Board(
    uid="checkstream-proxy",
    title="Checkstream: proxy",
    says="What callers get, how long they wait, what the guard decides and what goes wrong. Made by `python -m "
    "deploy.grafana` of the table of metrics.",
    rows=(_WELL, _GET, _WAIT, _DECIDE, trouble.WRONG, trouble.BESIDE, trouble.AFTER),
    variables=(
        Variable("instance", "Node", "label_values(checkstream_workers, instance)"),
        Variable("route", "Route", 'label_values(checkstream_requests_total{instance=~"$instance"}, route)'),
        Variable("model", "Model", 'label_values(checkstream_actions_total{instance=~"$instance"}, model)'),
        Variable(
            "classifier", "Classifier", 'label_values(checkstream_score_count{instance=~"$instance"}, classifier)'
        ),
    ),
    events=(
        (
            "Reload",
            f"sum by (instance, outcome) (increase(checkstream_reloads_total{{{_I}}}[1m])) > 0",
            "{{instance}}: {{outcome}}",
        ),
        (
            "Process ended",
            f"sum by (instance, cause) (increase(checkstream_worker_exits_total{{{_I}}}[1m])) > 0",
            "{{instance}}: {{cause}}",
        ),
    ),
)
