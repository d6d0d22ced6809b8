"""The way into the console that leads over an OpenID provider.

What a log-in is known by is made of one secret, which the browser keeps in a cookie until it is back, and of one of
this process: so nothing is kept here for those who begin, and nobody can fill that up. The cookie comes along from the
provider's page (`SameSite=Lax`), and is good for ten minutes and one log-in.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from collections import OrderedDict
from datetime import UTC, datetime
from urllib.parse import parse_qsl

from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.console.pages import ROOT
from checkstream.console.serving.shell import Shell, Topic
from checkstream.console.sessions import LIVES_S, Person
from checkstream.control.server.provided import Asked, Provided
from checkstream.errors import ActForbidden, NotReady, TokenRefused
from checkstream.listen.callers import network_of

WAY = ("oidc/begin", "Log in with your organisation's account")
"""The link on the login page."""
_COOKIE = "checkstream_login"
_LIVES_S = 600
_MOST_SPENT = 10_000
_QUERY_CHARS = 8192
_IN = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Logged in</title>'
    f'<meta http-equiv="refresh" content="0;url={ROOT}"></head>'
    f'<body><p><a href="{ROOT}">Go on to the console</a></p></body></html>'
)
"""A page of ours that leads on: behind a redirect from another site the new session's cookie would not be sent."""


class ProvidedPages(Topic):
    """Leads to the provider, and takes who comes back."""

    public = frozenset({"oidc/begin", "oidc/back"})

    def __init__(self, shell: Shell, provided: Provided) -> None:
        """Begin with nobody."""
        self._shell = shell
        self._provided = provided
        self._key = secrets.token_bytes(32)
        self._spent: OrderedDict[str, None] = OrderedDict()
        self.table = {("GET", "oidc/begin"): self._begin, ("GET", "oidc/back"): self._back}

    async def _begin(self, request: BaseRequest, _: str) -> StreamResponse:
        kept = f"{int(time.monotonic())}.{secrets.token_urlsafe(32)}"
        try:
            place = await self._provided.place(self._asked(kept), network_of(request.remote or ""))
        except NotReady as error:
            return await self._again(request, str(error), 503)
        cookie = self._shell.access.cookie(_COOKIE, kept, _LIVES_S, below="oidc/", site="Lax")
        return Response(status=303, headers={hdrs.LOCATION: place, hdrs.SET_COOKIE: cookie})

    async def _back(self, request: BaseRequest, _: str) -> StreamResponse:
        access = self._shell.access
        wait_s = access.wait_s(request)
        if wait_s:
            return await self._again(request, f"Too many tries were wrong. Try again in {int(wait_s) + 1} s.", 429)
        asked, said = self._begun(request), _query(request)
        if asked is None or not hmac.compare_digest(said.get("state", "").encode(), asked.state.encode()):
            fault = "This log-in was not begun in this browser, or has taken too long. Begin anew."
            return await self._again(request, fault, 400)
        self._spend(asked.state)
        if not said.get("code"):
            refused = "The provider has let nobody in"
            return await self._again(request, f"{refused} ({said.get('error', 'no reason given')[:60]}).", 401)
        try:
            found = await self._provided.redeemed(
                asked, said["code"], said.get("iss"), network_of(request.remote or "")
            )
        except (TokenRefused, ActForbidden, NotReady) as error:
            if isinstance(error, TokenRefused):
                access.failed(request)
            status = 503 if isinstance(error, NotReady) else 403 if isinstance(error, ActForbidden) else 401
            return await self._again(request, str(error), status)
        lives_s = min(found.ends - datetime.now(UTC).timestamp(), LIVES_S)
        person = Person(found.who.name, found.who.role, found.called)
        response = Response(body=_IN.encode(), headers={hdrs.CONTENT_TYPE: "text/html; charset=utf-8"})
        response.headers.add(hdrs.SET_COOKIE, access.begin(request, person, max(lives_s, 0)))
        response.headers.add(hdrs.SET_COOKIE, access.cookie(_COOKIE, "", 0, below="oidc/", site="Lax"))
        return response

    def _asked(self, kept: str) -> Asked:
        """Return what a log-in is known by whose browser keeps this."""

        def made(what: str) -> str:
            digest = hmac.digest(self._key, f"{what}.{kept}".encode(), "sha256")
            return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()

        return Asked(made("state"), made("nonce"), made("verifier"))

    def _begun(self, request: BaseRequest) -> Asked | None:
        """Return the log-in that a browser has begun; None: none, or it is spent or too old."""
        kept = self._shell.access.cookies(request).get(_COOKIE, "")[:200]
        begun, _, secret = kept.partition(".")
        if not secret or not kept.isascii() or not begun.isdecimal():
            return None
        asked = self._asked(kept)
        fresh = time.monotonic() - int(begun) < _LIVES_S  # the state vouches for the time
        return asked if fresh and asked.state not in self._spent else None

    def _spend(self, state: str) -> None:
        self._spent[state] = None
        if len(self._spent) > _MOST_SPENT:
            self._spent.popitem(last=False)

    async def _again(self, request: BaseRequest, fault: str, status: int) -> Response:
        return await self._shell.rendered(request, "login", "login", status, fault=fault, door=self._shell.access.door)


def _query(request: BaseRequest) -> dict[str, str]:
    """Return what the provider says by the browser; nothing where a name stands there twice, or there is too much."""
    text = request.rel_url.raw_query_string
    if len(text) > _QUERY_CHARS:
        return {}
    pairs = parse_qsl(text, keep_blank_values=True)
    return dict(pairs) if len({name for name, _ in pairs}) == len(pairs) else {}
