"""Figures at their edges: empty classes, ties, constant scores, and an interval that covers what it should."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from checkstream.evaluation.figures import (
    Bin,
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

NOTHING = np.array([])
SOME = np.array([0.2, 0.4])


@pytest.mark.parametrize(
    "figure",
    [
        lambda: auc(NOTHING, SOME),
        lambda: auc(SOME, NOTHING),
        lambda: average_precision(SOME, NOTHING),
        lambda: curve(NOTHING, SOME),
        lambda: threshold_at_fpr(NOTHING, 0.1),
        lambda: threshold_at_fpr(SOME, 1.0),
        lambda: threshold_at_fpr(SOME, -0.1),
        lambda: threshold_at_fpr(SOME, float("nan")),
        lambda: rate_at(NOTHING, 0.5),
        lambda: bootstrap(auc, SOME, NOTHING),
        lambda: reliability(NOTHING, NOTHING),
        lambda: reliability(np.array([1.5]), SOME),
        lambda: expected_calibration_error(np.array([np.nan]), SOME),
    ],
)
def test_what_has_no_answer_is_refused(figure: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="; "):
        figure()


def test_constant_scores_recall_nothing() -> None:
    same = np.full(50, 0.7)
    assert recall_at_fpr(same, same, 0.05) == 0.0
    assert auc(same, same) == 0.5


def test_a_rate_that_is_a_whole_number_of_texts_allows_all_of_them() -> None:
    negatives = np.arange(100) / 100
    assert rate_at(negatives, threshold_at_fpr(negatives, 0.29)) == 0.29
    assert rate_at(negatives, threshold_at_fpr(negatives, 0.01)) == 0.01


def test_a_threshold_of_float32_scores_separates_neighbours_of_float32() -> None:
    low = np.float32(0.3)
    high = np.nextafter(low, np.float32(1))
    threshold = threshold_at_fpr(np.array([low]), 0.0)
    assert rate_at(np.array([low, high]), threshold) == 0.5


def test_too_many_certain_negatives_let_nothing_fire() -> None:
    assert threshold_at_fpr(np.ones(10), 0.1) > 1


def test_reliability_tells_a_sure_model_that_errs() -> None:
    assert reliability(np.array([1.0, 1.0, 0.0]), np.array([1.0])) == (Bin(1, 0.0, 1.0), Bin(3, 1.0, 2 / 3))
    assert expected_calibration_error(np.array([1.0, 1.0, 0.0]), np.array([1.0])) == pytest.approx(0.5)


def test_a_curve_of_many_texts_has_few_points_from_full_recall_to_little() -> None:
    drawn = curve(np.linspace(0, 1, 5_000), np.linspace(0, 1, 5_000), points=50)
    assert len(drawn) == 50
    assert drawn[0].recall == 1.0
    assert drawn[-1].recall < 0.01


def test_an_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    generator = np.random.default_rng(5)
    held = 0
    for _ in range(60):
        found = bootstrap(rate_at_half, generator.random(80), rounds=200, seed=1)
        held += found.low <= 0.5 <= found.high
    assert held >= 51


def rate_at_half(scores: np.ndarray) -> float:
    return rate_at(scores, 0.5)
