from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from checkstream.telemetry.drift import BINS, LEAST, bin_of, ks, psi
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Figures, figures, heard, lasting, rendered, summed, told


def samples(figures: Figures) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(rendered(figures).decode())
        for sample in family.samples
    }


def counted(requests: int, streams: int, conversations: int) -> Metrics:
    metrics = Metrics()
    metrics.requests.of("chat", "200").inc(requests)
    metrics.streams.set(streams)
    metrics.conversations.set(conversations)
    for _ in range(requests):
        metrics.hold.of("chat").observe(0.02)
    return metrics


def test_one_process_is_rendered_as_it_renders_itself() -> None:
    metrics = counted(3, 2, 5)
    assert rendered(heard(told(metrics))) == metrics.render()


def test_counters_histograms_and_gauges_add_up_but_for_what_is_common() -> None:
    found = samples(summed(figures(each) for each in (counted(3, 2, 5), counted(4, 1, 5))))
    assert found["checkstream_requests_total", (("route", "chat"), ("status", "200"))] == 7
    assert found["checkstream_streams", ()] == 3
    assert found["checkstream_conversations", ()] == 5
    assert found["checkstream_hold_seconds_count", (("route", "chat"),)] == 7
    assert found["checkstream_hold_seconds_bucket", (("le", "+Inf"), ("route", "chat"))] == 7
    assert found["checkstream_hold_seconds_bucket", (("le", "0.005"), ("route", "chat"))] == 0


def test_what_a_process_has_counted_outlives_it_and_its_gauges_do_not() -> None:
    ended = lasting(figures(counted(3, 2, 5)))
    found = samples(summed((ended, figures(counted(1, 1, 4)))))
    assert found["checkstream_requests_total", (("route", "chat"), ("status", "200"))] == 4
    assert found["checkstream_hold_seconds_count", (("route", "chat"),)] == 4
    assert found["checkstream_streams", ()] == 1
    assert found["checkstream_conversations", ()] == 4


def test_labels_that_one_process_alone_has_stay() -> None:
    one, other = Metrics(), Metrics()
    one.degraded.of("deadline").inc()
    other.degraded.of("crash").inc(2)
    found = samples(summed((figures(one), figures(other))))
    assert found["checkstream_degraded_total", (("reason", "deadline"),)] == 1
    assert found["checkstream_degraded_total", (("reason", "crash"),)] == 2


HATE = ("safety.hate", "midstream")
LABELS = (("classifier", "safety.hate"), ("stage", "midstream"))


def scored(number: int, score: float, reference: list[int] | None = None) -> Metrics:
    metrics = Metrics()
    metrics.scores.expect({HATE: reference or [100] * BINS})
    for _ in range(number):
        metrics.scores.count({"safety.hate": score}, "midstream")
    return metrics


def test_how_far_scores_have_drifted_is_reckoned_from_all_of_them() -> None:
    half = LEAST["midstream"] // 2
    one, other = figures(scored(half, 0.4)), figures(scored(half, 0.0))
    assert ("checkstream_drift_psi", LABELS) not in samples(one)
    together = summed((one, other, figures(Metrics())))
    found = samples(together)
    day = [half if number in (bin_of(0.4), bin_of(0.0)) else 0 for number in range(BINS)]
    assert found["checkstream_drift_psi", LABELS] == psi([100] * BINS, day)
    assert found["checkstream_drift_ks", LABELS] == ks([100] * BINS, day)
    assert found["checkstream_score_reference", (LABELS[0], ("le", "+Inf"), LABELS[1])] == 100 * BINS
    again = samples(summed((together, figures(Metrics()))))
    assert {key: again[key] for key in found if "created" not in key[0]} == {
        key: value for key, value in found.items() if "created" not in key[0]
    }


def test_two_figures_are_never_added_up() -> None:
    each = [figures(scored(LEAST["midstream"], 0.4)) for _ in range(2)]
    assert samples(summed(each))["checkstream_drift_psi", LABELS] == samples(each[0])["checkstream_drift_psi", LABELS]


def test_a_process_that_ended_takes_its_part_of_the_day_along_and_its_scores_stay() -> None:
    ended = lasting(figures(scored(LEAST["midstream"], 0.4)))
    found = samples(summed((ended, figures(scored(1, 0.0)))))
    assert found["checkstream_score_count", LABELS] == LEAST["midstream"] + 1
    assert found["checkstream_score_day", (LABELS[0], ("le", "+Inf"), LABELS[1])] == 1
    assert ("checkstream_drift_psi", LABELS) not in found


def test_a_process_of_a_version_without_it_is_added_as_it_was() -> None:
    before = tuple(family for family in figures(Metrics()) if "drift" not in family.name and "_day" not in family.name)
    names = {family.name for family in summed((before,))}
    assert names == {family.name for family in before}
