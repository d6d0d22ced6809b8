"""Exchanges that nodes have told of: found, shown one by one, and proved by the browser."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import urlencode

import msgspec
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.pages import Frame, Pages
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.views.exchange import line_of
from checkstream.console.views.told import proof_of, row_told, wanted_of
from checkstream.control.server.fleets import Fleets
from checkstream.control.server.logs import Place
from checkstream.control.server.telemetry import Telemetry

_DONE: Mapping[str, str] = {
    "flagged": "It waits among the reviews now, for two people to say whether the rule was right."
}


class ToldPages(Topic):
    """Shows what nodes have told."""

    def __init__(self, shell: Shell, fleets: Fleets, telemetry: Telemetry) -> None:
        """Ask nothing yet."""
        self._shell = shell
        self._fleets = fleets
        self._telemetry = telemetry
        self.table = {("GET", "exchanges"): self._search, ("GET", "exchanges/"): self._show}

    async def _search(self, request: BaseRequest, _: str) -> StreamResponse:
        wanted, routes = wanted_of(request.query), await self._telemetry.routes()
        page, after, rules = await self._telemetry.found(wanted.filter)
        nodes = sorted(node for fleet in self._fleets.nodes.values() for node in fleet)
        more = urlencode({**{name: value for name, value in wanted.given.items() if value}, "before": after})

        def make(pages: Pages, frame: Frame) -> bytes:
            rows = [row_told(each, rules) for each in page]
            view = {"wanted": wanted, "rows": rows, "more": more if after else "", "routes": routes, "nodes": nodes}
            return pages.render("control/exchanges", frame, **view)

        return await self._shell.page(request, "exchanges", make)

    async def _show(self, request: BaseRequest, rest: str) -> StreamResponse:
        place, what = place_of(rest)
        if place is None:
            return await self._shell.missing(request)
        if what:
            proof = await self._telemetry.proof(place)
            if proof is None:
                return Response(status=404, text="there is no such record\n")
            body = await self._shell.beside(lambda: msgspec.json.encode(proof_of(*proof)))
            return Response(body=body, content_type="application/json")
        found = await self._telemetry.told(place)
        done = _DONE.get(request.query.get("done", ""), "")

        def make(pages: Pages, frame: Frame) -> bytes | None:
            if found is None:
                return None
            told, more = found
            line = None if told.line is None else line_of(told.line.encode())
            return pages.render("control/exchange", frame, told=told, more=more, line=line, done=done)

        return await self._shell.page(request, "exchanges", make)


def place_of(path: str) -> tuple[Place | None, str]:
    """Return the record that a path `NODE/CHAIN/NUMBER` names, and what of it is wanted: itself, or its `proof`."""
    parts = path.split("/")
    what = parts[3] if len(parts) > 3 else ""
    if len(parts) not in (3, 4) or (len(parts) == 4 and what != "proof"):
        return None, ""
    node, chain, number = parts[:3]
    if not (number.isascii() and number.isdecimal() and len(number) < 17):
        return None, ""
    return (node, chain, int(number)), what
