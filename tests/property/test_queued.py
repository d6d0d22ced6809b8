"""What waits to be asked is taken in its order, and forgotten as if it were looked through one by one (G33)."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.checks import Check, Checks, Ending, HoldSettings
from checkstream.core.exchange.queued import Question, Queue
from checkstream.core.terms import Span

_ENDS = st.one_of(st.none(), st.integers(0, 9))


class _Judge:
    """Nothing but itself."""


@st.composite
def _asked(draw: st.DrawFn) -> tuple[list[Any], list[Question]]:
    """Three texts, some of which have ended, and questions about windows of them, in no order."""
    texts: list[tuple[Any, Ending]] = [(_Judge(), Ending()) for _ in range(3)]

    def about() -> tuple[Any, Check]:
        judge, ending = draw(st.sampled_from(texts))
        position = draw(st.integers(0, 9))
        return judge, Check(position, Span(0, position), (), ending, done=draw(st.integers(0, 4)) == 0)

    sizes = draw(st.lists(st.sampled_from([1, 1, 1, 1, 2]), max_size=40))
    questions = [Question(number, tuple(about() for _ in range(size))) for number, size in enumerate(sizes)]
    for _, ending in texts:
        end = draw(_ENDS)
        ending.at = ending.at if end is None else end
    return [judge for judge, _ in texts], questions


@given(_asked(), st.integers(0, 3), st.integers(0, 5))
def test_questions_are_taken_in_their_order_but_for_those_that_matter_no_more(
    asked: tuple[list[Any], list[Question]], over: int, before: int
) -> None:
    judges, questions = asked
    queue, oracle, gone = Queue(), deque(questions), judges[:over]
    for question in questions:
        queue.put(question)
    taken = [queue.take() for _ in range(min(before, len(queue)))]
    assert taken == [oracle.popleft() for _ in taken]
    queue.put_first(taken[:2])
    oracle.extendleft(reversed(taken[:2]))
    queue.forget(gone)
    kept = [question for question in oracle if question.matters(gone)]
    assert len(queue) == len(kept)
    assert {id(judge) for judge in queue.judges()} == {id(judge) for each in kept for judge in each.judges}
    assert [queue.take() for _ in kept] == kept
    assert len(queue) == 0


@given(st.lists(st.integers(1, 40), max_size=20), st.lists(st.integers(0, 40), max_size=3), st.integers(0, 5))
def test_checks_behind_the_end_of_a_text_are_over_and_no_others(ends: list[int], stops: list[int], taken: int) -> None:
    checks = Checks(HoldSettings(), wanted=True, grid=True)
    made = [checks.ask(position) for position in sorted(ends)]
    handed = [checks.take() for _ in range(min(taken, len(made)))]
    for stop in stops:
        checks.stop(stop)
    end = min(stops, default=40)
    due = [check for check in made[len(handed) :] if check.position <= end]
    assert list(checks.due) == due
    assert [check for check in made if check.over] == [check for check in made if check not in due]


@pytest.mark.parametrize("number", [0, 3, 40])
def test_all_that_waits_is_taken_at_once(number: int) -> None:
    queue, judge = Queue(), _Judge()
    asked: list[Any] = [Question(each, ((judge, Check(each, Span(0, each), (), Ending())),)) for each in range(number)]  # type: ignore[arg-type]
    for question in asked:
        queue.put(question)
    assert [question for run in queue.take_all() for question in run] == asked
    assert (len(queue), list(queue.judges())) == (0, [])
