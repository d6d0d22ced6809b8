"""Exchanges: found in the audit log, shown one by one, and proved by the browser."""

from __future__ import annotations

import msgspec
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.facts import Facts, Places
from checkstream.console.pages import Frame, Pages
from checkstream.console.queries import Query, is_time
from checkstream.console.records import Log
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.views.exchange import line_of, row_of

_MOST_CHARS = 200


class ExchangePages(Topic):
    """Shows what the audit log has."""

    def __init__(self, shell: Shell, facts: Facts, places: Places, log: Log) -> None:
        """Read nothing yet."""
        self._shell = shell
        self._facts = facts
        self._places = places
        self._log = log
        self.table = {("GET", "exchanges"): self._search, ("GET", "exchanges/"): self._show}

    async def _search(self, request: BaseRequest, _: str) -> StreamResponse:
        (query, faults), places = query_of(request), self._places
        status = await self._facts.shown()

        def make(pages: Pages, frame: Frame) -> bytes:
            found = self._log.search(query)
            rows = [row_of(entry.record, entry.body) for entry in found.entries]
            routes = sorted({route.name for route in status.routes})
            view = {"query": query, "faults": faults, "rows": rows, "found": found, "routes": routes}
            return pages.render("exchanges", frame, places=places, **view)

        return await self._shell.page(request, "exchanges", make)

    async def _show(self, request: BaseRequest, rest: str) -> StreamResponse:
        chain, _, place = rest.partition("/")
        number, _, what = place.partition("/")
        if not (number.isascii() and number.isdecimal() and len(number) < 17 and what in ("", "proof")):
            return await self._shell.missing(request)
        seq = int(number)
        if what:
            proof = await self._shell.beside(lambda: self._log.proof(chain, seq))
            if proof is None:
                return Response(status=404, text="there is no such record\n")
            return Response(body=msgspec.json.encode(proof), content_type="application/json")
        return await self._shell.page(
            request, "exchanges", lambda pages, frame: self._page(pages, frame, chain=chain, seq=seq)
        )

    def _page(self, pages: Pages, frame: Frame, *, chain: str, seq: int) -> bytes | None:
        line = self._log.line(chain, seq)
        if line is None:
            return None
        told = line_of(line)
        view = {"view": told.view, "fault": told.fault, "raw": told.raw}
        return pages.render("exchange", frame, chain=chain, seq=seq, places=self._places, **view)


def query_of(request: BaseRequest) -> tuple[Query, list[str]]:
    """Return what the fields of an address ask for, and which of them are no times; what is very long is cut."""
    given = {name: request.query.get(name, "").strip()[:_MOST_CHARS] for name in Query.__struct_fields__}
    faults = []
    for name in ("since", "until"):
        given[name] = given[name].replace(" ", "T").removesuffix("Z")
        if given[name] and not is_time(given[name]):
            faults.append(given[name])
            given[name] = ""
    return Query(**given), faults
