"""What alerts look at, as the control server's tables have it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise

from checkstream.config.control import Fleet
from checkstream.control.alerts.facts import Budget, Chain, Facts, Node, ScoreHour, Scores, Traffic
from checkstream.control.attestation import Desired
from checkstream.control.server import tables, traffic
from checkstream.control.server.budgets import read_budgets
from checkstream.control.server.database import Session
from checkstream.control.server.reviewing import reviewed
from checkstream.control.server.rollout import wanted
from checkstream.control.server.showing import called
from checkstream.control.server.tables import Known
from checkstream.control.server.tally import Tally, summed
from checkstream.telemetry.drift import BINS, BOUNDS
from checkstream.telemetry.metrics import SPECS

_MINUTE_MS, _HOUR_MS = 60_000, 3_600_000
_WINDOW = 5
"""Minutes of one."""
_BASELINE_H = 24
_MIDDLES = tuple((low + high) / 2 for low, high in pairwise((0.0, *BOUNDS, 1.0)))
"""What a score in a bin is taken for."""
_CHECKS = next(spec.buckets for spec in SPECS if spec.name == "checkstream_check_seconds")
_CHECKS_MS = tuple(1000 * end for end in (*_CHECKS, math.inf))

Minutes = Sequence[tuple[int, Tally]]
"""Counts of one minute each, with its beginning in milliseconds."""


def facts_of(fleets: Mapping[str, Fleet], budget_ms: float, silent_s: float, session: Session, now_ms: int) -> Facts:
    """Return what is known of all fleets; part of a transaction.

    A node that was never heard of is one that nobody has started yet: it is shown with its fleet, and pages nobody.

    Args:
        fleets: As configured.
        budget_ms: What 95 % of checks may take.
        silent_s: A chain that has been behind for so long is silent.
        session: To read in.
        now_ms: The server's clock.
    """
    nodes: list[Node] = []
    routes: list[Traffic] = []
    scores: list[Scores] = []
    budgets: list[Budget] = []
    for name, fleet in fleets.items():
        known = tables.known_nodes(session, name)
        newest = tables.newest_rollout(session, name)
        of = partial(wanted, None if newest is None else newest[1], rings=fleet.rings)
        nodes += [
            _node(f"{name}/{node}", known[node], of(node), fleet.stale_s, now_ms)
            for node in fleet.nodes
            if node in known
        ]
        budgets += read_budgets(session, name, now_ms)
        counted = tables.minutes(session, name, now_ms - (_BASELINE_H + 2) * _HOUR_MS)
        if counted:
            routes.append(traffic_of(name, counted, budget_ms, now_ms))
            scores += scores_of(name, counted, now_ms)
    chains = tuple(_chains(session, {node for fleet in fleets.values() for node in fleet.nodes}, silent_s, now_ms))
    said = reviewed(session, now_ms)
    return Facts(
        nodes=tuple(nodes), traffic=tuple(routes), scores=tuple(scores), chains=chains, reviewed=said,
        budgets=tuple(budgets),
    )  # fmt: skip


def _node(subject: str, seen: Known, desired: Desired, stale_s: float, now_ms: int) -> Node:
    running = seen.attestation.running
    return Node(
        subject=subject,
        unheard_s=(now_ms - seen.heard_ms) / 1000,
        stale_s=stale_s,
        wanted=called(desired.bundle, desired.candidate),
        reported=called(running.bundle, None if running.candidate is None else running.candidate.wanted),
        refused=seen.refused,
    )


def traffic_of(subject: str, counted: Minutes, budget_ms: float, now_ms: int) -> Traffic:
    """Return a fleet's exchanges: those that were refused or stopped, by whole windows since the first, and checks."""
    end = now_ms // _MINUTE_MS  # the minute that has begun is not over
    first = end - min(minute // _MINUTE_MS for minute, _ in counted)
    windows = [0] * max(0, min(first // _WINDOW, _BASELINE_H * 60 // _WINDOW))
    latest: list[Tally] = []
    for minute, tally in counted:
        place = (end - 1 - minute // _MINUTE_MS) // _WINDOW
        if 0 <= place < len(windows):
            windows[place] += tally.refusals + tally.stops
        if place == 0:
            latest.append(tally)
    checks = summed(latest).times.get("check", ())
    bins = tuple(zip(_CHECKS_MS, checks, strict=False)) if len(checks) == len(_CHECKS_MS) else ()
    return Traffic(subject=subject, high_risk=tuple(windows[::-1]), decision_ms=bins, budget_ms=budget_ms)


def scores_of(subject: str, counted: Minutes, now_ms: int) -> Iterator[Scores]:
    """Yield what each classifier said in whole hours, the last of which ended not more than an hour ago."""
    end = now_ms // _HOUR_MS
    hours: list[list[Tally]] = [[] for _ in range(_BASELINE_H + 1)]
    for minute, tally in counted:
        place = end - 1 - minute // _HOUR_MS
        if 0 <= place < len(hours):
            hours[place].append(tally)
    said = [summed(hour).scores for hour in hours][::-1]
    for name in sorted({name for hour in said for name in hour}):
        yield Scores(subject=f"{subject}/{name}", hours=tuple(_hour(hour.get(name, ())) for hour in said))


def _hour(bins: Sequence[int]) -> ScoreHour:
    total = sum(bins)
    if len(bins) != BINS or not total:
        return ScoreHour(0, 0.0)
    return ScoreHour(total, math.fsum(count * middle for count, middle in zip(bins, _MIDDLES, strict=True)) / total)


def _chains(session: Session, nodes: set[str], silent_s: float, now_ms: int) -> Iterator[Chain]:
    for each in traffic.troubled(session, now_ms - int(silent_s * 1000)):
        if each.node in nodes:
            subject = f"{each.node}/{each.chain}" if each.chain else each.node
            yield Chain(subject=subject, broken=each.broken, silent_s=(now_ms - each.since_ms) / 1000)
