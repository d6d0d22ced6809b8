"""Hangs, crashes, garbage, open breakers, cancellations and closing: each fails alone and is told. Waiting is none."""

import asyncio
import ctypes
import threading
import time

import pytest
import uvloop

from checkstream.errors import ScoringError
from checkstream.scoring import ScorerLimits
from checkstream.scoring.line import MOST_HUNG, LaneLimits
from checkstream.scoring.runners import AHEAD_TOKENS, LEAST_TOKENS
from checkstream.scoring.ticket import UNIT_TOKENS
from tests.fake_scorers import PATIENT_MS, Rig, both, rig, slowly


def test_g23_deadlines_hold_on_uvloop_too() -> None:
    async def slow() -> None:
        async with rig(inline=False) as r:
            assert await r.reason("burn", 20) == "deadline"

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


@pytest.mark.parametrize(("text", "deadline_ms"), [("burn", 20.0), ("wait", PATIENT_MS)], ids=["works", "sleeps"])
async def test_g23_a_detector_that_hangs_is_given_up_and_others_are_read_meanwhile(
    text: str, deadline_ms: float
) -> None:
    async with rig(inline=False, limits=ScorerLimits(hang_s=0.1), models=("fake", "other")) as r:
        hanging = asyncio.ensure_future(r.score(text, deadline_ms))
        behind = asyncio.ensure_future(r.scorer.score(("other",), "behind", PATIENT_MS))
        with pytest.raises(ScoringError) as caught:
            await hanging
        assert caught.value.reason == "deadline"
        assert (await behind).scores
        assert not r.session.go.is_set()
        assert await r.score("after") == {"fake.a": 0.25, "fake.b": 0.75}
        r.session.go.set()
        assert await r.score("at last") == {"fake.a": 0.25, "fake.b": 0.75}
        await alone()
        assert r.scorer._lanes["fake", False].state == "closed"


async def test_g23_a_thread_that_a_model_ends_is_a_crash_and_another_one_goes_on() -> None:
    async with rig(inline=False) as r:
        ending = asyncio.ensure_future(r.reason("exit"))
        behind = [asyncio.ensure_future(r.score(text)) for text in ("behind", "and behind")]
        async with asyncio.timeout(20):
            assert await ending == "crash"
            assert await asyncio.gather(*behind) == [{"fake.a": 0.25, "fake.b": 0.75}] * 2
        assert r.told.checks.count(("fake", "crash")) == 1
        assert await r.score("after") == {"fake.a": 0.25, "fake.b": 0.75}
        await alone()


async def test_g32_a_thread_that_dies_idle_is_no_failure_of_what_comes_next() -> None:
    async with rig(inline=False, limits=ScorerLimits(breaker_failures=1)) as r:
        assert await r.score("first")
        (thread,) = [each for each in threading.enumerate() if each.name == "score-midstream"]
        ended = ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit)
        )
        assert ended == 1, "it ends when it is given something, before it begins that"
        async with asyncio.timeout(20):
            assert await r.score("next") == {"fake.a": 0.25, "fake.b": 0.75}
        assert not thread.is_alive()
        assert r.told.states == []


async def alone() -> None:
    """Wait until only one thread reads for answers."""
    async with asyncio.timeout(20):
        while sum(thread.name == "score-midstream" for thread in threading.enumerate()) > 1:  # noqa: ASYNC110
            await asyncio.sleep(0.001)


async def test_g23_a_detector_that_hangs_again_is_asked_nothing_until_it_comes_back() -> None:
    async with rig(inline=False, limits=ScorerLimits(hang_s=0.05, breaker_failures=1_000)) as r:
        asked = [asyncio.ensure_future(r.reason("wait")) for _ in range(12)]
        assert set(await asyncio.gather(*asked)) == {"deadline"}
        assert r.session.batches == [["wait"]] * MOST_HUNG  # of the others none took a thread
        assert await r.reason("refused") == "rested"
        assert r.told.states == [("fake", "midstream", "open")]
        r.session.go.set()
        await alone()
        async with asyncio.timeout(20):
            while r.scorer._lanes["fake", False].state == "open":  # noqa: ASYNC110
                await asyncio.sleep(0.001)
        assert await r.score("well again")


async def test_g32_a_detector_that_is_slow_but_answers_is_not_broken() -> None:
    async with rig(inline=False, limits=ScorerLimits(breaker_failures=1)) as r:
        r.session.around = lambda: time.sleep(0.03)  # it waits, and does no work
        assert len(await asyncio.gather(*(r.score(f"t{n}", 5.0) for n in range(8)))) == 8
        assert r.told.states == []


@both
async def test_g32_what_waits_longer_than_the_deadline_for_its_turn_is_read(inline: bool) -> None:
    async with rig(inline=inline, limits=ScorerLimits(breaker_failures=1)) as r:
        r.session.around = slowly
        asked = [r.score("|".join(["abcd"] * 5), 5.0, ingress=n % 2 == 0) for n in range(20)]
        assert await asyncio.gather(*asked) == [{"fake.a": 0.25, "fake.b": 0.75}] * 20
        assert r.told.states == []
        assert {failure for _, failure in r.told.checks} == {None}


async def test_g32_the_clock_of_a_check_starts_when_a_thread_begins_it() -> None:
    async with rig(inline=False, limits=ScorerLimits(hang_s=0.2)) as r:
        first = asyncio.ensure_future(r.score("wait"))
        await asyncio.to_thread(r.session.started.wait, 20)
        behind = asyncio.ensure_future(r.score("behind", 1.0))
        with pytest.raises(ScoringError):
            await first
        assert (await behind)["fake.b"] == 0.75


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
async def test_g23_more_work_than_the_deadline_allows_meets_it_though_it_ends(inline: bool) -> None:
    async with rig(inline=inline) as r:
        r.session.around = slowly
        assert await r.reason("text", 0.5) == "deadline"
        assert await r.score("a" * (UNIT_TOKENS * 8), 0.5)  # the deadline grows with what is read at once


@both
async def test_g22_a_long_text_is_cut_as_it_is_read(inline: bool) -> None:
    limits = ScorerLimits(lane=LaneLimits(ahead_tokens=20), breaker_failures=1)
    async with rig(inline=inline, limits=limits) as r:
        lines = {line for lane in r.scorer._lanes.values() for line in lane.lines}
        most = 0

        def look() -> None:
            nonlocal most
            most = max(most, sum(line.tokens for line in lines))

        r.session.around = look
        texts = ["|".join(["abcd"] * 200), "|".join(["abcd"] * 200), "short", "a text that is longer than that"]
        scored = await asyncio.gather(*(r.score(text) for text in texts))
        assert scored == [{"fake.a": 0.25, "fake.b": 0.75}] * 4
        assert sum(map(len, r.session.batches)) == 402
        assert most <= 4 * (20 + 32)


@both
async def test_g32_a_batch_of_one_caller_delays_another_by_what_is_under_way(inline: bool) -> None:
    async with rig(inline=inline) as r:
        r.session.around = slowly
        greedy = [asyncio.ensure_future(r.score("|".join(["mine"] * 20), share="greedy")) for _ in range(10)]
        while not r.session.batches:  # noqa: ASYNC110
            await asyncio.sleep(0)
        before = len(r.session.batches)
        await r.score("|".join(["yours"] * 5), share="modest")
        order = r.session.batches[before:]  # more is read before the loop hears of it
        assert len(order) - order[::-1].index(["yours"]) <= 2 * 5 + AHEAD_TOKENS // LEAST_TOKENS + 1
        for task in greedy:
            task.cancel()
        await asyncio.gather(*greedy, return_exceptions=True)


@both
async def test_g24_the_breaker_opens_fails_at_once_and_closes_after_a_good_probe(inline: bool) -> None:
    async with rig(inline=inline, limits=ScorerLimits(breaker_failures=3, breaker_open_s=0.0)) as r:
        lane = r.scorer._lanes["fake", False]
        lane._line.breaker._open_s = 1_000.0
        for _ in range(3):
            assert await r.reason("crash") == "crash"
        runs = len(r.session.batches)
        assert await r.reason("fine") == "rested"
        assert len(r.session.batches) == runs
        assert await r.score("prompts have a circuit of their own", ingress=True)
        lane._line.breaker._open_s = 0.0
        assert await r.reason("crash") == "crash"
        assert await r.score("fine")
        assert await r.score("fine")
        assert [state for _, _, state in r.told.states] == ["open", "closed"]
        assert r.told.checks[3] == ("fake", "rested")


@pytest.mark.parametrize(("probe", "mended"), [("wait", True), ("wait|crash", False)])
async def test_g24_what_is_asked_while_a_detector_is_tried_again_waits_for_what_comes_of_it(
    probe: str, *, mended: bool
) -> None:
    async with rig(inline=False, limits=ScorerLimits(breaker_failures=1, breaker_open_s=0.0)) as r:
        assert await r.reason("crash") == "crash"
        breaker = r.scorer._lanes["fake", False]._line.breaker
        tried = asyncio.ensure_future(r.score(probe))
        await asyncio.to_thread(r.session.started.wait, 20)
        breaker._open_s = 1_000.0
        others = [asyncio.ensure_future(r.score(f"fine {number}")) for number in range(3)]
        left = asyncio.ensure_future(r.score("left"))
        await asyncio.sleep(0)
        left.cancel()
        await asyncio.sleep(0.01)
        assert not any(each.done() for each in others)
        assert r.session.batches[-1] == ["wait"]
        r.session.go.set()
        ended = await asyncio.gather(tried, *others, return_exceptions=True)
        reasons = [each.reason for each in ended if isinstance(each, ScoringError)]
        assert reasons == ([] if mended else ["crash", "rested", "rested", "rested"])
        assert breaker.state == ("closed" if mended else "open")
        assert not any("left" in batch for batch in r.session.batches)


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
