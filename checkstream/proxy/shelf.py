"""The directory of recordings: each file written whole or not at all, removed when it is old or all is too much.

Files are named by time and stream (`20261122T051849123456Z-4f0c.jsonl`), so that the names alone say what is old. Only
files named so are ever removed. The directory is its owner's alone (0700), and so are the files (0600).

Several processes fill one directory, and another may empty it. How much is in it stands in a file beside the rest
(`.bytes-of-jsonl`), under a lock, and that is never less than there is. Only when it says that there is no room, the
directory is counted anew, and what is too much goes with some to spare: a full directory is not counted for each file.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import errno
import fcntl
import heapq
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

_SUFFIX = ".jsonl"
_UNFINISHED = ".unfinished"
_STAMP = "%Y%m%dT%H%M%S%fZ"
_ZEROS = str.maketrans("123456789", "000000000")
_FORM = "00000000T000000000000Z"
_UNFINISHED_FOR = dt.timedelta(hours=1)
"""After this a file that was begun will not be finished: its process has ended."""
_SPARE = 10
"""One part of so many of what may be kept is made free at least, when there is no room."""
_SORTED = 4096
"""Names that are sorted at once: no other thread runs meanwhile."""
_DIGITS = 20


class Shelf:
    """Keeps files. Used by one thread; others, and other processes, may use the same directory."""

    def __init__(self, directory: Path, *, keep: dt.timedelta, max_bytes: int, ending: str = _SUFFIX) -> None:
        """Touch nothing yet.

        Args:
            directory: Made when it is not there.
            keep: How long files are kept.
            max_bytes: Of all files together, whoever has put them; the oldest go first.
            ending: Of the files' names.
        """
        self._directory = directory
        self._keep = keep
        self._max_bytes = max_bytes
        self._ending = ending
        self._total = directory / f".bytes-of-{ending.removeprefix('.')}"
        self.dropped = 0
        """Files that have gone to make room."""

    def put(self, began: dt.datetime, stream: str, data: bytes) -> Path:
        """Write one recording.

        Raises:
            OSError: it can't be written; nothing of it is left.
        """
        if len(data) > self._max_bytes:
            raise OSError(errno.EFBIG, "it alone is more than all that may be kept")
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{began:{_STAMP}}-{stream}{self._ending}"
        unfinished = path.with_name(path.name + _UNFINISHED)
        try:
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            with self._locked() as total:
                held = _read(total)
                if held is None or held + len(data) > self._max_bytes:
                    held = self._shorten(len(data))
                _write(total, held + len(data))
                unfinished.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        return path

    def tidy(self, now: dt.datetime) -> int:
        """Make the directory, remove what is old, and return how many recordings that were.

        Raises:
            OSError: the directory can't be made or read.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        removed = 0
        oldest, begun = (f"{now - age:{_STAMP}}" for age in (self._keep, _UNFINISHED_FOR))
        for entry, whole in self._files():
            if entry.name < (oldest if whole else begun):
                Path(entry).unlink(missing_ok=True)
                removed += whole
        with self._locked() as total:
            _write(total, self._shorten(0))
        return removed

    def _shorten(self, room: int) -> int:
        """Count all, remove the oldest when there is not so much room, and return how much there is now."""
        sizes = ((entry.name, _size(entry)) for entry, whole in self._files() if whole)
        runs = list(iter(lambda: sorted(islice(sizes, _SORTED)), []))
        held = sum(size for run in runs for _, size in run)
        if held + room <= self._max_bytes:
            return held
        for name, size in heapq.merge(*runs):
            if held + room <= self._max_bytes - self._max_bytes // _SPARE:
                break
            held -= size
            with contextlib.suppress(FileNotFoundError):  # somebody else has removed it
                (self._directory / name).unlink()
                self.dropped += 1
        return held

    def _files(self) -> Iterator[tuple[os.DirEntry[str], bool]]:
        """Tell of each file, and whether it is finished."""
        with os.scandir(self._directory) as entries:
            for entry in entries:
                name = entry.name.removesuffix(_UNFINISHED)
                stamp, dash, stream = name.removesuffix(self._ending).partition("-")
                if name.endswith(self._ending) and dash and stream.isalnum() and stamp.translate(_ZEROS) == _FORM:
                    yield entry, name == entry.name

    @contextlib.contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file that says how much there is, for one process at a time."""
        total = os.open(self._total, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(total, fcntl.LOCK_EX)
            yield total
        finally:
            os.close(total)


def _read(total: int) -> int | None:
    """Return how much there is; None: that is not known."""
    told = os.pread(total, _DIGITS, 0)
    return int(told) if len(told) == _DIGITS and told.isdigit() else None


def _write(total: int, held: int) -> None:
    os.pwrite(total, f"{held:0{_DIGITS}}".encode(), 0)  # of one length, so that nothing of it has to be cut off


def _size(entry: os.DirEntry[str]) -> int:
    try:
        return entry.stat(follow_symlinks=False).st_size
    except OSError:  # somebody else has removed it
        return 0
