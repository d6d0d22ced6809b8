"""Exchanges as they end: one reader of the log for all pages that are open, and none where there are none.

Server-sent events. INVARIANT: nobody waits for a page that reads slowly: what waits for it is bounded, and beyond that
it is cut off.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Protocol

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.access import HEADERS
from checkstream.console.facts import Facts
from checkstream.console.pages import Frame, Pages
from checkstream.console.queries import Query
from checkstream.console.records import Log
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.tail import New
from checkstream.console.text import shown
from checkstream.console.views.exchange import Row, row_of
from checkstream.errors import AuditError
from checkstream.listen import connection_of

MOST_READERS = 32
"""Pages that are open at once."""
MOST_OF_ONE = 8
"""Those of one person, so that nobody locks the others out."""
LOOK_S = 0.5
_WAITING = 64
"""Events that wait for a page; each is what one look has found."""
_ALIVE_S = 15.0
_LIVES_S = 3600.0
"""Then the page asks anew."""
FIRST = 30
"""Exchanges that stand on a page when it comes."""


class Follower(Protocol):
    """Follows what comes. Its calls block."""

    def begin(self) -> None:
        """Go to where all stands now.

        Raises:
            AuditError: that can't be had.
        """

    def look(self) -> New:
        """Return what is new since the last look.

        Raises:
            AuditError: that can't be had.
        """


class _Reader:
    """One page that is open."""

    def __init__(self, whose: str, query: Query, drop: Callable[[], None]) -> None:
        self.whose = whose
        self.query = query
        self.events: asyncio.Queue[bytes | None] = asyncio.Queue(_WAITING)
        self._drop = drop

    def put(self, event: bytes) -> bool:
        """Let an event wait for the page; cut it off where there is no room, and tell so."""
        try:
            self.events.put_nowait(event)
        except asyncio.QueueFull:
            self._drop()
            return False
        return True

    def end(self) -> None:
        """Let the page go, behind nothing that waits for it."""
        while not self.events.empty():
            self.events.get_nowait()
        self.events.put_nowait(None)


class Live:
    """Sends what is new to the pages that are open."""

    def __init__(self, shell: Shell, follower: Follower) -> None:
        """Look at nothing yet."""
        self._shell = shell
        self._tail = follower
        self._readers: set[_Reader] = set()
        self._looking: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Let all pages go."""
        for reader in tuple(self._readers):
            reader.end()
        await self._stop()

    async def _stop(self) -> None:
        looking, self._looking = self._looking, None
        if looking is not None:
            looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await looking

    async def stream(self, request: BaseRequest, query: Query) -> StreamResponse:
        """Send what is new of what is wanted, for as long as the page is there."""
        person = self._shell.access.person(request)
        whose = "" if person is None else person.name
        if sum(reader.whose == whose for reader in self._readers) >= MOST_OF_ONE:
            return Response(status=429, text=f"{MOST_OF_ONE} pages of yours are open already; close one\n")
        if len(self._readers) >= MOST_READERS:
            return Response(status=429, text=f"{MOST_READERS} pages are open already; try again later\n")
        transport = request.transport
        reader = _Reader(whose, query, transport.abort if transport is not None else _nothing)
        self._readers.add(reader)
        connection_of(request).watch(reader.end, _nothing)
        try:
            await self._begin()
            return await self._send(request, reader)
        finally:
            self._readers.discard(reader)
            if not self._readers:
                await self._stop()

    async def _begin(self) -> None:
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._look())

    async def _look(self) -> None:
        with contextlib.suppress(AuditError):
            await asyncio.to_thread(self._tail.begin)
        told = ""
        while True:
            await asyncio.sleep(LOOK_S)
            readers = tuple(self._readers)
            fault = ""
            try:
                events = await asyncio.to_thread(self._events, [reader.query for reader in readers])
            except AuditError as error:
                fault = shown(error, 300)
                events = [_event("fault", fault) if fault != told else None for _ in readers]
            told = fault
            for reader, event in zip(readers, events, strict=True):
                if event is not None and not reader.put(event):
                    self._readers.discard(reader)

    def _events(self, queries: list[Query]) -> list[bytes | None]:
        """Return, for each page, what is new for it. Blocks."""
        new = self._tail.look()
        return [event_of(new, query) for query in queries]

    async def _send(self, request: BaseRequest, reader: _Reader) -> StreamResponse:
        headers = {
            **HEADERS,
            hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8",
            hdrs.CACHE_CONTROL: "no-store",
            hdrs.SERVER: "checkstream",
        }
        response = StreamResponse(headers=headers)
        await response.prepare(request)
        with contextlib.suppress(ConnectionError, TimeoutError):  # it has left, or its hour is over
            async with asyncio.timeout(_LIVES_S):
                await response.write(b"retry: 2000\n\n")
                while (event := await _next(reader)) is not None and self._shell.access.allows(request):
                    await response.write(event)
        return response


async def _next(reader: _Reader) -> bytes | None:
    """Return the next event, or a comment that shows that the connection lives; None: there are no more."""
    try:
        async with asyncio.timeout(_ALIVE_S):
            return await reader.events.get()
    except TimeoutError:
        return b":\n\n"


class LivePages(Topic):
    """Shows exchanges as they end."""

    def __init__(self, shell: Shell, facts: Facts, log: Log) -> None:
        """Read nothing yet."""
        self._shell = shell
        self._facts = facts
        self._log = log
        self._live = Live(shell, log.follow())
        self.table = {("GET", "live"): self._show, ("GET", "live/events"): self._stream}

    async def close(self) -> None:
        """Let all pages go."""
        await self._live.close()

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        query = query_of(request)
        status = await self._facts.shown()

        def make(pages: Pages, frame: Frame) -> bytes:
            rows = [plain(row_of(entry.record, entry.body)) for entry in self._log.search(query, FIRST).entries]
            routes = sorted({route.name for route in status.routes})
            return pages.render("live", frame, query=query, rows=rows, routes=routes, nodes=())

        return await self._shell.page(request, "live", make)

    async def _stream(self, request: BaseRequest, _: str) -> StreamResponse:
        return await self._live.stream(request, query_of(request))


def event_of(new: New, query: Query) -> bytes | None:
    """Return what is new and wanted as an event; None: nothing is."""
    wanted = [
        plain(row_of(entry.record, entry.body, entry.node))
        for entry in new.entries
        if query.node in ("", entry.node) and query.fits(entry.record, entry.body)
    ]
    if not wanted and not new.left_out:
        return None
    return _event("rows", {"rows": wanted, "left_out": new.left_out})


def plain(row: Row) -> Row:
    """Return a row whose texts can be shown as they are."""
    return msgspec.structs.replace(
        row,
        time=shown(row.time, 30),
        held_ms=shown(row.held_ms, 20),
        stream=shown(row.stream, 24),
        route=shown(row.route, 60),
        action=shown(row.action, 40),
        outcome=shown(row.outcome, 40),
        rules=tuple(shown(rule, 40) for rule in row.rules[:6]),
        notes=tuple(shown(note, 60) for note in row.notes[:4]),
    )


def _event(name: str, value: object) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"


def query_of(request: BaseRequest) -> Query:
    """Return what the fields of an address ask for; what is very long is cut."""
    given = {name: request.query.get(name, "").strip()[:200] for name in ("route", "rule", "action", "node")}
    return Query(**given)


def _nothing() -> None:
    """There is no connection any more."""
