"""RAG verification: whether an answer agrees with its sources, cites them, and holds fact by fact.

    overall = 0.4 alignment + 0.3 citation coverage + 0.3 facts

A judge gives the first and the last; what it says is read leniently and believed only within its bounds. Where it
fails, words in common stand in for alignment, and one half for the facts; `degraded` says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from checkstream.core.match.regex import TextRegex
from checkstream.grounding.citations import CitationStyle, citations, styles
from checkstream.grounding.replies import first_object, number
from checkstream.grounding.terms import Passage

ALIGNMENT_CHUNKS = 5
FACT_CHUNKS = 10
MAX_CLAIMS = 5
IDENTIFIERS = ("ticker", "year", "filing_type")
"""Fields of a chunk's metadata that an answer may cite it by; the first alone is enough for `strict`."""
UNKNOWN_FACTS = 0.5
"""The score of facts that nobody judged."""
_PATTERN_BONUS, _MOST_BONUS = 0.1, 0.3
_PATTERNS = frozenset(CitationStyle) - {CitationStyle.MARK}
_LEAST_FOLDED = 4
"""Shorter identifiers are words too (`IT`, `ON`): they are looked for as written."""
_WORD = TextRegex(r"[\pL\pN\pM_]+")


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one answer; as JSON it is the design's own output. Scores are rounded to four places."""

    overall_score: float
    answer_source_alignment: float
    citation_coverage: float
    fact_verification_score: float
    issues: tuple[str, ...] = ()
    verified_sources: tuple[str, ...] = ()
    unverified_claims: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()
    """`alignment`, `fact_verification`, `partial_facts` or `no_claims`: what the judge did not give."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of an answer, as a judge found them."""

    score: float
    verified_sources: tuple[str, ...] = ()
    unverified_claims: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


class RagJudge(Protocol):
    """The two questions that the design asks of a model; nothing stands for a call that failed."""

    async def alignment(self, query: str, answer: str, passages: Sequence[Passage]) -> str | None:
        """Return the reply to how well `answer` agrees with `passages`: JSON with a `score`."""
        ...

    async def facts(self, answer: str, passages: Sequence[Passage]) -> str | None:
        """Return the reply to which claims of `answer` the `passages` (numbered from 1) verify: JSON with `claims`."""
        ...


async def verify(
    query: str,
    answer: str,
    chunks: Sequence[Passage],
    judge: RagJudge,
    *,
    identifiers: Sequence[str] = IDENTIFIERS,
    strict: bool = False,
) -> Verification:
    """Ask `judge` both questions and reckon; without chunks nothing is asked."""
    alignment = facts = None
    if chunks:
        alignment = await judge.alignment(query, answer, chunks[:ALIGNMENT_CHUNKS])
        facts = await judge.facts(answer, chunks[:FACT_CHUNKS])
    return reckoned(answer, chunks, alignment, facts, identifiers=identifiers, strict=strict)


def reckoned(
    answer: str,
    chunks: Sequence[Passage],
    alignment_reply: str | None,
    facts_reply: str | None,
    *,
    identifiers: Sequence[str] = IDENTIFIERS,
    strict: bool = False,
) -> Verification:
    """Return the verification of `answer` from a judge's two replies.

    Args:
        answer: What a model said.
        chunks: What was retrieved, best first.
        alignment_reply: The judge's words, or nothing when it failed.
        facts_reply: Likewise.
        identifiers: Fields of metadata that an answer may cite a chunk by.
        strict: Cited is only what is named by its first identifier, by all of them, or by number.
    """
    if not chunks:
        return Verification(
            overall_score=0.0,
            answer_source_alignment=0.0,
            citation_coverage=0.0,
            fact_verification_score=0.0,
            issues=("No sources retrieved",),
        )
    judged = _judged_alignment(alignment_reply)
    alignment = overlap(answer, chunks[:ALIGNMENT_CHUNKS]) if judged is None else judged
    coverage = citation_coverage(answer, chunks, identifiers=identifiers, strict=strict)
    facts = read_facts(facts_reply, chunks[:FACT_CHUNKS])
    issues = (
        (alignment < 0.5, "Answer may not be well-supported by retrieved sources"),
        (coverage < 0.5, "Many sources are not cited in the answer"),
        (facts.score < 0.7, "Some claims in the answer could not be verified"),
    )
    return Verification(
        overall_score=round(0.4 * alignment + 0.3 * coverage + 0.3 * facts.score, 4),
        answer_source_alignment=round(alignment, 4),
        citation_coverage=round(coverage, 4),
        fact_verification_score=round(facts.score, 4),
        issues=tuple(issue for raised, issue in issues if raised),
        verified_sources=facts.verified_sources,
        unverified_claims=facts.unverified_claims,
        degraded=(*(("alignment",) if judged is None else ()), *facts.degraded),
    )


def passages_of(chunks: object) -> list[Passage]:
    """Return the chunks of a request (`chunk_id`, `text`, `metadata`); what has another shape is left out."""
    if not isinstance(chunks, Sequence) or isinstance(chunks, str | bytes):
        return []
    found = []
    for at, chunk in enumerate(chunks, start=1):
        if isinstance(chunk, Mapping) and isinstance(chunk.get("text"), str):
            metadata = chunk.get("metadata")
            known = metadata if isinstance(metadata, Mapping) else {}
            written = {str(name): str(value) for name, value in known.items() if isinstance(value, str | int | float)}
            named = chunk.get("chunk_id")
            found.append(Passage(id=str(at if named is None else named), text=chunk["text"], metadata=written))
    return found


def overlap(answer: str, chunks: Sequence[Passage]) -> float:
    """Return the mean share of the answer's words that stand in a chunk, 0 to 1; without words nothing is shared."""
    words = _words(answer)
    if not words or not chunks:
        return 0.0
    return sum(len(words & _words(chunk.text)) for chunk in chunks) / (len(words) * len(chunks))


def citation_coverage(
    answer: str, chunks: Sequence[Passage], *, identifiers: Sequence[str] = IDENTIFIERS, strict: bool = False
) -> float:
    """Return the share of `chunks` that `answer` cites, and a little more for each way in which it cites, 0 to 1.

    A chunk is cited when one of its identifiers stands in the answer as a whole word.
    """
    if not chunks:
        return 0.0
    found = citations(answer)
    numbered = {id_ for citation in found for id_ in citation.ids}
    names = _Names(answer)
    cited = 0
    for at, chunk in enumerate(chunks, start=1):
        named = [value for field in identifiers if (value := chunk.metadata.get(field, "").strip())]
        if strict:
            first = chunk.metadata.get(identifiers[0], "").strip() if identifiers else ""
            cited += bool({str(at), chunk.id} & numbered) or (bool(first) and names.has(first))
        else:
            cited += any(names.has(value) for value in named)
    bonus = min(_PATTERN_BONUS * len(styles(answer, found) & _PATTERNS), _MOST_BONUS)
    return min(1.0, cited / len(chunks) + bonus)


def read_facts(reply: str | None, chunks: Sequence[Passage]) -> Facts:
    """Return what a judge's reply says of the facts; sources are counted from 1, and others than `chunks` ignored."""
    said = first_object(reply) if reply else None
    listed = said.get("claims") if said else None
    if not isinstance(listed, list):
        return Facts(score=UNKNOWN_FACTS, degraded=("fact_verification",))
    if not listed:
        return Facts(score=UNKNOWN_FACTS, degraded=("no_claims",))
    claims = [claim for claim in listed if isinstance(claim, Mapping) and isinstance(claim.get("verified"), bool | str)]
    if not claims:
        return Facts(score=UNKNOWN_FACTS, degraded=("fact_verification",))
    sources: dict[str, None] = {}
    unverified = []
    for claim in claims[:MAX_CLAIMS]:
        if _is_true(claim["verified"]):
            sources.update(dict.fromkeys(_sources(claim.get("supporting_sources"), chunks)))
        else:
            unverified.append(str(claim.get("claim", "")))
    counted = len(claims[:MAX_CLAIMS])
    return Facts(
        score=(counted - len(unverified)) / counted,
        verified_sources=tuple(sources),
        unverified_claims=tuple(unverified),
        degraded=("partial_facts",) if len(claims) < len(listed) else (),
    )


def _judged_alignment(reply: str | None) -> float | None:
    said = first_object(reply) if reply else None
    score = number(said.get("score")) if said else None
    return None if score is None else min(1.0, max(0.0, score))


def _is_true(value: bool | str) -> bool:
    return value is True or (isinstance(value, str) and value.strip().casefold() in {"true", "yes"})


def _sources(listed: Any, chunks: Sequence[Passage]) -> list[str]:
    """Return the ids of the chunks whose numbers are listed."""
    numbers = [number(value) for value in listed] if isinstance(listed, list) else []
    return [chunks[int(at) - 1].id for at in numbers if at is not None and at == int(at) and 1 <= at <= len(chunks)]


def _words(text: str) -> frozenset[str]:
    return frozenset(text[place.start : place.end].casefold() for place in _WORD.spans(text))


class _Names:
    """Whether identifiers stand in an answer as whole words: each is looked for once, in time linear in the answer."""

    def __init__(self, answer: str) -> None:
        self._written, self._folded = _marked(answer), _marked(answer.casefold())
        self._known: dict[str, bool] = {}

    def has(self, identifier: str) -> bool:
        found = self._known.get(identifier)
        if found is None:
            short = len(identifier) < _LEAST_FOLDED
            found = _marked(identifier) in self._written if short else _marked(identifier.casefold()) in self._folded
            self._known[identifier] = found
        return found


def _marked(text: str) -> str:
    """Return `text` with a mark wherever a word may begin or end."""
    marked = []
    inside = False
    for char in text:
        word = char.isalnum() or char == "_"
        if not (word and inside):
            marked.append("\0")
        marked.append(char)
        inside = word
    return "".join([*marked, "\0"])
