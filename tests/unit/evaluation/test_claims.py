"""Balanced accuracy and thresholds against counting by hand; no set chooses its own threshold."""

import numpy as np
import pytest

from checkstream.evaluation.claims import ClaimSet, assess_claims, balanced_accuracy, best_threshold


def claim_set(name: str, supported: list[float], other: list[float]) -> ClaimSet:
    return ClaimSet(name, np.array(supported), np.array(other))


def test_balanced_accuracy_weighs_both_classes_alike() -> None:
    assert balanced_accuracy(np.array([0.9, 0.2]), np.array([0.1, 0.1, 0.1, 0.6]), 0.5) == pytest.approx(0.625)
    assert balanced_accuracy(np.array([0.5]), np.array([0.4]), 0.5) == 1
    with pytest.raises(ValueError, match="no scores"):
        balanced_accuracy(np.array([]), np.array([1.0]), 0.5)


def test_the_best_threshold_is_that_of_the_mean_over_sets() -> None:
    low, high = claim_set("low", [0.3, 0.35], [0.1, 0.2]), claim_set("high", [0.8, 0.9], [0.5, 0.6])
    assert 0.2 < best_threshold([low]) <= 0.3
    assert 0.6 < best_threshold([high]) <= 0.8
    with pytest.raises(ValueError, match="no sets"):
        best_threshold([])


def test_the_threshold_of_a_set_is_chosen_on_the_others() -> None:
    low, high = claim_set("low", [0.3, 0.35], [0.1, 0.2]), claim_set("high", [0.8, 0.9], [0.5, 0.6])
    first, second = assess_claims("v", [low, high]).sets
    assert first.at_threshold is not None
    assert second.at_threshold is not None
    assert (first.threshold, first.at_threshold.value) == (best_threshold([high]), 0.5)
    assert (second.threshold, second.at_threshold.value) == (best_threshold([low]), 0.5)
    assert (first.auc.value, first.at_half.value) == (1, 0.5)


def test_means_weigh_sets_alike_and_one_set_has_no_other() -> None:
    many, few = claim_set("many", [0.9] * 98 + [0.1] * 2, [0.2] * 100), claim_set("few", [0.1, 0.9], [0.4])
    found = assess_claims("v", [many, few])
    assert found.auc == pytest.approx((0.98 + 0.5) / 2)
    alone = assess_claims("v", [many])
    assert (alone.at_threshold, alone.sets[0].threshold, alone.sets[0].at_threshold) == (None, None, None)
    assert alone.sets[0].auc.low <= alone.auc <= alone.sets[0].auc.high
    with pytest.raises(ValueError, match="no sets"):
        assess_claims("v", [])
