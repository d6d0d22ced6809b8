"""What the pump asks of classifiers and of evidence, on real sockets, with a scripted guard."""

from __future__ import annotations

import asyncio

import aiohttp
import pytest

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.terms import Dialogue
from checkstream.errors import ScoringError
from checkstream.scoring import Asked
from tests.relayed import RECORD, Asking, Pending, Rig, model, streaming

SAID = Dialogue(model="m", messages=(), answers={0: "Yes."})


def assessing(event: on.AnyEvent) -> list[do.AnyCommand]:
    """Have an answer assessed, and say in the reply what came of it."""
    match event:
        case on.RequestReceived():
            return [do.Assess(SAID, ("watchdog",), 50)]
        case on.Assessed():
            body = ",".join((*event.risks, *event.failed)).encode()
            return [do.Reply(200, body), do.Enqueue(SAID), do.Record(RECORD)]
        case _:
            return [do.Record(RECORD)]


async def test_what_is_said_of_an_answer_comes_back_and_the_answer_is_handed_over() -> None:
    rig, put = Rig(assessing), list[Dialogue]()
    rig.enqueue = put.append

    async def assess(command: do.Assess) -> on.Assessed:
        return on.Assessed(risks={command.profiles[0].upper(): 35.0})

    rig.assess = assess
    async with rig.asked("http://127.0.0.1:9") as response:
        assert await response.text() == "WATCHDOG"
    assert put == [SAID]


@pytest.mark.parametrize("there", [True, False])
async def test_a_bug_behind_the_answer_is_told_and_costs_no_answer(there: bool) -> None:
    rig = Rig(assessing)

    async def broken(_: do.Assess) -> on.Assessed:
        raise RuntimeError("assessor")

    def full(_: Dialogue) -> None:
        raise RuntimeError("queue")

    if there:
        rig.assess, rig.enqueue = broken, full
    async with rig.asked("http://127.0.0.1:9") as response:
        assert await response.text() == "watchdog"
    assert rig.ledger.records == [RECORD]
    assert rig.log.getvalue().count(b'"event":"failed"') == 2 * there


async def test_nobody_assesses_on_for_a_caller_who_left() -> None:
    rig, began, cancelled = Rig(assessing), asyncio.Event(), asyncio.Event()

    async def endless(_: do.Assess) -> on.Assessed:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()
        raise AssertionError

    rig.assess = endless
    async with rig.serving("http://127.0.0.1:9") as url, aiohttp.ClientSession() as session:
        asking = asyncio.ensure_future(session.post(url, data=b"{}"))
        await began.wait()
        asking.cancel()
        await asyncio.wait_for(cancelled.wait(), 5)
    assert rig.guard.kinds() == ["RequestReceived", "DownstreamClosed"]


async def test_timers_replace_each_other_and_broken_classifiers_are_crashes() -> None:
    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        match event:
            case on.RequestReceived():
                return [
                    do.ArmTimer("stall", 60_000),
                    do.ArmTimer("stall", 1),
                    do.ArmTimer("keepalive", 1),
                    do.DisarmTimer("keepalive"),
                ]
            case on.TimerFired("stall"):
                return [do.Score(7, ("c",), "text", 50)]
            case on.ScoringFailed(7, "crash"):
                return [do.Reply(200, b"{}"), do.Record(RECORD)]
            case _:
                raise AssertionError(event)

    rig = Rig(react)
    rig.scorer = Asking(RuntimeError("broken"))
    async with rig.asked("http://127.0.0.1:9") as response:
        assert response.status == 200
    assert rig.guard.kinds() == ["RequestReceived", "TimerFired", "ScoringFailed"]


async def test_what_classifiers_answer_at_once_is_told_in_the_same_turn_and_what_is_refused_too() -> None:
    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        match event:
            case on.RequestReceived():
                return [do.Score(1, ("c",), "text", 50), do.Score(2, ("c",), "text", 50)]
            case on.ScoringFailed():
                return [do.Reply(200, b"done"), do.Record(RECORD)]
            case _:
                return []

    rig = Rig(react)
    rig.scorer = Asking(Asked(()), ScoringError("classifier `c` is rested", reason="overload"))
    async with model(streaming(b"x")) as url, rig.asked(url) as response:
        assert await response.read() == b"done"
    assert rig.guard.events[1:] == [on.Scored(1, {}), on.ScoringFailed(2, "overload")]
    assert rig.scorer.questions == [(("c",), "text", 50, False, 0, 0, "")] * 2


async def test_a_question_whose_exchange_ends_before_anybody_waits_is_left() -> None:
    asked = Pending()

    def react(event: on.AnyEvent) -> list[do.AnyCommand]:
        match event:
            case on.RequestReceived():
                return [do.Score(1, ("c",), "text", 50), do.Reply(200, b"done"), do.Record(RECORD)]
            case _:
                return []

    rig = Rig(react)
    rig.scorer = Asking(asked)
    async with model(streaming(b"x")) as url, rig.asked(url) as response:
        assert await response.read() == b"done"
    assert asked.left == 1
