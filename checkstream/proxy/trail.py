"""The way to the audit journal, remembering the latest entries for the admin listener."""

from __future__ import annotations

import collections
from collections.abc import Callable

from checkstream.audit.entries import AnyEntry
from checkstream.audit.journal import Journal

_REMEMBERED = 200


class Trail:
    """Appends to the journal and keeps the latest entries at hand."""

    def __init__(self, journal: Journal, recorded: Callable[[], None]) -> None:
        """Write to `journal`; `recorded` is told of each entry that it took."""
        self._journal = journal
        self._recorded = recorded
        self._latest: collections.deque[tuple[int, AnyEntry]] = collections.deque(maxlen=_REMEMBERED)

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
        self._latest.append((self._journal.append(entry), entry))
        self._recorded()

    async def append_durable(self, entry: AnyEntry) -> None:
        """Append, as durably as configured.

        Raises:
            AuditError: the journal takes no entry, or the disk refused.
        """
        self._latest.append((-1, entry))
        seq = await self._journal.append_durable(entry)
        self._recorded()
        for place in range(len(self._latest) - 1, -1, -1):
            if self._latest[place][1] is entry:
                self._latest[place] = (seq, entry)
                break

    def latest(self, count: int) -> list[tuple[int, AnyEntry]]:
        """Return up to `count` of the latest entries with their numbers, oldest first."""
        return [pair for pair in self._latest if pair[0] >= 0][-count:]
