"""What a proxy tells of itself is what its metrics say, whether of one process or of several."""

from __future__ import annotations

import msgspec

from checkstream.control.attestation import Running
from checkstream.processes.judged import SinceBundle, counted_by, counted_in
from checkstream.processes.whole import _NOTHING
from checkstream.proxy.health import Status
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import figures, summed

C = "c" * 64


def counted(scale: int) -> Metrics:
    metrics = Metrics()
    outcomes = {"complete": 5, "refused": 2, "stopped": 1, "detector_failed": 1, "upstream_failed": 1, "failed": 1}
    for outcome, times in outcomes.items():
        metrics.exchanges.of("chat", outcome).inc(times * scale)
        metrics.exchanges.of("other", outcome).inc(scale)
    for _ in range(scale):
        metrics.policy.of("chat").observe(0.00002)
        metrics.policy.of("other").observe(1.0)
        metrics.check.of("a").observe(0.3)
        metrics.check.of("b").observe(0.0)
        metrics.scores.count({"safety.toxic": 0.5}, "ingress")
    return metrics


def test_figures_are_those_of_the_metrics_over_all_routes_and_detectors() -> None:
    found = counted_by(counted(2))
    assert (found.exchanges, found.refusals, found.stops, found.failures) == (34, 6, 4, 8)
    assert found.times["policy"] == (0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2)
    assert (found.times["check"][0], found.times["check"][-1], sum(found.times["check"])) == (2, 2, 4)
    (scores,) = found.scores.values()
    assert list(found.scores) == ["safety.toxic ingress"]
    assert sum(scores) == 2


def test_figures_of_several_processes_are_their_sums() -> None:
    one, two = counted(1), counted(2)
    together = counted_in(summed((figures(one), figures(two))))
    assert together == counted_in(figures(counted(3))) == counted_by(counted(3))


def status(digest: str) -> Status:
    return msgspec.structs.replace(_NOTHING, bundle=f"retail@7#{digest[:12]}", bundle_digest=digest, configuration=C)


def test_each_bundle_is_told_what_was_done_under_it() -> None:
    now = [100.0]
    metrics, since = Metrics(), SinceBundle("r", clock=lambda: now[0])

    def told(digest: str) -> Running:
        return since.running(status(digest), counted_by(metrics))

    metrics.exchanges.of("chat", "complete").inc(3)
    now[0] = 107.0
    one = told("1" * 64)
    assert (one.bundle, one.bundle_version, one.configuration) == ("1" * 64, "7", C)
    assert one.figures is not None
    assert (one.figures.exchanges, one.figures.stops) == (3, 0)  # what came before the first word is the first's
    since.begin("2" * 64, counted_by(metrics))
    metrics.exchanges.of("chat", "stopped").inc(2)
    metrics.policy.of("chat").observe(0.1)
    two = told("2" * 64)
    assert two.figures is not None
    assert (two.figures.exchanges, two.figures.stops, sum(two.figures.times["policy"])) == (2, 2, 1)
    assert two.figures.run != one.figures.run
    assert (one.figures.age_s, two.figures.age_s) == (7, 0)
    metrics.exchanges.of("chat", "stopped").inc(1)
    again = told("2" * 64)
    assert again.figures is not None
    assert (again.figures.run, again.figures.exchanges) == (two.figures.run, 3)


def test_an_heir_does_not_tell_again_what_its_elder_has_told() -> None:
    metrics, since = counted(1), SinceBundle("r", heir=True)
    told = since.running(status("1" * 64), counted_by(metrics)).figures
    assert told is not None
    assert (told.exchanges, told.stops) == (0, 0)
    metrics.exchanges.of("chat", "stopped").inc()
    told = since.running(status("1" * 64), counted_by(metrics)).figures
    assert told is not None
    assert (told.exchanges, told.stops) == (1, 1)
