from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from checkstream.errors import ChatError, StepFailed, StoreUnusable
from checkstream.gate import steps
from checkstream.gate.pipeline import STEPS, evaluate
from checkstream.gate.settings import GateSettings
from checkstream.gate.state import State
from checkstream.gate.steps import World
from checkstream.gate.terms import FoundClaim, Prompt, Response
from checkstream.grounding.terms import Claim, Excerpt, Judgement, Passage, Verdict
from tests.gate_models import settings

CONFIG = settings("http://127.0.0.1:1")


def claim(text: str) -> Claim:
    return Claim(text=text, start=0, end=len(text))


class Scripted:
    """A world whose models know one document."""

    def __init__(self) -> None:
        self.judged: list[tuple[str, tuple[str, ...]]] = []
        self.running = self.most = 0

    async def prompts(self, config: GateSettings) -> Sequence[Prompt]:
        return [Prompt(id=f"p{n}", text=f"question {n}", category="x") for n in range(1, config.num_prompts + 1)]

    async def answer(self, prompt: str) -> str:
        self.running += 1
        self.most = max(self.most, self.running)
        # The later a prompt, the sooner its answer: results must come in order all the same.
        await asyncio.sleep(0.02 / int(prompt.rsplit(maxsplit=1)[-1]))
        self.running -= 1
        return f"{prompt} holds. Known fact."

    async def claims(self, response: str) -> Sequence[Claim]:
        return [claim(part.strip()) for part in response.split(".") if part.strip()]

    async def search(self, text: str) -> tuple[Sequence[Passage], Sequence[Passage]]:
        if text != "Known fact":
            return [], []
        a, b = Passage(id="a", text="Known fact."), Passage(id="b", text="Other.")
        return [a, b], [b, Passage(id="c", text="Known  fact.")]

    async def judge(self, asked: Claim, passages: Sequence[Passage]) -> Judgement:
        self.judged.append((asked.text, tuple(passage.id for passage in passages)))
        return Judgement(
            claim=asked,
            verdict=Verdict.SUPPORTED,
            score=1.0,
            reason="said so",
            excerpts=(Excerpt(passage_id="a", start=0, end=5),),
        )

    def world(self, parallel: int = 3) -> World:
        return World(self.prompts, self.answer, self.claims, self.search, self.judge, parallel)


async def test_the_six_steps_lead_from_a_configuration_to_a_decision() -> None:
    scripted = Scripted()
    seen: list[tuple[str, int]] = []
    state = await evaluate(CONFIG, scripted.world(), begun=lambda name, number: seen.append((name, number)))
    assert seen == [("prompts", 1), ("responses", 2), ("claims", 3), ("evidence", 4), ("verdicts", 5), ("score", 6)]
    assert list(state) == ["config", *(name for name, _ in seen)]
    assert [response.prompt_id for response in state.of(steps.RESPONSES)] == ["p1", "p2", "p3", "p4"]
    assert [found.id for found in state.of(steps.CLAIMS)][:3] == ["p1.c1", "p1.c2", "p2.c1"]
    score = state.of(steps.SCORE)
    assert (score.total_claims, score.supported, score.unsupported, score.decision) == (8, 4, 4, "block")


async def test_results_stand_in_the_order_of_their_inputs_and_no_more_run_than_may() -> None:
    scripted = Scripted()
    state = await evaluate(CONFIG, scripted.world(parallel=2))
    assert [response.text[:10] for response in state.of(steps.RESPONSES)] == [f"question {n}" for n in range(1, 5)]
    assert scripted.most == 2


async def test_a_claim_without_documents_is_unsupported_and_no_judge_is_asked() -> None:
    scripted = Scripted()
    state = await evaluate(CONFIG, scripted.world())
    first = state.of(steps.VERDICTS)[0]
    assert (first.label, first.justification) == (Verdict.UNSUPPORTED, "no trusted document was found for it")
    assert {text for text, _ in scripted.judged} == {"Known fact"}


async def test_the_audit_lists_keyword_hits_first_and_the_judge_reads_by_reciprocal_rank() -> None:
    scripted = Scripted()
    state = await evaluate(CONFIG, scripted.world())
    found = next(each for each in state.of(steps.EVIDENCE) if each.documents)
    # `c` says the same as `a`, so it is listed once; `b` stands in both lists, so it is read first.
    assert [(document.chunk_id, document.rank) for document in found.documents] == [("a", 1), ("b", 2)]
    assert found.judged == ("b", "a")
    assert scripted.judged[0][1] == ("b", "a")


async def test_an_item_that_fails_fails_the_run_and_is_named() -> None:
    class Failing(Scripted):
        async def answer(self, prompt: str) -> str:
            if prompt.endswith(("2", "3")):
                raise ChatError("model `target` can't be reached", reason="unreachable")
            return await super().answer(prompt)

    with pytest.raises(StepFailed, match="step `responses` failed at item `p2`: model `target` can't be") as failed:
        await evaluate(CONFIG, Failing().world())
    assert (failed.value.step, failed.value.item) == ("responses", "p2")


async def test_what_a_store_says_of_itself_is_not_what_others_are_told() -> None:
    class Failing(Scripted):
        async def search(self, text: str) -> tuple[Sequence[Passage], Sequence[Passage]]:  # noqa: ARG002
            raise StoreUnusable("no connection to es.internal:9200")

    with pytest.raises(StepFailed, match=r"es\.internal") as failed:
        await evaluate(CONFIG, Failing().world())
    assert failed.value.told.startswith("step `evidence` failed at item `p1.c1`: the evidence can't be used")
    assert "es.internal" not in failed.value.told


async def test_what_is_being_kept_when_another_item_fails_is_kept() -> None:
    keeping, kept = asyncio.Event(), []

    class Slow:
        async def recall(self, _step: str, _item: str, _kind: object) -> None:
            return None

        async def keep(self, step: str, item: str, _value: object) -> None:
            if step == "responses":
                keeping.set()
                for _ in range(20):  # as a busy disk: until long after the other has failed
                    await asyncio.sleep(0)
            kept.append((step, item))

    class Failing(Scripted):
        async def answer(self, prompt: str) -> str:
            if prompt.endswith("1"):
                return "x"
            await keeping.wait()
            raise ChatError("gone", reason="unreachable")

    with pytest.raises(StepFailed, match="`p2`"):
        await evaluate(CONFIG, replace(Failing().world(parallel=2), memory=Slow()))
    assert kept[-1] == ("responses", "p1")


async def test_a_bug_in_a_step_is_no_failed_item() -> None:
    class Broken(Scripted):
        async def answer(self, _: str) -> str:
            raise ZeroDivisionError

    with pytest.raises(BaseExceptionGroup) as failed:
        await evaluate(CONFIG, Broken().world())
    assert failed.group_contains(ZeroDivisionError)


@pytest.mark.parametrize(("key", "step"), STEPS)
async def test_each_step_reads_only_what_steps_before_wrote(key: object, step: object) -> None:
    scripted = Scripted()
    state = State().with_(steps.CONFIG, CONFIG)
    for own, run in STEPS:
        if run is step:
            made = await run(state, scripted.world())
            assert own is key
            assert state.with_(own, made)[own.name] == made
            return
        state = state.with_(own, await run(state, scripted.world()))


async def test_what_is_no_claim_is_left_out_and_counts_nowhere() -> None:
    state = (
        State()
        .with_(steps.CONFIG, CONFIG)
        .with_(steps.RESPONSES, (Response(prompt_id="p1", text="Hello! Parcels arrive in 3 days."),))
    )

    async def claims(_: str) -> Sequence[Claim]:
        greeting = Claim(text="Hello", start=0, end=6, not_checkable="greeting")
        return [greeting, claim("Parcels arrive in 3 days")]

    scripted = Scripted()
    world = World(scripted.prompts, scripted.answer, claims, scripted.search, scripted.judge)
    found = await steps.extract_claims(state, world)
    assert found == (FoundClaim(id="p1.c1", prompt_id="p1", text="Parcels arrive in 3 days"),)
