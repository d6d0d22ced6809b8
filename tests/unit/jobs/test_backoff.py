from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.jobs.backoff import Backoff, retry_after

DRAWS = st.floats(0, 1)


def test_delays_double_up_to_the_longest_and_the_last_attempt_has_none() -> None:
    backoff = Backoff(first_s=4.0, longest_s=20.0, attempts=5)
    assert [retry_after(backoff, attempt, 1.0) for attempt in range(1, 7)] == [4.0, 8.0, 16.0, 20.0, None, None]
    assert retry_after(backoff, 2, 0.0) == 4.0


@given(st.integers(1, 10_000), DRAWS, st.floats(0.001, 1e6), st.floats(0.001, 1e6))
def test_a_delay_is_within_half_of_the_longest_and_never_overflows(
    attempt: int, draw: float, first: float, more: float
) -> None:
    backoff = Backoff(first_s=first, longest_s=first + more, attempts=20_000)
    delay = retry_after(backoff, attempt, draw)
    assert delay is not None
    assert first / 2 <= delay <= backoff.longest_s


@given(st.integers(1, 100), DRAWS, DRAWS)
def test_the_spread_never_makes_an_earlier_attempt_wait_longer_than_a_later_ones_most(
    attempt: int, one: float, two: float
) -> None:
    backoff = Backoff(attempts=1000)
    earlier, later = retry_after(backoff, attempt, one), retry_after(backoff, attempt + 1, two)
    assert earlier is not None
    assert later is not None
    assert earlier <= 2 * later
