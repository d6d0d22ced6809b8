"""What the control server hears and shows: nodes say what they are and are told what to have; how fleets stand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from checkstream.config.control import Fleet
from checkstream.control.attestation import Attestation, Desired
from checkstream.control.server import tables
from checkstream.control.server.allowed import KINDS, listed, objection
from checkstream.control.server.database import Database, Session
from checkstream.control.server.once import Once
from checkstream.control.server.rollout import wanted
from checkstream.control.server.showing import FleetShown, RolloutShown, offered_by, shown_node, shown_rollout
from checkstream.control.server.tables import Happened, Known
from checkstream.control.server.tally import counted_since
from checkstream.errors import ActConflicts, ControlError, NodeRefused, ThingUnknown

_ATTESTED_MS = 3_600_000
"""So long behind an attestation a node may read bundles."""


def named_fleet(fleets: Mapping[str, Fleet], name: str) -> Fleet:
    """Return the settings of a fleet.

    Raises:
        ThingUnknown: there is none of this name.
    """
    if name not in fleets:
        raise ThingUnknown(f"there is no fleet `{name[:100]}`; known: {', '.join(fleets) or 'none'}")
    return fleets[name]


def _has_still(before: Attestation, now: Attestation) -> bool:
    """Tell whether a node says the same of what it has in force as it did before."""
    one, other = (None if each.running.candidate is None else each.running.candidate.wanted for each in (before, now))
    return before.running.bundle == now.running.bundle and one == other


class Fleets:
    """All fleets of a control server."""

    def __init__(self, fleets: Mapping[str, Fleet], database: Database, now_ms: Callable[[], int]) -> None:
        """Look after `fleets`; `now_ms` is the server's clock."""
        self._fleets = fleets
        self._database = database
        self._now_ms = now_ms
        self._once = Once()
        self._fleet_of = {node: name for name, fleet in fleets.items() for node in fleet.nodes}

    # --- nodes

    async def attest(self, node: str, said: Attestation) -> Desired:
        """Hear a node, which has signed this, and tell it what to have.

        Raises:
            NodeRefused: it is not what its fleet allows.
            ActConflicts: it has said something newer already.
            ControlUnusable: the store can't be used.
        """
        now, name = self._now_ms(), self._fleet_of[node]

        def hear(session: Session, said: Attestation = said) -> Desired | ControlError:
            before = tables.known_node(session, node)
            why = objection(name, self._fleets[name].allow, tables.allowances(session, name), said)
            since_ms = before.since_ms if before is not None and _has_still(before.attestation, said) else now
            if before is not None and not said.offered:  # it has begun anew, and has not looked yet
                said = replace(said, offered=before.attestation.offered)
            known = Known(node=node, heard_ms=now, since_ms=since_ms, refused=why, attestation=said)
            try:
                tables.keep_attestation(session, name, known)
            except ActConflicts as error:
                reason = "an old one was sent"
                tables.note_event(session, now, kind="attestation_replayed", fleet=name, node=node, reason=reason)
                return error
            for digest, counted in counted_since(None if before is None else before.attestation.running, said.running):
                tables.add_counts(session, name, digest, now, counted)
            if why:
                tables.note_event(session, now, kind="node_refused", fleet=name, node=node, reason=why)
                return NodeRefused(why)
            newest = tables.newest_rollout(session, name)
            return wanted(None if newest is None else newest[1], node, self._fleets[name].rings)

        told = await self._database.transact(hear)  # what is refused is kept, so nothing is raised in there
        if isinstance(told, ControlError):
            raise told
        return told

    async def admit(self, node: str, once: str) -> None:
        """Let a node read bundles, by a request that is known by `once`.

        Raises:
            NodeRefused: it has not attested lately, is not what its fleet allows, or has asked this before.
            ControlUnusable: the store can't be used.
        """
        # among what is written: a node does not wait behind a page that somebody looks at
        known = await self._database.transact(lambda session: tables.known_node(session, node))
        if known is None or self._now_ms() - known.heard_ms > _ATTESTED_MS:
            raise NodeRefused(f"the node `{node}` has not attested lately; bundles are for nodes that have")
        if known.refused:
            raise NodeRefused(known.refused)
        if not self._once.takes(node, once, known.attestation.sequence):
            raise NodeRefused(
                f"this was asked before, or is not of the newest attestation of `{node}`; attest, and ask anew"
            )

    # --- what is shown

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fleets."""
        return (*self._fleets,)

    @property
    def nodes(self) -> dict[str, tuple[str, ...]]:
        """Fleet -> its nodes."""
        return {name: (*fleet.nodes,) for name, fleet in self._fleets.items()}

    async def shown(self, name: str) -> FleetShown:
        """Return how a fleet stands.

        Raises:
            ThingUnknown: there is none of this name.
            ControlUnusable: the store can't be used.
        """
        fleet = named_fleet(self._fleets, name)

        def look(session: Session) -> FleetShown:
            now = self._now_ms()
            known = tables.known_nodes(session, name)
            newest = tables.newest_rollout(session, name)
            added = tables.allowances(session, name)
            state = None if newest is None else newest[1]
            return FleetShown(
                fleet=name,
                bundle=fleet.bundle,
                offered=offered_by(known.values()),
                allowed={kind: tuple(sorted(added.get(kind, ()))) for kind in KINDS},
                listed={kind: listed(fleet.allow, kind) for kind in KINDS},
                rollout=None if newest is None else shown_rollout(*newest, fleet),
                nodes=tuple(shown_node(node, known.get(node), state, fleet, now) for node in fleet.nodes),
            )

        return await self._database.ask(look)

    async def rollouts(self, name: str, most: int) -> list[RolloutShown]:
        """Return the rollouts of a fleet, the newest first.

        Raises:
            ThingUnknown: there is none of this name.
            ControlUnusable: the store can't be used.
        """
        fleet = named_fleet(self._fleets, name)
        found = await self._database.ask(lambda session: tables.rollouts(session, name, most))
        return [shown_rollout(number, each, fleet) for number, each in found]

    async def events(self, fleet: str, before: int, most: int, kinds: Sequence[str] = ()) -> list[Happened]:
        """Return what has happened, the newest first; of some kinds, or of all.

        Raises:
            ThingUnknown: there is no such fleet.
            ControlUnusable: the store can't be used.
        """
        if fleet:
            named_fleet(self._fleets, fleet)
        return await self._database.ask(
            lambda session: tables.events(session, fleet=fleet, before=before, most=most, kinds=kinds)
        )
