"""Follows a chain record by record. Pure: lines in, what is wrong with them out."""

from __future__ import annotations

from checkstream.audit.chain import GENESIS, MAX_LINE_BYTES, Flaw, Reason, Record, read, record_hash
from checkstream.audit.entries import KINDS
from checkstream.errors import AuditError


class Links:
    """Follows one chain, record by record, and finds the first that doesn't fit."""

    def __init__(self, chain: str, seq: int = 0, prev: str = GENESIS) -> None:
        """Start after record `seq` with hash `prev`; by default at the chain's beginning."""
        self.chain = chain
        self.seq = seq
        """The last record that fitted."""
        self.hash = prev
        self.kind = ""
        """Kind of the last record that fitted."""
        self.next_segment: str | None = None
        """What a `rotate` record that came last names as the next segment."""

    def receive(self, line: bytes) -> Flaw | None:
        """Take the next line (without its LF); return what is wrong with it, or None and move on."""
        expected = self.seq + 1
        try:
            record = read(line)
        except AuditError as error:
            reason = Reason.TOO_LONG if len(line) > MAX_LINE_BYTES else Reason.UNREADABLE
            return Flaw(reason=reason, seq=expected, detail=str(error))
        flaw = self._compare(record, expected)
        if flaw is None:
            self.seq, self.hash, self.kind = record.seq, record.hash, record.kind
            following = record.body.get("next")
            self.next_segment = following if record.kind == "rotate" and isinstance(following, str) else None
        return flaw

    def _compare(self, record: Record, expected: int) -> Flaw | None:
        if record.chain != self.chain:
            return Flaw(reason=Reason.OTHER_CHAIN, seq=record.seq, detail=f"it says chain `{record.chain}`")
        if record.hash != (should := record_hash(record)):
            return Flaw(reason=Reason.HASH, seq=record.seq, detail=f"content hashes to {should}, not {record.hash}")
        if record.kind not in KINDS:
            return Flaw(reason=Reason.UNKNOWN_KIND, seq=record.seq, detail=f"`{record.kind}` is not a kind of entry")
        if record.seq > expected:
            return Flaw(reason=Reason.MISSING, seq=record.seq, detail=f"seq {expected} was expected here")
        if record.seq < expected:
            return Flaw(reason=Reason.REPEATED, seq=record.seq, detail=f"seq {expected} was expected here")
        if record.prev != self.hash:
            detail = f"it links to {record.prev}, the record before it has {self.hash}"
            return Flaw(reason=Reason.LINK, seq=record.seq, detail=detail)
        return None
