"""How well a verifier tells claims that their evidence says from claims that it does not, on sets with labels. Pure.

Scores of supported and of other claims come apart, as in `figures`. A threshold is never chosen on the set that it
judges: it is the one that does best on the other sets, or the 0.5 that a verdict is given by.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from checkstream.evaluation.figures import Interval, Scores, auc, bootstrap, rate_at

ROUNDS = 1_000
_STEPS = 99
"""Thresholds that are tried, at even shares of all scores."""


class ClaimSet(msgspec.Struct, frozen=True, eq=False):
    """What a verifier made of one set."""

    name: str
    supported: Scores
    """Of claims that their evidence says, float[claim]."""
    other: Scores
    """Of all other claims."""


class ClaimFigures(msgspec.Struct, frozen=True):
    """Figures of one set, with 95 % bootstrap intervals."""

    name: str
    supported: int
    other: int
    auc: Interval
    at_half: Interval
    """Balanced accuracy where a claim counts as supported from 0.5 on."""
    threshold: float | None = None
    """That does best on the other sets; None: there are none."""
    at_threshold: Interval | None = None
    """Balanced accuracy there."""


class ClaimAssessment(msgspec.Struct, frozen=True):
    """Figures of a verifier; means weigh sets alike."""

    verifier: str
    sets: tuple[ClaimFigures, ...]
    auc: float
    at_half: float
    at_threshold: float | None


def balanced_accuracy(supported: Scores, other: Scores, threshold: float) -> float:
    """Return the mean of the shares that are told rightly among supported and among other claims.

    Raises:
        ValueError: one of the classes is empty.
    """
    return (rate_at(supported, threshold) + 1 - rate_at(other, threshold)) / 2


def best_threshold(sets: Sequence[ClaimSet]) -> float:
    """Return the threshold with the best mean balanced accuracy over sets; the lowest of equal ones.

    Raises:
        ValueError: there are no sets, or one lacks a class.
    """
    if not sets:
        raise ValueError("there are no sets; a threshold needs some to be chosen on")
    scores = np.concatenate([part for each in sets for part in (each.supported, each.other)])
    tried = np.unique(np.quantile(scores, np.linspace(0, 1, _STEPS)))
    found = [np.mean([balanced_accuracy(each.supported, each.other, at) for each in sets]) for at in tried]
    return float(tried[int(np.argmax(found))])


def assess_claims(verifier: str, sets: Sequence[ClaimSet]) -> ClaimAssessment:
    """Return the figures of a verifier on sets that hold claims of both classes.

    Raises:
        ValueError: there are no sets, or one lacks a class.
    """
    if not sets:
        raise ValueError("there are no sets; figures need one")
    found = tuple(_figures(each, [other for other in sets if other is not each]) for each in sets)
    told = [each.at_threshold.value for each in found if each.at_threshold is not None]
    return ClaimAssessment(
        verifier=verifier,
        sets=found,
        auc=float(np.mean([each.auc.value for each in found])),
        at_half=float(np.mean([each.at_half.value for each in found])),
        at_threshold=float(np.mean(told)) if told else None,
    )


def _figures(each: ClaimSet, others: Sequence[ClaimSet]) -> ClaimFigures:
    threshold = best_threshold(others) if others else None
    return ClaimFigures(
        name=each.name,
        supported=len(each.supported),
        other=len(each.other),
        auc=bootstrap(auc, each.supported, each.other, rounds=ROUNDS),
        at_half=_at(each, 0.5),
        threshold=threshold,
        at_threshold=None if threshold is None else _at(each, threshold),
    )


def _at(each: ClaimSet, threshold: float) -> Interval:
    return bootstrap(
        lambda supported, other: balanced_accuracy(supported, other, threshold),
        each.supported,
        each.other,
        rounds=ROUNDS,
    )
