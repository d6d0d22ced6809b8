"""The disk under a journal: one chain's files, held under a lock so that no other process writes to them.

Blocking. Used by one thread at a time; knows nothing of entries, only of lines.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from pathlib import Path

from checkstream.audit.keys import why
from checkstream.audit.segments import HEADS_SUFFIX, LOCK_SUFFIX, Tail, find_tail, last_line, segment_name, segments
from checkstream.errors import AuditError

_FILE_MODE = 0o640


class ChainWriter:
    """The open files of one chain. Holds the chain's lock from `claim` to `close`."""

    def __init__(self, directory: Path, heads: Path, lock: int, tail: Tail) -> None:
        """Open the segment that `tail` names and the heads file.

        Args:
            directory: where the segments stand.
            heads: where the heads file stands.
            lock: descriptor that holds the chain's lock; closed by `close`.
            tail: where writing goes on.

        Raises:
            OSError: a file can't be opened.
        """
        self.directory = directory
        self.tail = tail
        self._lock = lock
        self._number = tail.number
        self._segment = _open_append(directory / segment_name(tail.chain, tail.number))
        try:
            self._heads = _open_append(heads / f"{tail.chain}{HEADS_SUFFIX}")
        except OSError:
            os.close(self._segment)
            raise
        os.fsync(self._segment)  # what a killed process left in the page cache is about to be signed for
        _sync_directory(directory)
        _sync_directory(heads)

    def write(self, data: bytes) -> None:
        """Write lines to the segment.

        Raises:
            OSError: the disk refused; the segment may now end in a torn line.
        """
        _write_all(self._segment, data)

    def sync(self) -> None:
        """Wait until the segment's lines are on disk.

        Raises:
            OSError: the disk refused; what is on it is unknown.
        """
        os.fdatasync(self._segment)

    def rotate(self, line: bytes) -> None:
        """End the segment with `line` and go on in the next one.

        The next segment is made first, so that a segment that ends with `rotate` always has a successor.

        Raises:
            OSError: the disk refused.
        """
        following = _open_append(self.directory / segment_name(self.tail.chain, self._number + 1), fresh=True)
        try:
            _sync_directory(self.directory)
            self.write(line)
            os.fsync(self._segment)
        except OSError:
            os.close(following)
            raise
        os.close(self._segment)
        self._segment = following
        self._number += 1

    def write_head(self, line: bytes) -> None:
        """Write a signed head; the records that it covers must be on disk.

        Raises:
            OSError: the disk refused.
        """
        _write_all(self._heads, line)
        os.fdatasync(self._heads)

    def close(self) -> None:
        """Close the files and give the lock back."""
        for descriptor in (self._segment, self._heads, self._lock):
            os.close(descriptor)


class TornTail:
    """A torn tail on its way out of a segment, so that a crash in between loses neither it nor its record."""

    def __init__(self, directory: Path, tail: Tail) -> None:
        """Name the files: `<segment>.tearing` until the repair is on record, then `<segment>.<seq>.torn`."""
        self.segment = segment_name(tail.chain, tail.number)
        self._stem = directory / self.segment.removesuffix(".jsonl")
        self._tearing = self._stem.with_name(self._stem.name + ".tearing")
        self._tail = tail
        self.dropped_bytes = 0
        self.sha256 = ""

    def take_off(self) -> bool:
        """Move the tail out of the segment; return whether there is a repair to put on record.

        Raises:
            OSError: the disk refused.
        """
        if torn := self._tail.torn:
            descriptor = os.open(self._tearing, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, _FILE_MODE)
            try:
                _write_all(descriptor, torn)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            _sync_directory(self._stem.parent)
            with (self._stem.parent / self.segment).open("r+b") as stream:
                stream.truncate(self._tail.size)
                os.fsync(stream.fileno())
        elif self._tearing.is_file():
            torn = self._tearing.read_bytes()
        else:
            return False
        self.dropped_bytes = len(torn)
        self.sha256 = hashlib.sha256(torn).hexdigest()
        return True

    def recorded(self, seq: int) -> None:
        """Give the torn bytes their lasting name: record `seq` of the repair is on disk.

        Raises:
            OSError: the disk refused.
        """
        self._tearing.rename(self._stem.with_name(f"{self._stem.name}.{seq}.torn"))


def claim(directory: Path, heads: Path, fresh: str) -> tuple[ChainWriter, TornTail, tuple[str, ...]]:
    """Take up the first chain that no process holds and that can go on, or begin the chain `fresh`.

    Returns:
        The writer, the tail to repair (the segment must be repaired before the first write), and why
        other free chains were left alone.

    Raises:
        AuditError: no chain can be written.
    """
    left: list[str] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        heads.mkdir(parents=True, exist_ok=True)
        for chain in segments(directory):
            if (lock := _lock(directory / f"{chain}{LOCK_SUFFIX}")) is None:
                continue
            try:
                tail = find_tail(directory, heads, chain)
                _trim_heads(heads / f"{chain}{HEADS_SUFFIX}")
                return ChainWriter(directory, heads, lock, tail), TornTail(directory, tail), tuple(left)
            except (AuditError, OSError) as error:
                left.append(f"{chain}: {error}")
                os.close(lock)
        return (*_begin(directory, heads, fresh), tuple(left))
    except OSError as error:
        raise AuditError(f"no audit chain can be written in `{directory}`: {why(error)}") from error


def _begin(directory: Path, heads: Path, chain: str) -> tuple[ChainWriter, TornTail]:
    lock = _lock(directory / f"{chain}{LOCK_SUFFIX}")
    if lock is None:
        raise AuditError(f"the new chain `{chain}` is held by another process; start again")
    tail = Tail(chain=chain, number=1, seq=0, hash="0" * 64, size=0)
    try:
        return ChainWriter(directory, heads, lock, tail), TornTail(directory, tail)
    except OSError:
        os.close(lock)
        raise


def _lock(path: Path) -> int | None:
    """Return a descriptor that holds the file's lock, or None when another holds it."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, _FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _trim_heads(path: Path) -> None:
    """Take a torn last line off a heads file: a head that is not whole was never given out."""
    if path.exists():
        _, size, torn = last_line(path)
        if torn:
            os.truncate(path, size)


def _open_append(path: Path, *, fresh: bool = False) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.open(path, flags | (os.O_EXCL if fresh else 0), _FILE_MODE)


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
