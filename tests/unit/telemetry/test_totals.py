from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

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
        metrics.hold.observe(0.02)
    return metrics


def test_one_process_is_rendered_as_it_renders_itself() -> None:
    metrics = counted(3, 2, 5)
    assert rendered(heard(told(metrics))) == metrics.render()


def test_counters_histograms_and_gauges_add_up_but_for_what_is_common() -> None:
    found = samples(summed(figures(each) for each in (counted(3, 2, 5), counted(4, 1, 5))))
    assert found["checkstream_requests_total", (("route", "chat"), ("status", "200"))] == 7
    assert found["checkstream_streams", ()] == 3
    assert found["checkstream_conversations", ()] == 5
    assert found["checkstream_hold_seconds_count", ()] == 7
    assert found["checkstream_hold_seconds_bucket", (("le", "+Inf"),)] == 7
    assert found["checkstream_hold_seconds_bucket", (("le", "0.005"),)] == 0


def test_what_a_process_has_counted_outlives_it_and_its_gauges_do_not() -> None:
    ended = lasting(figures(counted(3, 2, 5)))
    found = samples(summed((ended, figures(counted(1, 1, 4)))))
    assert found["checkstream_requests_total", (("route", "chat"), ("status", "200"))] == 4
    assert found["checkstream_hold_seconds_count", ()] == 4
    assert found["checkstream_streams", ()] == 1
    assert found["checkstream_conversations", ()] == 4


def test_labels_that_one_process_alone_has_stay() -> None:
    one, other = Metrics(), Metrics()
    one.degraded.of("deadline").inc()
    other.degraded.of("crash").inc(2)
    found = samples(summed((figures(one), figures(other))))
    assert found["checkstream_degraded_total", (("reason", "deadline"),)] == 1
    assert found["checkstream_degraded_total", (("reason", "crash"),)] == 2
