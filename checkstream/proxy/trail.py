"""The way to the audit journal, remembering the latest entries for the admin listener."""

from __future__ import annotations

import collections
import contextlib
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from checkstream.audit.chain import Sealed
from checkstream.audit.entries import AnyEntry, PassEntry, StreamEntry
from checkstream.audit.journal import Journal
from checkstream.core.commands import StreamRecord
from checkstream.errors import AuditError
from checkstream.proxy.counts import StreamCounts

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

    def append(self, entry: AnyEntry) -> Sealed:
        """Append without waiting for the disk; return the record.

        Raises:
            AuditError: the journal takes no entry.
        """
        sealed = self._journal.placed(entry)
        self._latest.append(self._latest_of(sealed.seq, entry))
        self._recorded()
        return sealed

    async def append_durable(self, entry: AnyEntry) -> Sealed:
        """Append, as durably as configured; return the record.

        Raises:
            AuditError: the journal takes no entry, or the disk refused.
        """
        self._latest.append(self._latest_of(-1, entry))
        sealed = await self._journal.placed_durable(entry)
        self._recorded()
        for place in range(len(self._latest) - 1, -1, -1):
            if self._latest[place].entry is entry:
                self._latest[place] = msgspec.structs.replace(self._latest[place], seq=sealed.seq)
                break
        return sealed

    def _latest_of(self, seq: int, entry: AnyEntry) -> Latest:
        return Latest(datetime.now(UTC).isoformat(timespec="milliseconds"), self._journal.chain, seq, entry)

    def latest(self, count: int) -> list[Latest]:
        """Return up to `count` of the latest entries, oldest first."""
        return [each for each in self._latest if each.seq >= 0][-count:]


class ExchangeTrail:
    """Writes one exchange's record."""

    def __init__(self, trail: Trail, stream: str, route: str, caller: str | None, counts: StreamCounts) -> None:
        """Write to `trail` what comes of the exchange `stream` of a route and a caller."""
        self._counts = counts
        self._trail = trail
        self.stream = stream
        self.witness: Callable[[str, Sealed], None] | None = None
        """Hears in which chain the record stands, and which it is; None: nobody does."""
        self.route = route
        self.caller = caller

    async def write(self, record: StreamRecord) -> None:
        """Append a record; return when it is on the disk."""
        self._tell(await self._trail.append_durable(self._entry(record)))

    def write_now(self, record: StreamRecord) -> None:
        """Append a record, or lose it where the journal has failed."""
        with contextlib.suppress(AuditError):  # the journal's state shows it, and new requests are refused
            self._tell(self._trail.append(self._entry(record)))

    async def passed(self, method: str, path: str, status: int) -> None:
        """Append that a request has passed unguarded, and what was answered; return when it is on the disk."""
        self._counts.upstream_answered(status)
        await self._trail.append_durable(
            PassEntry(stream=self.stream, route=self.route, caller=self.caller, method=method, path=path, status=status)
        )

    def _tell(self, sealed: Sealed) -> None:
        if self.witness is not None:
            self.witness(self._trail.chain, sealed)

    def _entry(self, record: StreamRecord) -> StreamEntry:
        return StreamEntry(stream=self.stream, route=self.route, caller=self.caller, record=record)
