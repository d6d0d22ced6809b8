"""The words of the gate: what each step writes. Frozen; ids are made from positions, so equal runs have equal ids."""

from __future__ import annotations

import msgspec

from checkstream.grounding.terms import Verdict


class Prompt(msgspec.Struct, frozen=True, kw_only=True):
    """A question that the target is asked."""

    id: str
    """`p1`, `p2`, in order."""
    text: str
    category: str


class Response(msgspec.Struct, frozen=True, kw_only=True):
    """What the target answered."""

    prompt_id: str
    text: str


class FoundClaim(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of a response."""

    id: str
    """`p1.c1`, `p1.c2`, in order."""
    prompt_id: str
    text: str


class EvidenceDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A chunk of a trusted document that a search found for a claim."""

    chunk_id: str
    source: str
    content: str
    rank: int
    """From 1, by keyword search first and then by vector search, each chunk once."""


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What was found for one claim."""

    claim_id: str
    documents: tuple[EvidenceDocument, ...]
    judged: tuple[str, ...]
    """Chunk ids in the order in which the judge reads them: by reciprocal rank of both searches."""


class ClaimVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the verifier says of one claim."""

    claim_id: str
    label: Verdict
    justification: str
    evidence_ids: tuple[str, ...] = ()
    degraded: tuple[str, ...] = ()


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of a model."""

    run_id: str
    config_hash: str
    target: str
    verifier: str
    snapshot: str
    begun: float
    """Seconds since 1970."""
    ended: float | None = None
    decision: str | None = None
    """None: it has not ended, or failed."""
    risk: float | None = None
    total_claims: int | None = None
    supported: int | None = None
    weakly_supported: int | None = None
    unsupported: int | None = None
    failure: str | None = None


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a run asked, heard, found or decided."""

    run_id: str
    kind: str
    """`prompt`, `response`, `claim`, `evidence`, `verdict` or `decision`."""
    item: str
    """Which: `p3`, `p3.c1`; of evidence the chunk's id after it."""
    at: float
    text: str
