"""What people and the server did, as the audit chain has it; and what happened to nodes, as the store has it."""

from __future__ import annotations

from pathlib import Path

from aiohttp.web import BaseRequest, StreamResponse

from checkstream.console.pages import Frame, Pages
from checkstream.console.queries import ActQuery, is_time
from checkstream.console.records import newest
from checkstream.console.serving.shell import Shell, Topic, number_of
from checkstream.console.views.acts import act_rows
from checkstream.control.server.fleets import Fleets

_MOST = 100
_CHARS = 64


class ActPages(Topic):
    """Shows acts and events."""

    def __init__(self, shell: Shell, fleets: Fleets, audit: Path) -> None:
        """Read nothing yet; `audit` is the folder of the server's own chain."""
        self._shell = shell
        self._fleets = fleets
        self._audit = audit
        self.table = {("GET", "acts"): self._acts, ("GET", "events"): self._events}

    async def _acts(self, request: BaseRequest, _: str) -> StreamResponse:
        given = {name: request.query.get(name, "").strip()[:_CHARS] for name in ("who", "act", "fleet", "until")}
        until = given["until"].replace(" ", "T").removesuffix("Z")
        fault = "" if is_time(until) else f"`{until}` is no time; write `2026-11-29 08:15`, or a beginning of one"
        query = ActQuery(**{**given, "until": "" if fault else until})

        def make(pages: Pages, frame: Frame) -> bytes:
            found = newest(self._audit, query, _MOST)
            view = {"rows": act_rows(found.entries), "found": found, "query": query, "fault": fault}
            return pages.render("control/acts", frame, most=_MOST, **view)

        return await self._shell.page(request, "acts", make)

    async def _events(self, request: BaseRequest, _: str) -> StreamResponse:
        given = {name: request.query.get(name, "").strip()[:_CHARS] for name in ("fleet", "kind")}
        before = number_of(request.query.get("before", ""))
        rows = await self._fleets.events(given["fleet"], before, _MOST, (given["kind"],) if given["kind"] else ())
        view = {"rows": rows, "before": before, "older": rows[-1].id if len(rows) == _MOST else 0, **given}

        def make(pages: Pages, frame: Frame) -> bytes:
            return pages.render("control/events", frame, fleets=self._fleets.names, **view)

        return await self._shell.page(request, "acts", make)
