"""Tells what nodes have told of their exchanges, decisions and chains, and lets go of what is old."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import msgspec

from checkstream.config.servers import CALLER_CHARS
from checkstream.control.server.arrivals import KEPT_CHARS, as_kept
from checkstream.control.server.database import Row, Session
from checkstream.control.server.tables import note_event
from checkstream.control.telemetry.minutes import BOUNDS_MS
from checkstream.errors import RequestInvalid, ThingUnknown

_MILLION = 1_000_000
_MINUTE_MS = 60_000
_BROKEN_MS = 24 * 3_600_000


class Filter(msgspec.Struct, frozen=True, kw_only=True):
    """Which exchanges, or decisions; empty: whichever."""

    stream: str = ""
    """Of exchanges: this one, or those whose ids begin so."""
    node: str = ""
    route: str = ""
    caller: str = ""
    action: str = ""
    rule: str = ""
    outcome: str = ""
    since_ms: int = 0
    until_ms: int = 0
    before: str = ""
    """The `next` of the page before."""
    most: int = 100


class Exchanged(msgspec.Struct, frozen=True, kw_only=True):
    """A record of an exchange."""

    node: str
    chain: str
    seq: int
    at_ms: int
    kind: str
    """`stream`: it was guarded; `pass`: it went through unguarded."""
    stream: str
    route: str
    caller: str | None
    action: str
    outcome: str
    held_ms: float
    """Longest time that released text was held."""
    checked_ms: float
    """Longest time that classifiers took to answer; 0: none were asked."""
    proven: bool
    """Its hash is right, and links to the record before."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """An exchange with all that proves it."""

    exchange: Exchanged
    digest: str
    hash: str
    prev: str | None
    """Hash of the record before; null: it is not kept any more."""
    signed: bool
    """A signed head vouches for it."""
    record: msgspec.Raw
    """As it stands in the log; null: its content has stayed on the node."""


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """A rule has fired."""

    node: str
    chain: str
    seq: int
    place: int
    """Among the verdicts of its record."""
    at_ms: int
    stream: str
    route: str
    caller: str | None
    rule_id: str
    action: str
    mode: str
    stage: str
    policy: str
    probability: float
    """Score of the classifier; 1: a pattern has fired."""
    latency_ms: float
    """From the event that completed the text to the one that decided it, what it waited for included; 0: they are
    one."""
    model: str
    """`name@version` of the model that has scored; empty: none was asked for this."""


class ChainShown(msgspec.Struct, frozen=True, kw_only=True):
    """How far a chain has come."""

    node: str
    chain: str
    seq: int
    hash: str
    signed: int
    """Number of the last record that a signed head vouches for."""
    heard_ms: int
    missing: int
    """Records that don't come."""
    flaws: tuple[FlawShown, ...]
    """What was wrong with it, the newest first; the latest ten."""


class FlawShown(msgspec.Struct, frozen=True, kw_only=True):
    """Something that was not as it must be."""

    seq: int
    reason: str
    detail: str
    at_ms: int


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """What some nodes did from a moment on."""

    exchanges: int = 0
    refusals: int = 0
    stops: int = 0
    failures: int = 0
    """Exchanges that a broken detector, an overload or a broken model server has ended."""
    p95_held_ms: float | None = None
    """Nineteen in twenty exchanges held text for no longer than this bound; null: for longer than all bounds, or there
    were none."""
    p95_latency_ms: float | None = None
    """The same of the longest time that classifiers took to answer, of exchanges in which they were asked."""
    confidences: dict[str, tuple[int, float, float]] = {}
    """Rule -> its decisions, the sum of their confidences, and of their squares."""


class _Where(NamedTuple):
    text: str
    values: list[object]


_EXCHANGE = (
    "r.node, r.chain, r.seq, r.at_ms, r.kind, r.stream, r.route, r.caller, r.action, r.outcome, r.held_us, r.proven, "
    "r.checked_us"
)
_DECISION = (
    "d.node, d.chain, d.seq, d.place, d.at_ms, d.stream, d.route, d.caller, d.rule_id, d.action, d.mode, d.stage, "
    "d.policy, d.confidence_ppm, d.latency_us, d.model"
)


def exchanges(session: Session, wanted: Filter) -> tuple[list[Exchanged], str]:
    """Return a page of exchanges, the newest first, and what asks for the next page (empty: there is none).

    Raises:
        RequestInvalid: `before` is of no page.
    """
    where = _where(wanted, "r", {"outcome": wanted.outcome})
    if wanted.stream:
        where = _with_stream(session, where, as_kept(wanted.stream))
    if wanted.rule:
        where.values.append(as_kept(wanted.rule))
        of_rule = _SELDOM if _fires_seldom(session, wanted.rule) else _OFTEN
        where = _Where(where.text + of_rule, where.values)
    place, values = _before(wanted.before, "r.at_ms, r.node, r.chain, r.seq", 4)
    rows = session.execute(
        f"select {_EXCHANGE} from records r where r.stream != '' and {where.text}{place} "  # noqa: S608 - ours
        "order by r.at_ms desc, r.node desc, r.chain desc, r.seq desc limit ?",
        [*where.values, *values, wanted.most + 1],
    )
    page = [_exchanged(row) for row in rows[: wanted.most]]
    last = page[-1] if len(rows) > wanted.most else None
    return page, "" if last is None else _cursor(last.at_ms, last.node, last.chain, last.seq)


def _with_stream(session: Session, where: _Where, stream: str) -> _Where:
    """Ask for a stream besides: by the index if there is one of just this id."""
    if session.execute("select 1 from records where stream = ? limit 1", (stream,)):
        return _Where(f"{where.text} and r.stream = ?", [*where.values, stream])
    return _Where(f"{where.text} and substr(r.stream, 1, ?) = ?", [*where.values, len(stream), stream])


_SELDOM = " and (r.node, r.chain, r.seq) in (select d.node, d.chain, d.seq from decisions d where d.rule_id = ?)"
_OFTEN = (
    " and exists (select 1 from decisions d where d.node = r.node and d.chain = r.chain and d.seq = r.seq "
    "and d.rule_id = ?)"
)
_MOST_SELDOM = 5000


def _fires_seldom(session: Session, rule: str) -> bool:
    """Tell whether a rule's exchanges are better looked for among its decisions than one after the other."""
    few = "select count(*) from (select 1 from decisions where rule_id = ? limit ?) as some_of_them"
    return int(session.execute(few, (as_kept(rule), _MOST_SELDOM))[0][0]) < _MOST_SELDOM


def decisions(session: Session, wanted: Filter) -> tuple[list[Decided], str]:
    """Return a page of decisions, the newest first, and what asks for the next page (empty: there is none).

    Raises:
        RequestInvalid: `before` is of no page.
    """
    where = _where(wanted, "d", {"rule_id": wanted.rule})
    place, values = _before(wanted.before, "d.at_ms, d.node, d.chain, d.seq, d.place", 5)
    rows = session.execute(
        f"select {_DECISION} from decisions d where {where.text}{place} "  # noqa: S608 - ours
        "order by d.at_ms desc, d.node desc, d.chain desc, d.seq desc, d.place desc limit ?",
        [*where.values, *values, wanted.most + 1],
    )
    page = [_decided(row) for row in rows[: wanted.most]]
    last = page[-1] if len(rows) > wanted.most else None
    return page, "" if last is None else _cursor(last.at_ms, last.node, last.chain, last.seq, last.place)


def proofs(session: Session, stream: str) -> list[Proof]:
    """Return the records of an exchange with what proves each.

    Raises:
        ThingUnknown: there is none, or what leaves of it doesn't say which it is.
    """
    rows = session.execute(
        f"select {_EXCHANGE}, r.digest, r.hash, b.hash, c.signed, r.content from records r "  # noqa: S608 - ours
        "join chains c on c.node = r.node and c.chain = r.chain "
        "left join records b on b.node = r.node and b.chain = r.chain and b.seq = r.seq - 1 "
        "where r.stream = ? order by r.at_ms, r.node, r.chain, r.seq limit 10",
        (as_kept(stream),),
    )
    if not rows or not stream:
        raise ThingUnknown(f"no exchange `{stream[:100]}` is known here; of private ones only the hashes are")
    return [
        Proof(
            exchange=_exchanged(row), digest=row[13], hash=row[14], prev=row[15], signed=row[2] <= row[16],
            record=msgspec.Raw(b"null" if row[17] is None else str(row[17]).encode()),
        )
        for row in rows
    ]  # fmt: skip


def chains(session: Session, node: str, most: int) -> list[ChainShown]:
    """Return the chains of a node, or of all, those first that were heard of last."""
    node = as_kept(node)
    rows = session.execute(
        "select node, chain, seq, hash, signed, heard_ms from chains where (? = '' or node = ?) "
        "order by heard_ms desc, node, chain limit ?",
        (node, node, most),
    )
    found = []
    for whose, chain, seq, hash_, signed, heard_ms in rows:
        missing = session.execute(
            "select coalesce(sum(last - first + 1), 0) from gaps where node = ? and chain = ?", (whose, chain)
        )
        flaws = session.execute(
            "select seq, reason, detail, at_ms from flaws where node = ? and chain = ? order by at_ms desc, seq desc "
            "limit 10",
            (whose, chain),
        )
        told = tuple(FlawShown(seq=int(f[0]), reason=f[1], detail=f[2], at_ms=int(f[3])) for f in flaws)
        found.append(
            ChainShown(
                node=whose, chain=chain, seq=int(seq), hash=hash_, signed=int(signed), heard_ms=int(heard_ms),
                missing=int(missing[0][0]), flaws=told,
            )
        )  # fmt: skip
    return found


class Troubled(msgspec.Struct, frozen=True, kw_only=True):
    """A chain that is not as it must be, or a node that tells nothing of its chains."""

    node: str
    chain: str
    """Empty: all of the node's."""
    broken: str
    """What was wrong with it last; empty: it is only behind."""
    since_ms: int


def troubled(session: Session, before_ms: int) -> list[Troubled]:
    """Return the chains in which something was wrong lately, and what is silent since a moment.

    A chain that was broken stays so for a day, since nothing that comes later mends it; then it is history.
    """
    broken = session.execute(
        "select node, chain, seq, reason, at_ms from flaws where at_ms >= ? order by at_ms", (before_ms - _BROKEN_MS,)
    )
    found = {
        (str(node), str(chain)): Troubled(node=node, chain=chain, broken=f"seq {seq}: {reason}", since_ms=int(at_ms))
        for node, chain, seq, reason, at_ms in broken
    }
    unsigned = session.execute(
        "select c.node, c.chain, c.unsigned_ms from chains c join nodes n on n.node = c.node "
        "where c.unsigned_ms > 0 and c.unsigned_ms < ? and n.heard_ms >= ?",
        (before_ms, before_ms),
    )
    silent = session.execute(
        "select s.node, s.heard_ms from senders s join nodes n on n.node = s.node "
        "where s.heard_ms < ? and n.heard_ms >= ?",
        (before_ms, before_ms),
    )
    for node, chain, since_ms in (*unsigned, *((node, "", heard_ms) for node, heard_ms in silent)):
        quiet = Troubled(node=str(node), chain=str(chain), broken="", since_ms=int(since_ms))
        found.setdefault((quiet.node, quiet.chain), quiet)
    return [found[key] for key in sorted(found)]


def rates(session: Session, nodes: Collection[str], since_ms: int) -> Rates:
    """Return what some nodes, or with none named all, did from the minute of a moment on, as far as they have told."""
    named = f"and node in ({', '.join('?' * len(nodes))}) " if nodes else ""
    rows = session.execute(
        f"select name, sum(count) from minutes where minute >= ? {named}group by name",  # noqa: S608 - ours
        [since_ms // _MINUTE_MS, *map(as_kept, nodes)],
    )
    counts = {str(name): int(count) for name, count in rows}
    rules = {name.partition(":")[2] for name in counts if name.startswith(("rule:", "shadow:"))}
    return Rates(
        exchanges=counts.get("exchanges", 0),
        refusals=counts.get("outcome:refused", 0),
        stops=counts.get("outcome:stopped", 0),
        failures=sum(counts.get(f"outcome:{name}", 0) for name in _FAILURES),
        p95_held_ms=_percentile(counts, "held", 0.95),
        p95_latency_ms=_percentile(counts, "checked", 0.95),
        confidences={
            rule: (
                counts.get(f"rule:{rule}", 0) + counts.get(f"shadow:{rule}", 0),
                counts.get(f"confidence:{rule}", 0) / _MILLION,
                counts.get(f"confidence2:{rule}", 0) / _MILLION,
            )
            for rule in sorted(rules)
        },
    )


_FAILURES = ("detector_failed", "overloaded", "work_exceeded", "upstream_failed", "failed")


def _percentile(counts: dict[str, int], kind: str, share: float) -> float | None:
    """Return the bound that so many of the times of a kind don't pass."""
    total = sum(count for name, count in counts.items() if name.startswith(f"{kind}:"))
    below = 0
    for bound in BOUNDS_MS:
        below += counts.get(f"{kind}:{bound}", 0)
        if total and below >= share * total:
            return float(bound)
    return None


def silences(session: Session, fleet_of: dict[str, str], now_ms: int, quiet_ms: int) -> None:
    """Note as events which nodes attest and don't tell of their chains, and which chains nobody signs for any more."""
    silent = session.execute(
        "select s.node, s.heard_ms from senders s join nodes n on n.node = s.node "
        "where s.silent = 0 and s.heard_ms < ? and n.heard_ms >= ?",
        (now_ms - quiet_ms, now_ms - quiet_ms),
    )
    for node, heard_ms in silent:
        minutes = round((now_ms - heard_ms) / _MINUTE_MS)
        reason = f"it attests, and has told nothing of its audit chains for {minutes} minutes"
        note_event(session, now_ms, kind="chain_silent", fleet=fleet_of.get(node, ""), node=node, reason=reason)
        session.execute("update senders set silent = 1 where node = ?", (node,))
    unsigned = session.execute(
        "select node, chain, signed, unsigned_ms from chains where told = 0 and unsigned_ms > 0 and unsigned_ms < ?",
        (now_ms - quiet_ms,),
    )
    for node, chain, signed, _ in unsigned:
        reason = f"chain {chain}: no signed head has come for what stands behind seq {signed}"
        note_event(session, now_ms, kind="chain_silent", fleet=fleet_of.get(node, ""), node=node, reason=reason)
        session.execute("update chains set told = 1 where node = ? and chain = ?", (node, chain))


def forget(session: Session, before_ms: int, most: int) -> int:
    """Let go of at most so many rows of each kind that are older than a moment; return of how many."""
    aged: Sequence[tuple[str, str, str, int]] = (
        ("records", "node, chain, seq", "at_ms", before_ms),
        ("decisions", "node, chain, seq, place", "at_ms", before_ms),
        ("minutes", "node, minute, route, name", "minute", before_ms // _MINUTE_MS),
        ("hours", "node, hour, route, name", "hour", before_ms // _MINUTE_MS // 60),
        ("fleet_sums", "fleet, unit, minute, route, name", "minute", before_ms // _MINUTE_MS - 60),
        ("heads", "node, chain, seq", "at_ms", before_ms),
        ("gaps", "node, chain, first", "at_ms", before_ms),
        ("flaws", "node, chain, seq, reason", "at_ms", before_ms),
    )
    gone = 0
    for table, key, age, before in aged:
        oldest = f"select {key} from {table} where {age} < ? order by {age} limit ?"  # noqa: S608 - ours
        delete = f"delete from {table} where ({key}) in ({oldest}) returning 1"  # noqa: S608 - ours
        gone += len(session.execute(delete, (before, most)))
    return gone + _forget_places(session, before_ms, most)


def _forget_places(session: Session, before_ms: int, most: int) -> int:
    """Let go of where chains stood that nothing is kept of any more, and that are gone, or whose node is.

    Should such a node come back it tells of its log from the start, as a new one does. Chains of a node that is there
    stay, however old: it would tell of them again and again.
    """
    chains = (
        "select c.node, c.chain from chains c where c.heard_ms < ? and (c.gone = 1 or not exists "
        "(select 1 from senders s where s.node = c.node and s.heard_ms >= ?)) and not exists "
        "(select 1 from records r where r.node = c.node and r.chain = c.chain) limit ?"
    )
    senders = (
        "select s.node from senders s where s.heard_ms < ? and not exists "
        "(select 1 from chains c where c.node = s.node) limit ?"
    )
    of_chains = f"delete from chains where (node, chain) in ({chains}) returning 1"  # noqa: S608 - ours
    of_senders = f"delete from senders where node in ({senders}) returning 1"  # noqa: S608 - ours
    gone = len(session.execute(of_chains, (before_ms, before_ms, most)))
    return gone + len(session.execute(of_senders, (before_ms, most)))


def _where(wanted: Filter, table: str, more: dict[str, str]) -> _Where:
    equal = {
        "node": wanted.node, "route": wanted.route, "caller": wanted.caller, "action": wanted.action, **more,
    }  # fmt: skip
    longest = {"caller": CALLER_CHARS}
    named = {name: as_kept(value, longest.get(name, KEPT_CHARS)) for name, value in equal.items() if value}
    conditions = [f"{table}.at_ms >= ?", *(f"{table}.{name} = ?" for name in named)]
    values: list[object] = [wanted.since_ms, *named.values()]
    if wanted.until_ms:
        conditions.append(f"{table}.at_ms < ?")
        values.append(wanted.until_ms)
    return _Where(" and ".join(conditions), values)


def _cursor(*key: object) -> str:
    return "~".join(map(str, key))


def _before(cursor: str, columns: str, length: int) -> tuple[str, list[object]]:
    """Return the condition that rows stand behind a page.

    Raises:
        RequestInvalid: it is of no page.
    """
    if not cursor:
        return "", []
    parts = cursor.split("~")
    numbers = [part for place, part in enumerate(parts) if place not in (1, 2)]
    if len(parts) != length or not all(part.isascii() and part.isdigit() and len(part) < 16 for part in numbers):
        raise RequestInvalid("`before` is of no page; give the `next` of the one before, as it is")
    values = [as_kept(part) if place in (1, 2) else int(part) for place, part in enumerate(parts)]
    return f" and ({columns}) < ({', '.join('?' * length)})", list(values)


def _exchanged(row: Row) -> Exchanged:
    return Exchanged(
        node=row[0], chain=row[1], seq=int(row[2]), at_ms=int(row[3]), kind=row[4], stream=row[5], route=row[6],
        caller=row[7], action=row[8], outcome=row[9], held_ms=row[10] / 1000, proven=bool(row[11]),
        checked_ms=row[12] / 1000,
    )  # fmt: skip


def _decided(row: Row) -> Decided:
    return Decided(
        node=row[0], chain=row[1], seq=int(row[2]), place=int(row[3]), at_ms=int(row[4]), stream=row[5], route=row[6],
        caller=row[7], rule_id=row[8], action=row[9], mode=row[10], stage=row[11], policy=row[12],
        probability=row[13] / _MILLION, latency_ms=row[14] / 1000,
        model=row[15],
    )  # fmt: skip
