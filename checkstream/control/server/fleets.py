"""What the control server does: hears nodes, tells them what to have, and shows how things stand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from checkstream.config.control import Fleet
from checkstream.control.attestation import Attestation, Desired, Offered
from checkstream.control.server import tables
from checkstream.control.server.allowed import objection
from checkstream.control.server.database import Database, Session
from checkstream.control.server.tables import Happened, Known
from checkstream.errors import ActConflicts, NodeRefused, ThingUnknown

_ATTESTED_MS = 3_600_000
"""So long behind an attestation a node may read bundles."""


class NodeShown(msgspec.Struct, frozen=True, kw_only=True):
    """How a node stands."""

    node: str
    desired: str
    """Digest of the bundle that it should have; empty: whichever it has."""
    reported: str
    """Digest of the one that it has in force."""
    version: str
    """What people call that."""
    drifted: bool
    """It has not what it should have."""
    stale: bool
    """It has not been heard of for `stale_s`, or never."""
    heard_s: float | None
    """How long ago it was heard of; null: never."""
    since_s: float | None
    """For how long it has said the same of what it has in force."""
    why: str
    """Why it has not what it should have, as far as somebody knows."""
    package: str = ""
    configuration: str = ""
    image: str = ""


class FleetShown(msgspec.Struct, frozen=True, kw_only=True):
    """How a fleet stands."""

    fleet: str
    bundle: str
    offered: tuple[Offered, ...]
    """The versions that nodes have said to be signed now, the newest first."""
    nodes: tuple[NodeShown, ...]


class Fleets:
    """All fleets of a control server."""

    def __init__(self, fleets: Mapping[str, Fleet], database: Database, now_ms: Callable[[], int]) -> None:
        """Look after `fleets`; `now_ms` is the server's clock."""
        self._fleets = fleets
        self._database = database
        self._now_ms = now_ms
        self._fleet_of = {node: name for name, fleet in fleets.items() for node in fleet.nodes}

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fleets."""
        return (*self._fleets,)

    def fleet(self, name: str) -> Fleet:
        """Return the settings of a fleet.

        Raises:
            ThingUnknown: there is none of this name.
        """
        if name not in self._fleets:
            raise ThingUnknown(f"there is no fleet `{name[:100]}`; known: {', '.join(self._fleets) or 'none'}")
        return self._fleets[name]

    async def attest(self, node: str, said: Attestation) -> Desired:
        """Hear a node, which has signed this, and tell it what to have.

        Raises:
            NodeRefused: it is not what its fleet allows.
            ActConflicts: it has said something newer already.
            ControlUnusable: the store can't be used.
        """
        now, name = self._now_ms(), self._fleet_of[node]

        def hear(session: Session) -> Desired | Exception:
            before = tables.known_node(session, node)
            why = objection(name, self._fleets[name].allow, tables.allowances(session, name), said)
            same = before is not None and before.attestation.running.bundle == said.running.bundle
            since_ms = before.since_ms if before is not None and same else now
            known = Known(node=node, heard_ms=now, since_ms=since_ms, refused=why, attestation=said)
            try:
                tables.keep_attestation(session, name, known)
            except ActConflicts as error:
                tables.note_event(
                    session, now, kind="attestation_replayed", fleet=name, node=node, reason="an old one was sent"
                )
                return error
            if why:
                tables.note_event(session, now, kind="node_refused", fleet=name, node=node, reason=why)
                return NodeRefused(why)
            return Desired()

        told = await self._database.transact(hear)  # what is refused is kept, so nothing is raised in there
        if isinstance(told, Exception):
            raise told
        return told

    async def admit(self, node: str) -> None:
        """Let a node read bundles.

        Raises:
            NodeRefused: it has not attested lately, or is not what its fleet allows.
            ControlUnusable: the store can't be used.
        """
        known = await self._database.transact(lambda session: tables.known_node(session, node))
        if known is None or self._now_ms() - known.heard_ms > _ATTESTED_MS:
            raise NodeRefused(f"the node `{node}` has not attested lately; bundles are for nodes that have")
        if known.refused:
            raise NodeRefused(known.refused)

    async def shown(self, name: str) -> FleetShown:
        """Return how a fleet stands.

        Raises:
            ThingUnknown: there is none of this name.
            ControlUnusable: the store can't be used.
        """
        fleet, now = self.fleet(name), self._now_ms()
        known = await self._database.transact(lambda session: tables.known_nodes(session, name))
        nodes = (_shown(node, known.get(node), now, fleet.stale_s) for node in fleet.nodes)
        return FleetShown(fleet=name, bundle=fleet.bundle, offered=offered_by(known.values()), nodes=tuple(nodes))

    async def events(self, fleet: str, before: int, most: int) -> list[Happened]:
        """Return what has happened, the newest first.

        Raises:
            ThingUnknown: there is no such fleet.
            ControlUnusable: the store can't be used.
        """
        if fleet:
            self.fleet(fleet)
        return await self._database.transact(
            lambda session: tables.events(session, fleet=fleet, before=before, most=most)
        )


def offered_by(known: Iterable[Known]) -> tuple[Offered, ...]:
    """Return the versions that may be had, as the node says that was heard of last among those that are allowed."""
    latest = max((each for each in known if not each.refused), key=lambda each: each.heard_ms, default=None)
    return () if latest is None else latest.attestation.offered


def _shown(node: str, known: Known | None, now_ms: int, stale_s: int) -> NodeShown:
    if known is None:
        why = "it has never been heard of"
        return NodeShown(
            node=node,
            desired="",
            reported="",
            version="",
            drifted=False,
            stale=True,
            heard_s=None,
            since_s=None,
            why=why,
        )
    said, heard_s = known.attestation, (now_ms - known.heard_ms) / 1000
    return NodeShown(
        node=node,
        desired="",
        reported=said.running.bundle,
        version=said.running.bundle_version,
        drifted=False,
        stale=heard_s > stale_s,
        heard_s=heard_s,
        since_s=(now_ms - known.since_ms) / 1000,
        why=known.refused or said.error,
        package=said.package,
        configuration=said.running.configuration,
        image=said.image,
    )
