"""Fleets: what nodes are, have and should have; and the lists of what they may be."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.forms import Form, Given, sent
from checkstream.console.serving.shell import Shell, Topic, see_other
from checkstream.console.views.fleets import STATES, fleet_row, fleet_view
from checkstream.control.server.acts import Acts
from checkstream.control.server.allowed import KINDS
from checkstream.control.server.asked import AllowanceAsked
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.people import Asker

_DONE: Mapping[str, str] = {
    "allowed": "It is on the list now. Nodes that are so get their bundle when they attest next.",
    "disallowed": "It is off the list. Nodes that are so get no bundle from now on; they keep what they have.",
}


class FleetPages(Topic):
    """Shows fleets, and takes what is said of their lists."""

    def __init__(self, shell: Shell, fleets: Fleets, acts: Acts) -> None:
        """Ask nothing yet."""
        self._shell = shell
        self._fleets = fleets
        self._acts = acts
        self.table = {
            ("GET", "fleets"): self._list,
            ("GET", "fleets/"): self._show,
            ("POST", "allowances"): self._allow,
        }

    async def _list(self, request: BaseRequest, _: str) -> StreamResponse:
        shown = [await self._fleets.shown(name) for name in self._fleets.names]
        return await self._shell.page(
            request,
            "fleets",
            lambda pages, frame: pages.render("control/fleets", frame, rows=[fleet_row(each) for each in shown]),
        )

    async def _show(self, request: BaseRequest, name: str) -> StreamResponse:
        return await self._page(request, name)

    async def _page(
        self, request: BaseRequest, name: str, fault: str = "", given: Given | None = None, status: int = 200
    ) -> Response:
        if name not in self._fleets.names:
            return await self._shell.missing(request)
        shown, query = await self._fleets.shown(name), request.query
        state = query.get("state", "") if query.get("state", "") in STATES else ""
        node, done = query.get("node", "")[:64], _DONE.get(query.get("done", ""), "")
        wanted = {name: query.get(name, "")[:200] for name in ("kind", "value")} if given is None else given

        def make(pages: Pages, frame: Frame) -> bytes:
            view = fleet_view(shown, state, node)
            asked = {"state": state, "node": node, "given": wanted, "fault": fault, "done": done}
            return pages.render("control/fleet", frame, view=view, states=STATES, kinds=KINDS, **asked)

        return await self._shell.page(request, "fleets", make, status)

    async def _allow(self, request: BaseRequest, _: str) -> StreamResponse:
        async def do(who: Asker, asked: AllowanceAsked) -> Response:
            if not asked.allowed:
                who = self._shell.asker(request, "disallow")
            await self._acts.allow(who, asked.fleet, asked.kind, asked.value, asked.reason, allowed=asked.allowed)
            return see_other(f"fleets/{asked.fleet}", {"done": "allowed" if asked.allowed else "disallowed"})

        async def again(fault: str, given: Given, status: int) -> Response:
            fleet = given.get("fleet", "")
            if fleet not in self._fleets.names:
                return await self._shell.error(request, status, fault)
            return await self._page(request, fleet, fault, given, status)

        return await sent(self._shell, request, Form("allow", AllowanceAsked, do), again)
