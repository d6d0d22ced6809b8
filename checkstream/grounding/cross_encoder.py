"""The verifier that has a model read claim and passage together: any NLI or pair model as an ONNX file. A shell.

Each passage is read piece by piece and the best piece decides, as with the embedded verifier; a claim counts as false
where no piece says it and one denies it. Reading is done on a thread, one claim at a time, so that a call which nobody
waits for any more ends soon.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from checkstream.errors import ScoringError
from checkstream.grounding.terms import Claim, Entailment, Excerpt, Judgement, Passage, Verdict, Verifier
from checkstream.scoring.manifest import PAIR_LABELS
from checkstream.scoring.pairs import PairReading

_ENTAILMENT, _, _CONTRADICTION = PAIR_LABELS
SUPPORTED, WEAKLY, CONTRADICTED = 0.5, 0.3, 0.5
"""From these probabilities on."""
_Said = TypeVar("_Said")


class PairReader(Protocol):
    """Reads two texts together; `scoring.pairs.PairSession` does."""

    name: str
    version: str

    def read(self, premise: str, claim: str) -> Iterable[PairReading]:
        """Read a claim with every piece of a premise; nothing where one of the two holds no token.

        Raises:
            ScoringError: the model failed.
        """
        ...


class _Read(msgspec.Struct, frozen=True):
    """One piece of a passage, and what it says of a claim."""

    excerpt: Excerpt
    scores: dict[str, float]


class CrossEncoderVerifier:
    """Judges by a model of pairs. Implements `grounding.terms.Verifier`."""

    def __init__(self, reader: PairReader, fallback: Verifier | None = None, *, claim_s: float = 30.0) -> None:
        """Ask `reader`.

        Args:
            reader: of two texts.
            fallback: judges what the model fails to judge.
            claim_s: how long one claim may take, with all passages.
        """
        self._reader = reader
        self._fallback = fallback
        self._claim_s = claim_s
        self._lock = threading.Lock()
        """Of the reader, which is for one thread."""
        self.name = f"cross_encoder:{reader.name}"
        self.version = reader.version

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        """Judge claims of one answer against the same passages; without passages nothing is supported."""
        known = [passage for passage in passages if passage.text.strip()]
        return [await self._judge(claim, known) for claim in claims]

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return for each (context, claim) the chance that the context says the claim."""
        found = []
        for context, claim in pairs:
            try:
                read = await self._away(partial(self._pieces, "", context, claim))
            except ScoringError as error:
                found.append(Entailment(low=0.0, high=1.0, error=str(error)))
                continue
            chance = max((each.scores[_ENTAILMENT] for each in read), default=0.0)
            found.append(Entailment(low=chance, high=chance))
        return found

    async def _judge(self, claim: Claim, passages: Sequence[Passage]) -> Judgement:
        if claim.not_checkable:
            return Judgement(claim=claim, verdict=Verdict.NOT_CHECKABLE, score=0.5, reason=claim.not_checkable)
        if not claim.text.strip():
            return Judgement(claim=claim, verdict=Verdict.NOT_CHECKABLE, score=0.5, reason="the claim has no words")
        if not passages:
            return Judgement(claim=claim, verdict=Verdict.UNSUPPORTED, score=0.0, reason="there is no evidence")
        try:
            read = await self._away(
                lambda: [each for passage in passages for each in self._pieces(passage.id, passage.text, claim.text)]
            )
        except ScoringError as error:
            return await self._without(claim, passages, error)
        return _judgement(claim, read)

    def _pieces(self, passage_id: str, text: str, claim: str) -> list[_Read]:
        with self._lock:
            return [
                _Read(Excerpt(passage_id=passage_id, start=each.start, end=min(each.end, len(text))), each.scores)
                for each in self._reader.read(text, claim)
            ]

    async def _away(self, work: Callable[[], _Said]) -> _Said:
        """Work on a thread.

        Raises:
            ScoringError: the model failed, or took too long.
        """
        try:
            async with asyncio.timeout(self._claim_s):
                return await asyncio.to_thread(work)
        except TimeoutError as error:
            message = f"model `{self._reader.name}` took more than {self._claim_s:g} s; give it fewer passages"
            raise ScoringError(message, reason="deadline") from error

    async def _without(self, claim: Claim, passages: Sequence[Passage], error: ScoringError) -> Judgement:
        """Judge without the model: by the fallback, or not at all."""
        degraded = (f"cross_encoder:{error.reason}",)
        if self._fallback is None:
            return Judgement(claim=claim, verdict=Verdict.UNSUPPORTED, score=0.5, reason=str(error), degraded=degraded)
        (found,) = await self._fallback.judge([claim], passages)
        return msgspec.structs.replace(found, degraded=(*degraded, *found.degraded))


def _judgement(claim: Claim, read: Sequence[_Read]) -> Judgement:
    if not read:
        return Judgement(
            claim=claim, verdict=Verdict.UNSUPPORTED, score=0.0, reason="the model reads nothing in claim or evidence"
        )
    best = max(read, key=lambda each: each.scores[_ENTAILMENT])
    denied = max(read, key=lambda each: each.scores.get(_CONTRADICTION, 0.0))
    score, against = best.scores[_ENTAILMENT], denied.scores.get(_CONTRADICTION, 0.0)
    if score >= SUPPORTED:
        verdict, reason, shown = Verdict.SUPPORTED, f"the evidence says it, with probability {score:.2f}", best
    elif against >= CONTRADICTED:
        verdict, reason, shown = Verdict.CONTRADICTED, f"the evidence denies it, with probability {against:.2f}", denied
    elif score >= WEAKLY:
        verdict, reason, shown = Verdict.WEAKLY_SUPPORTED, f"the evidence may say it, probability {score:.2f}", best
    else:
        verdict, reason, shown = Verdict.UNSUPPORTED, f"no evidence says it; at best with probability {score:.2f}", best
    return Judgement(claim=claim, verdict=verdict, score=score, reason=reason, excerpts=(shown.excerpt,))
