"""Deadlines, crashes, garbage, full queues, open breakers, cancellations and closing: each fails alone and is told."""

import asyncio
import threading
import time

import pytest
import uvloop

from checkstream.errors import ScoringError
from checkstream.scoring import ScorerLimits
from checkstream.scoring.line import LaneLimits
from tests.fake_scorers import PATIENT_MS, Rig, both, rig


def test_g23_deadlines_hold_on_uvloop_too() -> None:
    async def slow() -> None:
        async with rig(inline=False) as r:
            assert await r.reason("wait", 20) == "deadline"

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(slow())


@both
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("crash", "crash"),
        ("uncuttable", "crash"),
        ("nothing", "garbage"),
        ("nan", "garbage"),
        ("inf", "garbage"),
        ("over", "garbage"),
        ("under", "garbage"),
        ("shape", "garbage"),
        ("integers", "garbage"),
        ("none", "garbage"),
        ("entities", "garbage"),
        ("Sure", "garbage"),
        ("good|half", "crash"),
        ("good|nan", "garbage"),
    ],
)
async def test_g23_a_crash_and_garbage_are_told_apart_and_leave_the_scorer_working(
    inline: bool, text: str, reason: str
) -> None:
    async with rig(inline=inline) as r:
        assert await r.reason(text) == reason
        assert r.told.checks == [("fake", reason)]
        assert await r.score("fine") == {"fake.a": 0.25, "fake.b": 0.75}


@both
async def test_g11_a_text_that_crashes_or_poisons_a_batch_fails_alone(inline: bool) -> None:
    async with rig(inline=inline) as r:
        results = await asyncio.gather(
            *(r.score(text) for text in ("one", "crash", "nan", "two")), return_exceptions=True
        )
        assert [isinstance(result, ScoringError) for result in results] == [False, True, True, False]


async def test_g23_a_slow_detector_meets_its_deadline_and_its_late_answer_is_nobodys() -> None:
    async with rig(inline=False) as r:
        assert await r.reason("wait", 20) == "deadline"
        assert r.session.started.is_set()
        r.session.go.set()
        assert await r.score("after") == {"fake.a": 0.25, "fake.b": 0.75}


async def test_g23_what_waits_behind_a_slow_batch_expires_and_is_never_run() -> None:
    async with rig(inline=False) as r:
        slow = asyncio.ensure_future(r.score("wait"))
        await asyncio.to_thread(r.session.started.wait, 20)
        assert await r.reason("expired", 5) == "deadline"
        r.session.go.set()
        await slow
        await r.score("fresh")
        assert ["expired"] not in r.session.batches
        assert r.session.batches == [["wait"], ["fresh"]]


async def test_what_a_thread_was_given_and_nobody_wants_any_more_is_not_read() -> None:
    async with rig(inline=False) as r:
        slow, left = asyncio.ensure_future(r.score("wait")), asyncio.ensure_future(r.score("left"))
        await asyncio.to_thread(r.session.started.wait, 20)
        left.cancel()
        await asyncio.sleep(0)
        r.session.go.set()
        await slow
        assert await r.score("fresh")
        assert r.session.batches == [["wait"], ["fresh"]]


@both
@pytest.mark.parametrize("deadline_ms", [0.0, -5.0])
async def test_a_deadline_that_has_passed_fails_at_once(inline: bool, deadline_ms: float) -> None:
    async with rig(inline=inline) as r:
        assert await r.reason("text", deadline_ms) == "deadline"


@both
async def test_g22_a_full_queue_refuses_and_stays_bounded(inline: bool) -> None:
    lane = LaneLimits(queue_tokens=20, batch_tokens=100)
    limits = ScorerLimits(midstream=lane, ingress=lane, breaker_failures=1)
    async with rig(inline=inline, limits=limits) as r:
        results = await asyncio.gather(*(r.score("abcd") for _ in range(6)), return_exceptions=True)
        assert [getattr(result, "reason", None) for result in results] == [None] * 4 + ["overload"] * 2
        assert r.told.states == []  # says nothing about the detector
        assert await r.score("a text that is longer than the whole queue") == {"fake.a": 0.25, "fake.b": 0.75}


@both
async def test_g24_the_breaker_opens_fails_at_once_and_closes_after_a_good_probe(inline: bool) -> None:
    async with rig(inline=inline, limits=ScorerLimits(breaker_failures=3, breaker_open_s=0.0)) as r:
        lane = r.scorer._lanes["fake", False]
        lane._line.breaker._open_s = 1_000.0
        for _ in range(3):
            assert await r.reason("crash") == "crash"
        runs = len(r.session.batches)
        assert await r.reason("fine") == "overload"
        assert len(r.session.batches) == runs
        assert await r.score("prompts have a circuit of their own", ingress=True)
        lane._line.breaker._open_s = 0.0
        assert await r.reason("crash") == "crash"
        assert await r.score("fine")
        assert await r.score("fine")
        assert [state for _, _, state in r.told.states] == ["open", "closed"]
        assert r.told.checks[3] == ("fake", "overload")


@pytest.mark.parametrize(
    ("read", "states"), [(["fine"] * 8, []), ([], [("fake", "ingress", "open")])], ids=["reads on", "hangs"]
)
async def test_g24_a_text_too_long_for_its_deadline_rests_no_detector_that_reads_on(
    read: list[str], states: list[tuple[str, str, str]]
) -> None:
    async with rig(inline=False, limits=ScorerLimits(breaker_failures=1)) as r:
        ticket = r.scorer._lanes["fake", True].submit("|".join([*read, "wait"]), time.monotonic() + PATIENT_MS / 1000)
        await asyncio.to_thread(r.session.started.wait, 20)
        ticket.expire()
        assert r.told.checks == [("fake", "deadline")]
        assert r.told.states == states
        ticket.abandon()


@both
async def test_a_probe_whose_asker_leaves_is_asked_again(inline: bool) -> None:
    async with rig(inline=inline, limits=ScorerLimits(breaker_failures=1, breaker_open_s=0.0)) as r:
        assert await r.reason("crash") == "crash"
        probe = asyncio.ensure_future(r.score("probe"))
        await asyncio.sleep(0)
        probe.cancel()
        with pytest.raises(asyncio.CancelledError):
            await probe
        assert await r.score("fine")
        assert r.scorer._lanes["fake", False]._line.breaker.state == "closed"


@both
async def test_a_cancelled_request_is_dropped_when_the_batch_is_formed(inline: bool) -> None:
    async with rig(inline=inline) as r:
        kept = asyncio.ensure_future(r.score("kept"))
        left = asyncio.ensure_future(r.score("left"))
        # The batch is formed at the end of the turn in which the first request came, so leave before it.
        asyncio.get_running_loop().call_soon(left.cancel)
        await asyncio.gather(kept, left, return_exceptions=True)
        assert left.cancelled()
        await r.score("next")
        assert "next" in r.session.batches[-1]


async def test_a_request_cancelled_while_it_runs_leaves_nothing_behind() -> None:
    async with rig(inline=False) as r:
        running = asyncio.ensure_future(r.score("wait"))
        await asyncio.to_thread(r.session.started.wait, 20)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        r.session.go.set()
        assert await r.score("after")


async def test_one_failed_classifier_fails_the_request_and_frees_the_other() -> None:
    async with rig(inline=False, models=("fake", "other")) as r:
        with pytest.raises(ScoringError):
            await r.scorer.score(("fake", "other"), "crash", PATIENT_MS)
        with pytest.raises(ScoringError) as caught:
            await r.scorer.score(("fake", "unknown"), "text", PATIENT_MS)
        assert caught.value.reason == "crash"
        assert "`unknown`" in str(caught.value)


@both
async def test_close_fails_what_waits_and_refuses_what_comes(inline: bool) -> None:
    async with rig(inline=inline) as r:
        waiting = asyncio.ensure_future(r.score("text"))
        await asyncio.sleep(0)
        await r.scorer.close()
        assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], ScoringError | dict)
        assert await r.reason("text") == "overload"


async def test_close_gives_up_on_a_model_that_hangs() -> None:
    r = Rig(inline=False, limits=ScorerLimits(close_s=0.01), models=("fake",))
    running = asyncio.ensure_future(r.score("wait"))
    await asyncio.to_thread(r.session.started.wait, 20)
    await r.scorer.close()
    with pytest.raises(ScoringError):
        await running
    hung = [thread for thread in threading.enumerate() if thread.name.startswith("score-")]
    r.session.go.set()
    for thread in hung:
        await asyncio.to_thread(thread.join, 20)
