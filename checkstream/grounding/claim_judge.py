"""RAG verification without a language model: both questions answered by judging the answer's claims one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import msgspec

from checkstream.grounding.claims import Level, checkable, claims
from checkstream.grounding.rag import MAX_CLAIMS
from checkstream.grounding.terms import Claim, Judgement, Passage, Verdict, Verifier

_ALIGNMENT_CLAIMS = 64
"""Of one answer; what is behind them does not count."""


class ClaimJudge:
    """Answers by any verifier. Implements `rag.RagJudge`; an answer without claims has no reply.

    Alignment is the mean score of the claims; a fact is verified where the passages support it wholly.
    """

    def __init__(self, verifier: Verifier) -> None:
        """Judge claims with `verifier`."""
        self._verifier = verifier

    async def alignment(self, query: str, answer: str, passages: Sequence[Passage]) -> str | None:
        """Return how well the claims of `answer` agree with `passages`; `query` makes none of them true."""
        del query
        judged = await self._judged(answer, passages, _ALIGNMENT_CLAIMS)
        if not judged:
            return None
        return _json({"score": sum(each.score for each in judged) / len(judged)})

    async def facts(self, answer: str, passages: Sequence[Passage]) -> str | None:
        """Return which of the first claims of `answer` the `passages`, numbered from 1, support."""
        judged = await self._judged(answer, passages, MAX_CLAIMS)
        numbers = {passage.id: number for number, passage in reversed([*enumerate(passages, 1)])}
        listed = [
            {
                "claim": each.claim.text,
                "verified": each.verdict is Verdict.SUPPORTED,
                "supporting_sources": sorted({numbers[excerpt.passage_id] for excerpt in each.excerpts}),
            }
            for each in judged
        ]
        return _json({"claims": listed}) if listed else None

    async def _judged(self, answer: str, passages: Sequence[Passage], most: int) -> list[Judgement]:
        """Return the judgements that say something of a claim: one made up for a failure says nothing."""
        found = await asyncio.to_thread(_claims, answer)
        judged = await self._verifier.judge(found[:most], passages)
        return [each for each in judged if each.verdict is not Verdict.NOT_CHECKABLE and not each.degraded]


def _claims(answer: str) -> list[Claim]:
    return checkable(claims(answer, Level.ATOMIC))


def _json(reply: object) -> str:
    return msgspec.json.encode(reply).decode()
