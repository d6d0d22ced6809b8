"""Reads the audit folder for the console: the newest records that are asked for, one of them, and what proves it.

All calls block on the disk and take CPU time, so they belong on a thread. INVARIANT: each reads a bounded part of the
log and says how far it came; between two blocks others have their turn.
"""

from __future__ import annotations

import base64
import heapq
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from checkstream.audit import chain as format_
from checkstream.audit.bodies import body_of
from checkstream.audit.segments import HEADS_SUFFIX, lines, require_file, segment_name, segments
from checkstream.console.queries import ActQuery, Query
from checkstream.console.tail import Entry, Tail
from checkstream.errors import AuditError

MOST_BYTES = 96 * 1024 * 1024
"""Of the log that one search reads, over all chains."""
MOST_S = 5.0
MOST_ROWS = 50
_MOST_LINKS = 5000
"""Records between one and its head; heads are signed each second."""
_MOST_HEADS_BYTES = 8 * 1024 * 1024
"""Of heads that are read one by one, where their numbers don't grow as they should."""
_HEADS_STEP = 64 * 1024
_BLOCK = 256 * 1024
_PAUSE_S = 0.0005
_TIME_AT, _TIME_END = -32, -8
"""Where the time stands in a canonical line, which ends with `"time":"...","v":1}`."""


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """What a search came to."""

    entries: tuple[Entry, ...] = ()
    """The newest first."""
    back_to: str = ""
    """Time of the oldest record that was looked at, where the search gave up before the log's beginning."""
    unreadable: tuple[str, ...] = ()
    """`file: reason` of lines that are no records."""


class Proof(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser needs to prove that a record stands in a chain that somebody has signed."""

    line: str
    """The record as it stands in the log, base64."""
    after: tuple[str, ...] = ()
    """Of each record between it and the head, in order, the hash of the record by itself (`chain`), hex."""
    head: str = ""
    """The head's line, base64; empty: none covers the record, or, where there is a `gap`, no browser can walk to it."""
    key: str = ""
    """The public key, PEM; empty: there is none at hand."""
    gap: str = ""
    """Why there is no way from the record to the head."""


class Log(Protocol):
    """Where records are: an audit folder, or what a server has of many. All calls block."""

    def search(self, query: Query, most: int = MOST_ROWS) -> Found:
        """Return the newest exchanges that are wanted.

        Raises:
            AuditError: the log can't be read.
        """

    def line(self, chain: str, seq: int) -> bytes | None:
        """Return a record as it stands in the log; None: there is no such record.

        Raises:
            AuditError: the log can't be read.
        """

    def proof(self, chain: str, seq: int) -> Proof | None:
        """Return what proves a record; None: there is no such record.

        Raises:
            AuditError: the log can't be read.
        """

    def follow(self) -> Tail:
        """Return what follows the log from now on; its `begin` comes first."""


class Folder:
    """An audit folder. Implements `Log`."""

    def __init__(self, path: Path, pem: Callable[[], str]) -> None:
        """Read nothing yet.

        Args:
            path: Where the segments and heads are.
            pem: Returns the public key of the heads; empty: it can't be had. May block.
        """
        self._path = path
        self._pem = pem

    def search(self, query: Query, most: int = MOST_ROWS, *, most_bytes: int = MOST_BYTES) -> Found:
        """Return the newest exchanges that are wanted. A folder that is not there has none.

        Raises:
            AuditError: the log can't be read.
        """
        return newest(self._path, query, most, most_bytes=most_bytes)

    def follow(self) -> Tail:
        """Return what follows the log from now on; its `begin` comes first."""
        return Tail(self._path)

    def line(self, chain: str, seq: int) -> bytes | None:
        """Return a record as it stands in the log; None: there is no such record.

        Raises:
            AuditError: the log can't be read.
        """
        found = self._find(chain, seq)
        return None if found is None else found[1]

    def _find(self, chain: str, seq: int) -> tuple[int, bytes] | None:
        """Return the segment of a record, and its line."""
        numbers = segments(self._path).get(chain, []) if self._path.exists() else []
        mark = b'"seq":%d,"time":' % seq
        for number in reversed(numbers):
            path = self._path / segment_name(chain, number)
            first = _seq_of(next((line.data for line in lines(path)), b""))
            if first > seq:
                continue
            for line in _paced(path):
                if mark in line:
                    return number, line
            if first:  # it would have stood here
                return None
        return None

    def proof(self, chain: str, seq: int) -> Proof | None:
        """Return what proves a record; None: there is no such record.

        Raises:
            AuditError: the log can't be read.
        """
        found = self._find(chain, seq)
        if found is None:
            return None
        number, line = found
        told = Proof(line=_base64(line), key=self._pem())
        head = self._head(chain, seq)
        if head is None:
            return told
        if head[1] - seq > _MOST_LINKS:
            return msgspec.structs.replace(told, gap=f"the next head is {head[1] - seq} records away")
        after, gap = self._links(chain, number, seq, head[1])
        return msgspec.structs.replace(told, head=_base64(head[0]), after=after, gap=gap)

    def _head(self, chain: str, seq: int) -> tuple[bytes, int] | None:
        """Return the first head that covers a record, and which record it is of."""
        path = self._path / f"{chain}{HEADS_SUFFIX}"
        if not path.is_file():
            return None
        require_file(path)
        try:
            with path.open("rb") as stream:
                end = _go_before(stream, seq) + _MOST_HEADS_BYTES
                while stream.tell() < end and (line := stream.readline(format_.MAX_LINE_BYTES + 1)):
                    if not line.endswith(b"\n") or _seq_of(line) < seq:
                        continue
                    try:
                        head = format_.read_head(line[:-1])
                    except AuditError:
                        continue  # `audit verify` names it
                    if head.seq >= seq and head.chain == chain:
                        return line[:-1], head.seq
        except OSError as error:
            raise AuditError(f"`{path}` can't be read: {error.strerror}") from error
        return None

    def _links(self, chain: str, number: int, seq: int, upto: int) -> tuple[tuple[str, ...], str]:
        """Return the hashes of the records behind one, up to that of a head; or why they can't be had."""
        hashes: list[str] = []
        wanted = seq + 1
        for at in itertools.count(number):
            path = self._path / segment_name(chain, at)
            if not path.exists():
                return (), f"record {wanted} is missing"
            for line in _paced(path):
                if wanted > upto:
                    return tuple(hashes), ""
                if at == number and _seq_of(line) <= seq:
                    continue
                try:
                    record = format_.read(line)
                except AuditError:
                    return (), f"record {wanted} can't be read"
                if record.seq != wanted:
                    return (), f"record {wanted} is missing"
                hashes.append(format_.own_hash(record))
                wanted += 1
            if wanted > upto:
                return tuple(hashes), ""
        raise AssertionError("counting ends never")


def newest(path: Path, query: Query | ActQuery, most: int = MOST_ROWS, *, most_bytes: int = MOST_BYTES) -> Found:
    """Return the newest records of an audit folder that are wanted. A folder that is not there has none. Blocks.

    Raises:
        AuditError: the log can't be read.
    """
    if not path.exists():
        return Found()
    chains = segments(path)
    share = most_bytes // max(len(chains), 1)
    end = time.monotonic() + MOST_S
    walks = [
        _Walk([path / segment_name(chain, number) for number in reversed(numbers)], query, share, end)
        for chain, numbers in chains.items()
    ]
    merged = heapq.merge(*walks, key=lambda entry: (entry.record.time, entry.record.seq), reverse=True)
    entries = tuple(itertools.islice(merged, most))
    given_up = [walk.oldest for walk in walks if walk.given_up] if len(entries) < most else []
    unreadable = itertools.chain.from_iterable(walk.unreadable for walk in walks)
    return Found(entries=entries, back_to=max(given_up, default=""), unreadable=tuple(unreadable)[:20])


class _Walk:
    """A chain from its end on, as far as a search may read."""

    def __init__(self, files: Sequence[Path], query: Query | ActQuery, most_bytes: int, end: float) -> None:
        self._files = files
        self._query = query
        self._left = most_bytes
        self._end = end
        self._needles = tuple(query.needles())
        self.given_up = False
        self.oldest = ""
        self.unreadable: list[str] = []

    def __iter__(self) -> Iterator[Entry]:
        for path in self._files:
            for line in _backwards(path):
                self._left -= len(line) + 1
                if self._left < 0 or time.monotonic() > self._end:
                    self.given_up = True
                    return
                said = line[_TIME_AT:_TIME_END].decode("ascii", "replace")
                self.oldest = said
                if self._query.since and said < self._query.since and said[:2] == "20":
                    return
                if all(any(needle in line for needle in each) for each in self._needles):
                    yield from self._read(path, line)

    def _read(self, path: Path, line: bytes) -> Iterator[Entry]:
        try:
            record = format_.read(line)
            body = body_of(record)
        except AuditError as error:
            if len(self.unreadable) < 20:
                self.unreadable.append(f"{path.name}: {error}")
            return
        if self._query.fits(record, body):
            yield Entry(record=record, body=body, line=line)


def _backwards(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file, the last first, without their LFs. A line that is too long comes in no part.

    Raises:
        AuditError: the file can't be read.
    """
    require_file(path)
    try:
        with path.open("rb") as stream:
            at = stream.seek(0, 2)
            tail: list[bytes] = []  # of the line whose beginning stands further up, the last part first
            size, ended = 0, False  # of that line, and whether a LF stands behind it
            while at > 0:
                step = min(_BLOCK, at)
                at = stream.seek(at - step)
                parts = stream.read(step).split(b"\n")
                time.sleep(_PAUSE_S)
                for part in reversed(parts[1:]):
                    if ended and size + len(part) <= format_.MAX_LINE_BYTES:
                        yield part + b"".join(reversed(tail))
                    tail, size, ended = [], 0, True
                size += len(parts[0])
                if size <= format_.MAX_LINE_BYTES:
                    tail.append(parts[0])
            if ended and size <= format_.MAX_LINE_BYTES:
                yield b"".join(reversed(tail))
    except OSError as error:
        raise AuditError(f"`{path}` can't be read: {error.strerror}") from error


def _paced(path: Path) -> Iterator[bytes]:
    """Yield the whole lines of a file, and let others have their turn now and then."""
    read = 0
    for line in lines(path):
        read += len(line.data)
        if read > _BLOCK:
            read = 0
            time.sleep(_PAUSE_S)
        if line.ended:
            yield line.data


def _go_before(stream: BinaryIO, seq: int) -> int:
    """Go not far before the first head that covers a record, by halves, since their numbers grow; return the place.

    There is one each second, so a file of weeks has hundreds of megabytes.
    """
    low, high = 0, stream.seek(0, 2)
    while high - low > _HEADS_STEP:
        middle = (low + high) // 2
        stream.seek(middle)
        stream.readline(format_.MAX_LINE_BYTES)  # what is left of a line
        if 0 < _seq_of(stream.readline(format_.MAX_LINE_BYTES)) < seq:
            low = middle
        else:
            high = middle
    return stream.seek(low)


def _seq_of(line: bytes) -> int:
    """Return the number that a line says it has; 0: it says none."""
    _, found, rest = line.rpartition(b'"seq":')
    digits = rest.partition(b",")[0]
    return int(digits[:16]) if found and digits.isdigit() else 0


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
