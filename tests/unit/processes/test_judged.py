"""What a proxy tells of itself is what its metrics say, whether of one process or of several."""

from __future__ import annotations

from checkstream.processes.judged import figures_of
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import family_of, figures, summed


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
    found = figures_of(map(family_of, counted(2).judged()), "r1")
    assert (found.run, found.exchanges, found.refusals, found.stops, found.failures) == ("r1", 34, 6, 4, 8)
    assert found.times["policy"] == (0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 2)
    assert (found.times["check"][0], found.times["check"][-1], sum(found.times["check"])) == (2, 2, 4)
    (scores,) = found.scores.values()
    assert list(found.scores) == ["safety.toxic ingress"]
    assert sum(scores) == 2


def test_figures_of_several_processes_are_their_sums() -> None:
    one, two = counted(1), counted(2)
    together = figures_of(summed((figures(one), figures(two))), "r")
    assert together == figures_of(figures(counted(3)), "r")
