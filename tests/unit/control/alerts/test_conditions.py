from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.alerts.conditions import Finding, Limits, burns, drift, findings, latency, percentile, spike
from checkstream.control.alerts.facts import Budget, Chain, Facts, Node, Reviewed, ScoreHour, Scores, Spent, Traffic

LIMITS = Limits()


def traffic(high_risk: Sequence[int] = (), decision_ms: Sequence[tuple[float, int]] = ()) -> Traffic:
    return Traffic(subject="shop/chat", high_risk=tuple(high_risk), decision_ms=tuple(decision_ms), budget_ms=15.0)


def kinds(facts: Facts) -> list[str]:
    return [finding.kind for finding in findings(facts, LIMITS)]


@pytest.mark.parametrize(
    ("before", "now", "fires"),
    [
        ([2] * 24, 20, False),  # 9.8 times the baseline
        ([2] * 24, 21, True),
        ([0] * 288, 9, False),  # as few are no spike, after whatever calm
        ([0] * 288, 10, True),
        ([0] * 11, 500, False),  # no baseline yet
        ([100] * 24, 900, False),
    ],
)
def test_a_spike_is_ten_times_the_baseline_and_no_handful(before: list[int], now: int, fires: bool) -> None:
    found = spike(traffic([*before, now]), LIMITS)
    assert (found is not None) is fires
    if found is not None:
        assert str(now) in found.says
        assert found.severity == "page"


@given(st.lists(st.integers(0, 50), min_size=12, max_size=300), st.integers(0, 2000))
def test_more_high_risks_never_end_a_spike_and_more_before_never_make_one(before: list[int], now: int) -> None:
    if spike(traffic([*before, now]), LIMITS) is not None:
        assert spike(traffic([*before, now + 1]), LIMITS) is not None
    else:
        assert spike(traffic([*[each + 1 for each in before], now]), LIMITS) is None


@given(st.lists(st.floats(0, 400), min_size=1, max_size=200), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_a_percentile_lies_between_the_bounds_that_are_said(times: list[float], share: float) -> None:
    bounds = (1.0, 5.0, 15.0, 50.0, math.inf)
    cells = list(zip((-1.0, *bounds), bounds, strict=False))
    counts = [sum(lower < took <= upper for took in times) for lower, upper in cells]
    found = percentile(list(zip(bounds, counts, strict=True)), share)
    exact = sorted(times)[math.ceil(share * len(times)) - 1]
    assert found is not None
    assert found[0] <= exact <= found[1]


def test_of_nothing_there_is_no_percentile() -> None:
    assert percentile([], 0.95) is None
    assert percentile([(1.0, 0), (math.inf, 0)], 0.95) is None


@pytest.mark.parametrize(
    ("histogram", "fires"),
    [
        ([(5.0, 96), (15.0, 3), (math.inf, 1)], False),
        ([(5.0, 90), (15.0, 6), (math.inf, 4)], False),  # 5 to 15 is within 15
        ([(5.0, 90), (15.0, 4), (math.inf, 6)], True),
        ([(5.0, 9), (15.0, 0), (math.inf, 90)], False),  # 99 decisions say little
    ],
)
def test_decisions_are_too_slow_when_95_percent_are_over_the_budget_for_certain(
    histogram: list[tuple[float, int]], fires: bool
) -> None:
    assert (latency(traffic(decision_ms=histogram), LIMITS) is not None) is fires


@given(st.lists(st.floats(0, 1), min_size=24, max_size=100), st.floats(0, 1))
def test_drift_is_what_a_control_chart_of_three_deviations_says(before: list[float], now: float) -> None:
    hours = tuple(ScoreHour(600, mean) for mean in (*before, now))
    deviation = max(statistics.stdev(before), LIMITS.drift_floor)
    away = abs(now - statistics.fmean(before)) / deviation
    if abs(away - 3.0) > 1e-6:
        assert (drift(Scores(subject="x", hours=hours), LIMITS) is not None) is (away > 3.0)


def test_hours_with_few_scores_say_nothing_of_drift() -> None:
    calm = [ScoreHour(600, 0.1)] * 24
    assert drift(Scores(subject="x", hours=(*calm, ScoreHour(499, 0.9))), LIMITS) is None
    assert drift(Scores(subject="x", hours=(*calm[1:], ScoreHour(100, 0.1), ScoreHour(600, 0.9))), LIMITS) is None
    assert drift(Scores(subject="x", hours=(*calm, ScoreHour(600, 0.9))), LIMITS) is not None
    assert drift(Scores(subject="x", hours=()), LIMITS) is None


def budget(*bad: int, cases: int = 10_000, of: Literal["violations", "cutoff"] = "violations") -> Budget:
    """Return a budget of which so many are bad in 5 minutes, 30, an hour, 6 and 3 days."""
    m5, m30, hour, h6, d3 = (Spent(each, cases) for each in bad)
    return Budget(subject="shop", of=of, source="rescored", minutes5=m5, minutes30=m30, hour=hour, hours6=h6, days3=d3)


@pytest.mark.parametrize(
    ("spent", "expected"),
    [
        (budget(0, 0, 0, 0, 0), []),
        (budget(10, 10, 10, 10, 10), []),  # just what is allowed
        (budget(11, 11, 11, 11, 11), ["violations_burn_slow"]),
        (budget(144, 0, 145, 0, 0), []),
        (budget(145, 0, 145, 0, 0), ["violations_burn_fast"]),
        (budget(0, 145, 145, 0, 0), []),  # it is over
        (budget(0, 61, 0, 61, 0), ["violations_burn_fast"]),
        (budget(145, 61, 145, 61, 11), ["violations_burn_fast", "violations_burn_slow"]),
        (budget(9, 9, 9, 9, 9, cases=9), []),  # nine say nothing
        (budget(1, 1, 1, 1, 1, cases=10), ["violations_burn_fast", "violations_burn_slow"]),
        (budget(0, 0, 0, 0, 0, cases=0), []),
        (budget(145, 61, 145, 61, 11, of="cutoff"), []),
        (budget(1441, 0, 1441, 101, 101, of="cutoff"), ["cutoff_burn_fast", "cutoff_burn_slow"]),
    ],
)
def test_a_budget_burns_fast_over_hours_or_slowly_over_days_and_while_it_does(
    spent: Budget, expected: list[str]
) -> None:
    assert kinds(Facts(budgets=(spent,))) == sorted(expected)
    for finding in burns(spent, LIMITS):
        assert finding.severity == ("page" if finding.kind.endswith("fast") else "ticket")


def test_a_budget_says_what_it_was_charged_with() -> None:
    (found,) = burns(budget(145, 0, 145, 0, 0), LIMITS)
    assert found.says == (
        "on shop in the last hour 145 of 10000 answers that were judged again had let something out that rules keep "
        "(1.45%); the objective is less than 0.1%, and at this rate the month's budget is gone in days"
    )
    (found,) = burns(msgspec.structs.replace(budget(145, 0, 145, 0, 0), source="grounding"), LIMITS)
    assert "none was judged again" in found.says


def node(unheard_s: float = 5, reported: str = "b@2", refused: str = "") -> Node:
    return Node(
        subject="eu-1",
        unheard_s=unheard_s,
        stale_s=180,
        wanted="b@2",
        reported=reported,
        refused=refused,
    )


def reviewed(right: int, of: int) -> Reviewed:
    return Reviewed(subject="PII-1", right_before=90, all_before=100, right=right, all=of)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (Facts(), []),
        (Facts(nodes=(node(),)), []),
        (Facts(nodes=(node(unheard_s=181),)), ["node_stale"]),
        (Facts(nodes=(node(reported="b@1"),)), ["node_astray"]),
        (Facts(nodes=(node(reported=""),)), ["node_astray"]),
        (Facts(nodes=(node(unheard_s=181, reported="b@1"),)), ["node_stale"]),
        (Facts(nodes=(node(refused="its package is not on the list"),)), ["node_refused"]),
        (Facts(chains=(Chain(subject="eu-1/c", silent_s=10),)), []),
        (Facts(chains=(Chain(subject="eu-1/c", silent_s=181),)), ["chain_silent"]),
        (Facts(chains=(Chain(subject="eu-1/c", silent_s=181, broken="broken link at seq 7"),)), ["chain_broken"]),
        (Facts(reviewed=(reviewed(84, 100),)), ["precision_fall"]),
        (Facts(reviewed=(reviewed(86, 100),)), []),
        (Facts(reviewed=(reviewed(0, 49),)), []),
    ],
)
def test_nodes_chains_and_reviews(facts: Facts, expected: list[str]) -> None:
    assert kinds(facts) == expected


def test_findings_come_by_key_whatever_order_the_facts_have() -> None:
    nodes = tuple(Node(subject=name, unheard_s=999, stale_s=180, wanted="", reported="") for name in ("c", "a", "b"))
    expected = ["node_stale:a", "node_stale:b", "node_stale:c"]
    assert [finding.key for finding in findings(Facts(nodes=nodes), LIMITS)] == expected
    assert [finding.key for finding in findings(Facts(nodes=nodes[::-1]), LIMITS)] == expected


def test_a_finding_says_one_sentence() -> None:
    found: Finding | None = spike(traffic([0] * 24 + [40]), LIMITS)
    assert found is not None
    assert found.says.startswith("40 exchanges of high risk in 5 minutes on shop/chat, 960 times the baseline of 0.042")
