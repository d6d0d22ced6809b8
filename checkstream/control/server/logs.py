"""Tells records as they stand in their logs, what proves each, and what has come behind a place of each chain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from checkstream.audit.chain import GENESIS, read_head
from checkstream.control.server.arrivals import as_kept, public_of
from checkstream.control.server.database import Row, Session
from checkstream.control.telemetry.delivery import MOST_ITEMS
from checkstream.errors import AuditError

MOST_LINKS = MOST_ITEMS
"""Records between one and its head: a delivery, which has one head of each chain, has no more."""

Place = tuple[str, str, int]
"""Node, chain and number of a record."""


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """A record as its node has told it."""

    node: str
    chain: str
    seq: int
    hash: str
    digest: str
    """Of its content."""
    prev: str | None
    """Hash of the record before; None: it is not kept any more, or has not come."""
    proven: bool
    """It links to the record before, and was so when it came."""
    at_ms: int
    line: str | None
    """As it stands in the log; None: its content has stayed on the node."""


class Vouched(msgspec.Struct, frozen=True, kw_only=True):
    """The way from a record to a head that vouches for it."""

    after: tuple[str, ...] = ()
    """Digest of each record between it and the head, in order."""
    head: str = ""
    """As it stands in its file; empty: none has come, or, where there is a `gap`, there need be no way to it."""
    key: str = ""
    """Public key of the head, PEM; empty: the node has never named it."""
    gap: str = ""
    """Why there is no way to the head."""


_TOLD = "r.node, r.chain, r.seq, r.hash, r.digest, b.hash, r.proven, r.at_ms, r.content"
_FROM = "from records r left join records b on b.node = r.node and b.chain = r.chain and b.seq = r.seq - 1"


def told(session: Session, place: Place) -> Told | None:
    """Return a record; None: it has not come, or is not kept any more."""
    node, chain, seq = place
    rows = session.execute(
        f"select {_TOLD} {_FROM} where r.node = ? and r.chain = ? and r.seq = ?",
        (as_kept(node), as_kept(chain), seq),
    )
    return _told(rows[0]) if rows else None


def _told(row: Row) -> Told:
    node, chain, seq, hash_, digest, prev, proven, at_ms, content = row
    return Told(
        node=node,
        chain=chain,
        seq=int(seq),
        hash=hash_,
        digest=digest,
        prev=GENESIS if int(seq) == 1 else prev,
        proven=bool(proven),
        at_ms=int(at_ms),
        line=content,
    )


def vouched(session: Session, place: Place) -> Vouched:
    """Return the way from a record to the first head behind it."""
    node, chain, seq = as_kept(place[0]), as_kept(place[1]), place[2]
    heads = session.execute(
        "select seq, line from heads where node = ? and chain = ? and seq >= ? order by seq limit 1", (node, chain, seq)
    )
    if not heads:
        return Vouched()
    upto, line = int(heads[0][0]), str(heads[0][1])
    key = _key(session, node, line)
    if upto - seq > MOST_LINKS:
        return Vouched(key=key, gap=f"the next head is {upto - seq} records away")
    rows = session.execute(
        "select seq, digest from records where node = ? and chain = ? and seq > ? and seq <= ? order by seq",
        (node, chain, seq, upto),
    )
    missing = sorted({*range(seq + 1, upto + 1)} - {int(number) for number, _ in rows})
    if not missing:
        return Vouched(after=tuple(str(digest) for _, digest in rows), head=line, key=key)
    of_gaps = session.execute(
        "select first, last, reason from gaps where node = ? and chain = ? and first <= ? and last > ? order by first",
        (node, chain, upto, seq),
    )
    gaps = {number: str(reason) for first, last, reason in of_gaps for number in missing if first <= number <= last}
    unexplained = next((number for number in missing if number not in gaps), None)
    if unexplained is not None:
        return Vouched(head=line, key=key, gap=f"record {unexplained} is missing")
    return Vouched(key=key, gap=f"record {missing[0]} was not sent: {gaps[missing[0]]}")


def _key(session: Session, node: str, head: str) -> str:
    try:
        name = read_head(head.encode()).key
    except AuditError:  # somebody has changed the table: the browser says so
        return ""
    rows = session.execute("select key from audit_keys where node = ? and name = ?", (node, as_kept(name)))
    return public_of(str(rows[0][0])).pem().decode() if rows else ""


def rules_of(session: Session, places: Sequence[Place]) -> dict[Place, tuple[str, ...]]:
    """Return the rules that fired in some records, in their order."""
    found: dict[Place, dict[str, None]] = {place: {} for place in places}
    for node, chain, seq in found:
        rows = session.execute(
            "select rule_id from decisions where node = ? and chain = ? and seq = ? order by place", (node, chain, seq)
        )
        found[node, chain, seq] = dict.fromkeys(str(rule) for (rule,) in rows)
    return {place: tuple(rules) for place, rules in found.items()}


Stand = Mapping[tuple[str, str], int]
"""How far all chains had come at a moment: node and chain -> number of its last record."""


def stand(session: Session) -> Stand:
    """Return how far all chains have come."""
    rows = session.execute("select node, chain, seq from chains")
    return {(str(node), str(chain)): int(seq) for node, chain, seq in rows}


def news(session: Session, since: Stand, most: int) -> tuple[list[Told], int, Stand]:
    """Return what has come of exchanges behind a stand, and how chains stand now.

    Args:
        session: To read in.
        since: The stand of the last look.
        most: So many records of each chain, the newest of them.

    Returns:
        The records whose content has come; how many chains had more; and the stand to look from the next time.
    """
    now = stand(session)
    found: list[Told] = []
    more = 0
    for (node, chain), seq in now.items():
        before = since.get((node, chain), 0)
        if seq <= before:
            continue
        new = session.execute(
            f"select {_TOLD} {_FROM} where r.node = ? and r.chain = ? and r.seq > ? and r.stream != '' "
            "order by r.seq desc limit ?",
            (node, chain, before, most + 1),
        )
        more += len(new) > most
        found += [_told(row) for row in new[:most]]
    return found, more, now
