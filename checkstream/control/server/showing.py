"""How fleets are shown to people. Pure: of what is known to what is told."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from checkstream.config.control import Fleet
from checkstream.control.attestation import Candidate, Offered
from checkstream.control.server.rollout import Rollout, reached, ring_of, share_of, wanted
from checkstream.control.server.tables import Known

_ONE_IN = 5
"""Nodes, of which one may fall silent."""


class RolloutShown(msgspec.Struct, frozen=True, kw_only=True):
    """How a rollout stands."""

    id: int
    fleet: str
    digest: str
    version: str
    before: str
    before_version: str
    stage: str
    """`proposed`, `running`, `done` or `rolled_back`."""
    ring: str
    """The ring that it has come to; empty: none."""
    rings: tuple[str, ...]
    asked_by: str
    approved_by: str
    soaked_s: float
    soak_s: int = 0
    """How long the ring that it has come to is watched."""
    reason: str = ""
    """Why it was asked for."""
    asked_ms: int = 0
    """When, by the server's clock; 0: nobody has kept it."""
    begun_ms: int = 0
    """When it began; 0: it has not."""
    why: str
    """What it waits for, or why it was taken back."""
    callers: int | None = None
    """Percent of the callers on each node that it has come to; null: it goes round by nodes, or is over."""


class NodeShown(msgspec.Struct, frozen=True, kw_only=True):
    """How a node stands."""

    node: str
    ring: str
    desired: str
    """Digest of the bundle that it should have in force; empty: whichever it has."""
    reported: str
    """Digest of the one that it has in force."""
    version: str
    """What people call that."""
    drifted: bool
    """It has not what it should have."""
    refused: bool
    """It is not what its fleet allows, and is given no bundle."""
    stale: bool
    """It has not been heard of for `stale_s`, or never."""
    heard_s: float | None
    """How long ago it was heard of; null: never."""
    since_s: float | None
    """For how long it has said the same of what it has in force."""
    why: str
    """Why it has not what it should have, as far as somebody knows."""
    checkstream: str = ""
    """Version of its package."""
    package: str = ""
    configuration: str = ""
    image: str = ""
    models: dict[str, str] = {}
    """Model -> SHA-256 of what its files are."""
    error: str = ""
    """What it says that went wrong last."""
    desired_candidate: Candidate | None = None
    """The bundle that it should have in force for a share of its callers."""
    candidate: Candidate | None = None
    """The one that it has in force for a share of them."""


class FleetShown(msgspec.Struct, frozen=True, kw_only=True):
    """How a fleet stands."""

    fleet: str
    bundle: str
    offered: tuple[Offered, ...]
    """The versions that nodes have said to be signed now, the newest first."""
    allowed: dict[str, tuple[str, ...]]
    """`package`, `configuration`, `image` -> what people have added to the list in the file."""
    listed: dict[str, tuple[str, ...] | Literal["any"]] = {}
    """The same -> the list in the file."""
    rollout: RolloutShown | None
    """The newest."""
    nodes: tuple[NodeShown, ...]


def shown_rollout(number: int, rollout: Rollout, fleet: Fleet) -> RolloutShown:
    """Return how a rollout is shown."""
    names = tuple(ring.name for ring in fleet.rings)
    return RolloutShown(
        id=number,
        fleet=rollout.fleet,
        digest=rollout.digest,
        version=rollout.version,
        before=rollout.before,
        before_version=rollout.before_version,
        stage=rollout.stage,
        ring=names[rollout.ring] if 0 <= rollout.ring < len(names) else "",
        rings=names,
        asked_by=rollout.asked_by,
        approved_by=rollout.approved_by,
        soaked_s=rollout.soaked_ms / 1000,
        soak_s=fleet.rings[rollout.ring].soak_s if 0 <= rollout.ring < len(names) else 0,
        reason=rollout.reason,
        asked_ms=rollout.asked_ms,
        begun_ms=rollout.begun_ms,
        why=rollout.why,
        callers=share_of(rollout, fleet.rings),
    )


def offered_by(known: Iterable[Known]) -> tuple[Offered, ...]:
    """Return the versions that may be had, as most nodes say that are allowed: one that errs or lies is outvoted."""
    said: dict[tuple[Offered, ...], tuple[int, int]] = {}
    for each in known:
        if each.attestation.offered and not each.refused:
            count, heard_ms = said.get(each.attestation.offered, (0, 0))
            said[each.attestation.offered] = count + 1, max(heard_ms, each.heard_ms)
    return max(said, key=lambda offered: said[offered], default=())


def called(bundle: str, candidate: Candidate | None) -> str:
    """Return how people see what a node has, or should have; empty: nothing."""
    beside = "" if candidate is None else f" and {candidate.bundle[:12]} for {candidate.share} % of callers"
    return f"{bundle[:12]}{beside}"


def is_stale(known: Known | None, now_ms: int, fleet: Fleet) -> bool:
    """Tell whether nothing has been heard of a node for too long."""
    return known is None or now_ms - known.heard_ms > fleet.stale_s * 1000


def missing(rollout: Rollout, fleet: Fleet, known: Mapping[str, Known], now_ms: int) -> tuple[dict[str, str], int]:
    """Return which nodes that should have a new bundle haven't it in force, and why; and how many should have it.

    Those that were stale before it began are left out: they get it when they come back. Those that have fallen silent
    since are missing if they are more than one in five: one may be switched off, but a bundle that ends processes is
    seen by nothing else.
    """
    found: dict[str, str] = {}
    silent: dict[str, str] = {}
    present = 0
    for node in fleet.nodes:
        each = known.get(node)
        if each is None or not reached(rollout, node, fleet.rings):
            continue
        if is_stale(each, now_ms, fleet):
            if each.heard_ms >= rollout.begun_ms:
                silent[node] = f"it has fallen silent, {(now_ms - each.heard_ms) // 1000} s ago"
            continue
        present += 1
        if not each.attestation.running.has(wanted(rollout, node, fleet.rings)):
            found[node] = each.refused or each.attestation.error
    if len(silent) * _ONE_IN > len(silent) + present:
        return {**found, **silent}, present + len(silent)
    return found, present


def shown_node(node: str, known: Known | None, rollout: Rollout | None, fleet: Fleet, now_ms: int) -> NodeShown:
    """Return how a node is shown."""
    desired = wanted(rollout, node, fleet.rings)
    ring = fleet.rings[ring_of(node, fleet.rings)].name
    if known is None:
        return NodeShown(
            node=node,
            ring=ring,
            desired=desired.bundle,
            reported="",
            version="",
            drifted=bool(desired.bundle),
            refused=False,
            stale=True,
            heard_s=None,
            since_s=None,
            why="it has never been heard of",
            desired_candidate=desired.candidate,
        )
    said = known.attestation
    drifted = not said.running.has(desired)
    stale = is_stale(known, now_ms, fleet)
    why = known.refused or said.error or ("it has not taken it yet" if drifted else "")
    return NodeShown(
        node=node,
        ring=ring,
        desired=desired.bundle,
        reported=said.running.bundle,
        version=said.running.bundle_version,
        drifted=drifted,
        refused=bool(known.refused),
        stale=stale,
        heard_s=(now_ms - known.heard_ms) / 1000,
        since_s=(now_ms - known.since_ms) / 1000,
        why="it has not been heard of lately" if stale and not why else why,
        checkstream=said.version,
        package=said.package,
        configuration=said.running.configuration,
        image=said.image,
        models=said.running.models,
        error=said.error,
        desired_candidate=desired.candidate,
        candidate=None if said.running.candidate is None else said.running.candidate.wanted,
    )
