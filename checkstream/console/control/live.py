"""Exchanges of all nodes as they are told of."""

from __future__ import annotations

from collections.abc import Iterable

from aiohttp.web import BaseRequest, StreamResponse

from checkstream.audit.bodies import body_of
from checkstream.audit.chain import read
from checkstream.console.pages import Frame, Pages
from checkstream.console.queries import Query
from checkstream.console.serving.live import FIRST, Live, plain, query_of
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.tail import Entry, New
from checkstream.console.views.told import row_told
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.logs import Stand, Told
from checkstream.control.server.telemetry import Telemetry
from checkstream.control.server.traffic import Filter
from checkstream.errors import AuditError, ControlUnusable, TookTooLong

_MOST = 100
"""Exchanges of a chain that a look brings."""


class StoreTail:
    """Follows what nodes tell. Its calls block."""

    def __init__(self, telemetry: Telemetry) -> None:
        """Ask nothing yet."""
        self._telemetry = telemetry
        self._stand: Stand = {}

    def begin(self) -> None:
        """Go to where all chains stand.

        Raises:
            AuditError: the store can't be used.
        """
        try:
            self._stand = self._telemetry.stand()
        except (ControlUnusable, TookTooLong) as error:
            raise AuditError("the server's store can't be used; its log says why") from error

    def look(self) -> New:
        """Return what was told since the last look.

        Raises:
            AuditError: the store can't be used.
        """
        try:
            found, more, self._stand = self._telemetry.news(self._stand, _MOST)
        except (ControlUnusable, TookTooLong) as error:
            raise AuditError("the server's store can't be used; its log says why") from error
        shown = entries_of(found)
        return New(entries=shown[-_MOST:], left_out=more + max(len(shown) - _MOST, 0))


def entries_of(found: Iterable[Told]) -> tuple[Entry, ...]:
    """Return records that were told of as they are shown, the oldest first; what is none is left out."""
    entries: list[Entry] = []
    for each in found:
        line = (each.line or "").encode()
        try:
            record = read(line)
            entries.append(Entry(record=record, body=body_of(record), line=line, node=each.node))
        except AuditError:
            continue  # its own page says so
    return tuple(sorted(entries, key=lambda entry: (entry.record.time, entry.node, entry.record.seq)))


class FleetLivePages(Topic):
    """Shows exchanges as nodes tell of them."""

    def __init__(self, shell: Shell, fleets: Fleets, telemetry: Telemetry) -> None:
        """Ask nothing yet."""
        self._shell = shell
        self._fleets = fleets
        self._telemetry = telemetry
        self._live = Live(shell, StoreTail(telemetry))
        self.table = {("GET", "live"): self._show, ("GET", "live/events"): self._stream}

    async def close(self) -> None:
        """Let all pages go."""
        await self._live.close()

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        query, routes = query_of(request), await self._telemetry.routes()
        page, _, rules = await self._telemetry.found(_filter(query))
        nodes = sorted(node for fleet in self._fleets.nodes.values() for node in fleet)

        def make(pages: Pages, frame: Frame) -> bytes:
            rows = [plain(row_told(each, rules)) for each in page]
            return pages.render("live", frame, query=query, rows=rows, routes=routes, nodes=nodes)

        return await self._shell.page(request, "live", make)

    async def _stream(self, request: BaseRequest, _: str) -> StreamResponse:
        return await self._live.stream(request, query_of(request))


def _filter(query: Query) -> Filter:
    return Filter(node=query.node, route=query.route, rule=query.rule, action=query.action, most=FIRST)
