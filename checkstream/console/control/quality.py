"""Quality: how risky answers were by what grounding said while callers waited, and runs of the gate over time."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp.web import BaseRequest, StreamResponse

from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.views.grades import MOST_RUNS, grades
from checkstream.console.views.traffic import SPANS, asked_of, scope_of
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.gate_runs import GateRuns
from checkstream.control.server.telemetry import Telemetry


class GradePages(Topic):
    """Shows what was scored."""

    def __init__(
        self, shell: Shell, fleets: Fleets, telemetry: Telemetry, runs: GateRuns, now_ms: Callable[[], int]
    ) -> None:
        """Ask nothing yet; `now_ms` is the server's clock."""
        self._shell = shell
        self._fleets = fleets
        self._telemetry = telemetry
        self._runs = runs
        self._now_ms = now_ms
        self.table = {("GET", "quality"): self._show}

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        asked, target = asked_of(request.query, "week"), request.query.get("target", "").strip()[:200]
        scope = scope_of(asked, self._fleets.nodes, self._now_ms())
        slots, routes = await self._telemetry.counted(scope), await self._telemetry.routes()
        runs = await self._runs.newest(asked.fleet, target, MOST_RUNS)

        def make(pages: Pages, frame: Frame) -> bytes:
            view = grades(asked, target, scope, slots, runs)
            given = {"fleets": self._fleets.names, "routes": routes, "spans": tuple(SPANS)}
            return pages.render("control/quality", frame, view=view, **given)

        return await self._shell.page(request, "quality", make)
