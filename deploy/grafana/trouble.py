"""The lower rows of the dashboard of proxies: what goes wrong, what stands beside, what is found afterwards."""

from __future__ import annotations

from deploy.grafana.model import Panel, Query, Row, quantile, quantiles, rate

_I = 'instance=~"$instance"'
_R = f'{_I},route=~"$route"'
_LOW_RISK = f'{_R},le=~"69(.0)?"'

WRONG = Row(
    "What goes wrong?",
    (
        Panel(
            title="Checks that did less",
            says="Checks that ran less, later or not at all, by reason. Any that goes on means that answers are "
            "checked less than the policy says: add processes, or loosen `budget`.",
            queries=(Query(rate("checkstream_degraded_total", "reason", _I), "{{reason}}"),),
        ),
        Panel(
            title="Not read",
            says="Exchanges of which something was passed on unread, such as pictures. The audit record names what.",
            queries=(Query(rate("checkstream_unscanned_total", "stage", _I), "{{stage}}"),),
        ),
        Panel(
            title="Failures of model servers",
            says="By route and kind. `connect`: nobody listens there. `first_byte`, `idle`: it hangs. See the log's "
            "`upstream.failed`.",
            queries=(Query(rate("checkstream_upstream_errors_total", "route, kind", _R), "{{route}} {{kind}}"),),
        ),
        Panel(
            title="Answers of model servers by status",
            says="What came back before the guard saw it. 429 and 5xx here are the model server's.",
            queries=(Query(rate("checkstream_upstream_responses_total", "route, status", _R), "{{route}} {{status}}"),),
            unit="reqps",
        ),
        Panel(
            title="Processes that ended unasked",
            says="By cause, in 15 minutes. One now and then is mended by itself; several mean memory, or a bug: the "
            "log says `worker.ended`.",
            queries=(Query(f"sum by (cause) (increase(checkstream_worker_exits_total{{{_I}}}[15m]))", "{{cause}}"),),
        ),
        Panel(
            title="Audit entries a second",
            says="Must follow the requests. None while requests run: see CheckstreamAuditSilent in the runbook.",
            queries=(Query(rate("checkstream_audit_entries_total", "", _I), "entries"),),
        ),
        Panel(
            title="Reloads and bundles",
            says="Loads of configuration and policies, and looks for newer bundles, in 15 minutes. `refused`: what "
            "was in force stays; the log says why.",
            queries=(
                Query(f"sum by (outcome) (increase(checkstream_reloads_total{{{_I}}}[15m]))", "reload {{outcome}}"),
                Query(
                    f"sum by (outcome) (increase(checkstream_bundle_looks_total{{{_I}}}[15m]))", "bundle {{outcome}}"
                ),
            ),
        ),
        Panel(
            title="Recordings",
            says="The sample of exchanges that `record` keeps, by outcome. All but `written` were not kept.",
            queries=(Query(rate("checkstream_recordings_total", "outcome", _I), "{{outcome}}"),),
        ),
        Panel(
            title="Told to OpenTelemetry",
            says="Spans and tellings of metrics. `failed`, `dropped`: the collector is away or slow; no request waits.",
            queries=(Query(rate("checkstream_otlp_total", "signal, outcome", _I), "{{signal}} {{outcome}}"),),
        ),
        Panel(
            title="Requests at the API (p95)",
            says="Grounding and the gate over HTTP, by path.",
            queries=(Query(quantile(0.95, "checkstream_api_seconds", "path", _I), "{{path}}"),),
            unit="s",
        ),
    ),
    is_open=False,
)

BESIDE = Row(
    "Conversations, tools, names",
    (
        Panel(
            title="Conversations that are known",
            says="Kept in memory or in the store. It has a bound of its own.",
            queries=(Query(f"max(checkstream_conversations{{{_I}}})", "conversations"),),
        ),
        Panel(
            title="Conversations that add up",
            says="Requests whose conversation came to a risk that none of them has alone.",
            queries=(
                Query(rate("checkstream_conversation_alarms_total", "route", _R), "alarm {{route}}"),
                Query(rate("checkstream_conversation_verdicts_total", "rule_id", _I), "fired {{rule_id}}"),
            ),
        ),
        Panel(
            title="Texts that come again",
            says="Texts of prompts, and whether they had come before: those are not checked twice.",
            queries=(Query(rate("checkstream_texts_again_total", "known", _I), "known: {{known}}"),),
        ),
        Panel(
            title="Placeholders",
            says="Values that the model got as placeholders, those that came back, and those that it made up "
            "(`not_given`).",
            queries=(Query(rate("checkstream_pseudonyms_total", "what", _I), "{{what}}"),),
        ),
        Panel(
            title="Messages to servers of tools",
            says="By what was asked and how it ended.",
            queries=(Query(rate("checkstream_messages_total", "method, outcome", _R), "{{method}} {{outcome}}"),),
        ),
    ),
    is_open=False,
)

AFTER = Row(
    "What is found afterwards?",
    (
        Panel(
            title="Violations after the fact",
            says="Answers that evidence calls a high risk (above 69 of 100), of those that were looked at. The "
            "objective is less than 0.1 %.",
            queries=(
                Query(
                    f"1 - {rate('checkstream_grounding_risk_bucket', 'route, profile', _LOW_RISK)} / "
                    f"({rate('checkstream_grounding_risk_count', 'route, profile', _R)} > 0)",
                    "{{route}} {{profile}}",
                ),
            ),
            unit="percentunit",
            steps=((None, "green"), (0.001, "red")),
        ),
        Panel(
            title="Answers judged again",
            says="Released answers of the sample (`rescore`) by what came of judging them afresh. `violation`: "
            "something has left that rules would have kept; the log's `rescored.violation` names streams and rules.",
            queries=(Query(rate("checkstream_rescored_total", "route, result", _R), "{{route}} {{result}}"),),
        ),
        Panel(
            title="From what had left to the cut-off",
            says="Of stopped answers that were judged again: the time from the first violation that had left to the "
            "stop. The objective is 0.5 s.",
            queries=quantiles("checkstream_rescored_cutoff_seconds", _R),
            unit="s",
            steps=((None, "green"), (0.5, "red")),
        ),
        Panel(
            title="Answers of a high risk",
            says="As each route defines `grounding.high`. The log's `grounding.high` names their streams.",
            queries=(Query(rate("checkstream_grounding_high_total", "route, profile", _R), "{{route}} {{profile}}"),),
        ),
        Panel(
            title="Background jobs",
            says="Where they are. `waiting` that grows: start more workers. `dead` ones are kept with their reason: "
            "`checkstream jobs list`.",
            queries=(Query(f"sum by (state) (checkstream_jobs{{{_I}}})", "{{state}}"),),
        ),
        Panel(
            title="What became of jobs",
            says="`dropped_...` and `evicted` were never scored: the queue was full.",
            queries=(Query(rate("checkstream_job_events_total", "event", _I), "{{event}}"),),
        ),
    ),
    is_open=False,
)
