from __future__ import annotations

import pytest

from checkstream.processes.cores import cores, within, workers_of
from checkstream.processes.restarts import Restarts


def test_a_crash_is_made_good_at_once_and_one_after_another_ever_later() -> None:
    restarts = Restarts()
    waits = [restarts.after("crash", 1.0, 1.0) for _ in range(12)]
    assert waits[0] == 0.0
    assert waits[1:6] == [0.4, 0.8, 1.6, 3.2, 6.4]
    assert waits == sorted(waits)
    assert waits[-1] == 30.0
    assert restarts.count == 12


def test_a_process_that_has_lived_long_was_sound() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.after("crash", 1.0, 1.0)
    assert restarts.after("hang", 61.0, 1.0) == 0.0


def test_one_that_could_not_start_is_not_started_again_at_once() -> None:
    assert Restarts().after("start", 0.0, 0.0) > 0.0


@pytest.mark.parametrize("draw", [0.0, 0.5, 1.0])
def test_chance_never_makes_a_delay_next_to_nothing(draw: float) -> None:
    restarts = Restarts()
    restarts.after("crash", 0.0, draw)
    assert 0.2 <= restarts.after("crash", 0.0, draw) <= 0.4


@pytest.mark.parametrize(
    ("allowed", "quotas", "found"),
    [
        (8, [], 8),
        (8, ["max 100000\n"], 8),
        (8, ["200000 100000\n"], 2),
        (8, ["250000 100000\n"], 2),  # half a core is none
        (8, ["50000 100000\n"], 1),
        (8, ["max 100000", "300000 100000", "400000 100000"], 3),  # the tightest of all groups
        (2, ["800000 100000"], 2),
        (4, ["", "nonsense", "1 2 3", "-1 100000", "100000 0"], 4),
    ],
)
def test_cores_are_those_that_control_groups_allow(allowed: int, quotas: list[str], found: int) -> None:
    assert within(allowed, quotas) == found


def test_auto_is_one_process_a_core() -> None:
    assert workers_of("auto") == cores() >= 1
    assert workers_of(7) == 7
