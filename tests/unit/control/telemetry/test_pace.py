from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.telemetry.pace import Pace

_DRAW = st.floats(0, 1)


@given(st.lists(_DRAW, min_size=1, max_size=50))
def test_waits_double_up_to_a_minute_and_are_never_next_to_nothing(draws: list[float]) -> None:
    pace = Pace(idle_s=1.0, most_bytes=1 << 20)
    for number, draw in enumerate(draws):
        whole = min(60.0, 2.0**number)
        assert whole / 2 <= pace.failed(draw) <= whole
    assert pace.went(more=False) == 1.0
    assert pace.went(more=True) == 0.0
    assert pace.failed(1.0) == 1.0


@given(_DRAW, st.floats(0, 1e9))
def test_what_the_receiver_asks_for_is_waited_within_reason(draw: float, asked_s: float) -> None:
    wait_s = Pace(idle_s=1.0, most_bytes=1 << 20).failed(draw, asked_s)
    assert min(asked_s, 600.0) <= wait_s <= 600.0


def test_what_is_too_large_is_halved_and_grows_again() -> None:
    pace = Pace(idle_s=1.0, most_bytes=1 << 20)
    assert pace.too_large(0.5) == 0.0
    assert pace.bytes == 1 << 19
    for _ in range(10):
        wait_s = pace.too_large(0.5)
    assert pace.bytes == 16_384
    assert wait_s > 0, "it is waited, since less can't be sent"
    for _ in range(10):
        pace.went(more=True)
    assert pace.bytes == 1 << 20
