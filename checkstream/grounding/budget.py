"""The evidence budget: does an answer use the documents that it cites?

A judge says twice how likely the context says a claim: with all documents (p1, the posterior), and with those that the
claim cites redacted (p0, the prior). Where both are alike, the citation did not matter, and the claim is not grounded.

    use        = max(0, p1 - p0)
    cited      : used = use > 0.15, confidence = min(1, 1.5 use + 0.3 [p1 > 0.7])
    uncited    : used = true,       confidence = 0.7 p1 if p1 > 0.7 else 0.4 p1
    grounded   = used and confidence > 0.45         (`strict` asks for p1 >= 0.5 besides)

So a cited claim with p1 > 0.7 is grounded when use > 0.15, with less when use > 0.3; an uncited one when p1 > 0.7.
Divergences in bits are reported and decide nothing: `audit` has those of the algorithm that the design names, with the
sign that tells evidence against a claim from evidence for it.
"""

from __future__ import annotations

import math
from typing import Literal

import msgspec

Profile = Literal["seed", "strict"]

TARGET = 0.95
"""Posterior that the audit asks the evidence for."""
_EPSILON = 1e-12
_PLACES = 9
"""Differences are compared after rounding, since 0.85 - 0.70 is above 0.15 in binary."""
_LEAST_USE = 0.15
_LEAST_CONFIDENCE = 0.45
_SURE = 0.7
_LEAST_POSTERIOR = 0.5
"""Of the `strict` profile."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """What the published algorithm makes of the same probabilities."""

    target: float = TARGET
    required_bits: float
    """Divergence of the target from the prior."""
    observed_bits_signed: float
    """Divergence of the posterior from the prior; negative where the evidence speaks against the claim."""
    gap_bits: float
    """Required less observed."""
    flagged: bool
    """The gap is above 0."""


class Grounding(msgspec.Struct, frozen=True, kw_only=True):
    """What two probabilities say of one claim."""

    evidence_use: float
    evidence_used: bool
    confidence: float
    """0 to 1."""
    grounded: bool
    observed_bits: float
    """Divergence of the posterior from one half."""
    required_bits: float
    """Divergence of the posterior from the prior."""
    budget_gap_bits: float
    """Observed less required."""
    audit: Audit


def kl_bernoulli(p: float, q: float) -> float:
    """Return the divergence of Bernoulli(p) from Bernoulli(q) in nats; both are kept off 0 and 1 by 1e-12."""
    p, q = (min(1.0 - _EPSILON, max(_EPSILON, share)) for share in (p, q))
    return p * math.log(p / q) + (1.0 - p) * math.log((1.0 - p) / (1.0 - q))


def grounding(p1: float, p0: float, *, cited: bool, profile: Profile = "seed") -> Grounding:
    """Return what posterior `p1` and prior `p0` say of a claim.

    Args:
        p1: Probability that the context with all documents says the claim, 0 to 1.
        p0: The same without those that it cites.
        cited: Whether it cites any.
        profile: `strict` grounds nothing that is less likely than not.
    """
    use = max(0.0, round(p1 - p0, _PLACES))
    if cited:
        used = use > _LEAST_USE
        confidence = min(1.0, 1.5 * use + (0.3 if p1 > _SURE else 0.0))
    else:
        used = True
        confidence = p1 * (0.7 if p1 > _SURE else 0.4)
    confidence = round(confidence, _PLACES)
    likely = profile == "seed" or p1 >= _LEAST_POSTERIOR
    observed, required = _bits(p1, 0.5), _bits(p1, p0)
    return Grounding(
        evidence_use=use,
        evidence_used=used,
        confidence=confidence,
        grounded=used and confidence > _LEAST_CONFIDENCE and likely,
        observed_bits=observed,
        required_bits=required,
        budget_gap_bits=observed - required,
        audit=_audit(p1, p0),
    )


def _audit(p1: float, p0: float) -> Audit:
    required = _bits(TARGET, p0)
    observed = math.copysign(_bits(p1, p0), p1 - p0)
    return Audit(
        required_bits=required,
        observed_bits_signed=observed,
        gap_bits=required - observed,
        flagged=required - observed > 0,
    )


def _bits(p: float, q: float) -> float:
    return kl_bernoulli(p, q) / math.log(2)
