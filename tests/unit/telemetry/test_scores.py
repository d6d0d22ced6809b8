"""Counts of scores: all of them, and those of the last 24 hours."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.telemetry.drift import BINS, bin_of
from checkstream.telemetry.scores import MOST, Scores

HOUR = 3600.0
KEY = ("m.a", "ingress")


class Clock:
    now = 10.0

    def __call__(self) -> float:
        return self.now


def counted(score: float, number: int = 1) -> list[int]:
    return [number if at == bin_of(score) else 0 for at in range(BINS)]


@given(st.lists(st.tuples(st.floats(0, 3 * 24 * HOUR), st.floats(0, 1)), max_size=40), st.floats(0, 2 * 24 * HOUR))
def test_the_day_has_what_was_counted_in_its_24_hours(events: list[tuple[float, float]], later: float) -> None:
    clock = Clock()
    scores = Scores(clock)
    events.sort()
    for at, score in events:
        clock.now = at
        scores.count({"m.a": score}, "ingress")
    clock.now = (events[-1][0] if events else 0.0) + later
    hour = int(clock.now // HOUR)
    kept = [score for at, score in events if int(at // HOUR) > hour - 24]
    expected = [sum(column) for column in zip(*map(counted, kept), strict=True)] or [0] * BINS
    assert scores.today.get(KEY, [0] * BINS) == expected
    assert sum(scores.total[KEY].counts if events else []) == len(events)
    assert len(scores._before) <= 24


def test_stages_are_counted_apart() -> None:
    scores = Scores(Clock())
    scores.count({"m.a": 0.9}, "ingress")
    scores.count({"m.a": 0.1, "m.b": 0.2}, "midstream")
    assert scores.today == {
        KEY: counted(0.9),
        ("m.a", "midstream"): counted(0.1),
        ("m.b", "midstream"): counted(0.2),
    }


def test_another_reference_begins_the_day_of_its_model_anew() -> None:
    clock = Clock()
    scores = Scores(clock)
    scores.expect({KEY: [1] * BINS, ("m.b", "ingress"): [1] * BINS})
    scores.count({"m.a": 0.9, "m.b": 0.9}, "ingress")
    clock.now += HOUR
    scores.expect({KEY: [1] * BINS, ("m.b", "ingress"): [2] * BINS})
    scores.count({"m.a": 0.9, "m.b": 0.9}, "ingress")
    assert scores.today == {KEY: counted(0.9, 2), ("m.b", "ingress"): counted(0.9)}
    assert scores.reference == {KEY: [1] * BINS, ("m.b", "ingress"): [2] * BINS}
    assert sum(scores.total["m.b", "ingress"].counts) == 2


def test_what_is_not_scored_has_no_reference_to_show() -> None:
    scores = Scores(Clock())
    scores.expect({KEY: [1] * BINS})
    assert scores.reference == {}


def test_g22_the_memory_is_bounded_whatever_models_are_called() -> None:
    clock = Clock()
    scores = Scores(clock)
    for hour in range(60):
        clock.now = hour * HOUR
        scores.count({f"m.{hour}x{number}": 0.5 for number in range(50)}, "ingress")
    assert len(scores.total) == MOST + 1
    assert sum(sum(tally.counts) for tally in scores.total.values()) == 60 * 50
    held = sum(sys.getsizeof(copy) for before in scores._before.values() for copy in before.values())
    assert len(scores._before) == 24
    assert held < 24 * (MOST + 1) * 300


def test_there_are_two_stages() -> None:
    with pytest.raises(KeyError):
        Scores().count({"m.a": 0.5}, "egress")
