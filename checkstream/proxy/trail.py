"""The way to the audit journal, remembering the latest entries for the admin listener."""

from __future__ import annotations

import collections
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from checkstream.audit.entries import AnyEntry
from checkstream.audit.journal import Journal

_REMEMBERED = 200


class Latest(msgspec.Struct, frozen=True):
    """One of the latest entries."""

    at: str
    """When it was appended."""
    chain: str
    seq: int
    entry: AnyEntry


class Trail:
    """Appends to the journal and keeps the latest entries at hand."""

    def __init__(self, journal: Journal, recorded: Callable[[], None]) -> None:
        """Write to `journal`; `recorded` is told of each entry that it took."""
        self._journal = journal
        self._recorded = recorded
        self._latest: collections.deque[Latest] = collections.deque(maxlen=_REMEMBERED)

    @property
    def failure(self) -> str:
        """Why entries can't be written; empty while they can."""
        if self._journal.state == "open":
            return ""
        return self._journal.failure or "the audit journal is closed"

    @property
    def chain(self) -> str:
        """Name of this process's chain."""
        return self._journal.chain

    def append(self, entry: AnyEntry) -> None:
        """Append without waiting for the disk.

        Raises:
            AuditError: the journal takes no entry.
        """
        self._latest.append(self._latest_of(self._journal.append(entry), entry))
        self._recorded()

    async def append_durable(self, entry: AnyEntry) -> None:
        """Append, as durably as configured.

        Raises:
            AuditError: the journal takes no entry, or the disk refused.
        """
        self._latest.append(self._latest_of(-1, entry))
        seq = await self._journal.append_durable(entry)
        self._recorded()
        for place in range(len(self._latest) - 1, -1, -1):
            if self._latest[place].entry is entry:
                self._latest[place] = msgspec.structs.replace(self._latest[place], seq=seq)
                break

    def _latest_of(self, seq: int, entry: AnyEntry) -> Latest:
        return Latest(datetime.now(UTC).isoformat(timespec="milliseconds"), self._journal.chain, seq, entry)

    def latest(self, count: int) -> list[Latest]:
        """Return up to `count` of the latest entries, oldest first."""
        return [each for each in self._latest if each.seq >= 0][-count:]
