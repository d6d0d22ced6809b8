"""What all nodes do: traffic, verdicts and times of a span, and what is wrong with nodes and chains."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp.web import BaseRequest, StreamResponse

from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.views.traffic import SPANS, asked_of, scope_of, traffic
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.telemetry import Telemetry


class TrafficPages(Topic):
    """Shows what nodes have told."""

    def __init__(self, shell: Shell, fleets: Fleets, telemetry: Telemetry, now_ms: Callable[[], int]) -> None:
        """Ask nothing yet; `now_ms` is the server's clock."""
        self._shell = shell
        self._fleets = fleets
        self._telemetry = telemetry
        self._now_ms = now_ms
        self.table = {("GET", ""): self._show}

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        asked, now_ms = asked_of(request.query), self._now_ms()
        scope = scope_of(asked, self._fleets.nodes, now_ms)
        slots, routes = await self._telemetry.counted(scope), await self._telemetry.routes()
        names = [name for name in self._fleets.names if asked.fleet in ("", name)]
        fleets = [await self._fleets.shown(name) for name in names]
        troubled = await self._telemetry.troubled()

        def make(pages: Pages, frame: Frame) -> bytes:
            view = traffic(asked, scope, slots, now_ms=now_ms, fleets=fleets, troubled=troubled)
            given = {"fleets": self._fleets.names, "routes": routes, "spans": tuple(SPANS)}
            return pages.render("control/overview", frame, view=view, **given)

        return await self._shell.page(request, "overview", make)
