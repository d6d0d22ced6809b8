"""How a new bundle goes round: a state, and what moves it. Pure: no clock, no store.

    proposed ──approve──► running ──tick, promote──► done
        │                    │                        │
        └──────rollback──────┴────────rollback────────┴──► rolled_back

A running rollout has come to a ring: its nodes, and those of the rings before, are to have the new bundle, all others
the one before. It goes on to the next ring when the nodes have it in force and have been watched for `soak_s`; it is
taken back when they do worse than under the bundle before, or don't have it in time. Time is what passes while somebody
watches: hours in which the server was down are no soak, and a clock that jumps is no hour.

A ring of callers is of all nodes: each is to have the new bundle as a candidate beside the one before, for a share of
its callers. INVARIANT: shares grow from ring to ring, and no node is told of a candidate without a base; a first bundle
has none, and comes to all callers at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from checkstream.config.control import Health, Ring
from checkstream.control.attestation import Candidate, Desired
from checkstream.control.server.judging import Compared, Judged

Stage = Literal["proposed", "running", "done", "rolled_back"]
_LONGEST_MS = 10_000
"""Of the time between two looks that counts."""


class Rollout(msgspec.Struct, frozen=True, kw_only=True):
    """One rollout of one fleet."""

    fleet: str
    digest: str
    """Of the new bundle."""
    version: str
    before: str
    """Digest of the bundle that is gone back to; empty: there was none."""
    before_version: str
    stage: Stage = "proposed"
    ring: int = -1
    """Place of the ring that it has come to; -1: of none."""
    asked_by: str
    reason: str = ""
    """Why, as they said."""
    asked_ms: int = 0
    """When, by the server's clock."""
    approved_by: str = ""
    begun_ms: int = 0
    """Since when counts are compared, by the server's clock."""
    salt: str = ""
    """Of the hash that chooses callers."""
    ticked_ms: int = 0
    """The last look, by the same."""
    waited_ms: int = 0
    """For how long nodes of this ring have not had it in force."""
    soaked_ms: int = 0
    """For how long all of them have."""
    why: str = ""
    """What it waits for, or why it was taken back."""
    compared: Compared | None = None
    """What nodes did under it, beside what they did before, when it ended; None: it runs, or never began."""

    @property
    def open(self) -> bool:
        """It is not over."""
        return self.stage in {"proposed", "running"}


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """What a look has come to."""

    now_ms: int
    """The server's clock."""
    missing: Mapping[str, str]
    """Node that should have the new bundle, is not stale, and hasn't it in force -> why, if that is known."""
    present: int
    """Nodes that should have it and are not stale."""
    judged: Judged


def ring_of(node: str, rings: Sequence[Ring]) -> int:
    """Return the place of the first ring that has a node; the last has all."""
    number = int.from_bytes(hashlib.sha256(node.encode()).digest()[:8], "big") % 10_000
    for place, ring in enumerate(rings):
        if node in ring.nodes or number < ring.percent * 100:
            return place
    return len(rings) - 1


def by_callers(rings: Sequence[Ring]) -> bool:
    """Tell whether a fleet's new bundles go round by callers."""
    return any(ring.callers is not None for ring in rings)


def share_of(rollout: Rollout, rings: Sequence[Ring]) -> int | None:
    """Return how many percent of callers a rollout has come to; None: it has come to nodes, or to nothing."""
    if rollout.stage != "running" or rollout.ring < 0 or not rollout.before:
        return None
    return rings[min(rollout.ring, len(rings) - 1)].callers  # there may be fewer since the server was started anew


def wanted(rollout: Rollout | None, node: str, rings: Sequence[Ring]) -> Desired:
    """Return what a node is to have."""
    if rollout is None:
        return Desired()
    if rollout.stage == "done":
        return Desired(bundle=rollout.digest, version=rollout.version)
    share = share_of(rollout, rings)
    if share is not None:
        candidate = Candidate(bundle=rollout.digest, version=rollout.version, share=share, salt=rollout.salt)
        return Desired(bundle=rollout.before, version=rollout.before_version, candidate=candidate)
    if rollout.stage == "running" and ring_of(node, rings) <= rollout.ring:
        return Desired(bundle=rollout.digest, version=rollout.version)
    return Desired(bundle=rollout.before, version=rollout.before_version)


def reached(rollout: Rollout, node: str, rings: Sequence[Ring]) -> bool:
    """Tell whether a node is to have the new bundle, for whichever callers."""
    return share_of(rollout, rings) is not None or ring_of(node, rings) <= rollout.ring


def approved(rollout: Rollout, by: str, now_ms: int, nodes: Iterable[str], rings: Sequence[Ring]) -> Rollout:
    """Begin a rollout that was proposed."""
    begun = msgspec.structs.replace(rollout, stage="running", approved_by=by, begun_ms=now_ms, ticked_ms=now_ms)
    return _onward(begun, nodes, rings)


def promoted(rollout: Rollout, nodes: Iterable[str], rings: Sequence[Ring]) -> Rollout:
    """Go on to the next ring at once."""
    return _onward(rollout, nodes, rings)


def rolled_back(rollout: Rollout, why: str) -> Rollout:
    """Take a rollout back."""
    if rollout.stage != "proposed" and not rollout.before:
        why += "; there was no bundle before this one, so nodes that have it keep it"
    return msgspec.structs.replace(rollout, stage="rolled_back", why=why)


def _onward(rollout: Rollout, nodes: Iterable[str], rings: Sequence[Ring]) -> Rollout:
    """Come to the next ring that has nodes; behind the last, be done."""
    taken = {ring_of(node, rings) for node in nodes}
    if taken and rollout.before:
        taken |= {place for place, ring in enumerate(rings) if ring.callers is not None}
    following = next((place for place in range(rollout.ring + 1, len(rings)) if place in taken), None)
    if following is None:
        return msgspec.structs.replace(rollout, stage="done", ring=len(rings) - 1, why="")
    return msgspec.structs.replace(rollout, ring=following, waited_ms=0, soaked_ms=0, why="")


def ticked(rollout: Rollout, seen: Seen, nodes: Collection[str], rings: Sequence[Ring], health: Health) -> Rollout:
    """Look at a rollout that runs; one that doesn't stays as it is."""
    if rollout.stage != "running":
        return rollout
    elapsed = min(max(seen.now_ms - rollout.ticked_ms, 0), _LONGEST_MS)
    ring = min(rollout.ring, len(rings) - 1)  # there may be fewer since the server was started anew
    now = msgspec.structs.replace(rollout, ticked_ms=seen.now_ms, ring=ring)
    if seen.judged.worse:
        return rolled_back(now, seen.judged.worse)
    if seen.missing or not seen.present:
        return _waiting(now, elapsed, seen, health)
    soaked_ms = now.soaked_ms + elapsed
    now = msgspec.structs.replace(now, soaked_ms=soaked_ms, why="")
    soak_ms = rings[now.ring].soak_s * 1000
    if soaked_ms < soak_ms:
        why = f"ring `{rings[now.ring].name}` is watched for {(soak_ms - soaked_ms + 999) // 1000} s more"
        return msgspec.structs.replace(now, why=why)
    if now.before and not seen.judged.enough and health.quiet == "wait":
        why = f"fewer than {health.exchanges} exchanges, under this bundle or the one before, are too few; promote it"
        return msgspec.structs.replace(now, why=why)
    return _onward(now, nodes, rings)


def _waiting(rollout: Rollout, elapsed: int, seen: Seen, health: Health) -> Rollout:
    waited_ms = rollout.waited_ms + elapsed
    if not seen.present:  # nobody who could say what is wrong with it
        return msgspec.structs.replace(rollout, why="no node of this ring has been heard of lately")
    node, known = next(iter(seen.missing.items()))
    why = f"{len(seen.missing)} of {seen.present} nodes have it not in force yet, `{node}` among them"
    why += f": {known}" if known else ""
    if waited_ms > health.reach_s * 1000:
        return rolled_back(rollout, f"after {health.reach_s} s {why}")
    return msgspec.structs.replace(rollout, waited_ms=waited_ms, why=why)
