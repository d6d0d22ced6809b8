"""What was counted in an hour: differences of sums, quantiles of bins, and a bound on what is kept."""

from __future__ import annotations

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.console.totals import EVERY_S, HOUR_S, NAMES, SLOTS, Key, Moved, Ring, keyed
from checkstream.telemetry.metrics import SPECS, Metrics
from checkstream.telemetry.totals import figures, some

NAME = "checkstream_requests_total"
BOUNDS = (1.0, 2.0, 4.0, 8.0)


def key(route: str) -> Key:
    return (NAME, (("route", route),))


growing = st.lists(st.dictionaries(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=80)


@given(growing)
def test_all_that_moved_is_the_last_sum_less_the_first_and_that_of_the_parts(steps: list[dict[str, int]]) -> None:
    ring, sums, first = Ring(), dict[str, float](), dict[str, float]()
    for at, step in enumerate(steps):
        for route, more in step.items():
            sums[route] = sums.get(route, 0) + more
        ring.take(at * EVERY_S, {key(route): value for route, value in sums.items()})
        first = first or dict(sums) if at == 0 else first
    moved = ring.moved()
    assert {route: moved.total(NAME, lambda of, r=route: of["route"] == r) for route in sums} == {  # type: ignore[misc]
        route: value - first.get(route, 0) for route, value in sums.items()
    }
    if len(steps) <= SLOTS:
        assert sum(slot.total(NAME) for slot in ring.slots()) == moved.total(NAME)
        assert sum(slot.seconds for slot in ring.slots()) == moved.seconds


def test_an_hour_is_kept_and_no_more_whatever_comes() -> None:
    ring = Ring()
    for at in range(1000):
        ring.take(at * EVERY_S, {key("a"): at})
    assert ring.moved().seconds == HOUR_S
    assert ring.moved().total(NAME) == HOUR_S / EVERY_S
    slots = list(ring.slots())
    assert len(slots) == SLOTS
    assert {slot.total(NAME) for slot in slots} == {HOUR_S / EVERY_S / SLOTS}
    assert len(ring._taken) == HOUR_S / EVERY_S + 1


def test_counters_beyond_the_most_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkstream.console.totals._MOST", 3)
    ring = Ring()
    for at in range(9):
        ring.take(at, {key(str(name)): at for name in range(at)})
    assert len(ring._places) == 3


def test_a_clock_that_was_set_back_begins_anew_and_a_sum_that_fell_has_not_moved() -> None:
    ring = Ring()
    ring.take(100.0, {key("a"): 5})
    ring.take(50.0, {key("a"): 7})
    assert ring.moved().seconds == 0
    ring.take(60.0, {key("a"): 3})
    assert ring.moved().total(NAME) == 0


def test_what_is_taken_later_changes_no_copy() -> None:
    ring = Ring()
    ring.take(0.0, {key("a"): 1})
    copy = ring.upto(10.0, {key("a"): 4, key("b"): 1})
    ring.take(10.0, {key("c"): 9})
    assert copy.moved().by_label(NAME, "route") == {("a",): 3, ("b",): 1}
    assert len(ring._taken) == 2


@given(st.lists(st.floats(0, 20), min_size=1, max_size=60), st.sampled_from([0.5, 0.95, 0.99]))
def test_a_quantile_lies_in_the_bin_of_the_value_at_its_place(values: list[float], share: float) -> None:
    by: dict[Key, float] = {}
    for route, own in (("a", values[::2]), ("b", values[1::2])):
        by["h_count", (("route", route),)] = len(own)
        for end in (*BOUNDS, math.inf):
            label = "+Inf" if math.isinf(end) else str(end)
            by["h_bucket", (("route", route), ("le", label))] = sum(value <= end for value in own)
    found = Moved(0, 1, by).quantiles("h", (share,))
    exact = sorted(values)[math.ceil(share * len(values)) - 1]
    place = bisect_left(BOUNDS, exact)
    assert found.count == len(values)
    (at,) = found.at
    assert at is not None
    if place == len(BOUNDS):
        assert math.isinf(at)
    else:
        assert (0.0, *BOUNDS)[place] <= at <= BOUNDS[place]


def test_of_nothing_there_is_no_quantile() -> None:
    assert Moved(0, 1, {}).quantiles("h", (0.5, 0.99)).at == (None, None)


def test_the_metrics_that_are_looked_at_exist_and_are_all_that_is_collected() -> None:
    assert {spec.name for spec in SPECS} >= NAMES
    metrics = Metrics()
    metrics.requests.of("chat", "200").inc(2)
    metrics.hold.of("chat").observe(0.01)
    told = tuple(some(metrics, NAMES))
    counted = keyed(told)
    assert counted[(NAME, (("status", "200"),))] == 2
    assert counted[("checkstream_hold_seconds_count", ())] == 1
    assert {family.name for family in told} == {
        family.name
        for family in figures(metrics)
        if family.samples and family.name in {name.removesuffix("_total") for name in NAMES}
    }
    assert not [name for name, _ in counted if name.endswith("_created")]


def test_a_rule_that_fires_is_seen_beside_however_many_routes_and_models() -> None:
    metrics, ring = Metrics(), Ring()
    for route in range(200):
        metrics.hold.of(f"r{route}").observe(0.01)
        metrics.added_ttft.of(f"r{route}").observe(0.01)
        for model in range(10):
            metrics.tokens.of(f"r{route}", f"m{model}", "out").inc(3)
    ring.take(0.0, keyed(tuple(some(metrics, NAMES))))
    metrics.verdicts.of("stop", "rule", "midstream", "enforce", "p@1").inc(2)
    metrics.verdicts.of("stop", "rule", "midstream", "enforce", "p@2").inc(5)
    metrics.tokens.of("r7", "m7", "out").inc(4)
    ring.take(10.0, keyed(tuple(some(metrics, NAMES))))
    moved = ring.moved()
    assert moved.by_label("checkstream_verdicts_total", "rule_id") == {("rule",): 7}
    assert moved.total("checkstream_tokens_total") == 4
    assert ring.newest[("checkstream_hold_seconds_count", ())] == 200
