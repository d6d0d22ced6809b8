"""Keeps evidence that nodes send, as it came: the server has no key that opens it.

INVARIANT: one piece for each record of a node, the first that came. What was erased does not come back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

import msgspec

from checkstream.audit.entries import ActEntry
from checkstream.config.servers import CALLER_CHARS
from checkstream.control.server.arrivals import as_kept
from checkstream.control.server.database import Database, Row, Session
from checkstream.control.server.logs import Place
from checkstream.control.server.people import Asker
from checkstream.control.telemetry.evidence import MOST_PARCEL, Parcel
from checkstream.control.telemetry.packing import unpacked
from checkstream.errors import ActConflicts, Overloaded, RequestInvalid

_AHEAD_MS = 3_600_000
_STEP = 200
_PAUSE_S = 0.05
_MOST_FOUND = 20
_OF_NODE = 2
"""Pieces of one exchange and one node that are told: it has one, unless somebody lies."""
_LOOKED_AT = 100
"""Pieces of one exchange and one node among which those are looked for."""
Standing = Literal["signed", "unsigned", "unproven", "unknown"]
_RANK: dict[Standing, int] = {"signed": 0, "unsigned": 1, "unproven": 2, "unknown": 3}


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a node is told of a parcel."""

    kept: bool
    """False: it was there already, or is too old."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """Evidence, sealed, and whose it is."""

    node: str
    parcel: Parcel
    record: Standing
    """How the record that it belongs to stands. signed: its chain holds, and a signed head vouches for it. unsigned: no
    head speaks of it yet. unproven: it did not fit its chain. unknown: none of its hash is there."""


class Erased(msgspec.Struct, frozen=True, kw_only=True):
    """What was erased."""

    pieces: int


class Evidence:
    """All evidence that there is."""

    def __init__(
        self,
        database: Database,
        record: Callable[[ActEntry], None],
        now_ms: Callable[[], int],
        *,
        keep_ms: int,
        most_bytes: int,
    ) -> None:
        """Keep for `keep_ms`, of each node at most `most_bytes`; `record` puts acts into the audit chain. Blocks."""
        self._database = database
        self._record = record
        self._now_ms = now_ms
        self._keep_ms = keep_ms
        self._most = most_bytes

    async def receive(self, node: str, body: bytes) -> Kept:
        """Take what a node has signed.

        Raises:
            RequestInvalid: it is no parcel, or belongs to another record than it says.
            Overloaded: the node has as much here as it may.
            ControlUnusable: the store can't be used.
        """
        parcel = await asyncio.to_thread(_read, body)
        return await self._database.transact(lambda session: self._keep(session, node, parcel))

    def _keep(self, session: Session, node: str, parcel: Parcel) -> Kept:
        place = (node, parcel.chain, parcel.seq)
        known = session.execute("select hash from records where node = ? and chain = ? and seq = ?", place)
        if known and known[0][0] != parcel.hash:
            raise RequestInvalid(f"record {parcel.seq} of chain `{parcel.chain}` has the hash {known[0][0]}")
        now_ms = self._now_ms()
        at_ms = min(parcel.at_ms, now_ms + _AHEAD_MS)
        if at_ms < now_ms - self._keep_ms:
            return Kept(kept=False)
        size = len(parcel.sealed)
        held = session.execute("select size from evidence_held where node = ?", (node,))
        if (int(held[0][0]) if held else 0) + size > self._most:
            raise Overloaded("this node's evidence has no more room here; raise `evidence_bytes`, or erase some")
        if session.execute("select 1 from evidence where node = ? and chain = ? and seq = ?", place):
            return Kept(kept=False)
        caller = "" if parcel.caller is None else parcel.caller
        named = (as_kept(parcel.stream), as_kept(parcel.route), as_kept(caller, CALLER_CHARS), parcel.key)
        session.execute(
            "insert into evidence(node, chain, seq, hash, stream, route, caller, key, at_ms, size, erased, sealed) "
            "values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?)",
            (*place, parcel.hash, *named, at_ms, size, parcel.sealed),
        )
        session.execute(
            "insert into evidence_held(node, size) values(?, ?) "
            "on conflict(node) do update set size = evidence_held.size + excluded.size",
            (node, size),
        )
        return Kept(kept=True)

    async def find(self, stream: str) -> list[Found]:
        """Return the evidence of an exchange; nodes could tell of two with one id, if one of them lies.

        Of each node a few pieces: what is vouched for best first, so that no node hides what another has sent.

        Raises:
            ControlUnusable: the store can't be used.
        """
        return await self._database.ask(lambda session: _found(session, as_kept(stream)))

    async def erase(self, who: Asker, *, stream: str, caller: str, reason: str) -> Erased:
        """Erase what there is of an exchange, or of a caller; who does it, and why, stands in the audit chain.

        Raises:
            ActConflicts: it is not said of which.
            ControlUnusable: the store, or the audit chain, can't be used.
        """
        if bool(stream) == bool(caller):
            raise ActConflicts("say either `stream` or `caller`")
        column, value = ("stream", stream) if stream else ("caller", caller)
        kept = as_kept(value) if stream else as_kept(value, CALLER_CHARS)

        def erase(session: Session) -> Erased:
            empty = (
                "update evidence set erased = 1, size = 0, sealed = ?, stream = '', route = '', caller = '' "  # noqa: S608 - ours
                f"where {column} = ? and erased = 0 returning 1"
            )
            subject = f"{column}:{value}"
            self._record(
                ActEntry(who=who.name, role=who.role, act="erase", fleet="", subject=subject, reason=reason, detail={})
            )
            freed = session.execute(
                f"select node, sum(size) from evidence where {column} = ? and erased = 0 group by node",  # noqa: S608 - ours
                (kept,),
            )
            _give_back(session, freed)
            return Erased(pieces=len(session.execute(empty, (b"", kept))))

        return await self._database.transact(erase)

    async def forget(self) -> None:
        """Let go of what is old, in small steps.

        Raises:
            ControlUnusable: the store can't be used.
        """
        before = self._now_ms() - self._keep_ms
        oldest = "select node, chain, seq from evidence where at_ms < ? order by at_ms limit ?"
        delete = f"delete from evidence where (node, chain, seq) in ({oldest}) returning node, size"  # noqa: S608 - ours

        def step(session: Session) -> int:
            freed = session.execute(delete, (before, _STEP))
            _give_back(session, freed)
            return len(freed)

        gone = _STEP
        while gone == _STEP:
            gone = await self._database.transact(step)
            await asyncio.sleep(_PAUSE_S)


def _give_back(session: Session, freed: list[Row]) -> None:
    """Give nodes back the room of pieces: node and bytes of each."""
    for node, size in freed:
        session.execute("update evidence_held set size = size - ? where node = ?", (int(size), node))


def _found(session: Session, stream: str) -> list[Found]:
    """Return the best pieces of each node, of all nodes the best first."""
    places: list[tuple[int, int, Place, Standing]] = []
    nodes = session.execute("select min(node) from evidence where stream = ?", (stream,))
    while (node := nodes[0][0]) is not None:
        rows = _looked_at(session, stream, node)
        standing = [(_standing(*row[2:]), (str(node), str(row[0]), int(row[1]))) for row in rows]
        best = sorted((_RANK[how], place, how) for how, place in standing)[:_OF_NODE]
        places += [(nth, *each) for nth, each in enumerate(best)]
        nodes = session.execute("select min(node) from evidence where stream = ? and node > ?", (stream, node))
    return [_read_out(session, place, how) for _, _, place, how in sorted(places)[:_MOST_FOUND]]


def _looked_at(session: Session, stream: str, node: str) -> list[Row]:
    """Return what one node has sent of an exchange, and how its records stand."""
    return session.execute(
        "select e.chain, e.seq, r.seq, r.proven, c.signed from (select node, chain, seq, hash from evidence "
        "where stream = ? and node = ? and erased = 0 order by chain, seq limit ?) as e "
        "left join records r on r.node = e.node and r.chain = e.chain and r.seq = e.seq and r.hash = e.hash "
        "left join chains c on c.node = e.node and c.chain = e.chain",
        (stream, node, _LOOKED_AT),
    )


def _standing(known: int | None, proven: int | None, signed: int | None) -> Standing:
    if known is None:
        return "unknown"
    if not proven:
        return "unproven"
    return "signed" if signed is not None and signed >= known else "unsigned"


def _read_out(session: Session, place: Place, record: Standing) -> Found:
    """Return a piece that is there."""
    ((hash_, stream, route, caller, key, at_ms, sealed),) = session.execute(
        "select hash, stream, route, caller, key, at_ms, sealed from evidence where node = ? and chain = ? and seq = ?",
        place,
    )
    node, chain, seq = place
    parcel = Parcel(
        chain=chain, seq=seq, hash=hash_, stream=stream, route=route, caller=caller or None, key=key, at_ms=int(at_ms),
        sealed=bytes(sealed),
    )  # fmt: skip
    return Found(node=node, parcel=parcel, record=record)


def _read(body: bytes) -> Parcel:
    try:
        return msgspec.json.decode(unpacked(body, MOST_PARCEL), type=Parcel)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(f"the body is no parcel of evidence: {error}") from error
