"""A gate before a model answers what it can, and only what it doubts goes on to the model."""

import asyncio
import contextlib
import threading

import pytest

from checkstream.errors import ScoringError
from checkstream.scoring import ScorerLimits
from checkstream.scoring.line import MOST_HUNG, LaneLimits
from tests.fake_scorers import PATIENT_MS, Told, gated, hang


async def test_a_check_that_the_gate_clears_never_leaves_the_loop() -> None:
    async with gated() as (session, scorer):
        checked = await scorer.score(("fake",), "calm", PATIENT_MS)
        assert checked.scores == {"fake.a": pytest.approx(0.01), "fake.b": pytest.approx(0.02)}
        assert session.threads == {threading.get_ident()}
        assert not session.batches


async def test_what_the_gate_clears_is_answered_before_the_question_returns() -> None:
    told = Told()
    async with gated(observer=told) as (_, scorer):
        asked = scorer.ask(("fake",), "calm 1|calm 2", PATIENT_MS)
        assert asked.settled
        assert asked.answered().scores == {"fake.a": pytest.approx(0.01), "fake.b": pytest.approx(0.02)}
        assert told.checks == [("fake", None)]
        doubted = scorer.ask(("fake",), "calm|doubted", PATIENT_MS)
        assert not doubted.settled
        assert (await doubted.answer()).scores == {"fake.a": 0.25, "fake.b": 0.75}
        asked = scorer.ask(("fake",), "calm", PATIENT_MS, ingress=True)
        assert not asked.settled  # prompts are not for the loop
        await asked.answer()


async def test_a_turn_answers_no_more_at_once_than_its_slice_holds_and_nobody_is_overtaken() -> None:
    async with gated() as (session, scorer):
        scorer._loop_runner._left_s = 0.0
        first = scorer.ask(("fake",), "calm 1", PATIENT_MS)
        scorer._loop_runner._left_s = 1.0
        second = scorer.ask(("fake",), "calm 2", PATIENT_MS)
        assert not first.settled
        assert not second.settled
        await asyncio.gather(first.answer(), second.answer())
        assert session.glances == ["calm 1", "calm 2"]
        await asyncio.sleep(0)
        assert scorer.ask(("fake",), "calm 3", PATIENT_MS).settled


async def test_g23_a_failure_that_is_there_at_once_is_told_at_once() -> None:
    async with gated() as (_, scorer):
        asked = scorer.ask(("fake",), "broken", PATIENT_MS)
        assert asked.settled
        with pytest.raises(ScoringError) as caught:
            asked.answered()
        assert caught.value.reason == "crash"


async def test_a_question_that_is_left_is_forgotten() -> None:
    async with gated() as (session, scorer):
        hanging = scorer.ask(("fake",), "wait", PATIENT_MS)
        await asyncio.to_thread(session.started.wait, 20)
        left = scorer.ask(("fake",), "doubted", PATIENT_MS)
        left.leave()
        left.leave()
        session.go.set()
        assert (await hanging.answer()).scores
        assert (await scorer.score(("fake",), "other", PATIENT_MS)).scores
        assert session.batches == [["wait"], ["other"]]


async def test_only_windows_in_doubt_go_to_the_model_and_are_not_shown_to_the_gate_again() -> None:
    async with gated() as (session, scorer):
        checked = await scorer.score(("fake",), "calm 1|doubted|calm 2", PATIENT_MS)
        assert checked.scores == {"fake.a": 0.25, "fake.b": 0.75}
        assert session.glances == ["calm 1", "doubted", "calm 2"]
        assert session.batches == [["doubted"]]


async def test_a_prompts_windows_are_shown_to_the_gate_off_the_loop_while_those_in_doubt_are_read() -> None:
    async with gated() as (session, scorer):
        asked = asyncio.ensure_future(scorer.score(("fake",), "wait|calm 1|calm last", PATIENT_MS, ingress=True))
        await asyncio.to_thread(session.started.wait, 20)
        assert await asyncio.to_thread(session.shown.wait, 20)  # the model hangs meanwhile
        session.go.set()
        assert (await asked).scores == {"fake.a": 0.25, "fake.b": 0.75}
        assert session.glances == ["wait", "calm 1", "calm last"]
        assert session.batches == [["wait"]]
        assert threading.get_ident() not in session.threads


@pytest.mark.parametrize(("text", "reason"), [("broken", "crash"), ("calm|nan", "garbage"), ("calm|crash", "crash")])
async def test_g23_a_gate_or_a_model_behind_it_that_fails_is_told(text: str, reason: str) -> None:
    async with gated() as (_, scorer):
        with pytest.raises(ScoringError) as caught:
            await scorer.score(("fake",), text, PATIENT_MS)
        assert caught.value.reason == reason
        assert (await scorer.score(("fake",), "calm", PATIENT_MS)).scores


async def test_g32_what_a_gate_doubts_waits_behind_a_model_that_is_busy() -> None:
    async with gated() as (session, scorer):
        slow = asyncio.ensure_future(scorer.score(("fake",), "wait", PATIENT_MS))
        await asyncio.to_thread(session.started.wait, 20)
        doubted = asyncio.ensure_future(scorer.score(("fake",), "doubted", 20))
        assert (await scorer.score(("fake",), "calm", PATIENT_MS)).scores  # the gate goes on without it
        assert not doubted.done()
        session.go.set()
        assert (await slow).scores
        assert (await doubted).scores


@pytest.mark.parametrize("ingress", [False, True], ids=["answers", "prompts"])
async def test_g24_a_model_that_hangs_is_rested_though_its_gate_goes_on_clearing(ingress: bool) -> None:
    told = Told()
    lane_name = "ingress" if ingress else "midstream"
    async with gated(ScorerLimits(hang_s=0.05, breaker_open_s=1_000.0), told) as (session, scorer):
        await hang(session, scorer, failures=MOST_HUNG - 1, ingress=ingress)
        assert not told.states
        await hang(session, scorer, failures=1, ingress=ingress)
        assert told.states == [("fake", lane_name, "open")]
        with pytest.raises(ScoringError) as caught:
            await scorer.score(("fake",), "calm 1|doubted", PATIENT_MS, ingress=ingress)
        assert caught.value.reason == "rested"
        assert (await scorer.score(("fake",), "calm", PATIENT_MS, ingress=ingress)).scores
        assert told.states == [("fake", lane_name, "open")]


async def test_g24_only_a_text_that_the_model_reads_closes_the_circuit_behind_a_gate() -> None:
    told = Told()
    async with gated(ScorerLimits(hang_s=0.05, breaker_failures=1, breaker_open_s=0.0), told) as (session, scorer):
        await hang(session, scorer, failures=1, ingress=False)
        lane = scorer._lanes["fake", False]
        left = scorer.ask(("fake",), "probe", PATIENT_MS)
        states = [lane.state]
        assert (await scorer.score(("fake",), "calm", PATIENT_MS)).scores
        left.leave()
        states.append(lane.state)
        session.go.set()
        assert (await scorer.score(("fake",), "probe 2", PATIENT_MS)).scores
        assert [*states, lane.state] == ["half_open", "open", "closed"]
        assert [state for _, _, state in told.states] == ["open", "half_open", "closed"]
        assert (await scorer.score(("fake",), "doubted", PATIENT_MS)).scores


@pytest.mark.parametrize(("probe", "mended"), [("wait", True), ("wait|crash", False)])
async def test_g24_what_a_gate_doubts_while_the_model_is_tried_again_waits_for_what_comes_of_it(
    probe: str, *, mended: bool
) -> None:
    async with gated(ScorerLimits(breaker_failures=1, breaker_open_s=0.0)) as (session, scorer):
        with pytest.raises(ScoringError):
            await scorer.score(("fake",), "crash", PATIENT_MS)
        breaker = scorer._lanes["fake", False]._line.breaker
        tried = asyncio.ensure_future(scorer.score(("fake",), probe, PATIENT_MS))
        await asyncio.to_thread(session.started.wait, 20)
        breaker._open_s = 1_000.0
        read = len(session.batches)
        doubted = [asyncio.ensure_future(scorer.score(("fake",), f"doubted|doubted {n}", PATIENT_MS)) for n in range(3)]
        assert (await scorer.score(("fake",), "calm", PATIENT_MS)).scores
        assert not any(each.done() for each in doubted)
        assert len(session.batches) == read
        session.go.set()
        ended = await asyncio.gather(tried, *doubted, return_exceptions=True)
        reasons = [each.reason for each in ended if isinstance(each, ScoringError)]
        assert reasons == ([] if mended else ["crash", "rested", "rested", "rested"])
        assert breaker.state == ("closed" if mended else "open")


async def test_g24_a_model_that_fails_some_texts_and_reads_others_is_not_rested() -> None:
    told = Told()
    async with gated(ScorerLimits(breaker_failures=2), told) as (_, scorer):
        for text in ("crash", "calm|doubted", "crash", "doubted") * 2:
            with contextlib.suppress(ScoringError):
                await scorer.score(("fake",), text, PATIENT_MS)
        assert not told.states


async def test_g24_a_gate_that_fails_is_rested_and_the_model_behind_it_is_not() -> None:
    told = Told()
    async with gated(ScorerLimits(breaker_failures=2, breaker_open_s=1_000.0), told) as (session, scorer):
        hanging = scorer.ask(("fake",), "wait", PATIENT_MS)
        await asyncio.to_thread(session.started.wait, 20)
        for _ in range(2):
            with pytest.raises(ScoringError):
                await scorer.score(("fake",), "doubted|broken", PATIENT_MS)
        with pytest.raises(ScoringError) as caught:
            await scorer.score(("fake",), "calm", PATIENT_MS)
        assert caught.value.reason == "rested"
        lane = scorer._lanes["fake", False]
        assert (lane._first.breaker.state, lane._line.breaker.state) == ("open", "closed")
        assert told.states == [("fake", "midstream", "open")]
        session.go.set()
        await hanging.answer()


async def test_g22_a_gate_is_no_further_ahead_of_its_model_than_the_lane_allows() -> None:
    limits = ScorerLimits(lane=LaneLimits(ahead_tokens=40))
    async with gated(limits) as (session, scorer):
        asked = scorer.ask(("fake",), "|".join(["wait", *["doubted"] * 100]), PATIENT_MS)
        await asyncio.to_thread(session.started.wait, 20)
        for _ in range(100):
            await asyncio.sleep(0)
        assert sum(line.tokens for line in scorer._lanes["fake", False].lines) <= 40 + len("doubted") + 1
        assert len(session.glances) < 10
        session.go.set()
        assert (await asked.answer()).scores == {"fake.a": 0.25, "fake.b": 0.75}
        assert len(session.glances) == 101


# Two cores


@pytest.mark.parametrize(("count", "after_s", "together"), [(2, 0.0, True), (1, 0.0, False), (2, 1_000.0, False)])
async def test_what_is_in_doubt_of_a_long_prompt_is_read_on_two_threads_unless_answers_need_the_core(
    monkeypatch: pytest.MonkeyPatch, count: int, after_s: float, *, together: bool
) -> None:
    monkeypatch.setattr("checkstream.scoring.scorer.cores", lambda: count)
    async with gated(ScorerLimits(spare_after_s=after_s)) as (session, scorer):
        assert (await scorer.score(("fake",), "calm", PATIENT_MS)).scores
        meeting, met = threading.Barrier(2), threading.Event()

        def meet() -> None:
            if met.is_set():
                return  # whoever reads one more than the other would wait for nobody
            with contextlib.suppress(threading.BrokenBarrierError):
                meeting.wait(20 if together else 0.05)
                met.set()

        session.around = meet
        prompt = "|".join(f"doubted {number}" for number in range(30))
        found = await scorer.score(("fake",), prompt, PATIENT_MS, ingress=True)
        assert found.scores == {"fake.a": 0.25, "fake.b": 0.75}
        assert met.is_set() == together
        assert sorted(text for (text,) in session.batches) == sorted(prompt.split("|"))
