"""Reads an audit directory and says whether its chains hold, naming the first bad record of each.

Needs nothing secret: links are checked from the records alone, signed heads with public keys. May run while
the chains are being written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from checkstream.audit import chain as format_
from checkstream.audit.chain import Flaw, Head, Reason
from checkstream.audit.keys import PublicKey
from checkstream.audit.links import Links
from checkstream.audit.segments import HEADS_SUFFIX, Line, lines, segment_name, segments
from checkstream.errors import AuditError


class BadRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where a chain stops to hold, and why."""

    chain: str
    file: str
    line: int
    """From 1; 0 when the whole file is meant."""
    seq: int
    reason: Reason
    detail: str

    def render(self) -> str:
        """Return `file:line: seq n: reason; detail`."""
        return f"{self.file}:{self.line}: seq {self.seq}: {self.reason.value}; {self.detail}"


class ChainReport(msgspec.Struct, frozen=True, kw_only=True):
    """What verification found in one chain."""

    chain: str
    records: int
    """Records that hold, from the first."""
    segments: int
    """Segments read."""
    signed: int
    """The last record that a head vouches for; 0: none."""
    torn_bytes: int = 0
    """An unfinished last line: a write in progress, or a crash that the next start will repair."""
    bad: BadRecord | None = None

    @property
    def unsigned(self) -> int:
        """Records behind the last head: nobody vouches for them. A running process has some for a moment."""
        return max(self.records - self.signed, 0)


class _Heads:
    """Walks a chain's heads beside its records."""

    def __init__(self, path: Path, chain: str, keys: Sequence[PublicKey]) -> None:
        self._path = path
        self._chain = chain
        self._keys = {key.name: key for key in keys}
        # INVARIANT: heads are read up to the size they had before the records were read, so that a chain
        # that grows meanwhile is not taken for a cut one.
        self._lines = lines(path, end=path.stat().st_size) if path.is_file() else iter(())
        self._next: tuple[Line, Head] | None = None
        self.signed = 0
        """The last record that a head vouches for."""

    def receive(self, seq: int, digest: str) -> BadRecord | None:
        """Compare the heads up to record `seq` with its hash; return the first that doesn't fit."""
        while True:
            if self._next is None and (bad := self._advance(seq)) is not None:
                return bad
            if self._next is None or self._next[1].seq > seq:
                return None
            line, head = self._next
            self._next = None
            if head.seq < seq:
                return self._bad(line, head.seq, Reason.HEAD_ORDER, f"it comes after a head for seq {self.signed}")
            if head.hash != digest:
                return self._bad(line, seq, Reason.HEAD_HASH, f"the head says {head.hash}, the record {digest}")
            self.signed = seq

    def end(self, seq: int) -> BadRecord | None:
        """Return the first head that says more than the chain's last record, `seq`."""
        if self._next is None and (bad := self._advance(seq)) is not None:
            return bad
        if self._next is None:
            return None
        line, head = self._next
        return self._bad(line, head.seq, Reason.CUT, f"the chain ends at seq {seq}")

    def _advance(self, seq: int) -> BadRecord | None:
        line = next(self._lines, None)
        if line is None or (not line.ended and format_.is_torn(line.data, format_.HEAD_OPENING)):
            return None  # a torn head was never given out
        try:
            head = format_.read_head(line.data)
        except AuditError as error:
            return self._bad(line, seq, Reason.HEAD_UNREADABLE, str(error))
        if head.chain != self._chain:
            return self._bad(line, head.seq, Reason.HEAD_UNREADABLE, f"it speaks of chain `{head.chain}`")
        if self._keys:
            key = self._keys.get(head.key)
            if key is None:
                detail = f"it is signed with key `{head.key}`, which was not given"
                return self._bad(line, head.seq, Reason.HEAD_SIGNATURE, detail)
            if not key.verify(bytes.fromhex(head.sig), format_.head_message(head)):
                return self._bad(line, head.seq, Reason.HEAD_SIGNATURE, f"not made with key `{head.key}`")
        self._next = (line, head)
        return None

    def _bad(self, line: Line, seq: int, reason: Reason, detail: str) -> BadRecord:
        return BadRecord(
            chain=self._chain, file=self._path.name, line=line.number, seq=seq, reason=reason, detail=detail
        )


def verify(directory: Path, *, heads: Path | None = None, keys: Sequence[PublicKey] = ()) -> tuple[ChainReport, ...]:
    """Verify every chain of an audit directory.

    Args:
        directory: where the segments stand.
        heads: where the heads stand; None: beside the segments.
        keys: public keys; with none, signatures are not checked, but heads are still compared.

    Returns:
        One report for each chain, by name; a chain of which only heads are left has one too.

    Raises:
        AuditError: the directory can't be read.
    """
    place = heads or directory
    found = set(segments(directory))
    try:
        found |= {path.name.removesuffix(HEADS_SUFFIX) for path in place.iterdir() if path.name.endswith(HEADS_SUFFIX)}
    except OSError as error:
        raise AuditError(f"the heads directory `{place}` can't be read: {error.strerror}") from error
    return tuple(verify_chain(directory, place, chain, keys) for chain in sorted(found))


def verify_chain(directory: Path, heads: Path, chain: str, keys: Sequence[PublicKey] = ()) -> ChainReport:
    """Verify one chain (see `verify`).

    Raises:
        AuditError: a file can't be read.
    """
    walk = _Walk(directory, chain, _Heads(heads / f"{chain}{HEADS_SUFFIX}", chain, keys))
    bad = walk.run()
    if bad is None and keys and walk.heads.signed == 0:
        detail = "a chain without heads can't be checked with a key; its heads were removed, or it ended at birth"
        bad = BadRecord(
            chain=chain, file=f"{chain}{HEADS_SUFFIX}", line=0, seq=walk.links.seq, reason=Reason.NO_HEAD, detail=detail
        )
    return ChainReport(
        chain=chain,
        records=walk.links.seq,
        segments=walk.segments,
        signed=walk.heads.signed,
        torn_bytes=walk.torn_bytes,
        bad=bad,
    )


class _Walk:
    """One pass over a chain's segments."""

    def __init__(self, directory: Path, chain: str, heads: _Heads) -> None:
        self._directory = directory
        self._chain = chain
        self._last = max(segments(directory).get(chain, [0]))
        self.heads = heads
        self.links = Links(chain)
        self.segments = 0
        self.torn_bytes = 0

    def run(self) -> BadRecord | None:
        """Read the segments in order; return the first thing that is wrong."""
        number = 1
        while True:
            name = segment_name(self._chain, number)
            if not (self._directory / name).exists():
                return self.heads.end(self.links.seq) or self._bad(
                    name, 0, Reason.NO_SEGMENT, "the segment is not there", self.links.seq + 1
                )
            self.segments = number
            # Looked up before the segment is read: what has a successor with records in it is complete by then,
            # also while the chain is being written.
            followed = number < self._last and not self._only_made(number + 1)
            bad = self._segment(name, followed=followed)
            if bad is not None:
                return bad
            if self.links.next_segment is not None and not self.torn_bytes:
                if self.links.next_segment != segment_name(self._chain, number + 1):
                    detail = f"rotate names `{self.links.next_segment}`"
                    return self._bad(name, 0, Reason.NO_ROTATE, detail, self.links.seq)
            elif followed:
                return self._bad(name, 0, Reason.NO_ROTATE, "but there is a segment after it", self.links.seq)
            else:
                return self.heads.end(self.links.seq)
            number += 1

    def _only_made(self, number: int) -> bool:
        """Return whether the chain's last segment is empty: a crash came before the one before it was ended."""
        return number == self._last and (self._directory / segment_name(self._chain, number)).stat().st_size == 0

    def _segment(self, name: str, *, followed: bool) -> BadRecord | None:
        self.links.next_segment = None  # what counts is whether this segment ends with rotate
        reading = lines(self._directory / name)
        for line in reading:
            if not line.ended:
                return self._torn(name, line, followed=followed)
            if (flaw := self.links.receive(line.data)) is not None:
                return self._name(name, line.number, flaw, reading)
            if (bad := self.heads.receive(self.links.seq, self.links.hash)) is not None:
                return bad
        return None

    def _torn(self, name: str, line: Line, *, followed: bool) -> BadRecord | None:
        """Judge an unfinished line: at the chain's end it is a write that was cut short."""
        self.torn_bytes = len(line.data)
        expected = self.links.seq + 1
        if followed:
            return self._bad(name, line.number, Reason.TRUNCATED, "the segment has a successor", expected)
        if len(line.data) > format_.MAX_LINE_BYTES:
            return self._bad(name, line.number, Reason.TOO_LONG, "no record is as long", expected)
        cut = self.heads.end(self.links.seq)
        if cut is not None:
            return cut
        if not format_.is_torn(line.data, format_.RECORD_OPENING):
            detail = "the unfinished last line can't be the beginning of a record"
            return self._bad(name, line.number, Reason.TRUNCATED, detail, expected)
        return None

    def _name(self, name: str, line: int, flaw: Flaw, rest: Iterator[Line]) -> BadRecord:
        """Name a flaw; a record that is missing here and stands further on was swapped."""
        missing = self.links.seq + 1
        if flaw.reason is Reason.MISSING:
            for other in rest:
                try:
                    record = format_.read(other.data)
                except AuditError:
                    continue
                if record.seq == missing and record.chain == self._chain:
                    detail = f"seq {missing} stands at line {other.number}"
                    return self._bad(name, line, Reason.SWAPPED, detail, flaw.seq)
        return self._bad(name, line, flaw.reason, flaw.detail, flaw.seq)

    def _bad(self, name: str, line: int, reason: Reason, detail: str, seq: int) -> BadRecord:
        return BadRecord(chain=self._chain, file=name, line=line, seq=seq, reason=reason, detail=detail)
