"""What the nodes of all fleets, or some of them, did in a time. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import accumulate

import msgspec

from checkstream.console.totals import Quantiles, quantile
from checkstream.console.views.overview import Chart, Counted, Line, Took
from checkstream.control.server.counted import Scope, Slots
from checkstream.control.server.showing import FleetShown
from checkstream.control.server.traffic import Troubled
from checkstream.control.telemetry.minutes import BOUNDS_MS

SPANS: Mapping[str, tuple[int, int]] = {
    "hour": (60, 1), "6 hours": (360, 5), "day": (1440, 60), "week": (10_080, 120), "30 days": (43_200, 720)
}  # fmt: skip
"""What may be looked at -> minutes, and minutes of each slot of it."""
_SHARES = (0.5, 0.95, 0.99)
_ENDS_S = (*(bound / 1000 for bound in BOUNDS_MS), float("inf"))
_FAILED = ("detector_failed", "overloaded", "work_exceeded", "upstream_failed", "failed")
_ROWS = 200
_MOST_TROUBLES = 50


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody wants to see; empty: all."""

    fleet: str = ""
    node: str = ""
    route: str = ""
    span: str = "hour"

    @property
    def everything(self) -> bool:
        """Of no fleet, node or route alone."""
        return not (self.fleet or self.node or self.route)


class RuleCounted(msgspec.Struct, frozen=True, kw_only=True):
    """How often a rule fired."""

    rule: str
    enforced: int
    shadow: int


class Stale(msgspec.Struct, frozen=True, kw_only=True):
    """A node that was heard of, and is not any more."""

    fleet: str
    node: str
    heard_s: float


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """What was done, and what is wrong."""

    asked: Asked
    minutes: int
    exchanges: int
    passed: int
    """Requests that went through unguarded."""
    kept_prompts: int
    kept_answers: int
    refused: int
    stopped: int
    failed: int
    degraded: int
    times: tuple[Took, ...]
    rules: tuple[RuleCounted, ...]
    more_rules: int
    actions: tuple[Counted, ...]
    outcomes: tuple[Counted, ...]
    charts: tuple[Chart, ...]
    broken: tuple[Troubled, ...]
    silent: tuple[Troubled, ...]
    stale: tuple[Stale, ...]
    nodes: int
    """That are known of in what is looked at."""

    @property
    def per_minute(self) -> float:
        """Exchanges."""
        return self.exchanges / self.minutes

    @property
    def quiet(self) -> bool:
        """Nothing was counted."""
        return not (self.exchanges or self.passed)


def asked_of(given: Mapping[str, str], usual: str = "hour") -> Asked:
    """Return what an address asks for; what it can't be is left out."""
    named = {name: given.get(name, "").strip()[:200] for name in ("fleet", "node", "route")}
    span = given.get("span", "")
    return Asked(**named, span=span if span in SPANS else usual)


def scope_of(asked: Asked, fleets: Mapping[str, Collection[str]], now_ms: int) -> Scope:
    """Return what to count, by whole slots, the last of which has begun."""
    minutes, step = SPANS[asked.span]
    known = {asked.fleet} & set(fleets) if asked.fleet else set(fleets)
    node = asked.node if not asked.fleet or asked.node in fleets.get(asked.fleet, ()) else ""
    until = (now_ms // 60_000 // step + 1) * step
    return Scope(
        fleets=() if asked.node else tuple(sorted(known)),
        node=node,
        route=asked.route,
        since=until - minutes,
        until=until,
        step=step,
    )


def traffic(
    asked: Asked,
    scope: Scope,
    slots: Slots,
    *,
    now_ms: int,
    fleets: Sequence[FleetShown] = (),
    troubled: Sequence[Troubled] = (),
) -> Traffic:
    """Return the view of what was counted, and of the nodes of the fleets that are looked at."""
    total = summed(slots)
    known = [
        (fleet.fleet, node)
        for fleet in fleets
        for node in fleet.nodes
        if scope.node in ("", node.node) and not _none(scope)
    ]
    names = {node.node for _, node in known}
    wrong = [each for each in troubled if each.node in names][:_MOST_TROUBLES]
    stale = (
        Stale(fleet=fleet, node=node.node, heard_s=node.heard_s)
        for fleet, node in known
        if node.stale and node.heard_s is not None
    )
    rules = rules_of(total)
    return Traffic(
        asked=asked,
        minutes=max(now_ms // 60_000 + 1 - scope.since, 1),
        exchanges=total.get("exchanges", 0),
        passed=total.get("passed", 0),
        kept_prompts=total.get("kept_prompts", 0),
        kept_answers=total.get("kept_answers", 0),
        refused=total.get("outcome:refused", 0),
        stopped=total.get("outcome:stopped", 0),
        failed=sum(total.get(f"outcome:{name}", 0) for name in _FAILED),
        degraded=total.get("degraded", 0),
        times=(_took(total, "held", "Held, of text that was sent"), _took(total, "checked", "Classifiers' answers")),
        rules=tuple(rules[:_ROWS]),
        more_rules=max(len(rules) - _ROWS, 0),
        actions=_named(total, "action"),
        outcomes=_named(total, "outcome"),
        charts=charts_of(scope, slots, now_ms),
        broken=tuple(each for each in wrong if each.broken),
        silent=tuple(each for each in wrong if not each.broken),
        stale=tuple(sorted(stale, key=lambda each: (-each.heard_s, each.node))[:_MOST_TROUBLES]),
        nodes=len(known),
    )


def _none(scope: Scope) -> bool:
    """Tell whether nothing is looked at."""
    return not scope.node and not scope.fleets


def summed(slots: Slots) -> dict[str, int]:
    """Return what all slots come to together."""
    total: dict[str, int] = {}
    for slot in slots.values():
        for name, count in slot.items():
            total[name] = total.get(name, 0) + count
    return total


def rules_of(total: Mapping[str, int]) -> list[RuleCounted]:
    """Return the rules that fired, the most frequent first."""
    names = {name.partition(":")[2] for name in total if name.startswith(("rule:", "shadow:"))}
    rows = [
        RuleCounted(rule=name, enforced=total.get(f"rule:{name}", 0), shadow=total.get(f"shadow:{name}", 0))
        for name in names
    ]
    return sorted(rows, key=lambda row: (-row.enforced - row.shadow, row.rule))


def _named(total: Mapping[str, int], kind: str) -> tuple[Counted, ...]:
    rows = [
        Counted(what=name.partition(":")[2], count=count)
        for name, count in total.items()
        if name.startswith(f"{kind}:")
    ]
    return tuple(sorted(rows, key=lambda row: (-row.count, row.what)))


def _took(total: Mapping[str, int], kind: str, what: str) -> Took:
    count, at = quantiles(total, kind)
    return Took(what=what, quantiles=Quantiles(count, at))


def quantiles(total: Mapping[str, int], kind: str) -> tuple[int, tuple[float | None, ...]]:
    """Return how many times of a kind were counted, and their median, p95 and p99 in seconds."""
    counts = [total.get(f"{kind}:{bound}", 0) for bound in (*BOUNDS_MS, "inf")]
    bins = [*zip(_ENDS_S, accumulate(map(float, counts)), strict=True)]
    return sum(counts), tuple(quantile(bins, share) for share in _SHARES)


def charts_of(scope: Scope, slots: Slots, now_ms: int) -> tuple[Chart, ...]:
    """Return lines over the slots that are over; none where nothing was counted in them."""
    over = [at for at in range(scope.since, scope.until, scope.step) if (at + scope.step) * 60_000 <= now_ms]
    if not any(at in slots for at in over):
        return ()
    ends = tuple((at + scope.step) * 60.0 for at in over)
    parts = [slots.get(at, {}) for at in over]

    def rate(*names: str) -> tuple[float | None, ...]:
        return tuple(round(sum(part.get(name, 0) for name in names) / scope.step, 3) for part in parts)

    def late(kind: str) -> tuple[float | None, ...]:
        return tuple(_ms(quantiles(part, kind)[1][1]) for part in parts)

    requests = (
        Line(name="exchanges", values=rate("exchanges", "passed")),
        Line(name="kept back", values=rate("kept_prompts", "kept_answers")),
    )
    waits = (Line(name="held", values=late("held")), Line(name="checked", values=late("checked")))
    return (
        Chart(title="Exchanges", unit="a minute", at=ends, lines=requests),
        Chart(title="Time, 95th percentile", unit="ms", at=ends, lines=waits),
    )


def _ms(value: float | None) -> float | None:
    """Return milliseconds; beyond the last bound nothing is known but that it is more."""
    return None if value is None else round(min(value * 1000, BOUNDS_MS[-1]), 3)
