"""The gate's arithmetic, where the worked cases don't reach."""

from __future__ import annotations

from checkstream.grounding.decision import Thresholds, score_counts


def test_equal_fractions_decide_alike_however_many_claims_there_are() -> None:
    for times in (1, 3, 7, 1000):
        assert score_counts(9 * times, 0, times, Thresholds(deploy=0.1, warn=0.1)).decision == "deploy"
        assert score_counts(9 * times, 1, times, Thresholds(deploy=0.1, warn=0.1)).decision == "block"
