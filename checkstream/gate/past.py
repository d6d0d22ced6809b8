"""What runs before came to, wherever it is kept: one interface, and the past of one file of runs."""

from __future__ import annotations

import asyncio
from typing import Protocol

from checkstream.gate.history import Trend
from checkstream.gate.ledger import Ledger
from checkstream.gate.terms import Run, Said


def is_shared(where: str) -> bool:
    """Tell whether a history is one of many machines, by where it is."""
    return where.startswith(("http://", "https://"))


class Past(Protocol):
    """Tells of runs."""

    async def report(self, run_id: str) -> str | None:
        """Return the report of a decided run, as JSON."""
        ...

    async def runs(
        self, *, since: float | None = None, config_hash: str | None = None, target: str | None = None,
        decided: bool = False, limit: int = 100,
    ) -> list[Run]:  # fmt: skip
        """Return runs, the newest first."""
        ...

    async def trends(
        self, *, since: float | None = None, config_hash: str | None = None, target: str | None = None
    ) -> list[Trend]:
        """Return how the risk of each configuration has changed, the one that ran last first."""
        ...

    async def last_deployed(self, config_hash: str, before: float) -> Run | None:
        """Return the newest run of a configuration that was deployed before a time."""
        ...

    async def search(
        self, words: str, *, kind: str | None = None, since: float | None = None, until: float | None = None,
        limit: int = 50,
    ) -> list[Said]:  # fmt: skip
        """Return what runs said that has all of the words, the best match first."""
        ...


class LocalPast:
    """The past of one file of runs."""

    def __init__(self, ledger: Ledger) -> None:
        """Tell what `ledger` keeps."""
        self._ledger = ledger

    async def report(self, run_id: str) -> str | None:
        """Return the report of a decided run, as JSON."""
        return await asyncio.to_thread(self._ledger.report, run_id)

    async def runs(
        self, *, since: float | None = None, config_hash: str | None = None, target: str | None = None,
        decided: bool = False, limit: int = 100,
    ) -> list[Run]:  # fmt: skip
        """Return runs, the newest first."""
        return await asyncio.to_thread(
            self._ledger.runs, since=since, config_hash=config_hash, target=target, decided=decided, limit=limit
        )

    async def trends(
        self, *, since: float | None = None, config_hash: str | None = None, target: str | None = None
    ) -> list[Trend]:
        """Return how the risk of each configuration has changed, the one that ran last first."""
        return await asyncio.to_thread(self._ledger.trends, since=since, config_hash=config_hash, target=target)

    async def last_deployed(self, config_hash: str, before: float) -> Run | None:
        """Return the newest run of a configuration that was deployed before a time."""
        return await asyncio.to_thread(self._ledger.last_deployed, config_hash, before)

    async def search(
        self, words: str, *, kind: str | None = None, since: float | None = None, until: float | None = None,
        limit: int = 50,
    ) -> list[Said]:  # fmt: skip
        """Return what runs said that has all of the words, the best match first."""
        return await asyncio.to_thread(self._ledger.search, words, kind=kind, since=since, until=until, limit=limit)
