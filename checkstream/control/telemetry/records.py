"""What telemetry reads of the records of a chain. Pure."""

from __future__ import annotations

import msgspec

from checkstream.audit.chain import Record, record_digest
from checkstream.audit.entries import PassEntry, StreamEntry

Exchange = StreamEntry | PassEntry
_MOST_MS = 1e12


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
        if not (0 <= told.held_ms <= _MOST_MS and all(0 <= verdict.confidence <= 1 for verdict in told.verdicts)):
            return None  # a fraction is written as text, which can say anything
    return exchange
