"""A text of many windows has more chances to fire; their number is reckoned with."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.scoring.among import Among, highest

RULE = Among(rise=0.4, windows=8, least=0.25)
SCORES = st.floats(0.0, 1.0, width=32)


@given(SCORES, st.integers(1, 5_000))
def test_a_score_is_never_raised_and_never_falls_below_the_lowest_threshold(score: float, windows: int) -> None:
    found = RULE.reckoned(score, windows)
    assert min(score, RULE.least) <= found <= score + 1e-9
    if windows <= RULE.windows:
        assert found == score


@given(SCORES, SCORES, st.integers(1, 5_000), st.integers(1, 5_000))
def test_order_is_kept_and_more_windows_never_count_less(one: float, other: float, few: int, many: int) -> None:
    few, many = sorted((few, many))
    low, high = sorted((one, other))
    assert RULE.reckoned(low, few) <= RULE.reckoned(high, few) + 1e-9
    assert RULE.reckoned(high, many) <= RULE.reckoned(high, few) + 1e-9


@pytest.mark.parametrize("windows", [8, 64, 512])
def test_as_many_innocent_texts_fire_however_long_they_are(windows: int) -> None:
    """Where logits fall by e for each `rise`, as they do over the highest threshold."""
    draw = np.random.default_rng(3)
    tops = RULE.rise * draw.exponential(size=(4_000, windows)).max(axis=1)
    scores = [RULE.reckoned(1 / (1 + math.exp(-top)), windows) for top in tops]
    limit = 1 / (1 + math.exp(-RULE.rise * math.log(8 / 0.05)))  # 5 % of texts of eight windows
    assert np.mean(np.array(scores) >= limit) == pytest.approx(0.05, abs=0.012)


@given(st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=60))
def test_a_sentence_of_a_known_order_counts_as_it_is(rows: list[tuple[float, bool]]) -> None:
    said = [np.array([score], np.float32) for score, _ in rows]
    found = float(highest(said, [RULE if counted else None for _, counted in rows])[0])
    alone = max((score for score, counted in rows if not counted), default=0.0)
    among = max((score for score, counted in rows if counted), default=0.0)
    assert found == pytest.approx(max(alone, RULE.reckoned(among, sum(counted for _, counted in rows))), abs=1e-6)


@given(st.lists(SCORES, min_size=1, max_size=20))
def test_without_a_rule_the_highest_counts(scores: list[float]) -> None:
    said = [np.array([score], np.float32) for score in scores]
    assert highest(said, ()) == highest(said, [None] * len(said)) == [max(scores)]
