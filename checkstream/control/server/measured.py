"""Reads of the store what metrics tell."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from checkstream.config.control import Fleet
from checkstream.control.server import tables, traffic
from checkstream.control.server.alerting import troubles
from checkstream.control.server.database import Session
from checkstream.control.server.metrics import Standing
from checkstream.control.server.reviewing import last_week, weekly
from checkstream.control.server.showing import NodeShown, shown_node
from checkstream.control.server.tally import summed

_HOUR_MS = 3_600_000


def measured(fleets: Mapping[str, Fleet], silent_s: float, session: Session, now_ms: int) -> Standing:
    """Return what the store has; part of a transaction.

    Args:
        fleets: As configured.
        silent_s: A chain that has been behind for so long is silent.
        session: To read in.
        now_ms: The server's clock.
    """
    nodes: dict[str, list[NodeShown]] = {}
    stages: dict[str, str] = {}
    exchanges: dict[str, tuple[int, ...]] = {}
    for name, fleet in fleets.items():
        known, newest = tables.known_nodes(session, name), tables.newest_rollout(session, name)
        rollout = None if newest is None else newest[1]
        nodes[name] = [shown_node(node, known.get(node), rollout, fleet, now_ms) for node in fleet.nodes]
        stages[name] = "" if rollout is None else rollout.stage
        hour = summed(tally for _, tally in tables.minutes(session, name, now_ms - _HOUR_MS))
        exchanges[name] = (hour.exchanges, hour.refusals, hour.stops, hour.failures)
    return Standing(
        nodes=nodes,
        stages=stages,
        exchanges=exchanges,
        records=_number(session, "select count from totals where name = 'records'"),
        missing=_number(session, "select coalesce(sum(last - first + 1), 0) from gaps"),
        waiting_bytes=_number(session, "select coalesce(sum(waiting), 0) from senders"),
        chains=_chains(session, now_ms - int(silent_s * 1000)),
        faults=_number(session, "select count(*) from flaws"),
        troubles=Counter(each.finding.severity for each in troubles(session).values()),
        notices={
            "waiting": _number(session, "select count(*) from notices where tries = 0"),
            "failing": _number(session, "select count(*) from notices where tries > 0"),
        },
        reviews_waiting=_number(session, "select count(*) from review_items where settled = 0"),
        precision=weekly(session, now_ms),
        week=last_week(now_ms),
    )


def _chains(session: Session, before_ms: int) -> dict[str, int]:
    """Return how many chains stand how; a node that tells nothing of any is one that is silent."""
    found = traffic.troubled(session, before_ms)
    whole = _number(session, "select count(*) from chains") - sum(1 for each in found if each.chain)
    return {**Counter("broken" if each.broken else "silent" for each in found), "whole": whole}


def _number(session: Session, statement: str) -> int:
    return int(session.execute(statement)[0][0])
