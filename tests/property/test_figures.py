"""Figures of classifiers equal what their definitions say, counted the slow way."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.evaluation.figures import (
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

# Few distinct values, so that ties are common; their extremes too.
SCORES = st.lists(st.one_of(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0]), st.floats(0, 1)), min_size=1, max_size=30)
RATES = st.one_of(st.sampled_from([0.0, 0.001, 0.01, 0.05, 0.1, 0.29, 0.5]), st.floats(0, 0.99))


def array(scores: list[float]) -> np.ndarray:
    return np.array(scores, np.float64)


@given(SCORES, SCORES)
def test_the_auc_is_the_share_of_pairs_in_order(positives: list[float], negatives: list[float]) -> None:
    pairs = [1.0 if p > n else 0.5 if p == n else 0.0 for p, n in product(positives, negatives)]
    assert auc(array(positives), array(negatives)) == pytest.approx(sum(pairs) / len(pairs))


@given(SCORES, RATES)
def test_the_threshold_keeps_the_rate_and_no_lower_one_does(negatives: list[float], fpr: float) -> None:
    threshold = threshold_at_fpr(array(negatives), fpr)
    budget = fpr * len(negatives) + 1e-9
    assert sum(n >= threshold for n in negatives) <= budget
    lower = np.nextafter(threshold, -np.inf)
    assert sum(n >= lower for n in negatives) > budget


@given(SCORES, SCORES, RATES)
def test_the_recall_is_the_best_that_the_rate_allows(
    positives: list[float], negatives: list[float], fpr: float
) -> None:
    best = 0.0
    for threshold in [*positives, 2.0]:
        if sum(n >= threshold for n in negatives) <= fpr * len(negatives) + 1e-9:
            best = max(best, sum(p >= threshold for p in positives) / len(positives))
    assert recall_at_fpr(array(positives), array(negatives), fpr) == best


@given(SCORES, SCORES)
def test_the_average_precision_counts_each_positive_at_its_own_score(
    positives: list[float], negatives: list[float]
) -> None:
    precisions = []
    for threshold in positives:
        hits = sum(p >= threshold for p in positives)
        precisions.append(hits / (hits + sum(n >= threshold for n in negatives)))
    assert average_precision(array(positives), array(negatives)) == pytest.approx(sum(precisions) / len(precisions))


@given(SCORES, SCORES, st.integers(2, 12))
def test_a_curve_says_what_each_threshold_does(positives: list[float], negatives: list[float], points: int) -> None:
    drawn = curve(array(positives), array(negatives), points)
    assert 1 <= len(drawn) <= max(points, len(set(positives)))
    assert [p.threshold for p in drawn] == sorted({p.threshold for p in drawn})
    for point in drawn:
        assert point.recall == rate_at(array(positives), point.threshold)
        assert point.fpr == rate_at(array(negatives), point.threshold)
        hits = point.recall * len(positives)
        assert point.precision == pytest.approx(hits / (hits + point.fpr * len(negatives)))
    assert drawn[0].recall == 1.0


@given(SCORES, SCORES, st.integers(1, 20))
def test_reliability_loses_no_text_and_the_error_is_its_mean_gap(
    positives: list[float], negatives: list[float], bins: int
) -> None:
    parts = reliability(array(positives), array(negatives), bins)
    total = len(positives) + len(negatives)
    assert sum(part.count for part in parts) == total
    assert sum(part.count * part.positive for part in parts) == pytest.approx(len(positives))
    assert sum(part.count * part.mean_score for part in parts) == pytest.approx(sum(positives) + sum(negatives))
    gap = sum(part.count / total * abs(part.positive - part.mean_score) for part in parts)
    assert expected_calibration_error(array(positives), array(negatives), bins) == pytest.approx(gap)


@given(SCORES, SCORES)
def test_no_order_of_the_texts_changes_a_figure(positives: list[float], negatives: list[float]) -> None:
    forth = (array(positives), array(negatives))
    back = (array(positives[::-1]), array(negatives[::-1]))
    assert auc(*forth) == auc(*back)
    assert recall_at_fpr(*forth, 0.05) == recall_at_fpr(*back, 0.05)
    assert average_precision(*forth) == pytest.approx(average_precision(*back))


@given(SCORES, SCORES)
def test_an_interval_is_repeatable_and_ordered(positives: list[float], negatives: list[float]) -> None:
    once, again = (bootstrap(auc, array(positives), array(negatives), rounds=20, seed=3) for _ in range(2))
    assert once == again
    assert 0 <= once.low <= once.high <= 1
    assert once.value == auc(array(positives), array(negatives))
