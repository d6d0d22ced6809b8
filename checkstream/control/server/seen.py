"""What alerts look at, as the control server's tables have it."""

from __future__ import annotations

from collections.abc import Mapping

from checkstream.config.control import Fleet
from checkstream.control.alerts.facts import Facts, Node
from checkstream.control.server import tables
from checkstream.control.server.database import Session
from checkstream.control.server.rollout import wanted


def facts_of(fleets: Mapping[str, Fleet], session: Session, now_ms: int) -> Facts:
    """Return what is known of all fleets; part of a transaction.

    A node that was never heard of is one that nobody has started yet: it is shown with its fleet, and pages nobody.
    """
    nodes: list[Node] = []
    for name, fleet in fleets.items():
        known, newest = tables.known_nodes(session, name), tables.newest_rollout(session, name)
        for node in fleet.nodes:
            if node in known:
                seen = known[node]
                desired, _ = wanted(None if newest is None else newest[1], node, fleet.rings)
                nodes.append(
                    Node(
                        subject=f"{name}/{node}",
                        unheard_s=(now_ms - seen.heard_ms) / 1000,
                        stale_s=fleet.stale_s,
                        wanted=desired[:12],
                        reported=seen.attestation.running.bundle[:12],
                        refused=seen.refused,
                    )
                )
    return Facts(nodes=tuple(nodes))
