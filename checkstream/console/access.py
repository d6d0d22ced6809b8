"""Who may look at the console, and from which page something may be sent to it.

Where a secret is asked for, a login page takes it and gives a session in a cookie that no script and no other site can
use. Where none is, the listener takes requests for this machine's own names alone (`listen.hosts`). What is sent must
come from a page of the console itself, as browsers say it (`Sec-Fetch-Site`, else `Origin`), which no page can forge.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Mapping
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest

from checkstream.console.pages import ROOT
from checkstream.console.sessions import LIVES_S, Guesses, Person, Sessions, is_token
from checkstream.listen.callers import network_of

HEADERS: Mapping[str, str] = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",  # behind `no-referrer` a form of ours would say that its `Origin` is `null`
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=()",
}
"""Of every answer."""
_THEME = "checkstream_theme"
_THEMES = ("dark", "light", "auto")
_YEAR_S = 31_536_000


ANYBODY = Person("")
"""Whoever reaches a listener that asks for no secret."""


class Door(msgspec.Struct, frozen=True, kw_only=True):
    """Whom the login page lets in, and what it says."""

    whose: Callable[[str], Person | None]
    """Returns whose secret it is, in a time that says nothing of it; None: nobody's."""
    label: str
    """What it asks for, such as `Token`."""
    says: str
    """Where that comes from, in a sentence that ends before `code`."""
    code: str
    wrong: str
    """What is said of a wrong one."""
    ways: tuple[tuple[str, str], ...] = ()
    """Other ways in: path below the console, and what the link says."""


def token_door(token: str) -> Door:
    """Return the door of one token, which whoever has it is let in by."""
    return Door(
        whose=lambda given: ANYBODY if is_token(given, token) else None,
        label="Token",
        says="This console shows what the guard does. It takes the token that the configuration names as",
        code="server.admin_token",
        wrong="That is not the token of this listener.",
    )


class Access:
    """Decides who may look."""

    def __init__(self, door: Door | None, *, secure: bool = False, gateway: bool = False) -> None:
        """Let in by `door`.

        Args:
            door: Whom it lets in; None: whoever reaches the listener may look.
            secure: Browsers come by TLS alone.
            gateway: All come from one address, by which nobody is to be kept out for what others try.
        """
        self.door = door
        self._gateway = gateway
        self._secure = secure
        self._sessions = Sessions()
        self._guesses = Guesses()

    def person(self, request: BaseRequest) -> Person | None:
        """Return who asks, known by a session or by the secret itself; None: somebody who may see nothing."""
        if self.door is None:
            return ANYBODY
        given = _cookies(request).get(_session_name(request))
        known = None if given is None else self._sessions.person(given, time.monotonic())
        return self._bearer(request) if known is None else known

    def allows(self, request: BaseRequest) -> bool:
        """Tell whether a request may see anything."""
        return self.person(request) is not None

    def _bearer(self, request: BaseRequest) -> Person | None:
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        return None if self.door is None or scheme.lower() != "bearer" else self.door.whose(given.strip())

    def may_ask(self, request: BaseRequest) -> bool:
        """Tell whether something is asked for by a page of the console, by a program, or by a person who goes there.

        Pages of other sites can't read what they get; but a search that they have made takes seconds all the same.
        """
        site = request.headers.get("sec-fetch-site", "none")
        return site in ("same-origin", "none") or request.headers.get("sec-fetch-dest") == "document"

    def may_send(self, request: BaseRequest) -> bool:
        """Tell whether something was sent by a page of the console, or by a program that has a secret."""
        site = request.headers.get("sec-fetch-site")
        if site is not None:
            return site == "same-origin"
        origin = request.headers.get(hdrs.ORIGIN)
        if origin is None:
            return self._bearer(request) is not None
        return urlsplit(origin).netloc.lower() == request.headers.get(hdrs.HOST, "").lower() != ""

    def wait_s(self, request: BaseRequest) -> float:
        """Return how long whoever asks must wait before another secret is tried; 0: not at all."""
        return 0.0 if self._gateway else self._guesses.wait_s(_address(request), time.monotonic())

    def log_in(self, request: BaseRequest, given: str) -> str | None:
        """Return the cookie of a new session; None: that is nobody's secret."""
        person = None if self.door is None else self.door.whose(given)
        if person is None:
            self._guesses.wrong(_address(request), time.monotonic())
            return None
        return self.begin(request, person)

    def failed(self, request: BaseRequest) -> None:
        """Count that somebody has come by another way and was not let in."""
        self._guesses.wrong(_address(request), time.monotonic())

    def begin(self, request: BaseRequest, person: Person, lives_s: float = LIVES_S) -> str:
        """Begin a session of somebody who is known by now, however that came; return its cookie."""
        secret = secrets.token_urlsafe(32)
        self._sessions.begin(secret, time.monotonic(), person, lives_s)
        return self.cookie(_session_name(request), secret, int(min(lives_s, LIVES_S)))

    def log_out(self, request: BaseRequest) -> str:
        """End the session of a request; return the cookie that says so."""
        given = _cookies(request).get(_session_name(request))
        if given is not None:
            self._sessions.end(given)
        return self.cookie(_session_name(request), "", 0)

    def cookie(
        self, name: str, value: str, seconds: int, *, below: str = "", site: Literal["Strict", "Lax"] = "Strict"
    ) -> str:
        """Return a cookie that scripts don't see, sent to what is `below` a path of the console."""
        return _cookie(name, value, seconds, below, site) + ("; Secure" if self._secure else "")

    @staticmethod
    def cookies(request: BaseRequest) -> dict[str, str]:
        """Return what cookies a browser has sent."""
        return _cookies(request)


def theme_of(request: BaseRequest) -> str:
    """Return the theme that was chosen; empty: the browser's."""
    chosen = _cookies(request).get(_THEME, "")
    return chosen if chosen in ("dark", "light") else ""


def theme_cookie(theme: str) -> str | None:
    """Return the cookie that keeps a theme; None: there is no such theme."""
    if theme not in _THEMES:
        return None
    return _cookie(_THEME, "" if theme == "auto" else theme, 0 if theme == "auto" else _YEAR_S)


def _cookie(name: str, value: str, seconds: int, below: str = "", site: str = "Strict") -> str:
    return f"{name}={value}; Path={ROOT}{below}; Max-Age={seconds}; HttpOnly; SameSite={site}"


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
