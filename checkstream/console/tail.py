"""Follows an audit folder as it grows: what is appended to any of its chains, as far as anybody could look at it.

A look blocks on the disk, so it belongs on a thread. INVARIANT: a look reads and parses a bounded part of what is new,
the newest of it, and says how much it left out.
"""

from __future__ import annotations

import stat
from pathlib import Path

import msgspec

from checkstream.audit import chain as format_
from checkstream.audit.bodies import Body, body_of
from checkstream.audit.chain import Record
from checkstream.audit.segments import segment_name, segments
from checkstream.errors import AuditError

_MOST_BYTES = 1024 * 1024
"""Of one chain that a look reads."""
_MOST_ENTRIES = 100
"""That a look brings."""


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A record that was read."""

    record: Record
    body: Body
    line: bytes
    node: str = ""
    """Whose it is; empty: this one's."""


class New(msgspec.Struct, frozen=True, kw_only=True):
    """What a look found."""

    entries: tuple[Entry, ...] = ()
    """Of exchanges, the oldest first."""
    left_out: int = 0
    """Records that there were besides; of those that were not read at all, one for a part of the log."""


class Tail:
    """The ends of all chains of a folder."""

    def __init__(self, folder: Path) -> None:
        """Read nothing yet."""
        self._folder = folder
        self._at: dict[str, tuple[int, int]] = {}
        """Chain -> the segment that is read, and how far."""

    def begin(self) -> None:
        """Go to the ends of all chains.

        Raises:
            AuditError: the folder can't be read.
        """
        self._at = {}
        for chain, numbers in self._chains().items():
            self._at[chain] = numbers[-1], self._size(chain, numbers[-1])

    def look(self) -> New:
        """Return what is new since the last look.

        Raises:
            AuditError: the folder can't be read.
        """
        lines: list[bytes] = []
        skipped = 0
        for chain, numbers in self._chains().items():
            number, offset = self._at.get(chain, (numbers[0], 0))
            if numbers[-1] > number + 1:  # so much has come that nobody could have read it
                number, offset, skipped = numbers[-1], 0, skipped + 1
            for at in (each for each in numbers if each >= number):
                offset = offset if at == number else 0
                found, offset, jumped = self._read(chain, at, offset)
                lines += found
                skipped += jumped
                self._at[chain] = at, offset
        exchanges = [line for line in lines if b'"kind":"stream"' in line or b'"kind":"pass"' in line]
        shown = exchanges[-_MOST_ENTRIES:]
        return New(entries=tuple(_entries(shown)), left_out=len(exchanges) - len(shown) + skipped)

    def _read(self, chain: str, number: int, offset: int) -> tuple[list[bytes], int, int]:
        """Return the whole lines behind an offset, the offset behind them, and 1 if some before them were not read."""
        size = self._size(chain, number)
        if size <= offset:
            return [], size, 0  # a torn line was taken off, or nothing has come
        jumped = size - offset > _MOST_BYTES
        start = size - _MOST_BYTES if jumped else offset
        try:
            with (self._folder / segment_name(chain, number)).open("rb") as stream:
                stream.seek(start)
                data = stream.read(size - start)
        except OSError as error:
            raise AuditError(f"chain `{chain}` can't be read: {error.strerror}") from error
        if jumped:
            cut = data.find(b"\n") + 1
            start, data = start + cut, data[cut:]
        end = data.rfind(b"\n") + 1
        return data[:end].split(b"\n")[:-1], start + end, int(jumped)

    def _chains(self) -> dict[str, list[int]]:
        return segments(self._folder) if self._folder.exists() else {}

    def _size(self, chain: str, number: int) -> int:
        try:
            found = (self._folder / segment_name(chain, number)).stat()
        except FileNotFoundError:  # it has been taken away meanwhile
            return 0
        except OSError as error:
            raise AuditError(f"chain `{chain}` can't be read: {error.strerror}") from error
        return found.st_size if stat.S_ISREG(found.st_mode) else 0


def _entries(lines: list[bytes]) -> list[Entry]:
    found: list[Entry] = []
    for line in lines:
        try:
            record = format_.read(line)
            found.append(Entry(record=record, body=body_of(record), line=line))
        except AuditError:
            continue  # searches name it
    return sorted(found, key=lambda entry: (entry.record.time, entry.record.seq))
