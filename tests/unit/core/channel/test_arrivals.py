"""When text came: the newest moments exactly, older ones never too late, in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.arrivals import Arrivals

STEPS = st.lists(st.tuples(st.integers(1, 9), st.sampled_from((0.0, 0.5, 2.0))), max_size=60)
MOST = 512


class Clock:
    def __init__(self) -> None:
        self.now = 100.0


def fed(steps: list[tuple[int, float]]) -> tuple[Clock, Arrivals, list[float]]:
    """Feed texts of some lengths after some pauses; return also when each character came."""
    clock, came = Clock(), list[float]()
    arrivals = Arrivals(clock)
    for chars, pause in steps:
        clock.now += pause
        arrivals.note(len(came))
        came += [clock.now] * chars
    return clock, arrivals, came


@given(STEPS, st.sampled_from((0.0, 3.0)))
def test_each_character_came_when_its_text_came(steps: list[tuple[int, float]], later: float) -> None:
    clock, arrivals, came = fed(steps)
    clock.now += later
    assert [arrivals.since(place) for place in range(len(came))] == [clock.now - moment for moment in came]
    ages = arrivals.ages
    assert [start for start, _ in ages] == sorted({start for start, _ in ages})
    assert all(age == clock.now - came[start] for start, age in ages if start < len(came))
    assert arrivals.since(1 << 62) == clock.now - (came[-1] if came else 100.0)


def test_of_very_many_moments_the_newest_are_exact_and_none_is_told_too_late() -> None:
    clock, arrivals, came = fed([(1, 0.02)] * 20_000)
    newest = range(len(came) - MOST // 2, len(came))
    assert [arrivals.since(place) for place in newest] == [clock.now - came[place] for place in newest]
    assert all(arrivals.since(place) >= clock.now - came[place] for place in range(0, len(came), 7))
    assert len(arrivals._starts) == len(arrivals._moments) <= MOST


def test_a_clock_that_goes_back_makes_no_time_negative() -> None:
    clock, arrivals, _ = fed([(5, 1.0)])
    clock.now -= 50
    assert arrivals.since(2) == 0.0
