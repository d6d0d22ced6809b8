from __future__ import annotations

import asyncio
import io

import msgspec
import pytest

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.terms import Dialogue
from checkstream.errors import ScoringError
from checkstream.proxy.counts import Counted
from checkstream.proxy.inbox import Inbox
from checkstream.proxy.questions import Questions
from checkstream.scoring import Asked, Checked
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics

SCORE = do.Score(ticket=3, classifiers=("c",), text="text", deadline_ms=50)
ASSESS = do.Assess(Dialogue(model="m", messages=(), answers={}), ("watchdog",), 50)


class Later(Asked):
    """An answer that comes when it is let go."""

    def __init__(self, outcome: Checked | Exception | None) -> None:
        super().__init__(())
        self.go = asyncio.Event()
        self.left = 0
        self._outcome = outcome

    @property
    def settled(self) -> bool:
        return False

    async def answer(self) -> Checked:
        await self.go.wait()
        if isinstance(self._outcome, Checked):
            return self._outcome
        raise self._outcome or AssertionError

    def leave(self) -> None:
        self.left += 1


class Classifiers:
    def __init__(self, asked: Asked) -> None:
        self.asked = asked

    def wait_s(self, share: str, chars: int) -> float:  # noqa: ARG002 - nobody is asked that here
        raise AssertionError

    def ask(self, classifiers: tuple[str, ...], text: str, deadline_ms: float, **_: object) -> Asked:
        assert (classifiers, text, deadline_ms) == (("c",), "text", 50)
        return self.asked


def questions(asked: Asked, tasks: asyncio.TaskGroup, inbox: Inbox, metrics: Metrics | None = None) -> Questions:
    counts = Counted(metrics or Metrics(), open_log("json", io.BytesIO())).begun("s", "r", None)
    return Questions(Classifiers(asked), None, tasks=tasks, counts=counts, post=inbox.put)


@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        (Checked({"c.a": 0.5}), on.Scored(3, {"c.a": 0.5}, ())),
        (ScoringError("late", reason="deadline"), on.ScoringFailed(3, "deadline")),
        (RuntimeError("broken"), on.ScoringFailed(3, "crash")),
    ],
)
async def test_g23_every_question_is_answered_whatever_becomes_of_it(
    outcome: Checked | Exception, event: on.AnyEvent
) -> None:
    inbox, asked = Inbox(), Later(outcome)
    async with asyncio.TaskGroup() as tasks:
        questions(asked, tasks, inbox).score(SCORE)
        assert not inbox
        asked.go.set()
    assert inbox.take() == event
    assert not inbox


async def test_scores_are_counted_by_stage_and_those_of_a_text_that_comes_again_are_not() -> None:
    metrics, inbox = Metrics(), Inbox()
    async with asyncio.TaskGroup() as tasks:
        for ingress, again in ((True, False), (True, True), (False, False), (False, False)):
            asked = Later(Checked({"c.a": 0.5}, again=again))
            asked.go.set()
            questions(asked, tasks, inbox, metrics).score(msgspec.structs.replace(SCORE, ingress=ingress))
    counted = {key: sum(counts) for key, counts in metrics.scores.today.items()}
    assert counted == {("c.a", "ingress"): 1, ("c.a", "midstream"): 2}
    assert asked.left == 1


async def test_questions_that_are_left_are_not_answered_and_nobody_waits() -> None:
    inbox, asked = Inbox(), Later(None)
    async with asyncio.TaskGroup() as tasks:
        asking = questions(asked, tasks, inbox)
        asking.score(SCORE)
        asking.leave()
    assert not inbox
    assert asked.left == 1


async def test_where_nobody_can_assess_the_profiles_failed() -> None:
    inbox = Inbox()
    async with asyncio.TaskGroup() as tasks:
        questions(Asked(()), tasks, inbox).assess(ASSESS)
    assert inbox.take() == on.Assessed(failed=("watchdog",))
