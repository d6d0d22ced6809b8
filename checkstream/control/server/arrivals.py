"""Keeps what nodes tell of their audit chains, in one transaction for each delivery.

INVARIANT: a position moves in the transaction that keeps the records before it, so a record that was acknowledged is
there, and is there once, whatever ends when.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from checkstream.audit.chain import Head, write_head
from checkstream.audit.entries import RescoredEntry, StreamEntry
from checkstream.audit.keys import PublicKey
from checkstream.config.servers import CALLER_CHARS
from checkstream.control.server.database import Session
from checkstream.control.server.ingest import Item, Taken, take
from checkstream.control.server.tables import note_event
from checkstream.control.server.tally import OTHER
from checkstream.control.telemetry.delivery import MOST_CHAINS, At, Count, Delivery, Received, Run
from checkstream.control.telemetry.minutes import Minutes, moment_of
from checkstream.control.telemetry.records import Exchange, checked_of, counted_of, latency_of
from checkstream.errors import RequestInvalid

_SKEW_MS = 5_000
"""A node's clock that is off by less is right: a delivery takes its time."""
_WRONG_MS = 60_000
"""One that is off by more is an event."""
_MOST_EVENTS, _HOUR_MS = 20, 3_600_000
"""Of one kind and node in an hour: one node must not fill the list that is everybody's. `flaws` and `gaps` have all."""
_MOST_KEYS = 100
"""Of a node."""
_MOST_NAMES = 5_000
"""Counts of one node and minute, or hour, that are told apart; the rest is one, since a node chooses its names."""
_Sums = dict[tuple[int, str, str], int]
"""Minute or hour, route and name -> count."""
_AHEAD_MS = 3_600_000
"""What is counted further ahead of this server's clock is counted now."""
_ROWS = 400
"""Put with one statement."""
KEPT_CHARS = 200
"""Of a text whose name has no bound of its own."""


def receive(session: Session, node: str, fleet: str, delivery: Delivery, now_ms: int) -> Received:
    """Take of a delivery what is new, and return where each chain of the node stands now.

    Raises:
        RequestInvalid: something in it is not of the form; nothing of it is taken then.
    """
    known = session.execute("select number from senders where node = ?", (node,))
    number = int(known[0][0]) if known else -1
    if delivery.number > number:
        _Arrival(session, node, fleet, delivery, now_ms).keep()
        number = delivery.number
    rows = session.execute(
        "select chain, seq, hash from chains where node = ? order by heard_ms desc limit ?", (node, MOST_CHAINS)
    )
    return Received(number=number, positions={chain: At(seq=int(seq), hash=hash_) for chain, seq, hash_ in rows})


class _Arrival:
    """One delivery of one node."""

    def __init__(self, session: Session, node: str, fleet: str, delivery: Delivery, now_ms: int) -> None:
        self._session = session
        self._node, self._fleet = node, fleet
        self._delivery = delivery
        self._now_ms = now_ms
        skew = now_ms - delivery.time_ms
        self._skew_ms = skew if abs(skew) > _SKEW_MS else 0

    def keep(self) -> None:
        """Keep all of it that is new.

        Raises:
            RequestInvalid: something in it is not of the form.
        """
        keys = self._keys()
        self._hear()
        known = {str(row[0]) for row in self._session.execute("select chain from chains where node = ?", (self._node,))}
        for run in self._delivery.runs:
            if run.chain not in known and len(known) >= MOST_CHAINS:
                raise RequestInvalid(
                    f"`{self._node}` tells of more than {MOST_CHAINS} audit chains; a node has one for each of its "
                    "processes, and old ones are let go of when nothing of them is kept"
                )
            known.add(run.chain)
            position = self._position(run.chain)
            taken = take(run, position, keys, lambda seq, chain=run.chain: self._hash(chain, seq))  # type: ignore[misc]
            if taken is not None:
                self._keep_run(run, taken)

    def _hear(self) -> None:
        """Note that the node has been heard, and whether its clock is right."""
        before = self._session.execute("select skew_ms from senders where node = ?", (self._node,))
        values = (self._node, self._delivery.number, self._now_ms, self._skew_ms, self._delivery.waiting)
        self._session.execute(
            "insert into senders(node, number, heard_ms, skew_ms, waiting, silent) values(?, ?, ?, ?, ?, 0) "
            "on conflict(node) do update set number = excluded.number, heard_ms = excluded.heard_ms, "
            "skew_ms = excluded.skew_ms, waiting = excluded.waiting, silent = 0",
            values,
        )
        if abs(self._skew_ms) > _WRONG_MS and not (before and abs(before[0][0]) > _WRONG_MS):
            self._event("clock_wrong", f"its clock is off by about {round(self._skew_ms / -60_000)} minutes")

    def _keys(self) -> dict[str, PublicKey]:
        """Return the keys that the node's heads may be signed with: each that it has named in a request of its own.

        Raises:
            RequestInvalid: one is no key, or there are too many.
        """
        rows = self._session.execute("select name, key from audit_keys where node = ?", (self._node,))
        keys = {str(name): public_of(str(key)) for name, key in rows}
        for text in self._delivery.keys:
            name = hashlib.sha256(bytes.fromhex(text)).hexdigest()[:16]
            if name in keys:
                continue
            if len(keys) >= _MOST_KEYS:
                raise RequestInvalid(f"`{self._node}` names more than {_MOST_KEYS} audit keys; it should have one")
            if keys:
                self._event("audit_key_new", f"its heads are signed with another key from now on: `{name}`")
            keys[name] = public_of(text)
            values = (self._node, name, text, self._now_ms)
            self._session.execute("insert into audit_keys(node, name, key, since_ms) values(?, ?, ?, ?)", values)
        return keys

    def _position(self, chain: str) -> At:
        found = self._session.execute("select seq, hash from chains where node = ? and chain = ?", (self._node, chain))
        return At(seq=int(found[0][0]), hash=found[0][1]) if found else At()

    def _hash(self, chain: str, seq: int) -> str | None:
        values = (self._node, chain, seq)
        found = self._session.execute("select hash from records where node = ? and chain = ? and seq = ?", values)
        return str(found[0][0]) if found else None

    def _keep_run(self, run: Run, taken: Taken) -> None:
        self._keep_position(run, taken)
        if taken.signed is not None:
            self._keep_head(taken.signed)
        self._keep_items(run.chain, taken.items)
        shift = round(self._skew_ms / 60_000)
        self._count([(max(each.minute + shift, 0), each) for each in taken.counts])
        node, now = self._node, self._now_ms
        if (gap := taken.gap) is not None:
            self._session.execute(
                "insert into gaps(node, chain, first, last, reason, at_ms) values(?, ?, ?, ?, ?, ?) "
                "on conflict do nothing",
                (node, run.chain, gap.first, gap.last, as_kept(gap.reason), now),
            )
            count = gap.last - gap.first + 1
            self._event(
                "chain_gap", f"chain {run.chain}: {count} records from seq {gap.first} on don't come: {gap.reason}"
            )
        for flaw in taken.flaws:
            new = self._session.execute(
                "insert into flaws(node, chain, seq, reason, detail, at_ms) values(?, ?, ?, ?, ?, ?) "
                "on conflict do nothing returning seq",
                (node, run.chain, flaw.seq, flaw.reason, as_kept(flaw.detail), now),
            )
            if new:
                self._event("chain_broken", f"chain {run.chain}, seq {flaw.seq}: {flaw.reason}; {flaw.detail}")

    def _keep_position(self, run: Run, taken: Taken) -> None:
        """Move the position; note since when nobody vouches for what has come, and whether the chain is gone."""
        chain = run.chain
        before = self._session.execute(
            "select signed, signed_ms, unsigned_ms, told from chains where node = ? and chain = ?", (self._node, chain)
        )
        signed, signed_ms, unsigned_ms, told = before[0] if before else (0, 0, 0, 0)
        if taken.signed is not None and taken.signed.seq >= signed:
            signed, signed_ms = taken.signed.seq, self._now_ms
        if signed >= taken.position.seq:
            unsigned_ms, told = 0, 0
        else:
            unsigned_ms = unsigned_ms or self._now_ms
        at, gone = taken.position, int(run.ends is not None and run.ends.seq == 0)
        self._session.execute(
            "insert into chains(node, chain, seq, hash, signed, signed_ms, unsigned_ms, heard_ms, told, gone) "
            "values(?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict(node, chain) do update set "
            "seq = excluded.seq, hash = excluded.hash, signed = excluded.signed, signed_ms = excluded.signed_ms, "
            "unsigned_ms = excluded.unsigned_ms, heard_ms = excluded.heard_ms, told = excluded.told, "
            "gone = excluded.gone",
            (self._node, chain, at.seq, at.hash, signed, signed_ms, unsigned_ms, self._now_ms, told, gone),
        )

    def _keep_head(self, head: Head) -> None:
        line = write_head(head)[:-1].decode()
        values = (self._node, head.chain, head.seq, line, self._now_ms)
        put = "insert into heads(node, chain, seq, line, at_ms) values(?, ?, ?, ?, ?) on conflict do nothing"
        self._session.execute(put, values)

    def _keep_items(self, chain: str, items: Sequence[Item]) -> None:
        records: list[tuple[object, ...]] = []
        decisions: list[tuple[object, ...]] = []
        counted = Minutes()
        for item in items:
            told = None if item.record is None else counted_of(item.record)
            exchange = None if isinstance(told, RescoredEntry) else told
            at_ms = self._moment(item)
            records.append((self._node, chain, *_row(item, exchange, at_ms)))
            if told is not None:
                counted.add(at_ms // 60_000, told)
            if exchange is not None:
                decisions += [(self._node, chain, item.seq, *row) for row in _decisions(exchange, at_ms)]
        _put(self._session, "records", _RECORD, records)
        self._session.execute("update totals set count = count + ? where name = 'records'", (len(records),))
        _put(self._session, "decisions", _DECISION, decisions)
        counts = (
            Count(minute=minute, route=route[:500], name=name[:500], count=count)
            for minute, route, name, count in counted
        )
        self._count([(each.minute, each) for each in counts])

    def _moment(self, item: Item) -> int:
        """Return when a record was written, by this server's clock; of links only when they have come is known."""
        moment = None if item.record is None else moment_of(item.record.time)
        return self._now_ms if moment is None else max(moment + self._skew_ms, 0)

    def _count(self, counts: Sequence[tuple[int, Count]]) -> None:
        latest = (self._now_ms + _AHEAD_MS) // 60_000
        minutes: _Sums = {}
        for minute, each in counts:
            key = minute if minute <= latest else self._now_ms // 60_000, as_kept(each.route), as_kept(each.name)
            minutes[key] = minutes.get(key, 0) + each.count
        hours: _Sums = {}
        for (minute, route, name), count in minutes.items():
            hours[minute // 60, route, name] = hours.get((minute // 60, route, name), 0) + count
        for table, unit, per, summed in (("minutes", "minute", 1, minutes), ("hours", "hour", 60, hours)):
            kept = sorted(self._within(table, unit, summed).items())
            rows = [(self._node, *key, count) for key, count in kept]
            add = f"on conflict(node, {unit}, route, name) do update set count = {table}.count + excluded.count"
            _put(self._session, table, ("node", unit, "route", "name", "count"), rows, add)
            together = [(self._fleet, per, when * per, route, name, count) for (when, route, name), count in kept]
            add = (
                "on conflict(fleet, unit, minute, route, name) do update set count = fleet_sums.count + excluded.count"
            )
            _put(self._session, "fleet_sums", ("fleet", "unit", "minute", "route", "name", "count"), together, add)

    def _within(
        self, table: str, unit: str, summed: dict[tuple[int, str, str], int]
    ) -> dict[tuple[int, str, str], int]:
        """Return counts with what there is no room for in its minute or hour put together."""
        found: _Sums = {}
        for when in sorted({when for when, _, _ in summed}):
            here = {key: count for key, count in summed.items() if key[0] == when}
            of = f"from {table} where node = ? and {unit} = ?"
            few = f"select count(*) from (select 1 {of} limit ?) as some_of_them"  # noqa: S608 - words of this file
            known = int(self._session.execute(few, (self._node, when, _MOST_NAMES))[0][0])
            if known + len(here) > _MOST_NAMES:
                rows = self._session.execute(f"select route, name {of}", (self._node, when))
                here = folded(here, {(when, str(route), str(name)) for route, name in rows}, _MOST_NAMES)
            found |= here
        return found

    def _event(self, kind: str, reason: str) -> None:
        since = self._now_ms - _HOUR_MS
        told = "select count(*) from events where node = ? and kind = ? and at_ms > ?"
        if self._session.execute(told, (self._node, kind, since))[0][0] < _MOST_EVENTS:
            note_event(
                self._session, self._now_ms, kind=kind, fleet=self._fleet, node=self._node, reason=as_kept(reason, 1000)
            )


_RECORD = (
    "node", "chain", "seq", "hash", "digest", "proven", "at_ms", "kind", "stream", "route", "caller", "action",
    "outcome", "held_us", "checked_us", "content",
)  # fmt: skip
_DECISION = (
    "node", "chain", "seq", "place", "at_ms", "stream", "route", "caller", "rule_id", "action", "mode", "stage",
    "policy", "confidence_ppm", "latency_us", "model",
)  # fmt: skip


def _row(item: Item, exchange: Exchange | None, at_ms: int) -> tuple[object, ...]:
    """Return a record as its columns, from its number on."""
    kind = "" if item.record is None else as_kept(item.record.kind)
    begin = (item.seq, item.hash, item.digest, int(item.proven), at_ms, kind)
    content = None if item.line is None else item.line.decode()
    if exchange is None:
        return (*begin, "", "", None, "", "", 0, 0, content)
    if isinstance(exchange, StreamEntry):
        told = exchange.record
        came = told.action, told.outcome, round(told.held_ms * 1000), round(checked_of(told) * 1000)
    else:
        came = "passed", str(exchange.status), 0, 0
    caller = None if exchange.caller is None else as_kept(exchange.caller, CALLER_CHARS)
    action, outcome, held_us, checked_us = came
    whose = as_kept(exchange.stream), as_kept(exchange.route), caller
    return (*begin, *whose, as_kept(action), as_kept(outcome), held_us, checked_us, content)


def _decisions(exchange: Exchange, at_ms: int) -> list[tuple[object, ...]]:
    """Return the decisions of an exchange as their columns, from their place on."""
    if not isinstance(exchange, StreamEntry):
        return []
    caller = None if exchange.caller is None else as_kept(exchange.caller, CALLER_CHARS)
    whose = (at_ms, as_kept(exchange.stream), as_kept(exchange.route), caller)
    return [
        (
            place, *whose, as_kept(each.rule_id), as_kept(each.action), as_kept(each.mode), str(each.stage),
            as_kept(f"{each.policy}@{each.version}"), round(each.confidence * 1_000_000),
            round(latency_of(each) * 1000), as_kept(each.model or ""),
        )
        for place, each in enumerate(exchange.record.verdicts)
    ]  # fmt: skip


def _put(
    session: Session, table: str, columns: Sequence[str], rows: Sequence[tuple[object, ...]], conflict: str = ""
) -> None:
    """Put rows into a table, many with one statement."""
    places = f"({', '.join('?' * len(columns))})"
    for start in range(0, len(rows), _ROWS):
        some = rows[start : start + _ROWS]
        into = f"insert into {table}({', '.join(columns)}) values {', '.join([places] * len(some))} {conflict}"  # noqa: S608 - ours
        session.execute(into, [value for row in some for value in row])


def folded(
    counts: Mapping[tuple[int, str, str], int], known: Collection[tuple[int, str, str]], most: int
) -> dict[tuple[int, str, str], int]:
    """Return counts of one minute: what is known already, as much else as there is room for, and the rest as one."""
    found: dict[tuple[int, str, str], int] = {}
    room = most - len(known)
    for key, count in sorted(counts.items()):
        if key in known or key in found or room > 0:
            room -= key not in known and key not in found
            found[key] = found.get(key, 0) + count
        else:
            rest = (key[0], OTHER, OTHER)
            found[rest] = found.get(rest, 0) + count
    return found


def as_kept(text: str, most: int = KEPT_CHARS) -> str:
    """Return a text as every database keeps it."""
    return text[:most].replace("\x00", "\ufffd")


def public_of(text: str) -> PublicKey:
    """Return a public key that is told as 32 bytes in hex."""
    return PublicKey(Ed25519PublicKey.from_public_bytes(bytes.fromhex(text)))
