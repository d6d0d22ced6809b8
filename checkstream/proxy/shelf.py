"""The directory of recordings: each file written whole or not at all, removed when it is old or all is too much.

Files are named by time and stream (`20261122T051849123456Z-4f0c.jsonl`), so that the names alone say what is old. Only
files named so are ever removed. The directory is its owner's alone (0700), and so are the files (0600).
"""

from __future__ import annotations

import contextlib
import datetime as dt
import os
from collections.abc import Iterator
from pathlib import Path

_SUFFIX = ".jsonl"
_UNFINISHED = ".unfinished"
_STAMP = "%Y%m%dT%H%M%S%fZ"
_UNFINISHED_FOR = dt.timedelta(hours=1)
"""After this a file that was begun will not be finished: its process has ended."""


class Shelf:
    """Keeps files. Used by one thread."""

    def __init__(self, directory: Path, *, keep: dt.timedelta, max_bytes: int, ending: str = _SUFFIX) -> None:
        """Touch nothing yet.

        Args:
            directory: Made when it is not there.
            keep: How long files are kept.
            max_bytes: Of all files together; the oldest go first.
            ending: Of the files' names.
        """
        self._directory = directory
        self._keep = keep
        self._max_bytes = max_bytes
        self._bytes = 0
        self._ending = ending
        self.dropped = 0
        """Files that have gone to make room."""

    def put(self, began: dt.datetime, stream: str, data: bytes) -> Path:
        """Write one recording.

        Raises:
            OSError: it can't be written; nothing of it is left.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        path = self._directory / f"{began:{_STAMP}}-{stream}{self._ending}"
        unfinished = path.with_name(path.name + _UNFINISHED)
        try:
            handle = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            unfinished.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                unfinished.unlink()
            raise
        self._bytes += len(data)
        if self._bytes > self._max_bytes:
            self._shorten()
        return path

    def tidy(self, now: dt.datetime) -> int:
        """Make the directory, remove what is old, and return how many recordings that were.

        Raises:
            OSError: the directory can't be made or read.
        """
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._directory.chmod(0o700)
        removed = 0
        for path, began in self._files((self._ending, self._ending + _UNFINISHED)):
            whole = path.suffix == self._ending
            if now - began > (self._keep if whole else _UNFINISHED_FOR):
                path.unlink(missing_ok=True)
                removed += whole
        self._shorten()
        return removed

    def _shorten(self) -> None:
        """Remove the oldest recordings until the rest is within the cap."""
        sizes = [(began, path, _size(path)) for path, began in self._files((self._ending,))]
        self._bytes = sum(size for _, _, size in sizes)
        for _, path, size in sorted(sizes):
            if self._bytes <= self._max_bytes:
                break
            path.unlink(missing_ok=True)
            self._bytes -= size
            self.dropped += 1

    def _files(self, endings: tuple[str, ...]) -> Iterator[tuple[Path, dt.datetime]]:
        for path in self._directory.iterdir():
            for ending in endings:
                stamp, dash, stream = path.name.removesuffix(ending).partition("-")
                if path.name.endswith(ending) and dash and stream.isalnum():
                    with contextlib.suppress(ValueError):
                        yield path, dt.datetime.strptime(stamp, _STAMP).replace(tzinfo=dt.UTC)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:  # somebody else has removed it
        return 0
