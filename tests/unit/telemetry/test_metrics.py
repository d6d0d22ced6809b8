from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import REGISTRY, CollectorRegistry, Histogram, generate_latest
from prometheus_client.parser import text_string_to_metric_families

import checkstream.telemetry
from checkstream.telemetry.drift import BINS, LEAST, ks, psi
from checkstream.telemetry.metrics import SPECS, Metrics
from checkstream.telemetry.tallies import MAX_SERIES

TIMES = next(spec.buckets for spec in SPECS if spec.name == "checkstream_hold_seconds")
README = Path(checkstream.telemetry.__file__).with_name("README.md")


def samples(metrics: Metrics) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(metrics.render().decode())
        for sample in family.samples
    }


def test_the_readme_lists_every_metric_as_it_is() -> None:
    rows = [line for line in README.read_text("utf-8").splitlines() if line.startswith("| `checkstream_")]
    expected = [
        f"| `{spec.name}` | {spec.kind} | {', '.join(f'`{label}`' for label in spec.labels)} | {spec.help} |"
        for spec in SPECS
    ]
    assert rows == expected


def test_the_readme_lists_the_buckets_of_every_histogram() -> None:
    rows = [line for line in README.read_text("utf-8").splitlines() if line.startswith("- `checkstream_")]
    expected = [f"- `{s.name}`: {', '.join(f'{end:g}' for end in s.buckets)}" for s in SPECS if s.kind == "histogram"]
    assert rows == expected


def test_every_metric_of_the_table_is_rendered_and_no_other() -> None:
    text = Metrics().render().decode()
    rendered = {line.split()[2] for line in text.splitlines() if line.startswith("# HELP checkstream_")}
    assert {name for name in rendered if not name.endswith("_created")} == {spec.name for spec in SPECS}


def test_the_libraries_global_registry_stays_empty_of_ours() -> None:
    Metrics()
    Metrics()  # two live side by side
    assert not [family.name for family in REGISTRY.collect() if family.name.startswith("checkstream")]


def test_counts_appear_with_their_labels() -> None:
    metrics = Metrics()
    metrics.requests.of("chat", "200").inc()
    metrics.streams.inc()
    metrics.verdicts.of("redact", "PII-001", "midstream", "enforce", "pii-basic").inc()
    metrics.verdicts.of("redact", "PII-001", "midstream", "enforce", "pii-basic").inc()
    metrics.degraded.of("deadline").inc()
    metrics.tokens.of("chat", "gpt-4o", "in").inc(12)
    metrics.tokens.of("chat", "gpt-4o", "out").inc(34)
    metrics.check.of("lexicon").observe(0.0003)
    metrics.scores.count({"lexicon.toxicity": 0.9}, "midstream")
    metrics.hold.of("chat").observe(0.02)
    found = samples(metrics)
    assert found["checkstream_requests_total", (("route", "chat"), ("status", "200"))] == 1
    assert found["checkstream_streams", ()] == 1
    labels = {"action": "redact", "mode": "enforce", "policy": "pii-basic", "rule_id": "PII-001", "stage": "midstream"}
    assert found["checkstream_verdicts_total", tuple(labels.items())] == 2
    assert found["checkstream_degraded_total", (("reason", "deadline"),)] == 1
    whose = ("model", "gpt-4o"), ("route", "chat")
    assert found["checkstream_tokens_total", (("direction", "in"), *whose)] == 12
    assert found["checkstream_tokens_total", (("direction", "out"), *whose)] == 34
    assert found["checkstream_check_seconds_bucket", (("detector", "lexicon"), ("le", "0.0005"))] == 1
    assert found["checkstream_check_seconds_bucket", (("detector", "lexicon"), ("le", "0.00025"))] == 0
    whose = ("classifier", "lexicon.toxicity"), ("stage", "midstream")
    assert found["checkstream_score_count", whose] == 1
    assert found["checkstream_score_sum", whose] == 0.9
    assert found["checkstream_score_bucket", (whose[0], ("le", "0.8"), whose[1])] == 0
    assert found["checkstream_score_bucket", (whose[0], ("le", "0.9"), whose[1])] == 1
    assert found["checkstream_score_day", (whose[0], ("le", "+Inf"), whose[1])] == 1
    assert found["checkstream_hold_seconds_sum", (("route", "chat"),)] == 0.02


def test_a_child_is_bound_once() -> None:
    metrics = Metrics()
    assert metrics.check.of("lexicon") is metrics.check.of("lexicon")


def test_wrong_labels_are_a_bug() -> None:
    with pytest.raises(ValueError, match="2 label values for 1 labels"):
        Metrics().check.of("lexicon", "midstream")


def test_g22_the_number_of_series_is_bounded() -> None:
    metrics = Metrics()
    for number in range(MAX_SERIES + 500):
        metrics.degraded.of(f"r{number}").inc()
    found = {
        labels: value for (name, labels), value in samples(metrics).items() if name == "checkstream_degraded_total"
    }
    assert len(found) == MAX_SERIES + 1
    assert found[(("reason", "other"),)] == 500
    assert len(metrics.degraded._children) == MAX_SERIES


@given(st.lists(st.one_of(st.sampled_from([0.0, *TIMES]), st.floats(0, 10)), max_size=50))
def test_a_tally_counts_as_the_librarys_histogram_does(values: list[float]) -> None:
    spec = next(spec for spec in SPECS if spec.name == "checkstream_hold_seconds")
    metrics, registry = Metrics(), CollectorRegistry()
    theirs = Histogram(spec.name, spec.help, spec.labels, registry=registry, buckets=spec.buckets)
    for number, value in enumerate(values):
        route = f"r{number % 2}"
        metrics.hold.of(route).observe(value)
        theirs.labels(route).observe(value)
    expected = {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(generate_latest(registry).decode())
        for sample in family.samples
        if not sample.name.endswith("_created")
    }
    found = samples(metrics)
    assert {key: value for key, value in found.items() if key[0].startswith(spec.name)} == expected


def test_scores_enough_are_held_against_what_they_were() -> None:
    metrics = Metrics()
    key = ("safety.hate", "midstream")
    metrics.scores.expect({key: [100] * BINS})
    for _ in range(LEAST["midstream"] - 1):
        metrics.scores.count({"safety.hate": 0.4}, "midstream")
    labels = (("classifier", "safety.hate"), ("stage", "midstream"))
    assert ("checkstream_drift_psi", labels) not in samples(metrics)
    metrics.scores.count({"safety.hate": 0.4, "own.hate": 0.4}, "midstream")
    found = samples(metrics)
    assert found["checkstream_drift_ks", labels] == ks([100] * BINS, metrics.scores.today[key])
    assert found["checkstream_drift_psi", labels] == psi([100] * BINS, metrics.scores.today[key])
    assert found["checkstream_score_reference", (labels[0], ("le", "+Inf"), labels[1])] == 100 * BINS
    own = [labels for _, labels in found if ("classifier", "own.hate") in labels]
    assert own
    assert not [name for name, labels in found if labels in own and "day" not in name and "score_" not in name]


def test_g22_the_series_of_what_the_loop_counts_are_bounded_too() -> None:
    metrics = Metrics()
    for number in range(MAX_SERIES + 500):
        metrics.hold.of(f"r{number}").observe(0.01)
    found = {labels: value for (name, labels), value in samples(metrics).items() if name.endswith("hold_seconds_count")}
    assert len(found) == MAX_SERIES + 1
    assert found[(("route", "other"),)] == 500
    with pytest.raises(ValueError, match="2 label values for 1 labels"):
        metrics.hold.of("a", "b")


def test_of_policies_those_are_told_that_are_in_force() -> None:
    metrics = Metrics()
    metrics.in_force([("chat", "pii@1"), ("chat", "own@2"), ("embed", "pii@1")])
    metrics.in_force([("chat", "pii@2")])
    found = {labels: value for (name, labels), value in samples(metrics).items() if name.endswith("route_policies")}
    assert found == {(("policy", "pii@2"), ("route", "chat")): 1.0}


def test_what_alerts_count_the_first_of_is_told_before_it_happens() -> None:
    found = samples(Metrics())
    for spec in SPECS:
        for value in spec.begins:
            (label,) = spec.labels
            assert found[spec.name, ((label, value),)] == 0
