"""How far histograms of scores are from each other: the formulas by themselves, and what must hold of them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.telemetry.drift import (
    BINS,
    BOUNDS,
    FLOOR,
    LEAST,
    bin_of,
    cumulated,
    drifts,
    histograms,
    ks,
    psi,
)

COUNTS = st.lists(st.integers(0, 10_000), min_size=BINS, max_size=BINS).filter(any)
BIN = st.integers(0, BINS - 1)


def oracle(reference: list[int], today: list[int]) -> tuple[float, float]:
    """PSI and KS as textbooks write them, bin by bin."""
    index, gap, was_so_far, now_so_far = 0.0, 0.0, 0.0, 0.0
    for number in range(BINS):
        was, now = reference[number] / sum(reference), today[number] / sum(today)
        was_so_far, now_so_far = was_so_far + was, now_so_far + now
        gap = max(gap, abs(was_so_far - now_so_far))
        was, now = max(was, FLOOR), max(now, FLOOR)
        index += (now - was) * math.log(now / was)
    return index, gap


@given(COUNTS, COUNTS)
def test_both_are_what_the_formulas_say(reference: list[int], today: list[int]) -> None:
    index, gap = oracle(reference, today)
    assert psi(reference, today) == pytest.approx(index, abs=1e-9)
    assert ks(reference, today) == pytest.approx(gap, abs=1e-9)


@given(COUNTS, st.integers(1, 1000))
def test_equal_shares_are_no_drift_however_many_scores_there_are(counts: list[int], times: int) -> None:
    more = [count * times for count in counts]
    assert psi(counts, more) == pytest.approx(0, abs=1e-9)
    assert ks(counts, more) == pytest.approx(0, abs=1e-9)


@given(COUNTS, COUNTS)
def test_both_are_the_same_both_ways_round_and_in_their_bounds(one: list[int], other: list[int]) -> None:
    assert psi(one, other) == pytest.approx(psi(other, one), abs=1e-9)
    assert ks(one, other) == ks(other, one)
    assert psi(one, other) >= 0
    assert 0 <= ks(one, other) <= 1


@given(COUNTS, BIN, BIN, st.lists(st.integers(0, 10_000), min_size=2, max_size=2))
def test_the_more_moves_the_higher_they_are(counts: list[int], here: int, there: int, moved: list[int]) -> None:
    few, many = (min(number, counts[here]) for number in sorted(moved))

    def after(number: int) -> list[int]:
        changed = list(counts)
        changed[here] -= number
        changed[there] += number
        return changed

    assert psi(counts, after(few)) <= psi(counts, after(many)) + 1e-9
    assert ks(counts, after(few)) <= ks(counts, after(many)) + 1e-9


@given(COUNTS, st.integers(1, BINS - 1))
def test_the_further_all_of_it_moves_the_wider_the_gap(counts: list[int], least: int) -> None:
    shifted = [[*[0] * by, *counts[: BINS - by - 1], sum(counts[BINS - by - 1 :])] for by in (least - 1, least)]
    assert ks(counts, shifted[0]) <= ks(counts, shifted[1]) + 1e-9


def test_all_of_it_elsewhere_is_as_far_as_can_be_and_finite() -> None:
    low, high = [1000] + [0] * (BINS - 1), [0] * (BINS - 1) + [1]
    assert ks(low, high) == 1
    assert psi(low, high) == pytest.approx(2 * (1 - FLOOR) * math.log(1 / FLOOR))


@given(st.floats(0, 1))
def test_a_score_is_in_the_bin_whose_end_it_does_not_pass(score: float) -> None:
    number = bin_of(score)
    assert number == len(BOUNDS) or score <= BOUNDS[number]
    assert number == 0 or score > BOUNDS[number - 1]


@given(COUNTS)
def test_what_metrics_say_of_a_histogram_is_read_as_it_was(counts: list[int]) -> None:
    key = ("safety.hate", "midstream")
    samples = [({"classifier": key[0], "stage": key[1], "le": end}, float(sum_)) for end, sum_ in cumulated(counts)]
    assert histograms(samples) == {key: counts}


ENDS = st.sampled_from([*(end for end, _ in cumulated([1] * BINS)), "", "nan", "0.5 ", "1e-5"])
LABELS = st.dictionaries(st.sampled_from(["classifier", "stage", "le", "worker"]), ENDS | st.text(max_size=3))


@given(st.lists(st.tuples(LABELS, st.floats()), max_size=60))
def test_of_other_samples_no_histogram_is_made_that_could_not_be(samples: list[tuple[dict[str, str], float]]) -> None:
    for counts in histograms(samples).values():
        assert len(counts) == BINS
        assert all(count >= 0 for count in counts)


def test_falling_and_infinite_sums_and_other_bins_are_left_out() -> None:
    good = cumulated([3] * BINS)
    for bad in (good[:-1], [*good[:-1], ("+Inf", 1.0)], [*good[:-1], ("+Inf", math.inf)], [*good, ("0.42", 1.0)]):
        assert histograms(({"classifier": "c", "stage": "ingress", "le": end}, value) for end, value in bad) == {}


@pytest.mark.parametrize("stage", LEAST)
def test_few_scores_have_no_figure(stage: str) -> None:
    key, other = ("a.b", stage), ("own.label", stage)
    reference = {key: [100] * BINS}
    assert drifts(reference, {key: [LEAST[stage] - 1, *[0] * (BINS - 1)]}) == {}
    assert set(drifts(reference, {key: [LEAST[stage], *[0] * (BINS - 1)], other: [LEAST[stage]] * BINS})) == {key}
    assert drifts(reference, {("a.b", "egress"): [10_000] * BINS}) == {}
