"""Alerts: what is wrong now, what people were told, and what nobody wants to hear of for some time."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.forms import Form, Given, sent
from checkstream.console.serving.shell import Shell, Topic, number_of, see_other
from checkstream.console.views.alerts import DURATIONS, alerts_view
from checkstream.control.server.alerting import HISTORY, Alerting
from checkstream.control.server.asked import EndAsked, SilenceAsked
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.people import Asker

_MOST = 50
_DONE: Mapping[str, str] = {
    "silence": "It is silent. What is over is told all the same to those who had heard of it.",
    "speak": "The silence is over. What still stands is told again when its time comes.",
}


class AlertPages(Topic):
    """Shows alerts, and takes silences."""

    def __init__(self, shell: Shell, alerting: Alerting, fleets: Fleets, now_ms: Callable[[], int]) -> None:
        """Ask nothing yet; `now_ms` is the server's clock."""
        self._shell = shell
        self._alerting = alerting
        self._fleets = fleets
        self._now_ms = now_ms
        self.table = {
            ("GET", "alerts"): self._show,
            ("POST", "silences"): self._silence,
            ("POST", "silences/end"): self._end,
        }

    async def _show(self, request: BaseRequest, _: str) -> StreamResponse:
        return await self._page(request)

    async def _page(
        self, request: BaseRequest, fault: str = "", given: Given | None = None, status: int = 200
    ) -> Response:
        alerts, before = await self._alerting.shown(), number_of(request.query.get("before", ""))
        happened = await self._fleets.events("", before, _MOST, HISTORY)
        now_s, done = self._now_ms() / 1000, _DONE.get(request.query.get("done", ""), "")
        filled = {"pattern": request.query.get("pattern", "")[:200]} if given is None else given

        def make(pages: Pages, frame: Frame) -> bytes:
            view = alerts_view(alerts, self._alerting.receivers, happened, now_s)
            more = {"before": before, "older": happened[-1].id if len(happened) == _MOST else 0}
            said = {"fault": fault, "done": done, "given": filled}
            return pages.render("control/alerts", frame, view=view, durations=DURATIONS, **more, **said)

        return await self._shell.page(request, "alerts", make, status)

    async def _silence(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: SilenceAsked) -> Response:
            await self._alerting.silence(who, asked.pattern, asked.seconds, asked.reason)
            return see_other("alerts", {"done": "silence"})

        async def again(fault: str, given: Given, status: int) -> Response:
            return await self._page(request, fault, given, status)

        return await sent(self._shell, request, Form("silence", SilenceAsked, do), again)

    async def _end(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: EndAsked) -> Response:
            await self._alerting.speak(who, asked.id)
            return see_other("alerts", {"done": "speak"})

        async def again(fault: str, _: Given, status: int) -> Response:
            return await self._page(request, fault, None, status)

        return await sent(self._shell, request, Form("silence", EndAsked, do), again)
