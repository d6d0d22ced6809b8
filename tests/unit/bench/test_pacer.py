from __future__ import annotations

import pytest

from bench.pacer import Due, Pacer


def test_a_stream_is_due_at_its_start_and_then_at_its_rate() -> None:
    pacer = Pacer(per_s=4)
    pacer.add(7, 10.0)
    assert pacer.due(9.99) == []
    assert pacer.due(10.0) == [Due(10.0, 7, 0)]
    assert pacer.due(10.2) == []
    assert pacer.due(10.25) == [Due(10.25, 7, 1)]


def test_what_was_missed_comes_at_once_and_says_when_it_was_due() -> None:
    pacer = Pacer(per_s=2)
    pacer.add(1, 0.0)
    assert [due.at_s for due in pacer.due(2.0)] == [0.0, 0.5, 1.0, 1.5, 2.0]
    assert pacer.due(2.0) == []


def test_streams_keep_their_own_starts_and_come_in_the_order_of_the_schedule() -> None:
    pacer = Pacer(per_s=1)
    pacer.add(1, 0.0)
    pacer.add(2, 0.5)
    assert [(due.stream, due.number) for due in pacer.due(1.6)] == [(1, 0), (2, 0), (1, 1), (2, 1)]


def test_the_schedule_does_not_depend_on_how_often_it_is_asked() -> None:
    often, seldom = Pacer(per_s=50), Pacer(per_s=50)
    for pacer in (often, seldom):
        pacer.add(1, 0.0)
        pacer.add(2, 0.013)
    found = [due for tick in range(1001) for due in often.due(tick / 1000)]
    assert found == seldom.due(1.0)


def test_rounding_does_not_add_up_to_drift() -> None:
    pacer = Pacer(per_s=30)
    pacer.add(1, 0.0)
    assert pacer.due(1000.0)[-1].number == 30_000


def test_a_stream_that_was_removed_is_never_due_again() -> None:
    pacer = Pacer(per_s=1)
    pacer.add(1, 0.0)
    pacer.add(2, 0.0)
    pacer.remove(1)
    pacer.remove(1)
    assert len(pacer) == 1
    assert {due.stream for due in pacer.due(5.0)} == {2}


def test_a_removed_stream_may_begin_anew() -> None:
    pacer = Pacer(per_s=1)
    pacer.add(1, 0.0)
    pacer.remove(1)
    pacer.add(1, 3.0)
    assert pacer.due(3.5) == [Due(3.0, 1, 0)]


def test_a_stream_can_not_run_twice() -> None:
    pacer = Pacer(per_s=1)
    pacer.add(1, 0.0)
    with pytest.raises(ValueError, match="`1` runs already"):
        pacer.add(1, 1.0)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan")])
def test_a_rate_must_be_positive(rate: float) -> None:
    with pytest.raises(ValueError, match="positive rate"):
        Pacer(per_s=rate)
