"""The console over HTTP: which path is whose, who may look, and what browsers are told with every answer.

Nothing of it stands on a request's path. With no page open there are the sums of `totals`, and nothing else.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence

from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.access import HEADERS, theme_cookie
from checkstream.console.pages import ROOT
from checkstream.console.serving.shell import Handler, Shell, Topic, status_of
from checkstream.errors import CheckstreamError, ControlUnusable

_FOR_EVER = "public, max-age=31536000, immutable"
_STORE_FAILS = "The server's store can't be used. Try again later: the operator's log says what failed."
"""Hosts and paths are nobody's business."""
_OWN = frozenset({"login", "static/"})


class Console:
    """Answers every request below `/console/`."""

    def __init__(self, shell: Shell, topics: Sequence[Topic]) -> None:
        """Show the pages of `topics`. Reads nothing yet."""
        self._access = shell.access
        self._shell = shell
        self._topics = topics
        self._table: Mapping[tuple[str, str], Handler] = {
            ("GET", "login"): self._login_page,
            ("POST", "login"): self._log_in,
            ("POST", "logout"): self._log_out,
            ("POST", "theme"): self._theme,
            ("GET", "static/"): self._static,
            **{place: handler for topic in topics for place, handler in topic.table.items()},
        }
        self._paths = frozenset(path for _, path in self._table)
        self._public = _OWN.union(*(topic.public for topic in topics))

    async def open(self) -> None:
        """Begin what goes on."""
        for topic in self._topics:
            await topic.open()

    async def close(self) -> None:
        """Stop all that goes on."""
        async with contextlib.AsyncExitStack() as closing:
            for topic in self._topics:
                closing.push_async_callback(topic.close)

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        response = await self._answer(request)
        if not response.prepared:
            for name, value in {**HEADERS, hdrs.CACHE_CONTROL: "no-store"}.items():
                response.headers.setdefault(name, value)
        return response

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        raw = request.rel_url.raw_path
        if not raw.startswith(ROOT):
            return Response(status=308, headers={hdrs.LOCATION: ROOT})
        path = raw.removeprefix(ROOT)
        own = path if path in self._paths else path[: path.find("/") + 1]
        if own not in self._public and not self._access.allows(request):
            return _turned_away(request)
        if own not in self._paths or (not own and path):
            return await self._shell.missing(request)
        if own != "static/" and not self._access.may_ask(request):
            return Response(status=403, text="a page of another site may not ask for this\n")
        handler = self._table.get((request.method, own))
        if handler is None:
            return await self._wrong_method(request, sorted(method for method, known in self._table if known == own))
        if request.method == "POST" and own != "login" and not self._access.may_send(request):
            return await self._shell.error(request, 403, "This was not sent by a page of the console.")
        try:
            return await handler(request, path.removeprefix(own))
        except CheckstreamError as error:
            return await self._shell.error(request, status_of(error), self._told(error))

    def _told(self, error: CheckstreamError) -> str:
        if not isinstance(error, ControlUnusable):
            return str(error)
        if self._shell.log is not None:
            self._shell.log.error("console.store_failed", detail=str(error))
        return _STORE_FAILS

    async def _wrong_method(self, request: BaseRequest, methods: Sequence[str]) -> Response:
        response = await self._shell.error(request, 405, f"This takes {methods[0]}.")
        response.headers[hdrs.ALLOW] = ", ".join(methods)
        return response

    # --- who may look, and how it looks

    async def _login_page(self, request: BaseRequest, _: str, fault: str = "", status: int = 200) -> Response:
        if self._access.allows(request) and not fault:
            return Response(status=303, headers={hdrs.LOCATION: ROOT})
        return await self._shell.rendered(request, "login", "login", status, fault=fault, door=self._access.door)

    async def _log_in(self, request: BaseRequest, _: str) -> StreamResponse:
        if not self._access.may_send(request):
            return await self._login_page(request, "", "This was not sent by the login page. Try again here.", 403)
        form = await self._shell.form(request)
        wait_s = self._access.wait_s(request)  # only now, or of many that come at once none would have failed yet
        if wait_s:
            fault = f"Too many tries were wrong. Try again in {int(wait_s) + 1} s."
            response = await self._login_page(request, "", fault, 429)
            response.headers[hdrs.RETRY_AFTER] = str(int(wait_s) + 1)
            return response
        door = self._access.door
        cookie = self._access.log_in(request, form.get("token", "")) if form is not None else None
        if cookie is None:
            return await self._login_page(request, "", "" if door is None else door.wrong, 401)
        return Response(status=303, headers={hdrs.LOCATION: ROOT, hdrs.SET_COOKIE: cookie})

    async def _log_out(self, request: BaseRequest, _: str) -> StreamResponse:
        gone = self._access.log_out(request)
        return Response(status=204, headers={hdrs.SET_COOKIE: gone, "hx-redirect": f"{ROOT}login"})

    async def _theme(self, request: BaseRequest, _: str) -> StreamResponse:
        form = await self._shell.form(request)
        cookie = theme_cookie(form.get("theme", "")) if form is not None else None
        if cookie is None:
            return await self._shell.error(request, 400, "There is no such theme: it is `dark`, `light` or `auto`.")
        return Response(status=204, headers={hdrs.SET_COOKIE: cookie, "hx-refresh": "true"})

    async def _static(self, _: BaseRequest, name: str) -> StreamResponse:
        asset = (await self._shell.load())[1].get(name)
        if asset is None:
            return Response(status=404, text="there is no such file\n")
        headers = {hdrs.CONTENT_TYPE: asset.type, hdrs.CACHE_CONTROL: _FOR_EVER}
        return Response(body=asset.body, headers=headers)


def _turned_away(request: BaseRequest) -> Response:
    """Lead to the login; a page that wants a part of itself goes there as a whole."""
    if "hx-request" in request.headers:
        return Response(status=401, headers={"hx-redirect": f"{ROOT}login"})
    return Response(status=303, headers={hdrs.LOCATION: f"{ROOT}login"})
