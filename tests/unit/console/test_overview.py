"""The view of what happens now: what counts as kept back, and lines that are drawn only where there are some."""

from __future__ import annotations

from checkstream.console.totals import EVERY_S, Ring, keyed
from checkstream.console.views.overview import charts_of, overview
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import figures
from tests.console_facts import status


def test_what_is_kept_back_is_what_enforced_rules_changed_or_stopped_apart_for_prompts_and_answers() -> None:
    metrics, ring = Metrics(), Ring()
    ring.take(0, keyed(figures(metrics)))
    for action, stage, mode, count in (
        ("redact", "midstream", "enforce", 3),
        ("stop", "midstream", "enforce", 1),
        ("safe_mode", "midstream", "enforce", 2),
        ("safe_mode", "ingress", "enforce", 6),
        ("redact", "midstream", "shadow", 9),
        ("reject", "ingress", "enforce", 4),
        ("log_event", "ingress", "enforce", 7),
        ("allow", "midstream", "enforce", 5),
    ):
        metrics.verdicts.of(action, f"R-{action}", stage, mode, "default@2.4.0").inc(count)
    for code, count in (("200", 8), ("400", 2), ("503", 1)):
        metrics.requests.of("chat", code).inc(count)
    metrics.exchanges.of("chat", "complete").inc(8)
    metrics.upstream_errors.of("chat", "timeout").inc()
    for waited in (0.004, 0.004, 0.2):
        metrics.hold.of("chat").observe(waited)
    metrics.tokens.of("chat", "m", "out").inc(70)
    ring.take(60, keyed(figures(metrics)))
    view = overview(status(), ring, "127.0.0.1:1")
    assert (view.kept_answers, view.kept_prompts) == (6, 4)
    assert (view.requests, view.refused, view.failed, view.per_minute) == (11, 2, 1, 11)
    assert [(row.rule, row.mode, row.count) for row in view.fired[:2]] == [
        ("R-redact", "shadow", 9),
        ("R-log_event", "enforce", 7),
    ]
    assert [(row.what, row.count) for row in (*view.exchanges, *view.upstream)] == [("complete", 8), ("timeout", 1)]
    held = view.times[1].quantiles
    assert held.count == 3
    assert held.at[0] is not None
    assert 0.0025 <= held.at[0] <= 0.005
    assert (view.tokens_in, view.tokens_out, view.quiet, view.degraded) == (0, 70, False, ())


def test_of_very_many_rules_the_most_frequent_are_shown_and_the_rest_is_counted() -> None:
    metrics, ring = Metrics(), Ring()
    ring.take(0, {})
    for at in range(250):
        metrics.verdicts.of("redact", f"R-{at}", "midstream", "enforce", "default@2.4.0").inc(at + 1)
    ring.take(10, keyed(figures(metrics)))
    view = overview(status(), ring, "")
    assert (len(view.fired), view.more_fired, view.fired[0].rule) == (200, 50, "R-249")


def test_charts_have_rates_of_each_part_and_nothing_is_drawn_of_nothing() -> None:
    metrics, ring = Metrics(), Ring()
    assert charts_of(ring) == ()
    for at in range(4):
        ring.take(at * EVERY_S, keyed(figures(metrics)))
        metrics.requests.of("chat", "200").inc(at)
        metrics.hold.of("chat").observe(9.0)
    traffic, waits = charts_of(ring)
    assert traffic.lines[0].values == (0.0, 6.0, 12.0)
    assert traffic.at == (10.0, 20.0, 30.0)
    assert waits.lines[0].values == (5000.0, 5000.0, 5000.0)  # beyond the last bin
    assert waits.lines[1].values == (None, None, None)
