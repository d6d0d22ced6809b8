"""Long prompts leave the loop and the models to others, and those that come again are remembered."""

import asyncio
from collections.abc import Callable

import pytest
import uvloop

from checkstream.errors import ScoringError
from checkstream.scoring import Checked, Scorer, ScorerLimits
from checkstream.scoring.runners import AHEAD_TOKENS, LEAST_TOKENS
from tests.fake_scorers import PATIENT_MS, both, lexicon, rig, slowly


async def long_prompt() -> int:
    """Score a long prompt and return how often the loop turned meanwhile."""
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with lexicon() as scorer, asyncio.TaskGroup() as group:
        counting = group.create_task(count())
        await scorer.score(("lexicon",), "a benign prompt, " * 6_000, PATIENT_MS, ingress=True)
        counting.cancel()
    return turns


@pytest.mark.parametrize("make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_a_long_prompt_leaves_the_loop_to_others_between_slices(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    with asyncio.Runner(loop_factory=make_loop) as runner:
        assert runner.run(long_prompt()) > 10


@both
async def test_a_long_text_is_cut_in_slices_that_leave_the_loop_to_others(inline: bool) -> None:
    async with rig(inline=inline) as r:
        text = "|".join(["slow"] * 5)
        cutting = asyncio.ensure_future(r.score(text, ingress=True))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert r.scorer._lanes["fake", True]._cutting
        assert await r.score("answer")
        assert await cutting
        assert sum(batch.count("slow") for batch in r.session.batches) == 5


@both
async def test_a_short_prompt_waits_for_a_window_of_each_long_one_before_it_not_for_all(inline: bool) -> None:
    async with rig(inline=inline) as r:
        r.session.around = slowly
        long = [asyncio.ensure_future(r.score("|".join([name] * 60), ingress=True)) for name in ("a", "b")]
        await asyncio.sleep(0)
        while len(r.session.batches) < 10:  # noqa: ASYNC110 - what is waited for is an event of the session's
            await asyncio.sleep(0)
        came = len(r.session.batches)
        assert await r.score("short", ingress=True)
        ahead = r.session.batches[came : r.session.batches.index(["short"])]
        # What a thread has been given can't be overtaken: AHEAD_TOKENS.
        assert len(ahead) <= 2 + (0 if inline else AHEAD_TOKENS // LEAST_TOKENS)
        assert not any(task.done() for task in long)
        await asyncio.gather(*long)
        turns = [batch[0] for batch in r.session.batches if batch != ["short"]]
        assert abs(turns[20:80].count("a") - 30) <= 5


# Prompts that come again


async def again(scorer: Scorer, text: str, caller: str | None, *, fresh_chars: int = 0) -> Checked:
    asked = scorer.ask(("fake",), text, PATIENT_MS, ingress=True, caller=caller, fresh_chars=fresh_chars)
    return await asked.answer()


async def test_a_prompt_that_its_caller_sends_again_is_not_read_again() -> None:
    async with rig(inline=False) as r:
        first = await again(r.scorer, "one|two|Ann", "a")
        asked = r.scorer.ask(("fake",), "one|two|Ann", PATIENT_MS, ingress=True, caller="a")
        assert asked.settled
        known = asked.answered()
        assert (known.scores, known.entities) == (first.scores, first.entities)
        assert (first.again, known.again) == (False, True)
        assert first.entities
        assert r.session.batches == [["one"], ["two"], ["Ann"]]
        assert r.told.checks == [("fake", None)]


async def test_what_is_known_to_one_caller_is_read_for_another() -> None:
    async with rig(inline=False) as r:
        for caller in ("a", "b", None, None, ""):
            assert not r.scorer.ask(("fake",), "text", PATIENT_MS, ingress=True, caller=caller).settled
            await again(r.scorer, "text", caller)
        await again(r.scorer, "text", "a", fresh_chars=2)
        runs = len(r.session.batches)
        await again(r.scorer, "other", "a")
        await r.scorer.ask(("fake",), "text", PATIENT_MS, caller="a").answer()  # an answer is not a prompt
        assert len(r.session.batches) == runs + 2


async def test_g23_a_failure_is_not_remembered_and_what_is_known_says_nothing_of_the_detector() -> None:
    async with rig(inline=False, limits=ScorerLimits(breaker_failures=2, breaker_open_s=1_000.0)) as r:
        await again(r.scorer, "fine", "a")
        for _ in range(2):
            with pytest.raises(ScoringError):
                await again(r.scorer, "crash", "a")
            if not r.told.states:
                await again(r.scorer, "fine", "a")  # does not end the row of failures
        assert [state for _, _, state in r.told.states] == ["open"]
        with pytest.raises(ScoringError):
            await again(r.scorer, "fine", "a")
        r.scorer._lanes["fake", True]._line.breaker._open_s = 0.0
        runs = len(r.session.batches)
        await again(r.scorer, "fine", "a")  # the probe asks the detector itself
        assert len(r.session.batches) == runs + 1


async def test_a_text_that_has_grown_is_read_where_it_is_new() -> None:
    async with rig(inline=False) as r:
        r.session.spells = True
        said = "one|two"
        for word in ("three", "four", "high", "five"):
            await again(r.scorer, said, "a")
            said += f"|{word}"
        grown = await again(r.scorer, said, "a")
        assert r.session.batches == [[word] for word in said.split("|")]
        assert grown.scores == {"fake.a": 1.0, "fake.b": 0.75}  # of parts that were remembered too
        await again(r.scorer, said + "|six", "b")
        assert len(r.session.batches) == 6 + 7


async def test_a_part_is_remembered_in_whatever_text_it_comes_again_but_only_for_its_caller() -> None:
    async with rig(inline=False) as r:
        r.session.spells = True
        await again(r.scorer, "one|two", "a")
        await again(r.scorer, "two|one|two|new", "a")
        assert r.session.batches == [["one"], ["two"], ["new"]]
        for caller in ("b", None):
            r.session.batches.clear()
            await again(r.scorer, "two|other", caller)
            assert r.session.batches == [["two"], ["other"]]


async def test_g23_a_part_that_failed_is_read_again_and_a_probe_reads_every_part() -> None:
    async with rig(inline=False, limits=ScorerLimits(breaker_failures=1, breaker_open_s=1_000.0)) as r:
        r.session.spells = True
        await again(r.scorer, "one|two", "a")
        with pytest.raises(ScoringError):
            await again(r.scorer, "one|crash|three", "a")
        assert [state for _, _, state in r.told.states] == ["open"]
        r.scorer._lanes["fake", True]._line.breaker._open_s = 0.0
        r.session.batches.clear()
        await again(r.scorer, "one|two|four", "a")
        assert r.session.batches == [["one"], ["two"], ["four"]]
        with pytest.raises(ScoringError):
            await again(r.scorer, "one|crash", "a")
        assert r.session.batches[-1] == ["crash"]


async def test_what_is_cheap_to_read_is_not_remembered() -> None:
    async with rig(inline=True) as r:
        for _ in range(2):
            await again(r.scorer, "text", "a")
        assert r.session.batches == [["text"], ["text"]]


async def test_a_stuck_prompt_does_not_delay_answers() -> None:
    async with rig(inline=False) as r:
        prompt = asyncio.ensure_future(r.score("wait", ingress=True))
        assert await r.score("answer") == {"fake.a": 0.25, "fake.b": 0.75}
        assert not prompt.done()
        r.session.go.set()
        await prompt


async def test_inline_answers_go_before_the_rest_of_a_long_prompt() -> None:
    async with rig(inline=True) as r:
        order: list[str] = []

        def note(name: str) -> Callable[[object], None]:
            return lambda _: order.append(name)

        r.session.around = slowly
        prompt = asyncio.ensure_future(r.score("|".join(["p"] * 50), ingress=True))
        prompt.add_done_callback(note("prompt"))
        await asyncio.sleep(0)
        answer = asyncio.ensure_future(r.score("answer"))
        answer.add_done_callback(note("answer"))
        await asyncio.gather(prompt, answer)
        assert order == ["answer", "prompt"]
