"""The designs that score one answer, as operations: `/api/analyze`, `/api/verify`, `/api/ground`.

What a request holds of the wrong type is refused with its place. Retrieved passages are the exception where their
design says so: one of another shape is left out, as a retriever may give it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

from checkstream.api.operation import Operation, for_anyone
from checkstream.errors import RequestInvalid
from checkstream.grounding import evidence_check, rag, risk
from checkstream.grounding.budget import Profile
from checkstream.grounding.coverage import RagStatus
from checkstream.grounding.evidence_check import HallucinationCheck
from checkstream.grounding.rag import RagJudge, Verification
from checkstream.grounding.risk import RatedClaim, RiskAnalysis
from checkstream.grounding.terms import Passage, Verifier

ANSWER_CHARS = 100_000
MOST_PASSAGES = 1000
MOST_CLAIMS = 200
"""That a verifier judges of one answer; those behind them are unverified."""
MOST_REQUESTS = 256
"""Of one batch."""
Text = Annotated[str, Meta(max_length=ANSWER_CHARS)]
Short = Annotated[str, Meta(min_length=1, max_length=200)]
_SECONDS = 60.0
_Said = TypeVar("_Said")


def _require_few(name: str, passages: object) -> None:
    if isinstance(passages, list) and len(passages) > MOST_PASSAGES:
        raise ValueError(f"`{name}` has {len(passages)} entries; send at most {MOST_PASSAGES}")


class _Asked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request; unknown fields are refused."""


class AnalyzeRequest(_Asked, frozen=True, kw_only=True):
    """What the risk engine is asked."""

    prompt: Text | None = None
    llm_response: Text | None
    rag_results: Annotated[
        Any,
        Meta(
            description="Retrieved passages, a list of objects with `content` and perhaps `metadata`. What has another "
            "shape is left out.",
            examples=[[{"content": "Paris is the capital of France.", "metadata": {}}]],
        ),
    ] = None
    verified: bool = False
    """Let the configured verifier judge the claims, instead of comparing their words with the passages."""

    def __post_init__(self) -> None:
        """A verifier reads only so many passages: it judges each claim by each of them."""
        if self.verified:
            _require_few("rag_results", self.rag_results)


Batch = Annotated[
    tuple[Any, ...],
    Meta(
        max_length=MOST_REQUESTS,
        description="Requests as of `/api/analyze`, with texts no longer than there. One that can't be analysed gets a "
        "cautious result in its place.",
    ),
]


class VerifyRequest(_Asked, frozen=True, kw_only=True):
    """What RAG verification is asked."""

    query: Text
    answer: Text
    chunks: Annotated[
        Any,
        Meta(
            description="Retrieved passages, best first, a list of objects with `chunk_id`, `text` and perhaps "
            "`metadata`. What has another shape is left out.",
            examples=[[{"chunk_id": "c1", "text": "Revenue was $394 billion.", "metadata": {"ticker": "AAPL"}}]],
        ),
    ] = None
    identifiers: Annotated[tuple[Short, ...], Meta(max_length=16)] = rag.IDENTIFIERS
    """Fields of `metadata` that an answer may cite a chunk by."""
    strict: bool = False
    """Only the first identifier, or a chunk's number or id in brackets, is a citation."""

    def __post_init__(self) -> None:
        """There are only so many chunks."""
        _require_few("chunks", self.chunks)


class Document(_Asked, frozen=True, kw_only=True):
    """A passage that answers cite by its id in brackets."""

    id: Short
    text: str


class GroundRequest(_Asked, frozen=True, kw_only=True):
    """What the evidence budget is asked."""

    answer: Text
    docs: Annotated[tuple[Document, ...], Meta(max_length=MOST_PASSAGES)]
    profile: Profile = "strict"
    """`seed` decides by the design's formula alone; `strict` grounds nothing that is less likely than not."""
    language: Short = "en"
    """Of the warnings."""


class GroundResponse(msgspec.Struct, frozen=True, kw_only=True):
    """What the evidence budget says of an answer."""

    hallucination_check: HallucinationCheck
    warning: str | None
    """For the reader, in the answer's language."""


class Scoring:
    """Scores answers for callers who wait."""

    def __init__(
        self, verifier: Verifier, judge: RagJudge, threads: ThreadPoolExecutor, *, seconds: float = _SECONDS
    ) -> None:
        """Score with `verifier` and `judge`; both wait elsewhere than on the event loop, and so do `threads`."""
        self._verifier = verifier
        self._judge = judge
        self._threads = threads
        self._seconds = seconds

    @property
    def operations(self) -> tuple[Operation, ...]:
        """What can be asked."""
        given = (
            ("/api/analyze", "How much is an answer to be doubted?", AnalyzeRequest, RiskAnalysis, self._analyze),
            ("/api/analyze_batch", "The same of many answers, in order.", Batch, tuple[RiskAnalysis, ...], self._batch),
            ("/api/verify", "Does an answer agree with its sources?", VerifyRequest, Verification, self._verify),
            ("/api/ground", "Does an answer use what it cites?", GroundRequest, GroundResponse, self._ground),
        )
        return tuple(
            Operation("POST", path, summary, asks, (gives,), for_anyone(work), self._seconds)
            for path, summary, asks, gives, work in given
        )

    async def _analyze(self, asked: AnalyzeRequest) -> RiskAnalysis:
        prompt, answer = asked.prompt or "", asked.llm_response or ""
        if not asked.verified:
            return await self._away(partial(risk.analyze, prompt, answer, asked.rag_results))
        try:
            rated = await self._rated(answer, risk.passages_of(asked.rag_results))
            return await self._away(partial(risk.rate, prompt, answer, rated))
        except Exception as error:  # noqa: BLE001 - as the engine does: an answer, and never "no risk"
            return risk.failed(error, risk.FAILED_SCORE)

    async def _rated(self, answer: str, passages: Sequence[Passage]) -> list[RatedClaim]:
        """Return the claims of an answer as the verifier judges them; what it is not asked of is unverified."""
        found = await self._away(partial(risk.claims_of, answer))
        most = MOST_CLAIMS if passages else 0
        judged = await self._verifier.judge(found[:most], passages) if found[:most] else []
        rest = [RatedClaim(text=claim.text, rag_status=RagStatus.UNVERIFIED) for claim in found[most:]]
        return [*risk.rated_by(judged), *rest]

    async def _batch(self, asked: tuple[object, ...]) -> list[RiskAnalysis]:
        """Analyse many answers.

        Raises:
            RequestInvalid: a text is too long.
        """
        for place, each in enumerate(asked):
            for name in ("prompt", "llm_response"):
                text = each.get(name) if isinstance(each, dict) else None
                if isinstance(text, str) and len(text) > ANSWER_CHARS:
                    long = f"a text has {len(text)} characters; send at most {ANSWER_CHARS}"
                    raise RequestInvalid(f"{long} - at `$[{place}].{name}`")
        return await self._away(partial(risk.analyze_batch, asked))

    async def _verify(self, asked: VerifyRequest) -> Verification:
        chunks = rag.passages_of(asked.chunks)
        alignment = facts = None
        if chunks:
            alignment = await self._judge.alignment(asked.query, asked.answer, chunks[: rag.ALIGNMENT_CHUNKS])
            facts = await self._judge.facts(asked.answer, chunks[: rag.FACT_CHUNKS])
        given = partial(rag.reckoned, identifiers=asked.identifiers, strict=asked.strict)
        return await self._away(partial(given, asked.answer, chunks, alignment, facts))

    async def _ground(self, asked: GroundRequest) -> GroundResponse:
        docs = [Passage(id=doc.id, text=doc.text) for doc in asked.docs]
        questions = await self._away(partial(evidence_check.questions, asked.answer, docs))
        found = await evidence_check.ask(questions, self._verifier, profile=asked.profile, language=asked.language)
        return GroundResponse(hallucination_check=found, warning=found.warning)

    async def _away(self, work: Callable[[], _Said]) -> _Said:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)
