"""Formulas for how well scores tell positives from negatives. Pure: arrays in, numbers out.

Scores of positive and of negative texts come as two arrays, float[text], so that neither can be mistaken for the
other. A text fires when its score is at least the threshold, as in policies. INVARIANT: a tie counts half in an AUC
and whole in every rate, so no order of equal scores changes a figure, and constant scores recall nothing.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.floating]
"""Scores of texts of one class, float[text]; finite."""


class Interval(msgspec.Struct, frozen=True):
    """A figure with its bootstrap interval."""

    value: float
    low: float
    high: float


class Bin(msgspec.Struct, frozen=True):
    """Texts whose scores lie in one stretch of 0..1."""

    count: int
    mean_score: float
    """What the model said: mean score, 0..1."""
    positive: float
    """What was so: share of positives, 0..1."""


class Point(msgspec.Struct, frozen=True):
    """What one threshold does."""

    threshold: float
    recall: float
    precision: float
    fpr: float


def auc(positives: Scores, negatives: Scores) -> float:
    """Return the chance that a positive scores above a negative; a tie counts half.

    Source: Mann and Whitney 1947; Hanley and McNeil 1982.

    Raises:
        ValueError: one of the classes is empty.
    """
    _both(positives, negatives)
    ordered = np.sort(negatives)
    below = np.searchsorted(ordered, positives, side="left")
    not_above = np.searchsorted(ordered, positives, side="right")
    return float((below + not_above).sum(dtype=np.int64)) / (2 * len(positives) * len(negatives))


def threshold_at_fpr(negatives: Scores, fpr: float) -> float:
    """Return the lowest threshold at which at most this share of the negatives fires.

    It lies just above the highest score that must not fire: above 1 when too many negatives score 1, and then nothing
    fires at it.

    Args:
        negatives: scores of texts that should not fire.
        fpr: the share that may, 0 <= fpr < 1.

    Raises:
        ValueError: there are no negatives, or `fpr` is out of range.
    """
    if not len(negatives):
        raise ValueError("there are no negatives; a false-positive rate needs some")
    if not 0 <= fpr < 1:
        raise ValueError(f"the false-positive rate is `{fpr}`; take one from 0 to below 1")
    ordered = np.sort(np.asarray(negatives, np.float64))[::-1]
    # 0.29 x 100 is 28.999...: what a person means by the rate is the whole number.
    allowed = int(np.floor(fpr * len(ordered) + 1e-9))
    return float(np.nextafter(ordered[allowed], np.inf))


def rate_at(scores: Scores, threshold: float) -> float:
    """Return the share of texts that fire: recall of positives, false-positive rate of negatives.

    Raises:
        ValueError: there are no texts.
    """
    if not len(scores):
        raise ValueError("there are no scores; a rate needs some")
    return float(np.mean(np.asarray(scores, np.float64) >= threshold))


def recall_at_fpr(positives: Scores, negatives: Scores, fpr: float) -> float:
    """Return the share of positives that fires at the lowest threshold with at most this false-positive rate.

    Raises:
        ValueError: one of the classes is empty, or `fpr` is out of range.
    """
    return rate_at(positives, threshold_at_fpr(negatives, fpr))


def bootstrap(
    figure: Callable[..., float], *samples: Scores, rounds: int = 1_000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return a figure with its percentile bootstrap interval; each sample is drawn anew by itself.

    Args:
        figure: takes the samples in order, `auc` or `lambda p, n: recall_at_fpr(p, n, 0.01)`.
        samples: float[text] each, none of them empty.
        rounds: how often to draw.
        seed: of the draws; the same seed gives the same interval.
        level: how much of the draws the interval holds.

    Raises:
        ValueError: a sample is empty.

    Source: Efron and Tibshirani 1993, 13.3.
    """
    if not all(len(sample) for sample in samples):
        raise ValueError("a sample is empty; an interval needs texts of every class")
    generator = np.random.default_rng(seed)
    drawn = [
        figure(*(sample[generator.integers(0, len(sample), len(sample))] for sample in samples)) for _ in range(rounds)
    ]
    low, high = np.quantile(drawn, [(1 - level) / 2, (1 + level) / 2])
    return Interval(figure(*samples), float(low), float(high))


def curve(positives: Scores, negatives: Scores, points: int = 200) -> tuple[Point, ...]:
    """Return what each threshold does, lowest first; at most about this many, evenly spread over recall.

    Raises:
        ValueError: one of the classes is empty.
    """
    _both(positives, negatives)
    good, bad = np.sort(positives), np.sort(negatives)
    thresholds = np.unique(good)
    if len(thresholds) > points:
        thresholds = np.unique(good[np.linspace(0, len(good) - 1, points).astype(np.int64)])
    hits = len(good) - np.searchsorted(good, thresholds, side="left")
    alarms = len(bad) - np.searchsorted(bad, thresholds, side="left")
    return tuple(
        Point(float(threshold), int(hit) / len(good), int(hit) / int(hit + alarm), int(alarm) / len(bad))
        for threshold, hit, alarm in zip(thresholds, hits, alarms, strict=True)
    )


def average_precision(positives: Scores, negatives: Scores) -> float:
    """Return the mean precision over the positives, each at its own score as the threshold.

    Raises:
        ValueError: one of the classes is empty.
    """
    _both(positives, negatives)
    good, bad = np.sort(positives), np.sort(negatives)
    hits = len(good) - np.searchsorted(good, good, side="left")
    alarms = len(bad) - np.searchsorted(bad, good, side="left")
    return float(np.mean(hits / (hits + alarms)))


def reliability(positives: Scores, negatives: Scores, bins: int = 10) -> tuple[Bin, ...]:
    """Return what the model said against what was so, over equally wide stretches of 0..1 that hold any text.

    Raises:
        ValueError: there are no texts, or a score is outside 0..1.
    """
    scores = np.concatenate([positives, negatives]).astype(np.float64)
    if not len(scores):
        raise ValueError("there are no scores; a reliability curve needs some")
    if not ((scores >= 0) & (scores <= 1)).all():
        raise ValueError("a score is outside 0..1; a reliability curve is of probabilities")
    truth = np.concatenate([np.ones(len(positives)), np.zeros(len(negatives))])
    place = np.minimum((scores * bins).astype(np.int64), bins - 1)
    counts = np.bincount(place, minlength=bins)
    said = np.bincount(place, scores, minlength=bins)
    was = np.bincount(place, truth, minlength=bins)
    return tuple(
        Bin(int(count), float(total / count), float(positive / count))
        for count, total, positive in zip(counts, said, was, strict=True)
        if count
    )


def expected_calibration_error(positives: Scores, negatives: Scores, bins: int = 10) -> float:
    """Return the mean distance between what the model said and what was so, weighted by texts; 0 is perfect.

    Raises:
        ValueError: there are no texts, or a score is outside 0..1.

    Source: Guo et al. 2017, equation 3.
    """
    parts = reliability(positives, negatives, bins)
    total = sum(part.count for part in parts)
    return sum(part.count * abs(part.mean_score - part.positive) for part in parts) / total


def _both(positives: Scores, negatives: Scores) -> None:
    if not len(positives) or not len(negatives):
        missing = "positives" if not len(positives) else "negatives"
        raise ValueError(f"there are no {missing}; the figure needs texts of both classes")
