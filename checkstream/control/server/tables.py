"""Nodes, rollouts, counts, lists and events as rows of the control server's database, each in a transaction."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.control.attestation import Attestation
from checkstream.control.server.database import Session
from checkstream.control.server.rollout import Rollout
from checkstream.control.server.tally import OTHER, Tally, summed
from checkstream.errors import ActConflicts, ThingUnknown

_SAID_AGAIN_MS = 60_000
"""The same of the same node is an event once in this time."""
_MOST_EVENTS = 100_000
_ATTESTATION = msgspec.json.Decoder(Attestation)
_ROLLOUT = msgspec.json.Decoder(Rollout)
_TALLY = msgspec.json.Decoder(Tally)
SLOT_MS = 60_000
"""Counts are summed up by so much time."""
_MOST_BUNDLES = 64
"""That nodes of one fleet are counted under in one minute: they say themselves which they have."""
_KEEP_MS = 31 * 24 * 3_600_000


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a node."""

    node: str
    heard_ms: int
    """When it has attested last, by this server's clock."""
    since_ms: int
    """Since when it says the same of what it has in force."""
    refused: str
    """Why it is given no bundle; empty: it is."""
    attestation: Attestation


class Happened(msgspec.Struct, frozen=True, kw_only=True):
    """Something that people should know of."""

    id: int
    at_ms: int
    kind: str
    fleet: str
    node: str
    reason: str


def known_nodes(session: Session, fleet: str) -> dict[str, Known]:
    """Return the nodes of a fleet that have attested."""
    rows = session.execute("select node, heard_ms, since_ms, refused, attestation from nodes where fleet = ?", (fleet,))
    return {str(row[0]): _known(*row) for row in rows}


def known_node(session: Session, node: str) -> Known | None:
    """Return what is known of a node; None: it has not attested."""
    rows = session.execute("select node, heard_ms, since_ms, refused, attestation from nodes where node = ?", (node,))
    return _known(*rows[0]) if rows else None


def _known(node: str, heard_ms: int, since_ms: int, refused: str, attestation: str) -> Known:
    said = _ATTESTATION.decode(attestation)
    return Known(node=node, heard_ms=heard_ms, since_ms=since_ms, refused=refused, attestation=said)


def keep_attestation(session: Session, fleet: str, known: Known) -> None:
    """Keep what a node has said in place of what it said before.

    Raises:
        ActConflicts: it has said something newer already.
    """
    node, said = known.node, known.attestation
    rows = session.execute("select sequence from nodes where node = ?", (node,))
    if rows and rows[0][0] >= said.sequence:
        raise ActConflicts(
            f"the attestation {said.sequence} of `{node}` is not newer than {rows[0][0]}, which is known: it was "
            "sent twice, another node has the same key, or the node's clock and `bundles.dir` were both set back"
        )
    values = (node, fleet, said.sequence, known.heard_ms, msgspec.json.encode(said).decode(), known.refused)
    session.execute(
        "insert into nodes(node, fleet, sequence, heard_ms, attestation, refused, since_ms) "
        "values(?, ?, ?, ?, ?, ?, ?) on conflict(node) do update set "
        "fleet = excluded.fleet, sequence = excluded.sequence, heard_ms = excluded.heard_ms, "
        "attestation = excluded.attestation, refused = excluded.refused, since_ms = excluded.since_ms",
        (*values, known.since_ms),
    )


def allowances(session: Session, fleet: str) -> dict[str, set[str]]:
    """Return what people have added to the lists of a fleet: kind -> values."""
    found: dict[str, set[str]] = {}
    for kind, value in session.execute("select kind, value from allowances where fleet = ?", (fleet,)):
        found.setdefault(str(kind), set()).add(str(value))
    return found


def note_event(session: Session, at_ms: int, *, kind: str, fleet: str, node: str = "", reason: str = "") -> bool:
    """Keep that something has happened; return False if the same has just been kept."""
    before = session.execute(
        "select at_ms, reason from events where node = ? and kind = ? order by id desc limit 1", (node, kind)
    )
    if node and before and before[0][1] == reason and 0 <= at_ms - before[0][0] < _SAID_AGAIN_MS:
        return False
    rows = session.execute(
        "insert into events(at_ms, kind, fleet, node, reason) values(?, ?, ?, ?, ?) returning id",
        (at_ms, kind, fleet, node, reason[:1000]),
    )
    session.execute("delete from events where id <= ?", (rows[0][0] - _MOST_EVENTS,))
    return True


def events(
    session: Session, *, fleet: str = "", before: int = 0, most: int = 100, kinds: Sequence[str] = ()
) -> list[Happened]:
    """Return what has happened, the newest first.

    Args:
        session: To read in.
        fleet: Of this fleet; empty: of all.
        before: Below this number; 0: up to the last.
        most: So many at most.
        kinds: Of these kinds; none: of all.
    """
    wanted = ", ".join("?" * len(kinds)) or "kind"
    rows = session.execute(
        "select id, at_ms, kind, fleet, node, reason from events where (? = '' or fleet = ?) and (? = 0 or id < ?) "  # noqa: S608 - question marks
        f"and kind in ({wanted}) order by id desc limit ?",
        (fleet, fleet, before, before, *kinds, most),
    )
    return [
        Happened(id=int(row[0]), at_ms=int(row[1]), kind=row[2], fleet=row[3], node=row[4], reason=row[5])
        for row in rows
    ]


# rollouts


def newest_rollout(session: Session, fleet: str) -> tuple[int, Rollout] | None:
    """Return the number and the state of a fleet's newest rollout; None: there has been none."""
    rows = session.execute("select id, state from rollouts where fleet = ? order by id desc limit 1", (fleet,))
    return (int(rows[0][0]), _ROLLOUT.decode(rows[0][1])) if rows else None


def rollout_of(session: Session, number: int) -> Rollout:
    """Return a rollout.

    Raises:
        ThingUnknown: there is none of this number.
    """
    rows = session.execute("select state from rollouts where id = ?", (number,))
    if not rows:
        raise ThingUnknown(f"there is no rollout {number}; `checkstream control status` shows those that there are")
    return _ROLLOUT.decode(rows[0][0])


def rollouts(session: Session, fleet: str, most: int) -> list[tuple[int, Rollout]]:
    """Return the rollouts of a fleet, the newest first."""
    rows = session.execute("select id, state from rollouts where fleet = ? order by id desc limit ?", (fleet, most))
    return [(int(row[0]), _ROLLOUT.decode(row[1])) for row in rows]


def running_fleets(session: Session) -> list[str]:
    """Return the fleets with a rollout that runs."""
    return [str(row[0]) for row in session.execute("select distinct fleet from rollouts where running = 1")]


def add_rollout(session: Session, rollout: Rollout, now_ms: int) -> int:
    """Keep a new rollout, and return its number."""
    state = msgspec.json.encode(rollout).decode()
    rows = session.execute(
        "insert into rollouts(fleet, begun_ms, running, state) values(?, ?, ?, ?) returning id",
        (rollout.fleet, now_ms, 0, state),
    )
    return int(rows[0][0])


def keep_rollout(session: Session, number: int, rollout: Rollout) -> None:
    """Keep how a rollout stands now."""
    session.execute(
        "update rollouts set state = ?, running = ? where id = ?",
        (msgspec.json.encode(rollout).decode(), int(rollout.stage == "running"), number),
    )


# counts


def add_counts(session: Session, fleet: str, digest: str, now_ms: int, counted: Tally) -> None:
    """Add what a node has counted under a bundle, if it has counted anything."""
    if counted.empty:
        return
    slot = now_ms - now_ms % SLOT_MS
    known = session.execute("select digest from counts where fleet = ? and slot_ms = ?", (fleet, slot))
    if (digest,) not in known and len(known) >= _MOST_BUNDLES:
        digest = OTHER
    place = (fleet, digest, slot)
    rows = session.execute("select figures from counts where fleet = ? and digest = ? and slot_ms = ?", place)
    total = summed([*(_TALLY.decode(row[0]) for row in rows), counted])
    session.execute(
        "insert into counts(fleet, digest, slot_ms, figures) values(?, ?, ?, ?) "
        "on conflict(fleet, digest, slot_ms) do update set figures = excluded.figures",
        (*place, msgspec.json.encode(total).decode()),
    )
    session.execute("delete from counts where fleet = ? and slot_ms < ?", (fleet, now_ms - _KEEP_MS))


def rates(session: Session, fleet: str, digest: str, since_ms: int, until_ms: int | None = None) -> Tally:
    """Return what the nodes of a fleet have counted under a bundle, by whole minutes.

    Args:
        session: To read in.
        fleet: Its name.
        digest: Of the bundle.
        since_ms: In the first minute.
        until_ms: The beginning of the first minute that is left out; None: none is.
    """
    rows = session.execute(
        "select figures from counts where fleet = ? and digest = ? and slot_ms >= ? and (? < 0 or slot_ms < ?)",
        (fleet, digest, since_ms - since_ms % SLOT_MS, *(-1 if until_ms is None else until_ms,) * 2),
    )
    return summed(_TALLY.decode(row[0]) for row in rows)


def minutes(session: Session, fleet: str, since_ms: int) -> list[tuple[int, Tally]]:
    """Return what the nodes of a fleet have counted in each minute, under whichever bundle; some have several rows."""
    rows = session.execute(
        "select slot_ms, figures from counts where fleet = ? and slot_ms >= ? order by slot_ms", (fleet, since_ms)
    )
    return [(int(slot), _TALLY.decode(figures)) for slot, figures in rows]


# lists


def allow(session: Session, fleet: str, kind: str, value: str, *, who: str, now_ms: int) -> None:
    """Add to a list."""
    session.execute(
        "insert into allowances(fleet, kind, value, who, at_ms) values(?, ?, ?, ?, ?) on conflict do nothing",
        (fleet, kind, value, who, now_ms),
    )


def disallow(session: Session, fleet: str, kind: str, value: str) -> bool:
    """Take from a list what was added; return False if it is not there."""
    place = (fleet, kind, value)
    rows = session.execute("select 1 from allowances where fleet = ? and kind = ? and value = ?", place)
    session.execute("delete from allowances where fleet = ? and kind = ? and value = ?", place)
    return bool(rows)
