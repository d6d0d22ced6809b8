"""What people do at the control server, and what it does by itself: rollouts, and the lists of what nodes may be.

INVARIANT: an act stands in the audit chain, on disk, before it counts; what is done to the store for it is done whole.
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Mapping

from msgspec.structs import replace

from checkstream.audit.entries import ActEntry
from checkstream.audit.journal import Journal
from checkstream.config.control import Fleet
from checkstream.control.attestation import Offered
from checkstream.control.server import rollout as moves
from checkstream.control.server import tables
from checkstream.control.server.allowed import Kind
from checkstream.control.server.database import Database, Session
from checkstream.control.server.fleets import named_fleet
from checkstream.control.server.judging import Compared, compared, judged
from checkstream.control.server.people import Act, Asker, require_other
from checkstream.control.server.rollout import Rollout, Seen, by_callers
from checkstream.control.server.showing import RolloutShown, missing, offered_by, shown_rollout
from checkstream.control.server.sums import Sums
from checkstream.control.server.tables import Known
from checkstream.control.server.tally import Tally
from checkstream.errors import ActConflicts, AuditError, ControlUnusable, ThingUnknown

_BASELINE_MS = 3_600_000
"""So long before a rollout counts under the bundle before begin, where nodes get it one after the other: where callers
do, both bundles answer at the same time on the same nodes, and what was before says less."""
SERVER = "control"
"""Who has acted where nobody has: the server itself."""


_NONE = Offered(digest="", version="")
"""No bundle."""


class Acts:
    """Carries out what is asked."""

    def __init__(
        self, fleets: Mapping[str, Fleet], database: Database, journal: Journal, now_ms: Callable[[], int]
    ) -> None:
        """Act on `fleets`; `now_ms` is the server's clock."""
        self._fleets = fleets
        self._database = database
        self._journal = journal
        self._now_ms = now_ms
        self._sums = Sums()

    # --- what people do

    async def propose(self, who: Asker, name: str, version: str, reason: str) -> RolloutShown:
        """Ask for a rollout; it begins when somebody else has approved of it.

        Args:
            who: Asks.
            name: Of the fleet.
            version: What people call the bundle, or a beginning of its digest.
            reason: For the record.

        Raises:
            ThingUnknown: there is no such fleet, or no such version.
            ActConflicts: another rollout is open, or it is there already.
            ControlUnusable: the store or the chain can't be used.
        """
        fleet = named_fleet(self._fleets, name)

        def do(session: Session) -> RolloutShown:
            known = tables.known_nodes(session, name)
            offered = offered_by(known.values())
            wanted = _named(version, offered)
            newest = tables.newest_rollout(session, name)
            if newest is not None and newest[1].open:
                raise ActConflicts(
                    f"rollout {newest[0]} of `{newest[1].version}` is {newest[1].stage}; end it first, or roll it back"
                )
            before = _settled(None if newest is None else newest[1], known)
            if newest is not None and _settled(newest[1], {}).digest == wanted.digest:
                raise ActConflicts(f"`{wanted.version}` is what fleet `{name}` is to have already")
            if before.digest == wanted.digest:
                before = _NONE
            waits = "it waits for the approval of a risk officer who has not asked for it"
            if before.digest and before.digest not in {each.digest for each in offered}:
                waits += f"; `{before.version}` is not signed any more, so nodes could not be taken back to it"
            rollout = Rollout(
                fleet=name,
                digest=wanted.digest,
                version=wanted.version,
                before=before.digest,
                before_version=before.version,
                salt=secrets.token_hex(8),
                asked_by=who.name,
                reason=reason,
                asked_ms=self._now_ms(),
                why=waits,
            )
            self._record(who, "rollout", rollout, reason)
            return shown_rollout(tables.add_rollout(session, rollout, rollout.asked_ms), rollout, fleet)

        return await self._database.transact(do)

    async def approve(self, who: Asker, number: int, reason: str) -> RolloutShown:
        """Approve of a rollout, which begins.

        Raises:
            ThingUnknown: there is none of this number.
            ActForbidden: who approves has asked for it.
            ActConflicts: it is not waiting for that.
            ControlUnusable: the store or the chain can't be used.
        """

        def move(rollout: Rollout, fleet: Fleet) -> Rollout:
            require_other(rollout.asked_by, who.name)
            if rollout.stage != "proposed":
                raise ActConflicts(f"rollout {number} is {rollout.stage}, and waits for no approval")
            return moves.approved(rollout, who.name, self._now_ms(), fleet.nodes, fleet.rings)

        return await self._moved(who, "approve", number, reason, move)

    async def promote(self, who: Asker, number: int, reason: str) -> RolloutShown:
        """Have a rollout go on to the next ring at once.

        Raises:
            ThingUnknown: there is none of this number.
            ActConflicts: it doesn't run.
            ControlUnusable: the store or the chain can't be used.
        """

        def move(rollout: Rollout, fleet: Fleet) -> Rollout:
            if rollout.stage != "running":
                raise ActConflicts(f"rollout {number} is {rollout.stage}; only one that runs can be promoted")
            return moves.promoted(rollout, fleet.nodes, fleet.rings)

        return await self._moved(who, "promote", number, reason, move)

    async def roll_back(self, who: Asker, number: int, reason: str) -> RolloutShown:
        """Take a rollout back.

        Raises:
            ThingUnknown: there is none of this number.
            ActConflicts: it has been, or is not the newest of its fleet.
            ControlUnusable: the store or the chain can't be used.
        """

        def move(rollout: Rollout, _: Fleet) -> Rollout:
            if rollout.stage == "rolled_back":
                raise ActConflicts(f"rollout {number} is rolled back already: {rollout.why}")
            return moves.rolled_back(rollout, f"{who.name}: {reason}" if reason else f"by {who.name}")

        return await self._moved(who, "rollback", number, reason, move)

    async def _moved(
        self, who: Asker, act: Act, number: int, reason: str, move: Callable[[Rollout, Fleet], Rollout]
    ) -> RolloutShown:
        def do(session: Session) -> RolloutShown:
            rollout = tables.rollout_of(session, number)
            fleet = named_fleet(self._fleets, rollout.fleet)
            newest = tables.newest_rollout(session, rollout.fleet)
            if newest is not None and newest[0] != number:
                raise ActConflicts(f"rollout {number} is over: {newest[0]} has come since")
            moved = self._with_counts(session, rollout, move(rollout, fleet), fleet)
            self._record(who, act, moved, reason)
            tables.keep_rollout(session, number, moved)
            if moved.stage == "rolled_back":
                tables.note_event(
                    session,
                    self._now_ms(),
                    kind="rolled_back",
                    fleet=moved.fleet,
                    reason=f"{moved.version}: {moved.why}",
                )
            return shown_rollout(number, moved, fleet)

        return await self._database.transact(do)

    async def allow(self, who: Asker, name: str, kind: Kind, value: str, reason: str, *, allowed: bool) -> None:
        """Add to a list of a fleet, or take from it what was added.

        Raises:
            ThingUnknown: there is no such fleet, or nothing to take away.
            ControlUnusable: the store or the chain can't be used.
        """
        named_fleet(self._fleets, name)
        act: Act = "allow" if allowed else "disallow"

        def do(session: Session) -> None:
            if not allowed and not tables.disallow(session, name, kind, value):
                raise ThingUnknown(
                    f"nobody has added the {kind} `{value[:100]}` to the list of `{name}`; what stands in the control "
                    "server's file is taken away there"
                )
            self.record(
                ActEntry(
                    who=who.name,
                    role=who.role,
                    act=act,
                    fleet=name,
                    subject=value,
                    reason=reason,
                    detail={"kind": kind},
                )
            )
            if allowed:
                tables.allow(session, name, kind, value, who=who.name, now_ms=self._now_ms())

        await self._database.transact(do)

    # --- the server itself

    async def tick(self) -> None:
        """Look at every rollout that runs.

        Raises:
            ControlUnusable: the store or the chain can't be used.
        """
        await self._database.transact(self._tick)

    def _tick(self, session: Session) -> None:
        for name in tables.running_fleets(session):
            fleet, newest = self._fleets.get(name), tables.newest_rollout(session, name)
            if fleet is None or newest is None:  # of a fleet that the file doesn't name any more
                continue
            number, rollout = newest
            now = self._now_ms()
            lacking, present = missing(rollout, fleet, tables.known_nodes(session, name), now)
            new, old = self._counted(session, rollout, fleet)
            seen = Seen(now_ms=now, missing=lacking, present=present, judged=judged(fleet.health, new, old))
            ticked = moves.ticked(rollout, seen, fleet.nodes, fleet.rings, fleet.health)
            moved = self._with_counts(session, rollout, ticked, fleet)
            if (moved.stage, moved.ring) != (rollout.stage, rollout.ring):
                act = "rollback" if moved.stage == "rolled_back" else "advance"
                self._record(None, act, moved, moved.why)
                kind = "rolled_back" if moved.stage == "rolled_back" else "rollout_advanced"
                reached = moved.why if moved.stage == "rolled_back" else _reached(moved, fleet)
                tables.note_event(session, now, kind=kind, fleet=name, reason=f"{moved.version}: {reached}")
            tables.keep_rollout(session, number, moved)
        self._sums.round_over()

    def _counted(self, session: Session, rollout: Rollout, fleet: Fleet) -> tuple[Tally, Tally]:
        """Return what nodes have counted under the new bundle, and under the one before."""
        now = self._now_ms()
        since_ms = rollout.begun_ms if by_callers(fleet.rings) else rollout.begun_ms - _BASELINE_MS
        new = self._sums.rates(session, rollout.fleet, rollout.digest, rollout.begun_ms, now)
        return new, self._sums.rates(session, rollout.fleet, rollout.before, since_ms, now)

    def _with_counts(self, session: Session, before: Rollout, moved: Rollout, fleet: Fleet) -> Rollout:
        """Return a rollout with what it had come to, if it has just ended."""
        if before.stage != "running" or moved.stage == "running":
            return moved
        return replace(moved, compared=compared(fleet.health, *self._counted(session, before, fleet)))

    async def compared(self, name: str) -> Compared | None:
        """Return what nodes do under a fleet's newest bundle beside what they did before, or did until it ended.

        None: there has been no rollout, or it has not begun.

        Raises:
            ThingUnknown: there is no such fleet.
            ControlUnusable: the store can't be used.
        """
        fleet = named_fleet(self._fleets, name)

        def look(session: Session) -> Compared | None:
            newest = tables.newest_rollout(session, name)
            if newest is None or newest[1].stage != "running":
                return None if newest is None else newest[1].compared
            return compared(fleet.health, *self._counted(session, newest[1], fleet))

        return await self._database.transact(look)

    def _record(self, who: Asker | None, act: str, rollout: Rollout, reason: str) -> None:
        detail = {
            "version": rollout.version,
            "before": rollout.before,
            "stage": rollout.stage,
            "ring": str(rollout.ring),
        }
        self.record(
            ActEntry(
                who=SERVER if who is None else who.name,
                role="" if who is None else who.role,
                act=act,
                fleet=rollout.fleet,
                subject=rollout.digest,
                reason=reason,
                detail=detail,
            )
        )

    def record(self, entry: ActEntry) -> None:
        """Put an act on record, and wait until it is on disk. Blocks: for the store's thread.

        Raises:
            ControlUnusable: the chain can't be written.
        """
        try:
            self._journal.append(entry)
            self._journal.settle()
        except AuditError as error:
            raise ControlUnusable(f"what is done can't be put on record: {error}") from error


def _reached(rollout: Rollout, fleet: Fleet) -> str:
    return "it is done" if rollout.stage == "done" else f"it has come to ring `{fleet.rings[rollout.ring].name}`"


def _named(version: str, offered: tuple[Offered, ...]) -> Offered:
    """Return the version that is meant.

    Raises:
        ThingUnknown: none is, or several are.
    """
    found = [each for each in offered if each.version == version]
    found = found or [each for each in offered if len(version) >= 8 and each.digest.startswith(version)]
    if len(found) != 1:
        known = (
            ", ".join(f"{each.version} ({each.digest[:12]})" for each in offered) or "none yet; no node has attested"
        )
        how = "several versions are" if found else "no version is"
        raise ThingUnknown(f"{how} called `{version[:100]}`; signed now: {known}")
    return found[0]


def _settled(newest: Rollout | None, known: Mapping[str, Known]) -> Offered:
    """Return the bundle that a fleet is to have now; where nobody has said so yet, the one that most nodes have."""
    if newest is not None and newest.stage == "done":
        return Offered(digest=newest.digest, version=newest.version)
    if newest is not None and newest.before:
        return Offered(digest=newest.before, version=newest.before_version)
    running = Counter(
        (each.attestation.running.bundle, each.attestation.running.bundle_version)
        for each in known.values()
        if each.attestation.running.bundle
    )
    if not running:
        return _NONE
    digest, version = running.most_common(1)[0][0]
    return Offered(digest=digest, version=version)
