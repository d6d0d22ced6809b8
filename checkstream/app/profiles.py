"""The profiles that hold answers against evidence, by the names that routes use. Each is one of the designs.

Of a long answer only the first claims are judged, and the result says how many were not: what nobody bounds, a caller
could make last for minutes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from checkstream.app.verifiers import Verifiers
from checkstream.core.match.language import language_of
from checkstream.errors import JobError
from checkstream.grounding import evidence_check, rag, risk
from checkstream.grounding.coverage import RagStatus
from checkstream.grounding.risk import RatedClaim
from checkstream.grounding.terms import Judgement, Passage
from checkstream.jobs import Assessment, Exchange, Scorer

MOST_CLAIMS = 200
UNCONFIRMED = float(risk.RAG_UNVERIFIED)
"""Risk of claims that there is no evidence about at all: nothing is known against them, as the risk engine has it."""
_LANGUAGE_CHARS = 2000
"""By so many from its start the language of an answer is told."""


class ShownExcerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Words of a passage that a verdict rests on."""

    id: str
    source: str
    start: int
    end: int
    text: str


class ShownClaim(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of one claim, with its reason."""

    text: str
    start: int
    """Where it stands in the answer, code points."""
    end: int
    verdict: str
    score: float
    reason: str
    evidence: tuple[ShownExcerpt, ...]


class Judged(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a profile says what it says, beside its design's own output."""

    claims: tuple[ShownClaim, ...]
    unjudged: int = 0
    """Claims beyond the most that are judged."""
    degraded: tuple[str, ...] = ()
    """What failed, and was made up for by something simpler."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile says of an answer."""

    risk: float | None
    """0 (sound) to 100; None: it can't say."""
    members: Mapping[str, object]
    """Name -> value, as they stand in a reply."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One way to hold an answer against evidence."""

    version: str
    """A new one scores anew."""
    assess: Callable[[Exchange], Coroutine[Any, Any, Said]]
    """Whatever it raises, the answer was not assessed."""


class Evidence(Protocol):
    """Where evidence is found for answers whose request brought none along."""

    async def passages(self, exchange: Exchange) -> Sequence[Passage]:
        """Return what an answer is held against.

        Raises:
            StoreUnusable: the store can't be searched.
            ScoringError: claims could not be embedded.
        """
        ...


class Brought:
    """Only what the request brought along. Implements `Evidence`."""

    async def passages(self, exchange: Exchange) -> Sequence[Passage]:
        """Return the documents of the request."""
        return exchange.documents


def profiles(verifiers: Verifiers, evidence: Evidence | None = None) -> dict[str, Profile]:
    """Return every profile that this version has, judging by `verifiers`."""
    found = evidence or Brought()
    name = f"{verifiers.verifier.name}@{verifiers.verifier.version}"
    return {
        "watchdog": Profile(version=f"2 {name}", assess=partial(_watchdog, verifiers, found)),
        "rag": Profile(version=f"1 {name}", assess=partial(_rag, verifiers, found)),
        "budget": Profile(version=f"1 {name}", assess=partial(_budget, verifiers, found)),
    }


def scorers(known: Mapping[str, Profile]) -> dict[str, Scorer]:
    """Return the profiles as workers use them."""
    return {
        name: Scorer(version=profile.version, assess=partial(_assessed, profile)) for name, profile in known.items()
    }


async def _assessed(profile: Profile, exchange: Exchange) -> Assessment:
    """Return what is kept of an assessment.

    Raises:
        JobError: the profile can't say anything.
    """
    said = await profile.assess(exchange)
    if said.risk is None:
        raise JobError("the verifier answered no question about the answer; it is asked again later")
    return Assessment(risk=said.risk, report=msgspec.json.encode(said.members))


async def _watchdog(verifiers: Verifiers, evidence: Evidence, exchange: Exchange) -> Said:
    """Score by the risk engine, its claims judged by the verifier; the question is all that the user said."""
    prompt = "\n".join(message.text for message in exchange.messages if message.role == "user")
    passages = await evidence.passages(exchange)
    found = await asyncio.to_thread(risk.claims_of, exchange.answer)
    judgements = await verifiers.verifier.judge(found[:MOST_CLAIMS], passages)
    rated = risk.rated_by(judgements)
    # Of those that nobody judges one stands for all: what is false could hide behind many a true claim.
    rated += [RatedClaim(text=claim.text, rag_status=RagStatus.UNVERIFIED) for claim in found[MOST_CLAIMS:][:1]]
    analysis = await asyncio.to_thread(risk.rate, prompt, exchange.answer, rated)
    return Said(
        risk=float(analysis.risk_score),
        members={"risk": analysis, "checkstream": judged(judgements, passages, len(found) - len(judgements))},
    )


async def _rag(verifiers: Verifiers, evidence: Evidence, exchange: Exchange) -> Said:
    """Verify against the sources; the query is what the user said last."""
    query = next((message.text for message in reversed(exchange.messages) if message.role == "user"), "")
    answer, passages = exchange.answer, await evidence.passages(exchange)
    alignment = facts = None
    if passages:
        alignment = await verifiers.judge.alignment(query, answer, passages[: rag.ALIGNMENT_CHUNKS])
        facts = await verifiers.judge.facts(answer, passages[: rag.FACT_CHUNKS])
    verification = await asyncio.to_thread(rag.reckoned, answer, passages, alignment, facts)
    claimed = bool(await asyncio.to_thread(risk.claims_of, answer))
    doubt = round(100.0 * (1.0 - verification.overall_score), 2) if passages else UNCONFIRMED
    return Said(risk=doubt if claimed else 0.0, members={"verification": verification})


async def _budget(verifiers: Verifiers, evidence: Evidence, exchange: Exchange) -> Said:
    """Check whether the answer uses what it cites; warnings are in its language."""
    passages = await evidence.passages(exchange)
    language = exchange.language or await asyncio.to_thread(language_of, exchange.answer[:_LANGUAGE_CHARS])
    questions = await asyncio.to_thread(evidence_check.questions, exchange.answer, passages)
    check = await evidence_check.ask(questions, verifiers.verifier, language=language)
    doubt: float | None = None
    if check.grounding_ratio is not None:
        doubt = round(100.0 * (1.0 - check.grounding_ratio), 2)
    if doubt and not passages:
        doubt = UNCONFIRMED
    return Said(risk=doubt, members={"hallucination_check": check, "warning": check.warning})


def judged(judgements: Sequence[Judgement], passages: Sequence[Passage], unjudged: int) -> Judged:
    """Return judgements with the words that they rest on."""
    known = {passage.id: passage for passage in passages}
    return Judged(
        claims=tuple(
            ShownClaim(
                text=each.claim.text,
                start=each.claim.start,
                end=each.claim.end,
                verdict=each.verdict,
                score=round(each.score, 4),
                reason=each.reason,
                evidence=tuple(
                    ShownExcerpt(
                        id=excerpt.passage_id,
                        source=known[excerpt.passage_id].source,
                        start=excerpt.start,
                        end=excerpt.end,
                        text=known[excerpt.passage_id].text[excerpt.start : excerpt.end],
                    )
                    for excerpt in each.excerpts
                    if excerpt.passage_id in known
                ),
            )
            for each in judgements
        ),
        unjudged=unjudged,
        degraded=tuple(dict.fromkeys(reason for each in judgements for reason in each.degraded)),
    )
