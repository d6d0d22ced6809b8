"""Grounding and the gate: what answers and models came to over time, where anything was scored."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from aiohttp.web import BaseRequest, StreamResponse

from checkstream.console.facts import Places
from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.totals import Ring
from checkstream.console.views.quality import quality
from checkstream.errors import GateError, JobError
from checkstream.jobs.recent import recent_results
from checkstream.jobs.terms import Result

if TYPE_CHECKING:
    from checkstream.gate.terms import Run

_RESULTS, _RUNS = 500, 200


class QualityPages(Topic):
    """Shows what was scored."""

    def __init__(self, shell: Shell, places: Places, now: Callable[[], Awaitable[Ring]]) -> None:
        """Read nothing yet; `now` returns what has been counted."""
        self._shell = shell
        self._places = places
        self._now = now
        self.table = {("GET", "quality"): self._show}

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        ring, places = await self._now(), self._places

        def make(pages: Pages, frame: Frame) -> bytes:
            faults: list[str] = []
            results, runs = self._results(faults), self._runs(faults)
            view = quality(ring, places.scored, results, runs, faults)
            return pages.render("quality", frame, view=view, places=places)

        return await self._shell.page(request, "quality", make)

    def _results(self, faults: list[str]) -> list[Result]:
        file = self._places.jobs
        try:
            return [] if file is None or not self._places.scored else recent_results(file, _RESULTS)
        except JobError as error:
            faults.append(str(error))
            return []

    def _runs(self, faults: list[str]) -> list[Run]:
        file = self._places.runs
        if not file.is_file():
            return []
        from checkstream.gate.ledger import Ledger  # noqa: PLC0415 - the gate is large, and most have no runs

        try:
            return Ledger(file).runs(limit=_RUNS)
        except GateError as error:
            faults.append(str(error))
            return []
