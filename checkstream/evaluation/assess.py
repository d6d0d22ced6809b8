"""What a reader is worth on labelled texts: every figure that a report shows. Pure: scores in, figures out.

One threshold a rate counts for all sets together, found on the negatives of all of them: a threshold for each set
would hide that a model is shifted between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
import numpy as np

from checkstream.evaluation.figures import (
    Bin,
    Interval,
    Point,
    Scores,
    auc,
    average_precision,
    bootstrap,
    curve,
    expected_calibration_error,
    rate_at,
    recall_at_fpr,
    reliability,
    threshold_at_fpr,
)

RATES = (0.05, 0.01, 0.001)
ROUNDS = 500


class ScoredSet(msgspec.Struct, frozen=True):
    """One file's texts, scored."""

    name: str
    positives: Scores
    negatives: Scores


class AtRate(msgspec.Struct, frozen=True, kw_only=True):
    """What a model does at the threshold that keeps to a false-positive rate."""

    rate: float
    """The rate that was asked for, or that its maker promises."""
    threshold: float
    recall: Interval | None
    """None without positives."""
    fpr: float | None
    """Measured; None without negatives."""


class SetFigures(msgspec.Struct, frozen=True, kw_only=True):
    """One set, at the thresholds of all sets together."""

    name: str
    positives: int
    negatives: int
    auc: float | None
    """None without texts of both classes."""
    recall: tuple[float, ...]
    """For each rate; empty without positives, or without negatives in any set."""
    fpr: tuple[float, ...]
    """For each rate; empty without negatives."""


class Latency(msgspec.Struct, frozen=True, kw_only=True):
    """How long one text took, one at a time on this machine."""

    p50_ms: float
    p99_ms: float
    texts: int
    mean_chars: float


class Assessment(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is said of one label of a model."""

    model: str
    label: str
    positives: int
    negatives: int
    auc: Interval | None
    average_precision: float | None
    calibration_error: float
    rates: tuple[AtRate, ...]
    promised: tuple[AtRate, ...]
    """The model's own thresholds: what its maker measured them to keep to, and what they do here."""
    sets: tuple[SetFigures, ...]
    latency: Latency
    curve: tuple[Point, ...]
    reliability: tuple[Bin, ...]


def assess(
    model: str, label: str, sets: Sequence[ScoredSet], promised: Mapping[float, float], latency: Latency
) -> Assessment:
    """Reckon every figure of one label.

    Args:
        model: name, for the report.
        label: name, for the report.
        sets: at least one text in all.
        promised: false-positive rate -> threshold, as the model's maker calibrated them.
        latency: as it was measured.
    """
    positives = np.concatenate([each.positives for each in sets])
    negatives = np.concatenate([each.negatives for each in sets])
    both = bool(len(positives) and len(negatives))
    thresholds = tuple(threshold_at_fpr(negatives, rate) for rate in RATES) if len(negatives) else ()
    return Assessment(
        model=model,
        label=label,
        positives=len(positives),
        negatives=len(negatives),
        auc=bootstrap(auc, positives, negatives, rounds=ROUNDS) if both else None,
        average_precision=average_precision(positives, negatives) if both else None,
        calibration_error=expected_calibration_error(positives, negatives),
        rates=tuple(
            AtRate(
                rate=rate,
                threshold=threshold,
                recall=bootstrap(partial(recall_at_fpr, fpr=rate), positives, negatives, rounds=ROUNDS)
                if both
                else None,
                fpr=rate_at(negatives, threshold),
            )
            for rate, threshold in zip(RATES, thresholds, strict=False)
        ),
        promised=tuple(
            AtRate(
                rate=rate,
                threshold=threshold,
                recall=bootstrap(partial(rate_at, threshold=threshold), positives, rounds=ROUNDS)
                if len(positives)
                else None,
                fpr=rate_at(negatives, threshold) if len(negatives) else None,
            )
            for rate, threshold in sorted(promised.items(), reverse=True)
        ),
        sets=tuple(_figures(each, thresholds) for each in sets),
        latency=latency,
        curve=curve(positives, negatives) if both else (),
        reliability=reliability(positives, negatives),
    )


def _figures(each: ScoredSet, thresholds: Sequence[float]) -> SetFigures:
    positives, negatives = each.positives, each.negatives
    return SetFigures(
        name=each.name,
        positives=len(positives),
        negatives=len(negatives),
        auc=auc(positives, negatives) if len(positives) and len(negatives) else None,
        recall=tuple(rate_at(positives, threshold) for threshold in thresholds) if len(positives) else (),
        fpr=tuple(rate_at(negatives, threshold) for threshold in thresholds) if len(negatives) else (),
    )


def latency_of(seconds: Sequence[float], chars: int) -> Latency:
    """Sum up how long texts of `chars` code points in all took, each by itself; at least one."""
    p50, p99 = np.quantile(np.array(seconds) * 1000, [0.5, 0.99]).tolist()
    return Latency(p50_ms=p50, p99_ms=p99, texts=len(seconds), mean_chars=chars / len(seconds))
