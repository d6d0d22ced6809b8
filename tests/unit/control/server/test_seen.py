"""What alerts look at, made of what nodes have counted: windows, bins and hours, against sums that are made plainly."""

from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.control.alerts.conditions import Limits, findings
from checkstream.control.alerts.facts import Facts
from checkstream.control.server.seen import scores_of, traffic_of
from checkstream.control.server.tally import Tally
from checkstream.telemetry.drift import BINS, bin_of

HOUR_MS, MINUTE_MS = 3_600_000, 60_000
NOW_MS = 480_000 * HOUR_MS + 17 * MINUTE_MS + 30_000
"""Within a minute, and within an hour."""


def ago(minutes: int) -> int:
    """Return the beginning of the minute that was over so many whole minutes ago."""
    return (NOW_MS // MINUTE_MS - 1 - minutes) * MINUTE_MS


def scored(*scores: float) -> dict[str, tuple[int, ...]]:
    bins = [0] * BINS
    for score in scores:
        bins[bin_of(score)] += 1
    return {"safety.toxic midstream": tuple(bins)}


counted = st.lists(st.tuples(st.integers(0, 1600), st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40)


@given(counted)
def test_windows_add_up_what_was_refused_or_stopped_and_the_minute_that_runs_is_in_none(
    rows: list[tuple[int, int, int]],
) -> None:
    minutes = [(ago(back), Tally(exchanges=20, refusals=refused, stops=stopped)) for back, refused, stopped in rows]
    running = (NOW_MS // MINUTE_MS * MINUTE_MS, Tally(refusals=1000))
    found = traffic_of("shop", [*minutes, running], 15.0, NOW_MS).high_risk
    first = max(back for back, _, _ in rows) + 1
    assert len(found) == min(first // 5, 288)
    plain: Counter[int] = Counter()
    for back, refused, stopped in rows:
        plain[back // 5] += refused + stopped
    assert list(found) == [plain[place] for place in reversed(range(len(found)))]


def test_checks_of_the_last_window_are_held_to_the_budget() -> None:
    bins = [0] * 12
    bins[3], bins[8], bins[11] = 90, 60, 5
    minutes = [(ago(4), Tally(times={"check": tuple(bins)})), (ago(5), Tally(times={"check": (9,) * 12}))]
    found = traffic_of("shop", minutes, 15.0, NOW_MS)
    assert sum(count for _, count in found.decision_ms) == 155
    assert found.decision_ms[8] == (50.0, 60)
    assert math.isinf(found.decision_ms[-1][0])
    (finding,) = findings(Facts(traffic=(found,)), Limits())
    assert finding.says == "95 % of decisions took 25 to 50 ms on shop; the budget is 15 ms"


def test_bins_of_another_version_are_left_out() -> None:
    found = traffic_of("shop", [(ago(1), Tally(times={"check": (1, 2)}))], 15.0, NOW_MS)
    assert found.decision_ms == ()


def test_hours_are_whole_and_end_with_the_last_that_is_over() -> None:
    minutes = [
        (ago(0), Tally(scores=scored(0.95))),  # of the hour that runs
        (ago(20), Tally(scores=scored(0.25, 0.25, 0.35))),  # of the last whole one
        (ago(40), Tally(scores=scored(0.25))),
        (ago(100), Tally(scores=scored(0.75))),  # of the one before
    ]
    (found,) = scores_of("shop", minutes, NOW_MS)
    assert found.subject == "shop/safety.toxic midstream"
    assert len(found.hours) == 25
    assert [hour.count for hour in found.hours[-2:]] == [1, 4]
    assert [hour.mean for hour in found.hours[-2:]] == pytest.approx([0.75, 0.275])
    assert {hour.count for hour in found.hours[:-2]} == {0}


def test_scores_that_shift_for_an_hour_are_found() -> None:
    calm = [(ago(60 * hour + 30), Tally(scores=scored(*[0.1] * 400, *[0.3] * 200))) for hour in range(1, 25)]
    shifted = (ago(30), Tally(scores=scored(*[0.3] * 600)))
    usual = (ago(30), Tally(scores=scored(*[0.1] * 400, *[0.3] * 200)))
    facts = [Facts(scores=tuple(scores_of("shop", [*calm, last], NOW_MS))) for last in (shifted, usual)]
    kinds = [[finding.kind for finding in findings(each, Limits())] for each in facts]
    assert kinds == [["score_drift"], []]
