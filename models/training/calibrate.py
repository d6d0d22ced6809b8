"""Logits -> probabilities, and the thresholds that keep to a false-positive rate. Pure.

Calibration is folded into the head (`folded`), so that the graph's own sigmoid is the calibrated probability and the
proxy needs no table for it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float32]

RATES = (0.05, 0.01, 0.001)
"""False-positive rates that every label gets a threshold for."""


def platt(logits: Float, truths: Float, rounds: int = 50) -> tuple[float, float]:
    """Fit `sigmoid(a * logit + b)` to shares of truth 0..1 by Newton's method.

    Args:
        logits: float32[text].
        truths: float32[text], 0..1.
        rounds: steps at most.

    Returns:
        a (above 0) and b.

    Source: Platt 1999, with the smoothed targets of its section 2.2.
    """
    positive, negative = float(truths.sum()), float((1 - truths).sum())
    target = truths * (positive + 1) / (positive + 2) + (1 - truths) / (negative + 2)
    x = np.stack([logits.astype(np.float64), np.ones(len(logits))], axis=1)
    parameters = np.array([1.0, 0.0])
    for _ in range(rounds):
        guess = 1 / (1 + np.exp(-np.clip(x @ parameters, -30, 30)))
        gradient = x.T @ (guess - target)
        curvature = (x * (guess * (1 - guess) + 1e-9)[:, None]).T @ x + 1e-6 * np.eye(2)
        change = np.linalg.solve(curvature, gradient)
        parameters -= np.clip(change, -2, 2)
        if np.abs(change).max() < 1e-7:
            break
    return max(float(parameters[0]), 1e-3), float(parameters[1])


def folded(weight: Float, bias: Float, fits: Sequence[tuple[float, float]]) -> tuple[Float, Float]:
    """Return a head's weight [label, hidden] and bias [label] with each label's calibration in them."""
    slope = np.array([a for a, _ in fits], np.float32)
    offset = np.array([b for _, b in fits], np.float32)
    return weight * slope[:, None], bias * slope + offset


def threshold_at(benign: Float, rate: float) -> float | None:
    """Return the lowest threshold that at most this share of benign scores reaches; None when there are too few.

    A score fires when it is at or above its threshold, so the threshold lies just above the last score let through.
    """
    allowed = int(np.floor(rate * len(benign)))
    if len(benign) < 2 / rate:
        return None
    ordered = np.sort(benign.astype(np.float64))[::-1]
    return float(min(max(np.nextafter(np.float32(ordered[allowed]), np.float32(2)), 1e-4), 0.9999))


def rates(benign: Float, labels: Sequence[str]) -> list[dict[str, object]]:
    """Return the manifest's `rates`: thresholds of every label at every rate that the texts suffice for.

    Args:
        benign: float32[text, label], the highest score of any check of each benign whole text.
        labels: names of the columns.
    """
    found: list[dict[str, object]] = []
    for column, label in enumerate(labels):
        for rate in RATES:
            threshold = threshold_at(benign[:, column], rate)
            if threshold is not None:
                # Rounded up: below the next score that must not fire, one more would.
                found.append({"label": label, "fpr": rate, "threshold": math.ceil(threshold * 1e6) / 1e6})
    return found
