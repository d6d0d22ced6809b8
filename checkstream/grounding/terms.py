"""The words of grounding: claim, passage, judgement. Every design and every store speaks in them; records are frozen.

Offsets are code points. Scores are 0 to 1 and never NaN.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec


class Verdict(StrEnum):
    """What evidence says of a claim."""

    SUPPORTED = "supported"
    WEAKLY_SUPPORTED = "weakly_supported"
    UNSUPPORTED = "unsupported"
    """The evidence says nothing of it, or there is none."""
    CONTRADICTED = "contradicted"
    NOT_CHECKABLE = "not_checkable"
    """A greeting, a heading, a question, an abstention: nothing in it can be true. Counted, left out of ratios."""


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of an answer, small enough to be true or false by itself."""

    text: str
    """Citations removed."""
    start: int
    """Where it begins in the answer."""
    end: int
    """Where it ends there, its citations included."""
    citing: tuple[str, ...] = ()
    """Ids of passages that the answer names for it, as written (`S0`); some may not exist."""
    not_checkable: str = ""
    """Why nothing can say whether it is true; empty for a claim proper."""


class Passage(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a trusted document."""

    id: str
    text: str
    source: str = ""
    """Address or name of the document."""
    metadata: Mapping[str, str] = {}


class Excerpt(msgspec.Struct, frozen=True, kw_only=True):
    """Characters of a passage that a verdict rests on."""

    passage_id: str
    start: int
    end: int


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a verifier says of one claim."""

    claim: Claim
    verdict: Verdict
    score: float
    """How well the evidence supports it; about 0.5 where the verifier can't tell."""
    reason: str
    """For people: which number, name, word or passage decided."""
    excerpts: tuple[Excerpt, ...] = ()
    degraded: tuple[str, ...] = ()
    """What failed, and was made up for by something simpler."""


class Entailment(msgspec.Struct, frozen=True, kw_only=True):
    """The chance that a context says a claim, as an interval: a judge shows only its likeliest words."""

    low: float
    high: float
    error: str = ""
    """Why it is not known; the interval means nothing then."""


class Verifier(Protocol):
    """Says what evidence supports. Implementations: `embedded`, `cross_encoder`, `judge`.

    INVARIANT: one result for each input, in its order; a part that fails is told in the result and raises nothing.
    """

    name: str
    version: str

    async def judge(self, claims: Sequence[Claim], passages: Sequence[Passage]) -> list[Judgement]:
        """Judge claims of one answer against the same passages; without passages nothing is supported."""
        ...

    async def entailed(self, pairs: Sequence[tuple[str, str]]) -> list[Entailment]:
        """Return for each (context, claim) the chance that the context says the claim."""
        ...
