"""What the verdicts on all claims come to: deploy, warn or block."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from checkstream.grounding.terms import Verdict

Decision = Literal["deploy", "warn", "block"]
Label = Literal["supported", "weakly_supported", "unsupported"]

_WEAK = 0.5
"""What a weakly supported claim counts of an unsupported one."""
_DIGITS = 4


class Thresholds(msgspec.Struct, frozen=True, kw_only=True):
    """Up to which risk a model is deployed, and up to which with a warning; 0 <= deploy <= warn <= 1."""

    deploy: float = 0.10
    warn: float = 0.25


class RiskScore(msgspec.Struct, frozen=True, kw_only=True):
    """The risk of a model's answers; published rounded, decided before that."""

    risk: float
    """0 to 1."""
    decision: Decision
    total_claims: int
    supported: int
    weakly_supported: int
    unsupported: int
    reason: Literal["insufficient_claims"] | None = None


def label_of(said: object) -> Label:
    """Return the label that a judge meant; what can't be read is unsupported, and so is what is contradicted."""
    if isinstance(said, str):
        word = "_".join(said.replace("-", " ").replace("_", " ").strip(" \t\r\n\"'`*.,:;!").casefold().split())
        if word == Verdict.SUPPORTED:
            return "supported"
        if word == Verdict.WEAKLY_SUPPORTED:
            return "weakly_supported"
    return "unsupported"


def score_risk(labels: Sequence[object], thresholds: Thresholds, *, min_claims: int = 0) -> RiskScore:
    """Return the risk of `labels`, a judge's words for each claim."""
    read = [label_of(label) for label in labels]
    weakly, unsupported = read.count("weakly_supported"), read.count("unsupported")
    return score_counts(len(read) - weakly - unsupported, weakly, unsupported, thresholds, min_claims=min_claims)


def score_counts(
    supported: int, weakly_supported: int, unsupported: int, thresholds: Thresholds, *, min_claims: int = 0
) -> RiskScore:
    """Return the risk of so many claims of each label; fewer than `min_claims` prove nothing."""
    total = supported + weakly_supported + unsupported
    risk = (unsupported + _WEAK * weakly_supported) / total if total else 0.0
    decision: Decision = "deploy" if risk <= thresholds.deploy else "warn" if risk <= thresholds.warn else "block"
    few = total < min_claims
    return RiskScore(
        risk=round(risk, _DIGITS),
        decision="warn" if few and decision == "deploy" else decision,
        total_claims=total,
        supported=supported,
        weakly_supported=weakly_supported,
        unsupported=unsupported,
        reason="insufficient_claims" if few else None,
    )


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """How a build ends."""

    exit_code: int
    annotation: Literal["warning", "error"] | None


def exit_of(decision: object) -> Exit:
    """Return how a build ends with `decision`; what is no decision never passes."""
    if decision == "deploy":
        return Exit(exit_code=0, annotation=None)
    if decision == "warn":
        return Exit(exit_code=0, annotation="warning")
    return Exit(exit_code=1 if decision == "block" else 2, annotation="error")
