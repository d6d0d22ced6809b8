"""What the handlers of all pages share: pages are made on threads, two at a time, and forms have bounds."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlencode

from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestPayloadError, Response, StreamResponse

from checkstream.console.access import Access, theme_of
from checkstream.console.assets import Assets
from checkstream.console.pages import ROOT, Entry, Frame, Pages
from checkstream.control.server.people import Act, Asker, require
from checkstream.errors import (
    ActConflicts,
    ActForbidden,
    CheckstreamError,
    ControlUnusable,
    NotReady,
    RequestInvalid,
    ThingUnknown,
    TookTooLong,
)
from checkstream.telemetry.logs import Log

_AT_ONCE = 2
FORM_BYTES = 256 * 1024
_READ_AT_ONCE = 16 * 1024
"""Bytes of a form; more are read on a thread: where each is written as `%41`, 64 KiB take 3 to 7 ms."""
_BODY_S = 10.0
_Made = TypeVar("_Made")
_STATUS: Mapping[type[CheckstreamError], int] = {
    RequestInvalid: 400,
    ActForbidden: 403,
    ThingUnknown: 404,
    ActConflicts: 409,
    ControlUnusable: 503,
    NotReady: 503,
    TookTooLong: 503,
}

Handler = Callable[[BaseRequest, str], Awaitable[StreamResponse]]
"""Answers a request; beside it what of its path stands behind the page's own."""
Table = Mapping[tuple[str, str], Handler]
"""Method and path -> who answers; a path that ends with `/` stands for all below it."""


class Topic:
    """Pages that belong together: a table of who answers, and what goes on as long as they may be asked for."""

    table: Table
    public: frozenset[str] = frozenset()
    """Paths that are for those, too, who have not logged in."""

    async def open(self) -> None:
        """Begin what goes on."""

    async def close(self) -> None:
        """End what goes on."""


class Shell:
    """Makes pages."""

    def __init__(self, access: Access, menu: tuple[Entry, ...], log: Log | None = None) -> None:
        """Load nothing yet. `log`: where its operator is told what nobody else is to know."""
        self.access = access
        self.log = log
        self._menu = menu
        self._loading = asyncio.Lock()
        self._loaded: tuple[Pages, Assets] | None = None
        self._making = asyncio.Semaphore(_AT_ONCE)

    async def load(self) -> tuple[Pages, Assets]:
        """Return templates and files, loaded when the first page is asked for."""
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(_load)
            return self._loaded

    async def beside(self, work: Callable[[], _Made]) -> _Made:
        """Do what blocks on a thread, in turn with other pages."""
        async with self._making:
            return await asyncio.to_thread(work)

    async def page(
        self, request: BaseRequest, page: str, make: Callable[[Pages, Frame], bytes | None], status: int = 200
    ) -> Response:
        """Make a page on a thread, and answer that there is none where `make` returns None."""
        frame = Frame(
            page=page,
            theme=theme_of(request),
            menu=self._menu,
            person=self.access.person(request),
            door=self.access.door is not None,
        )
        pages, _ = await self.load()
        body = await self.beside(lambda: make(pages, frame))
        if body is None:
            return await self.missing(request)
        return Response(status=status, body=body, headers={hdrs.CONTENT_TYPE: "text/html; charset=utf-8"})

    async def rendered(self, request: BaseRequest, name: str, page: str, status: int = 200, **view: Any) -> Response:
        """Render a template for which nothing has to be read."""
        return await self.page(request, page, lambda pages, frame: pages.render(name, frame, **view), status)

    async def error(self, request: BaseRequest, status: int, reason: str) -> Response:
        """Render a page that says what is wrong."""
        return await self.rendered(request, "error", "", status, reason=reason, number=status)

    async def missing(self, request: BaseRequest) -> Response:
        """Render that there is no such page."""
        return await self.error(request, 404, "There is no such page. The menu has those that there are.")

    def asker(self, request: BaseRequest, act: Act) -> Asker:
        """Return who asks, if they may do something.

        Raises:
            ActForbidden: they may not.
        """
        person = self.access.person(request)
        if person is None:
            raise ActForbidden("nobody without a name may do that; log in first")
        return require(person.name, person.role, act)

    async def form(self, request: BaseRequest, most: int = FORM_BYTES) -> dict[str, str] | None:
        """Return the fields of a form, the first of each name; None: that is none, or it is too large or too slow."""
        if request.content_type != "application/x-www-form-urlencoded" or (request.content_length or 0) > most:
            return None
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_S):
                while data := await request.content.readany():
                    body += data
                    if len(body) > most:
                        return None
            read = functools.partial(parse_qs, body.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
            fields = read() if len(body) < _READ_AT_ONCE else await asyncio.to_thread(read)
        except (TimeoutError, ValueError, RequestPayloadError):
            return None
        return {name: values[0] for name, values in fields.items()}


def status_of(error: CheckstreamError) -> int:
    """Return the status by which a page tells of an error."""
    return next((status for known, status in _STATUS.items() if isinstance(error, known)), 500)


def see_other(path: str, query: Mapping[str, str] | None = None) -> Response:
    """Return that what was sent is done, and which page shows it: `path` below the console's root."""
    to = ROOT + path + (f"?{urlencode(query)}" if query else "")
    return Response(status=303, headers={hdrs.LOCATION: to})


def number_of(text: str) -> int:
    """Return the number that a query names; 0: it names none that could be one of ours."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else 0


@functools.cache
def _load() -> tuple[Pages, Assets]:
    assets = Assets()
    return Pages(assets), assets
