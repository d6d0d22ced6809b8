"""The console over HTTP: which path is which page, and what each page needs.

Nothing of it stands on a request's path. Pages are made on threads, two at a time; with no page open there are the
sums of `totals`, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs

from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestPayloadError, Response, StreamResponse

from checkstream.console.access import HEADERS, Access, theme_cookie, theme_of
from checkstream.console.assets import Assets
from checkstream.console.facts import Facts, Places
from checkstream.console.pages import ROOT, Frame, Pages
from checkstream.console.totals import EVERY_S, Ring, keyed
from checkstream.console.views import overview
from checkstream.errors import CheckstreamError, NotReady

_AT_ONCE = 2
"""Pages that are made at a time."""
_FORM_BYTES = 256 * 1024
_BODY_S = 10.0
_FOR_EVER = "public, max-age=31536000, immutable"

Page = Callable[[BaseRequest, str], Awaitable[StreamResponse]]
"""Answers a request; beside it what of its path stands behind the page's own."""


class Console:
    """Answers every request below `/console/`."""

    def __init__(self, facts: Facts, places: Places, token: str | None) -> None:
        """Show what `facts` say and what stands at `places`; ask for `token` (None: for none). Reads nothing yet."""
        self._facts = facts
        self._places = places
        self._access = Access(token)
        self._ring = Ring()
        self._counting: asyncio.Task[None] | None = None
        self._loading = asyncio.Lock()
        self._loaded: tuple[Pages, Assets] | None = None
        self._making = asyncio.Semaphore(_AT_ONCE)
        self._table: Mapping[tuple[str, str], Page] = {
            ("GET", ""): self._overview,
            ("GET", "login"): self._login_page,
            ("POST", "login"): self._log_in,
            ("POST", "logout"): self._log_out,
            ("POST", "theme"): self._theme,
            ("GET", "static/"): self._static,
        }
        """Method and path -> page; a path that ends with `/` stands for all below it."""

    async def open(self) -> None:
        """Begin to count."""
        await self._take()
        self._counting = asyncio.get_running_loop().create_task(self._count())

    async def close(self) -> None:
        """Stop counting."""
        if self._counting is not None:
            self._counting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._counting

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(EVERY_S)
            await self._take()

    async def _take(self) -> None:
        self._ring.take(_now(), keyed(await self._facts.totals()))

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        response = await self._answer(request)
        if not response.prepared:
            response.headers.update({**HEADERS, **response.headers})
            response.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")
        return response

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        raw = request.rel_url.raw_path
        if not raw.startswith(ROOT):
            return Response(status=308, headers={hdrs.LOCATION: ROOT})
        path = raw.removeprefix(ROOT)
        exact = any(known == path for _, known in self._table)
        own = path if exact else path[: path.find("/") + 1]
        methods = sorted(method for method, known in self._table if known == own and (exact or own))
        page = self._table.get((request.method, own)) if methods else None
        if page is None:
            return await self._no_page(request, methods)
        if own not in ("login", "static/") and not self._access.allows(request):
            return self._turned_away(request)
        if request.method == "POST" and own != "login" and not self._access.may_send(request):
            return await self._error(request, 403, "This was not sent by a page of the console.")
        try:
            return await page(request, path.removeprefix(own))
        except NotReady as error:
            return await self._error(request, 503, str(error))
        except CheckstreamError as error:
            return await self._error(request, 500, str(error))

    def _turned_away(self, request: BaseRequest) -> Response:
        """Lead to the login; a page that wants a part of itself goes there as a whole."""
        if "hx-request" in request.headers:
            return Response(status=401, headers={"hx-redirect": f"{ROOT}login"})
        return Response(status=303, headers={hdrs.LOCATION: f"{ROOT}login"})

    # --- making pages

    async def _made(self, make: Callable[[Pages], bytes], status: int = 200) -> Response:
        """Make a page on a thread."""
        pages, _ = await self._load()
        async with self._making:
            body = await asyncio.to_thread(make, pages)
        return Response(status=status, body=body, headers={hdrs.CONTENT_TYPE: "text/html; charset=utf-8"})

    async def _rendered(self, request: BaseRequest, name: str, page: str, status: int = 200, **view: Any) -> Response:
        frame = self._frame(request, page)
        return await self._made(lambda pages: pages.render(name, frame, **view), status)

    def _frame(self, request: BaseRequest, page: str) -> Frame:
        return Frame(page=page, theme=theme_of(request), token=self._access.needs_token)

    async def _load(self) -> tuple[Pages, Assets]:
        """Return templates and files, loaded when the first page is asked for."""
        async with self._loading:
            if self._loaded is None:
                self._loaded = await asyncio.to_thread(_load)
            return self._loaded

    async def _error(self, request: BaseRequest, status: int, reason: str) -> Response:
        return await self._rendered(request, "error", "", status, reason=reason, number=status)

    async def _no_page(self, request: BaseRequest, methods: Sequence[str]) -> Response:
        if not self._access.allows(request):
            return self._turned_away(request)
        if not methods:
            return await self._error(request, 404, "There is no such page. The menu has those that there are.")
        response = await self._error(request, 405, f"This takes {methods[0]}.")
        response.headers[hdrs.ALLOW] = ", ".join(methods)
        return response

    # --- who may look, and how it looks

    async def _login_page(self, request: BaseRequest, _: str, fault: str = "", status: int = 200) -> Response:
        if self._access.allows(request) and not fault:
            return Response(status=303, headers={hdrs.LOCATION: ROOT})
        response = await self._rendered(request, "login", "login", status, fault=fault)
        # Behind `no-referrer` a form's `Origin` is `null`, and browsers say `Sec-Fetch-Site` only where they trust.
        response.headers["referrer-policy"] = "same-origin"
        return response

    async def _log_in(self, request: BaseRequest, _: str) -> StreamResponse:
        wait_s = self._access.wait_s(request)
        if wait_s:
            fault = f"Too many tokens were wrong. Try again in {int(wait_s) + 1} s."
            response = await self._login_page(request, "", fault, 429)
            response.headers[hdrs.RETRY_AFTER] = str(int(wait_s) + 1)
            return response
        if not self._access.may_send(request):
            return await self._login_page(request, "", "This was not sent by the login page. Try again here.", 403)
        form = await self._form(request)
        cookie = self._access.log_in(request, form.get("token", "")) if form is not None else None
        if cookie is None:
            return await self._login_page(request, "", "That is not the token of this listener.", 401)
        return Response(status=303, headers={hdrs.LOCATION: ROOT, hdrs.SET_COOKIE: cookie})

    async def _log_out(self, request: BaseRequest, _: str) -> StreamResponse:
        gone = self._access.log_out(request)
        return Response(status=204, headers={hdrs.SET_COOKIE: gone, "hx-redirect": f"{ROOT}login"})

    async def _theme(self, request: BaseRequest, _: str) -> StreamResponse:
        form = await self._form(request)
        cookie = theme_cookie(form.get("theme", "")) if form is not None else None
        if cookie is None:
            return await self._error(request, 400, "There is no such theme: it is `dark`, `light` or `auto`.")
        return Response(status=204, headers={hdrs.SET_COOKIE: cookie, "hx-refresh": "true"})

    async def _form(self, request: BaseRequest) -> dict[str, str] | None:
        """Return the fields of a form, the first of each name; None: that is none, or it is too large or too slow."""
        if request.content_type != "application/x-www-form-urlencoded" or (request.content_length or 0) > _FORM_BYTES:
            return None
        body = bytearray()
        try:
            async with asyncio.timeout(_BODY_S):
                while data := await request.content.readany():
                    body += data
                    if len(body) > _FORM_BYTES:
                        return None
            fields = parse_qs(body.decode("utf-8"), keep_blank_values=True, max_num_fields=20)
        except (TimeoutError, ValueError, RequestPayloadError):
            return None
        return {name: values[0] for name, values in fields.items()}

    async def _static(self, _: BaseRequest, name: str) -> StreamResponse:
        asset = (await self._load())[1].get(name)
        if asset is None:
            return Response(status=404, text="there is no such file\n")
        headers = {hdrs.CONTENT_TYPE: asset.type, hdrs.CACHE_CONTROL: _FOR_EVER}
        return Response(body=asset.body, headers=headers)

    # --- pages

    async def _overview(self, request: BaseRequest, _: str) -> StreamResponse:
        ring = self._ring.upto(_now(), keyed(await self._facts.totals()))
        status, listen = await self._facts.shown(), self._facts.listen
        frame = self._frame(request, "overview")

        def make(pages: Pages) -> bytes:
            return pages.render("overview", frame, view=overview(status, ring, listen))

        return await self._made(make)


def _now() -> float:
    return datetime.now(UTC).timestamp()


@functools.cache
def _load() -> tuple[Pages, Assets]:
    assets = Assets()
    return Pages(assets), assets
