"""The six steps, each a plain function: it reads what steps before wrote, and returns what it writes itself.

What waits (models, stores) is handed in as `World`. Within a step items go side by side, at most `World.parallel` of
them; their results stand in the order of their inputs. INVARIANT: an item that fails fails the run, naming itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from checkstream.errors import ChatError, CheckstreamError, GateError, StepFailed
from checkstream.gate.settings import GateSettings
from checkstream.gate.state import Key, State
from checkstream.gate.terms import (
    ClaimVerdict,
    Evidence,
    EvidenceDocument,
    FoundClaim,
    Prompt,
    Response,
)
from checkstream.grounding.claims import checkable
from checkstream.grounding.decision import RiskScore
from checkstream.grounding.decision import score_risk as risk_of
from checkstream.grounding.fusion import merged, reciprocal_rank
from checkstream.grounding.terms import Claim, Judgement, Passage, Verdict

_Item = TypeVar("_Item")
_Made = TypeVar("_Made")

CONFIG: Key[GateSettings] = Key("config")
PROMPTS: Key[tuple[Prompt, ...]] = Key("prompts")
RESPONSES: Key[tuple[Response, ...]] = Key("responses")
CLAIMS: Key[tuple[FoundClaim, ...]] = Key("claims")
EVIDENCE: Key[tuple[Evidence, ...]] = Key("evidence")
VERDICTS: Key[tuple[ClaimVerdict, ...]] = Key("verdicts")
SCORE: Key[RiskScore] = Key("score")


class Memory(Protocol):
    """Keeps what each item of a run gave, so that a run that was cut off goes on."""

    async def recall(self, step: str, item: str, kind: type[_Made]) -> _Made | None:
        """Return what an item gave, if it was kept."""
        ...

    async def keep(self, step: str, item: str, value: object) -> None:
        """Keep what an item gave, before anything is built on it."""
        ...


@dataclass(frozen=True, slots=True)
class World:
    """What the steps ask. Nothing here sees the state: what a model says can change no step but through its result."""

    prompts: Callable[[GateSettings], Awaitable[Sequence[Prompt]]]
    """Writes the prompts, or reads them from files."""
    answer: Callable[[str], Awaitable[str]]
    """The target: prompt -> response."""
    claims: Callable[[str], Awaitable[Sequence[Claim]]]
    """Response -> its claims."""
    search: Callable[[str], Awaitable[tuple[Sequence[Passage], Sequence[Passage]]]]
    """Claim -> what keyword and what vector search find, best first."""
    judge: Callable[[Claim, Sequence[Passage]], Awaitable[Judgement]]
    """Claim and passages -> a judgement."""
    parallel: int = 4
    memory: Memory | None = None
    """What items gave before the run was cut off; None: nothing is kept."""


async def generate_prompts(state: State, world: World) -> tuple[Prompt, ...]:
    """Write the prompts that the target is asked."""

    async def write(config: GateSettings) -> tuple[Prompt, ...]:
        return tuple(await world.prompts(config))

    (found,) = await _each(world, PROMPTS, [("all", state.of(CONFIG))], write, tuple[Prompt, ...])
    return found


async def run_model(state: State, world: World) -> tuple[Response, ...]:
    """Ask the target every prompt."""

    async def ask(prompt: Prompt) -> Response:
        return Response(prompt_id=prompt.id, text=await world.answer(prompt.text))

    return await _each(world, RESPONSES, [(prompt.id, prompt) for prompt in state.of(PROMPTS)], ask, Response)


async def extract_claims(state: State, world: World) -> tuple[FoundClaim, ...]:
    """Take every response apart into claims; what can't be true or false is left out."""

    async def extract(response: Response) -> tuple[FoundClaim, ...]:
        found = checkable(list(await world.claims(response.text)))
        return tuple(
            FoundClaim(id=f"{response.prompt_id}.c{number}", prompt_id=response.prompt_id, text=claim.text)
            for number, claim in enumerate(found, 1)
        )

    items = [(response.prompt_id, response) for response in state.of(RESPONSES)]
    return tuple(
        claim for found in await _each(world, CLAIMS, items, extract, tuple[FoundClaim, ...]) for claim in found
    )


async def retrieve_evidence(state: State, world: World) -> tuple[Evidence, ...]:
    """Search the trusted documents for every claim."""

    async def retrieve(claim: FoundClaim) -> Evidence:
        keyword, vector = await world.search(claim.text)
        both = merged(keyword, vector, id_of=lambda found: found.id, text_of=lambda found: found.text)
        kept = {passage.id for passage in both}
        ranked = reciprocal_rank([[passage.id for passage in keyword], [passage.id for passage in vector]])
        return Evidence(
            claim_id=claim.id,
            documents=tuple(
                EvidenceDocument(chunk_id=passage.id, source=passage.source, content=passage.text, rank=rank)
                for rank, passage in enumerate(both, 1)
            ),
            judged=tuple(id_ for id_, _ in ranked if id_ in kept),
        )

    return await _each(world, EVIDENCE, [(claim.id, claim) for claim in state.of(CLAIMS)], retrieve, Evidence)


async def verify_claims(state: State, world: World) -> tuple[ClaimVerdict, ...]:
    """Judge every claim by its evidence; without any it is unsupported, and no judge is asked."""

    async def verify(pair: tuple[FoundClaim, Evidence]) -> ClaimVerdict:
        claim, evidence = pair
        if not evidence.documents:
            reason = "no trusted document was found for it"
            return ClaimVerdict(claim_id=claim.id, label=Verdict.UNSUPPORTED, justification=reason)
        by_id = {document.chunk_id: document for document in evidence.documents}
        passages = [
            Passage(id=id_, text=by_id[id_].content, source=by_id[id_].source)
            for id_ in evidence.judged
            if id_ in by_id
        ]
        asked = Claim(text=claim.text, start=0, end=len(claim.text))
        said = await world.judge(asked, passages)
        return ClaimVerdict(
            claim_id=claim.id,
            label=said.verdict,
            justification=said.reason,
            evidence_ids=tuple(dict.fromkeys(excerpt.passage_id for excerpt in said.excerpts)),
            degraded=said.degraded,
        )

    pairs = zip(state.of(CLAIMS), state.of(EVIDENCE), strict=True)
    return await _each(world, VERDICTS, [(claim.id, (claim, found)) for claim, found in pairs], verify, ClaimVerdict)


async def score_risk(state: State, _: World) -> RiskScore:
    """Reckon the risk and decide."""
    config = state.of(CONFIG)
    labels = [verdict.label for verdict in state.of(VERDICTS) if verdict.label is not Verdict.NOT_CHECKABLE]
    return risk_of(labels, config.thresholds, min_claims=config.min_claims)


_UNTOLD = "the evidence can't be used; the operator's log says why"
"""Of errors that name hosts, users and files; those of models name none."""


async def _each(
    world: World,
    key: Key[Any],
    items: Sequence[tuple[str, _Item]],
    work: Callable[[_Item], Awaitable[_Made]],
    kind: type[_Made],
) -> tuple[_Made, ...]:
    """Do one thing to every item, a few at a time; results stand in the items' order.

    Raises:
        StepFailed: an item failed; those that still ran are given up.
    """
    room = asyncio.Semaphore(world.parallel)
    memory = world.memory

    async def one(name: str, item: _Item) -> _Made:
        if memory is not None and (known := await memory.recall(key.name, name, kind)) is not None:
            return known
        async with room:
            try:
                made = await work(item)
            except (CheckstreamError, OSError, TimeoutError) as error:
                told = None if isinstance(error, ChatError | GateError) else _UNTOLD
                raise StepFailed(key.name, name, str(error) or type(error).__name__, told=told) from error
            if memory is not None:
                await _to_its_end(memory.keep(key.name, name, made))
        return made

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(name, item)) for name, item in items]
    except BaseExceptionGroup as failed:
        found = [error for error in failed.exceptions if isinstance(error, StepFailed)]
        if not found:
            raise
        order = {name: at for at, (name, _) in enumerate(items)}
        raise min(found, key=lambda error: order[error.item]) from None
    return tuple(task.result() for task in tasks)


async def _to_its_end(keeping: Coroutine[Any, Any, None]) -> None:
    """Wait until something is kept, even where another item's failure gives this one up: it was paid for."""
    task = asyncio.ensure_future(keeping)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await task
        raise
