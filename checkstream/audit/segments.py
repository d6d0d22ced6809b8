"""The files of a chain: their names, their lines, and where a chain that was left can be taken up again.

Everything in an audit directory that is not named like a segment is left alone and never read. What is
named so may hold anything: lines are read with a bound on their length.
"""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from pathlib import Path

import msgspec

from checkstream.audit import chain as format_
from checkstream.errors import AuditError

SEGMENT_SUFFIX = ".jsonl"
HEADS_SUFFIX = ".heads"
LOCK_SUFFIX = ".lock"
_NAME_CHARACTERS = frozenset("0123456789abcdefghijklmnopqrstuvwxyz")


class Line(msgspec.Struct, frozen=True):
    """One line of a file."""

    number: int
    """From 1."""
    data: bytes
    """Without its LF. Of a line that is too long to be a record, no more than its beginning."""
    ended: bool
    """False: the file ends before the line's LF."""


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Where a chain can be taken up again."""

    chain: str
    number: int
    """Of the segment that is written next."""
    seq: int
    hash: str
    """Of the last whole record; 64 zeros when there is none."""
    size: int
    """Bytes of the segment that are whole records."""
    torn: bytes = b""
    """What stands after them."""


def segment_name(chain: str, number: int) -> str:
    """Return the name of a chain's segment."""
    return f"{chain}-{number:06d}{SEGMENT_SUFFIX}"


def read_name(name: str) -> tuple[str, int] | None:
    """Return chain and number of a segment's file name, or None for any other name."""
    chain, dash, number = name.removesuffix(SEGMENT_SUFFIX).partition("-")
    if not (dash and chain and set(chain) <= _NAME_CHARACTERS and number.isascii() and number.isdigit()):
        return None
    found = (chain, int(number[:12]))
    return found if segment_name(*found) == name else None


def segments(directory: Path) -> dict[str, list[int]]:
    """Return each chain's name (sorted) with the numbers of its segments (sorted).

    Raises:
        AuditError: the directory can't be read.
    """
    found: dict[str, list[int]] = {}
    try:
        names = sorted(path.name for path in directory.iterdir())
    except OSError as error:
        advice = "; `serve` makes one below the folder that it runs in, or where `audit.dir` says"
        there = advice if isinstance(error, FileNotFoundError) else ""
        raise AuditError(f"the audit directory `{directory}` can't be read: {error.strerror}{there}") from error
    for name in names:
        if (read := read_name(name)) is not None:
            found.setdefault(read[0], []).append(read[1])
    return {chain: sorted(numbers) for chain, numbers in sorted(found.items())}


def require_file(path: Path) -> None:
    """Refuse what is not a regular file (a pipe in its place would block its reader).

    Raises:
        AuditError: not a regular file, or not there.
    """
    try:
        mode = path.lstat().st_mode
    except OSError as error:
        raise AuditError(f"`{path}` can't be read: {error.strerror}") from error
    if not stat.S_ISREG(mode):
        raise AuditError(f"`{path}` is not a regular file")


def lines(path: Path, *, end: int | None = None) -> Iterator[Line]:
    """Yield a file's lines, however long they are, in bounded memory.

    Args:
        path: a regular file.
        end: read no further than this many bytes.

    Raises:
        AuditError: the file can't be read.
    """
    require_file(path)
    most = format_.MAX_LINE_BYTES + 1
    left = path.stat().st_size if end is None else end
    number = 0
    try:
        with path.open("rb") as stream:
            while left > 0 and (data := stream.readline(min(most + 1, left))):
                left -= len(data)
                number += 1
                ended = data.endswith(b"\n")
                rest = data
                while not ended and left > 0 and (rest := stream.readline(min(most, left))):
                    left -= len(rest)
                    ended = rest.endswith(b"\n")
                yield Line(number, data.removesuffix(b"\n")[:most], ended)
    except OSError as error:
        raise AuditError(f"`{path}` can't be read: {error.strerror}") from error


def last_line(path: Path) -> tuple[bytes | None, int, bytes]:
    """Return a file's last whole line (None when it has none), the size up to its LF, and the bytes after that.

    Raises:
        AuditError: the file can't be read, or its last line is too long to be a record.
    """
    require_file(path)
    try:
        with path.open("rb") as stream:
            if path.stat().st_size == 0:
                return None, 0, b""
            with mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
                end = content.rfind(b"\n")
                start = content.rfind(b"\n", 0, max(end, 0)) + 1
                if max(end - start, len(content) - end - 1) > format_.MAX_LINE_BYTES + 1:
                    raise AuditError(f"the last line of `{path}` is too long to be a record")
                return (content[start:end] if end >= 0 else None), end + 1, content[end + 1 :]
    except OSError as error:
        raise AuditError(f"`{path}` can't be read: {error.strerror}") from error


def find_tail(directory: Path, heads: Path, chain: str) -> Tail:
    """Return where a chain can be taken up. Its lock must be held.

    Raises:
        AuditError: the chain ends in something that it can't go on from: a record that doesn't fit, or less
            than what a head was signed for.
    """
    tail = _segment_tail(directory, chain, max(segments(directory)[chain]))
    file = heads / f"{chain}{HEADS_SUFFIX}"
    if not file.exists():
        return tail
    line, _, _ = last_line(file)
    if line is not None:
        head = format_.read_head(line)
        if head.chain != chain or head.seq > tail.seq or (head.seq == tail.seq and head.hash != tail.hash):
            raise AuditError(
                f"chain `{chain}` ends at seq {tail.seq}, which is not what its head at seq {head.seq} says"
            )
    return tail


def _segment_tail(directory: Path, chain: str, number: int) -> Tail:
    path = directory / segment_name(chain, number)
    line, size, torn = last_line(path)
    if line is not None:
        record = format_.read(line)
        if record.chain != chain or format_.record_hash(record) != record.hash:
            raise AuditError(f"the last record of `{path.name}` doesn't fit its chain")
        if record.kind == "rotate":
            raise AuditError(f"`{path.name}` ends with rotate and `{record.body.get('next')}` is missing")
        return Tail(chain=chain, number=number, seq=record.seq, hash=record.hash, size=size, torn=torn)
    if number == 1:
        return Tail(chain=chain, number=1, seq=0, hash=format_.GENESIS, size=0, torn=torn)
    before = directory / segment_name(chain, number - 1)
    ending, _, _ = last_line(before)
    closing = format_.read(ending) if ending is not None else None
    if closing is not None and closing.kind == "rotate" and closing.body.get("next") == path.name:
        if closing.chain != chain or format_.record_hash(closing) != closing.hash:
            raise AuditError(f"the last record of `{before.name}` doesn't fit its chain")
        return Tail(chain=chain, number=number, seq=closing.seq, hash=closing.hash, size=0, torn=torn)
    if torn:
        raise AuditError(f"`{before.name}` doesn't lead to `{path.name}`")
    # The process ended between making the next segment and closing this one: the empty file says nothing.
    path.unlink()
    return _segment_tail(directory, chain, number - 1)
