"""Who may look at the console, and from which page something may be sent to it.

Where a token is asked for, a login page takes it and gives a session in a cookie that no script and no other site can
use. Where none is, the listener takes requests for this machine's own names alone (`listen.hosts`). What is sent must
come from a page of the console itself, as browsers say it (`Sec-Fetch-Site`, else `Origin`), which no page can forge.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from aiohttp import hdrs
from aiohttp.web import BaseRequest

from checkstream.console.pages import ROOT
from checkstream.console.sessions import LIVES_S, Guesses, Sessions, is_token
from checkstream.listen.callers import network_of

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
"""Of every answer."""
_THEME = "checkstream_theme"
_THEMES = ("dark", "light", "auto")
_YEAR_S = 31_536_000


class Access:
    """Decides who may look."""

    def __init__(self, token: str | None) -> None:
        """Ask for `token`; None: whoever reaches the listener may look."""
        self._token = token
        self._sessions = Sessions()
        self._guesses = Guesses()

    @property
    def needs_token(self) -> bool:
        """Whether there is one."""
        return self._token is not None

    def allows(self, request: BaseRequest) -> bool:
        """Tell whether a request may see anything: by its session, or by the token itself."""
        if self._token is None or self._has_token(request):
            return True
        given = _cookies(request).get(_session_name(request))
        return given is not None and self._sessions.holds(given, time.monotonic())

    def _has_token(self, request: BaseRequest) -> bool:
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        return self._token is not None and scheme.lower() == "bearer" and is_token(given.strip(), self._token)

    def may_ask(self, request: BaseRequest) -> bool:
        """Tell whether something is asked for by a page of the console, by a program, or by a person who goes there.

        Pages of other sites can't read what they get; but a search that they have made takes seconds all the same.
        """
        site = request.headers.get("sec-fetch-site", "none")
        return site in ("same-origin", "none") or request.headers.get("sec-fetch-dest") == "document"

    def may_send(self, request: BaseRequest) -> bool:
        """Tell whether something was sent by a page of the console, or by a program that has the token."""
        site = request.headers.get("sec-fetch-site")
        if site is not None:
            return site == "same-origin"
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            return self._has_token(request)
        return urlsplit(origin).netloc.lower() == request.headers.get(hdrs.HOST, "").lower() != ""

    def wait_s(self, request: BaseRequest) -> float:
        """Return how long whoever asks must wait before another token is tried; 0: not at all."""
        return self._guesses.wait_s(_address(request), time.monotonic())

    def log_in(self, request: BaseRequest, given: str) -> str | None:
        """Return the cookie of a new session; None: that is not the token."""
        if self._token is None or not is_token(given, self._token):
            self._guesses.wrong(_address(request), time.monotonic())
            return None
        secret = secrets.token_urlsafe(32)
        self._sessions.begin(secret, time.monotonic())
        return _cookie(_session_name(request), secret, int(LIVES_S))

    def log_out(self, request: BaseRequest) -> str:
        """End the session of a request; return the cookie that says so."""
        given = _cookies(request).get(_session_name(request))
        if given is not None:
            self._sessions.end(given)
        return _cookie(_session_name(request), "", 0)


def theme_of(request: BaseRequest) -> str:
    """Return the theme that was chosen; empty: the browser's."""
    chosen = _cookies(request).get(_THEME, "")
    return chosen if chosen in ("dark", "light") else ""


def theme_cookie(theme: str) -> str | None:
    """Return the cookie that keeps a theme; None: there is no such theme."""
    if theme not in _THEMES:
        return None
    return _cookie(_THEME, "" if theme == "auto" else theme, 0 if theme == "auto" else _YEAR_S)


def _cookie(name: str, value: str, seconds: int) -> str:
    return f"{name}={value}; Path={ROOT}; Max-Age={seconds}; HttpOnly; SameSite=Strict"


def _session_name(request: BaseRequest) -> str:
    """Return the cookie's name, which has the port: browsers keep one jar for all ports of a machine."""
    place = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return f"checkstream_console_{place[1]}" if isinstance(place, tuple) else "checkstream_console"


def _cookies(request: BaseRequest) -> dict[str, str]:
    """Return cookies as browsers send them. Others of this machine may be no cookies at all: they spoil nothing."""
    pairs = (each.strip().partition("=") for each in request.headers.get(hdrs.COOKIE, "").split(";"))
    return {name: value for name, _, value in pairs}


def _address(request: BaseRequest) -> str:
    return network_of(request.remote or "")
