"""What happens now: the sums of an hour, and what is in force."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import UTC, datetime

from aiohttp.web import BaseRequest, StreamResponse

from checkstream.console.facts import Facts
from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.totals import EVERY_S, Ring, keyed
from checkstream.console.views.overview import overview


class OverviewPages(Topic):
    """Counts all the while, and shows it."""

    def __init__(self, shell: Shell, facts: Facts) -> None:
        """Count nothing yet."""
        self._shell = shell
        self._facts = facts
        self._ring = Ring()
        self._counting: asyncio.Task[None] | None = None
        self.table = {("GET", ""): self._show}

    async def open(self) -> None:
        """Begin to count."""
        await self._take()
        self._counting = asyncio.get_running_loop().create_task(self._count())

    async def close(self) -> None:
        """Stop counting."""
        if self._counting is not None:
            self._counting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._counting

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self._take()

    async def _take(self) -> None:
        figures = await self._facts.totals()
        self._ring.take(_now(), await asyncio.to_thread(keyed, figures))

    async def now(self) -> Ring:
        """Return what has been counted up to now."""
        figures = await self._facts.totals()
        return self._ring.upto(_now(), await asyncio.to_thread(keyed, figures))

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        ring, facts = await self.now(), self._facts
        status, listen = await facts.shown(), facts.listen

        def make(pages: Pages, frame: Frame) -> bytes:
            return pages.render("overview", frame, view=overview(status, ring, listen))

        return await self._shell.page(request, "overview", make)


def _now() -> float:
    return datetime.now(UTC).timestamp()
