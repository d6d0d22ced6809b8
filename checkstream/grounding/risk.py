"""The risk engine: one number from 0 to 100 of how much an answer is to be doubted, with its reasons.

Four signals are added up: 40 for a contradiction inside the answer, 35 for one with the documents, 15 for a claim that
nothing confirms, 20 for certainty without cause; 100 at most. The engine judges and never enforces.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from checkstream.grounding.claims import Level, checkable, claims
from checkstream.grounding.contradictions import contradiction
from checkstream.grounding.coverage import Documents, RagStatus
from checkstream.grounding.overconfidence import overconfidence
from checkstream.grounding.sentences import sentences
from checkstream.grounding.terms import Claim, Judgement, Passage, Verdict

INTERNAL_CONTRADICTION = 40
RAG_CONTRADICTION = 35
RAG_UNVERIFIED = 15
OVERCONFIDENCE = 20
MEDIUM = 35
"""From here on the risk is medium: callers warn."""
HIGH = 70
"""From here on it is high: callers block."""
FAILED_SCORE = 35
"""Of an answer that could not be analysed: not 0, which would let everything pass."""

RiskLevel = Literal["LOW", "MEDIUM", "HIGH"]


class Signals(msgspec.Struct, frozen=True, kw_only=True):
    """What speaks against an answer."""

    rag_contradiction: bool = False
    rag_unverified: bool = False
    internal_contradiction: bool = False
    overconfidence: bool = False


class RatedClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim and what the documents say of it."""

    text: str
    rag_status: RagStatus


class RiskAnalysis(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the engine says of one answer; as JSON it is the design's own output."""

    risk_score: int
    """0 to 100."""
    risk_level: RiskLevel
    signals: Signals
    explanation: str
    claims: tuple[RatedClaim, ...]
    error: str | None = None
    """Why the answer could not be analysed; not there when it was."""


def analyze(
    prompt: str | None, llm_response: str | None, rag_results: object = None, *, failed_score: int = FAILED_SCORE
) -> RiskAnalysis:
    """Return the risk of `llm_response`, by words alone.

    Args:
        prompt: What was asked; only its domain matters.
        llm_response: The answer.
        rag_results: A list of `{"content": ..., "metadata": {...}}`; what has another shape is left out.
        failed_score: The risk of an answer that can't be analysed.
    """
    try:
        found = claims_of(llm_response or "")
        texts = [passage.text for passage in passages_of(rag_results)]
        documents = Documents(texts) if texts else None
        rated = [
            RatedClaim(text=claim.text, rag_status=documents.status(claim.text) if documents else RagStatus.UNVERIFIED)
            for claim in found
        ]
        return rate(prompt or "", llm_response or "", rated)
    except Exception as error:  # noqa: BLE001 - the engine answers whatever it is given, and never with "no risk"
        return failed(error, failed_score)


def analyze_batch(requests: Sequence[object], *, failed_score: int = FAILED_SCORE) -> list[RiskAnalysis]:
    """Return the risk of each of `requests` (the arguments of `analyze` by name), in their order."""
    results = []
    for request in requests:
        if isinstance(request, Mapping):
            given = [request.get(name) for name in ("prompt", "llm_response", "rag_results")]
            results.append(analyze(*given, failed_score=failed_score))
        else:
            results.append(failed(TypeError(), failed_score))
    return results


def claims_of(llm_response: str) -> list[Claim]:
    """Return the claims that the engine weighs."""
    return checkable(claims(llm_response, Level.CLAUSE))


def passages_of(rag_results: object) -> list[Passage]:
    """Return the documents of `rag_results`; what is no mapping with a text is left out."""
    if not isinstance(rag_results, Sequence) or isinstance(rag_results, str | bytes):
        return []
    texts = [result.get("content") for result in rag_results if isinstance(result, Mapping)]
    return [
        Passage(id=str(at), text=text)
        for at, text in enumerate(texts)
        if isinstance(text, str) and text.strip()
    ]  # fmt: skip


def rated_by(judgements: Sequence[Judgement]) -> list[RatedClaim]:
    """Return claims as a verifier's judgements rate them: what it only half supports is not verified."""
    statuses = {Verdict.SUPPORTED: RagStatus.SUPPORTED, Verdict.CONTRADICTED: RagStatus.CONTRADICTED}
    return [
        RatedClaim(text=judgement.claim.text, rag_status=statuses.get(judgement.verdict, RagStatus.UNVERIFIED))
        for judgement in judgements
        if judgement.verdict != Verdict.NOT_CHECKABLE
    ]


def rate(prompt: str, llm_response: str, rated: Sequence[RatedClaim]) -> RiskAnalysis:
    """Add up what speaks against `llm_response`, whose claims are already rated."""
    if not llm_response.strip():
        return RiskAnalysis(risk_score=0, risk_level="LOW", signals=Signals(), explanation="Empty response", claims=())
    conflict = contradiction(llm_response, sentences(llm_response))
    certainty = overconfidence(prompt, llm_response)
    statuses = {claim.rag_status for claim in rated}
    signals = Signals(
        rag_contradiction=RagStatus.CONTRADICTED in statuses,
        rag_unverified=RagStatus.UNVERIFIED in statuses,
        internal_contradiction=bool(conflict),
        overconfidence=bool(certainty),
    )
    total = score(signals)
    return RiskAnalysis(
        risk_score=total,
        risk_level=level(total),
        signals=signals,
        explanation=explanation(signals, total, conflict, certainty),
        claims=tuple(rated),
    )


def score(signals: Signals) -> int:
    """Return the sum of what the signals weigh, at most 100."""
    total = (
        INTERNAL_CONTRADICTION * signals.internal_contradiction
        + RAG_CONTRADICTION * signals.rag_contradiction
        + RAG_UNVERIFIED * signals.rag_unverified
        + OVERCONFIDENCE * signals.overconfidence
    )
    return min(100, total)


def level(total: int) -> RiskLevel:
    """Return the band that a score lies in."""
    return "HIGH" if total >= HIGH else "MEDIUM" if total >= MEDIUM else "LOW"


def explanation(signals: Signals, total: int, conflict: str, certainty: str) -> str:
    """Return the signals in words, gravest first."""
    issues = [
        *([f"Internal contradiction detected: {conflict}"] if signals.internal_contradiction else ()),
        *(["Response contradicts retrieved information"] if signals.rag_contradiction else ()),
        *(["Response contains unverified factual claims"] if signals.rag_unverified else ()),
        *([f"Overconfidence detected: {certainty}"] if signals.overconfidence else ()),
    ]
    return f"{level(total)} RISK: {'; '.join(issues) or 'No risk signals detected'}"


def failed(error: Exception, failed_score: int) -> RiskAnalysis:
    """Return what is said of an answer that could not be analysed."""
    name = type(error).__name__
    return RiskAnalysis(
        risk_score=failed_score,
        risk_level=level(failed_score),
        signals=Signals(),
        explanation=f"Analysis failed: {name}",
        claims=(),
        error=str(error) or name,
    )
