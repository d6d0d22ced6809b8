"""What telemetry reads of the records of a chain. Pure."""

from __future__ import annotations

import msgspec

from checkstream.audit.chain import Record, record_digest
from checkstream.audit.entries import PassEntry, RescoredEntry, StreamEntry
from checkstream.core.commands import StreamRecord
from checkstream.core.terms import Verdict

Exchange = StreamEntry | PassEntry
Counted = Exchange | RescoredEntry
SOMEBODYS = frozenset({"stream", "pass", "rescored"})
"""Kinds of records that are of a route and a caller, who have a word in what leaves."""
_MOST_MS = 1e12


def checked_of(record: StreamRecord) -> float:
    """Return the longest time that classifiers took to answer, milliseconds; 0: none were asked."""
    return 0.0 if record.checked_ms is msgspec.UNSET else record.checked_ms


def latency_of(verdict: Verdict) -> float:
    """Return how long a decision took, milliseconds; 0: it was taken when its text had come."""
    return 0.0 if verdict.latency_ms is msgspec.UNSET else verdict.latency_ms


def digest_of(record: Record) -> str:
    """Return the digest of a record's content, hex, as its hash is made of."""
    members = msgspec.structs.asdict(record)
    del members["hash"], members["prev"]
    return record_digest(members)


def exchange_of(record: Record) -> Exchange | None:
    """Return the exchange that a record is of; None: it is of none, or written by a version that says it otherwise."""
    if record.kind not in ("stream", "pass"):
        return None
    try:
        exchange: Exchange = msgspec.convert({**record.body, "kind": record.kind}, Exchange, strict=False)
    except msgspec.ValidationError:
        return None
    if isinstance(exchange, StreamEntry):
        told = exchange.record
        times = (told.held_ms, checked_of(told), *map(latency_of, told.verdicts))
        times_hold = all(0 <= ms <= _MOST_MS for ms in times)
        risks_hold = all(0 <= risk <= 100 for risk in told.risks.values())
        if not (times_hold and risks_hold and all(0 <= verdict.confidence <= 1 for verdict in told.verdicts)):
            return None  # a fraction is written as text, which can say anything
    return exchange


def counted_of(record: Record) -> Counted | None:
    """Return what a record counts for: an exchange, or an answer that was judged afresh; None: for nothing."""
    if record.kind != "rescored":
        return exchange_of(record)
    try:
        judged = msgspec.convert({**record.body, "kind": record.kind}, RescoredEntry, strict=False)
    except msgspec.ValidationError:
        return None
    return judged if judged.cutoff_ms is None or 0 <= judged.cutoff_ms <= _MOST_MS else None
