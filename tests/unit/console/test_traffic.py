"""Views of what nodes have told: sums and charts agree, times lie between their bounds, moments are what they say."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.console.control.exchanges import place_of
from checkstream.console.views.told import moment_of, wanted_of
from checkstream.console.views.traffic import SPANS, Asked, asked_of, charts_of, quantiles, scope_of, traffic
from checkstream.control.server.showing import FleetShown, NodeShown
from checkstream.control.server.traffic import Troubled
from checkstream.control.telemetry.minutes import BOUNDS_MS, bound_of

NOW_MS = 1_790_000_000_123
FLEETS = {"shop": ("n1", "n2"), "bank": ("b1",)}


@given(st.sampled_from(sorted(SPANS)), st.data())
def test_charts_are_the_sums_of_the_slots_that_are_over(span: str, data: st.DataObject) -> None:
    scope = scope_of(Asked(span=span), FLEETS, NOW_MS)
    places = range(scope.since, scope.until, scope.step)
    assert len(places) * scope.step == SPANS[span][0]
    assert places[-1] * 60_000 <= NOW_MS < scope.until * 60_000
    slots = data.draw(
        st.dictionaries(
            st.sampled_from(places),
            st.fixed_dictionaries({"exchanges": st.integers(1, 999), "kept_answers": st.integers(0, 9)}),
            max_size=9,
        )
    )
    view = traffic(Asked(span=span), scope, slots, now_ms=NOW_MS)
    assert view.exchanges == sum(slot["exchanges"] for slot in slots.values())
    charts = charts_of(scope, slots, NOW_MS)
    over = {at: slot for at, slot in slots.items() if at != places[-1]}
    assert bool(charts) == bool(over)
    if charts:
        for line, name in zip(charts[0].lines, ("exchanges", "kept_answers"), strict=True):
            total = sum(value or 0 for value in line.values) * scope.step
            assert total == pytest.approx(
                sum(slot[name] for slot in over.values()), abs=0.001 * scope.step * len(places)
            )
        assert len(charts[0].at) == len(places) - 1
        assert charts[1].lines[0].values == (None,) * len(charts[0].at), "no time was counted"


@given(st.lists(st.floats(0, 60_000), min_size=1, max_size=50))
def test_a_quantile_lies_in_the_bin_that_has_it(times: list[float]) -> None:
    total: dict[str, int] = {}
    for ms in times:
        total[f"held:{bound_of(ms)}"] = total.get(f"held:{bound_of(ms)}", 0) + 1
    count, found = quantiles(total, "held")
    assert count == len(times)
    for value, share in zip(found, (0.5, 0.95, 0.99), strict=True):
        assert value is not None
        place = next(each for at, each in enumerate(sorted(times), 1) if at >= share * len(times))
        bound = bound_of(place)
        lower = max((b for b in BOUNDS_MS if b < place), default=0) / 1000
        assert lower <= value <= (float("inf") if bound == "inf" else int(bound) / 1000)


def test_nothing_has_no_times_no_charts_and_is_quiet() -> None:
    view = traffic(Asked(), scope_of(Asked(), FLEETS, NOW_MS), {}, now_ms=NOW_MS)
    assert (view.quiet, view.charts, view.rules, view.times[0].quantiles.at) == (True, (), (), (None, None, None))


@pytest.mark.parametrize(
    ("given", "fleets", "node"),
    [
        ({}, ["bank", "shop"], ""), ({"fleet": "shop"}, ["shop"], ""), ({"fleet": "none"}, [], ""),
        ({"node": "n1"}, [], "n1"), ({"fleet": "shop", "node": "b1"}, [], ""),
        ({"fleet": "bank", "node": "b1"}, [], "b1"), ({"span": "for ever"}, ["bank", "shop"], ""),
    ],
)  # fmt: skip
def test_what_is_counted_is_of_the_nodes_that_are_asked_for(
    given: dict[str, str], fleets: list[str], node: str
) -> None:
    asked = asked_of(given)
    assert asked.span in SPANS
    scope = scope_of(asked, FLEETS, NOW_MS)
    assert ([*scope.fleets], scope.node) == (fleets, node)


def node(name: str, *, stale: bool, heard_s: float | None) -> NodeShown:
    return NodeShown(
        node=name, ring="all", desired="", reported="", version="", drifted=False, refused=False, stale=stale,
        heard_s=heard_s, since_s=heard_s, why="",
    )  # fmt: skip


def test_nodes_that_fell_silent_are_shown_and_those_that_nobody_has_started_are_not() -> None:
    nodes = (
        node("n1", stale=True, heard_s=90.0), node("n2", stale=True, heard_s=None),
        node("n3", stale=False, heard_s=1.0), node("n4", stale=True, heard_s=900.0),
    )  # fmt: skip
    fleet = FleetShown(fleet="shop", bundle="b", offered=(), allowed={}, rollout=None, nodes=nodes)
    troubled = [
        Troubled(node="n3", chain="c", broken="seq 2: hash mismatch", since_ms=1),
        Troubled(node="n1", chain="", broken="", since_ms=1),
        Troubled(node="gone", chain="c", broken="seq 9", since_ms=1),
    ]
    view = traffic(Asked(), scope_of(Asked(), FLEETS, NOW_MS), {}, now_ms=NOW_MS, fleets=[fleet], troubled=troubled)
    assert [each.node for each in view.stale] == ["n4", "n1"]
    assert ([each.node for each in view.broken], [each.node for each in view.silent]) == (["n3"], ["n1"])
    assert view.nodes == 4


@given(st.datetimes(datetime(1971, 1, 1), datetime(2990, 1, 1)), st.sampled_from((10, 13, 16, 19)))  # noqa: DTZ001 - in UTC
def test_a_beginning_of_a_time_is_all_that_is_of_it(moment: datetime, length: int) -> None:
    moment = moment.replace(tzinfo=UTC)
    text = moment.strftime("%Y-%m-%dT%H:%M:%S")[:length]
    since, until = moment_of(text, end=False), moment_of(text.replace("T", " ") + "Z", end=True)
    assert since is not None
    assert until is not None
    assert since <= moment.timestamp() * 1000 < until
    assert until - since == {10: 86_400_000, 13: 3_600_000, 16: 60_000, 19: 1000}[length]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "2026-02-30",
        "2026-01-01T25",
        "20260101",
        "\u0662026-01-01",
        "9999-12-31",
        "2026-01-01T0",
        "-026-01-01",
    ],
)
def test_what_is_no_time_is_said(text: str) -> None:
    assert moment_of(text, end=True) is None
    assert wanted_of({"until": text}).faults == ((text,) if text else ())


def test_a_place_is_a_node_a_chain_and_a_number() -> None:
    assert place_of("n.1/c/7") == (("n.1", "c", 7), "")
    assert place_of("n/c/7/proof") == (("n", "c", 7), "proof")
    assert {
        place_of(path)[0] for path in ("", "n/c", "n/c/", "n/c/x", "n/c/7/", "n/c/7/x", "a/b/c/7", "n/c/\u0661")
    } == {None}
