"""The evidence budget of a whole answer: its claims, the contexts they are asked of, and what is said in the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from checkstream.core.match.regex import TextRegex
from checkstream.grounding import warnings
from checkstream.grounding.budget import Audit, Profile, grounding
from checkstream.grounding.claims import Level, claims
from checkstream.grounding.remarks import not_checkable
from checkstream.grounding.sentences import sentences
from checkstream.grounding.terms import Claim, Entailment, Passage, Verifier

MAX_CLAIMS = 10
MIN_CHARS = 15
REDACTED = "[REDACTED]"
MASKED = "[QUESTION]"
_LEAST_RATIO = 0.7
_DIGITS = 4
_LABELLED = TextRegex(
    r"(?i)^\W*(?:question|instructions?|שאלה|הוראה|frage|anweisung|instruction|pregunta|instrucción)\s*:"
)


class CheckedClaim(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A claim of the answer; `status` is there only when the verifier failed on it, and then the figures are not."""

    text: str
    citing: tuple[str, ...]
    p1: float | msgspec.UnsetType = msgspec.UNSET
    p0: float | msgspec.UnsetType = msgspec.UNSET
    confidence: float | msgspec.UnsetType = msgspec.UNSET
    grounded: bool | msgspec.UnsetType = msgspec.UNSET
    warning: str | msgspec.UnsetType | None = msgspec.UNSET
    observed_bits: float | msgspec.UnsetType = msgspec.UNSET
    required_bits: float | msgspec.UnsetType = msgspec.UNSET
    budget_gap_bits: float | msgspec.UnsetType = msgspec.UNSET
    audit: Audit | msgspec.UnsetType = msgspec.UNSET
    status: Literal["error"] | msgspec.UnsetType = msgspec.UNSET


class HallucinationCheck(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of an answer; as JSON it is the design's own output."""

    overall_grounded: bool | None
    """None when the verifier failed on every claim."""
    status: Literal["ok", "unavailable"]
    grounded_claims: int
    total_claims: int
    """Claims that the verifier spoke of."""
    grounding_ratio: float | None
    errors: int
    ungrounded: int
    not_checkable: int
    """Questions, greetings, headings and abstentions of the answer."""
    unchecked: int
    """Claims beyond the most that are checked."""
    claims: tuple[CheckedClaim, ...]
    warning: str | None
    """For the reader, in the answer's language; the design shows it beside the check."""


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier said of one claim: with all evidence, and without what it cites."""

    posterior: Entailment
    prior: Entailment


class Questions(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier is asked about an answer."""

    claims: tuple[Claim, ...]
    contexts: tuple[tuple[str, str], ...]
    """For each claim: all evidence, and all but what it cites."""
    aside: int
    """Sentences of the answer that are no statements."""
    unchecked: int
    """Claims beyond the most that are asked of."""


async def check(
    answer: str,
    docs: Sequence[Passage],
    verifier: Verifier,
    *,
    profile: Profile = "strict",
    language: str = "en",
) -> HallucinationCheck:
    """Ask `verifier` twice of each claim of `answer` and decide."""
    return await ask(questions(answer, docs), verifier, profile=profile, language=language)


async def ask(
    asked: Questions, verifier: Verifier, *, profile: Profile = "strict", language: str = "en"
) -> HallucinationCheck:
    """Ask what `questions` prepared, and decide; shells prepare long texts elsewhere than they wait."""
    pairs = zip(asked.claims, asked.contexts, strict=True)
    said = await verifier.entailed([(side, claim.text) for claim, sides in pairs for side in sides])
    return decided(
        asked.claims,
        [Pair(posterior=said[at], prior=said[at + 1]) for at in range(0, len(said), 2)],
        profile=profile,
        language=language,
        aside=asked.aside,
        unchecked=asked.unchecked,
    )


def questions(answer: str, docs: Sequence[Passage]) -> Questions:
    """Return what is asked of the first claims of `answer`; each document is masked once."""
    found, aside = claims_of(answer, [doc.id for doc in docs])
    asked = tuple(found[:MAX_CLAIMS])
    known = [msgspec.structs.replace(doc, text=masked(doc.text)) for doc in docs] if asked else []
    full = joined(known)
    return Questions(
        claims=asked,
        contexts=tuple((full, joined(scrubbed(known, claim.citing))) for claim in asked),
        aside=aside,
        unchecked=len(found) - len(asked),
    )


def claims_of(answer: str, known: Sequence[str] = ()) -> tuple[list[Claim], int]:
    """Return the claims of `answer`, and how many of its sentences are no statements."""
    found = claims(answer, Level.SENTENCE, known=known, min_chars=MIN_CHARS)
    aside = sum(claim.not_checkable not in {"", "fragment"} for claim in found)
    return [claim for claim in found if not claim.not_checkable], aside


def scrubbed(docs: Sequence[Passage], citing: Sequence[str]) -> list[Passage]:
    """Return `docs` with the cited ones redacted, by their ids; all of them where nothing is cited."""
    gone = set(citing)
    return [msgspec.structs.replace(doc, text=REDACTED) if not gone or doc.id in gone else doc for doc in docs]


def joined(docs: Sequence[Passage]) -> str:
    """Return `docs` as one text, each behind its id."""
    return "\n\n".join(f"[{doc.id}] {doc.text}" for doc in docs)


def masked(text: str) -> str:
    """Return `text` with its questions, and what is labelled as question or instruction, replaced by a mark."""
    kept = []
    at = 0
    for span in sentences(text):
        sentence = text[span.start : span.end]
        if not_checkable(sentence) == "question" or _LABELLED.found_in(sentence):
            kept += [text[at : span.start], MASKED]
            at = span.end
    return "".join([*kept, text[at:]])


def decided(
    found: Sequence[Claim],
    pairs: Sequence[Pair],
    *,
    profile: Profile = "seed",
    language: str = "en",
    aside: int = 0,
    unchecked: int = 0,
) -> HallucinationCheck:
    """Return what is said of an answer, from what the verifier said of each of its claims.

    Args:
        found: The claims.
        pairs: For each claim in its order the two probabilities.
        profile: How grounded is decided.
        language: Of the warnings.
        aside: Sentences of the answer that can't be checked.
        unchecked: Claims that nobody was asked of.
    """
    checked = [_checked(claim, pair, profile, language) for claim, pair in zip(found, pairs, strict=True)]
    errors = sum(claim.status == "error" for claim in checked)
    total = len(checked) - errors
    grounded = sum(claim.grounded is True for claim in checked)
    unavailable = errors > 0 and not total
    ratio = None if unavailable else grounded / total if total else 1.0
    return HallucinationCheck(
        overall_grounded=None if ratio is None else round(ratio, 9) >= _LEAST_RATIO,
        status="unavailable" if unavailable else "ok",
        grounded_claims=grounded,
        total_claims=total,
        grounding_ratio=None if ratio is None else round(ratio, _DIGITS),
        errors=errors,
        ungrounded=total - grounded,
        not_checkable=aside,
        unchecked=unchecked,
        claims=tuple(checked),
        warning=warnings.unavailable(language) if unavailable else warnings.ungrounded(total - grounded, language),
    )


def pair_of(given: object) -> Pair:
    """Return the probabilities of a case or a stored result: `{"p1", "p0"}`, or nothing where the verifier failed."""
    if not isinstance(given, Mapping):
        return Pair(posterior=_FAILED, prior=_FAILED)
    p1, p0 = float(given["p1"]), float(given["p0"])
    return Pair(posterior=Entailment(low=p1, high=p1), prior=Entailment(low=p0, high=p0))


_FAILED = Entailment(low=0.0, high=1.0, error="the verifier gave no probabilities")


def _checked(claim: Claim, pair: Pair, profile: Profile, language: str) -> CheckedClaim:
    """Decide one claim by the ends of its intervals that speak against it."""
    p1, p0 = pair.posterior.low, pair.prior.high
    if pair.posterior.error or pair.prior.error or not (0.0 <= p1 <= 1.0 and 0.0 <= p0 <= 1.0):
        return CheckedClaim(text=claim.text, citing=claim.citing, status="error")
    figures = grounding(p1, p0, cited=bool(claim.citing), profile=profile)
    return CheckedClaim(
        text=claim.text,
        citing=claim.citing,
        p1=round(p1, _DIGITS),
        p0=round(p0, _DIGITS),
        confidence=round(figures.confidence, _DIGITS),
        grounded=figures.grounded,
        warning=None if figures.grounded else warnings.no_source(language),
        observed_bits=round(figures.observed_bits, _DIGITS),
        required_bits=round(figures.required_bits, _DIGITS),
        budget_gap_bits=round(figures.budget_gap_bits, _DIGITS),
        audit=figures.audit,
    )
