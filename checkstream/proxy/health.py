"""The admin listener: is the process alive and ready, what does it count, what is in force, and load it anew."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Literal, Protocol

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.config import Address, Server
from checkstream.errors import CheckstreamError, ConfigError, FaultyFile
from checkstream.proxy.replies import row

_ENTRIES = 50


class RouteStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One route as it is in force."""

    name: str
    path: str
    method: str
    upstream: str
    guarded: bool
    policies: str
    program: str


class ReloadStatus(msgspec.Struct, frozen=True, kw_only=True):
    """How the last reload went."""

    at: str
    accepted: bool
    faults: tuple[str, ...] = ()

    @classmethod
    def now(cls, faults: tuple[str, ...] = ()) -> ReloadStatus:
        """Return what is told of a reload that has just ended, with the faults that it was refused for."""
        return cls(at=f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}", accepted=not faults, faults=faults)


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """One of several processes."""

    slot: int
    """Its place among them; a new process takes the place of one that has ended."""
    pid: int
    state: Literal["starting", "serving", "retiring"]
    uptime_s: float
    streams: int = 0
    generation: int = 0
    restarts: int = 0
    """How often the process in this place has ended unasked."""


class CandidateStatus(msgspec.Struct, frozen=True, kw_only=True):
    """A bundle that a share of the callers is answered by."""

    bundle: str
    """As `name@version#hash`."""
    digest: str
    """SHA-256 of its `bundle.json`, hex."""
    share: int
    """Percent of the callers."""
    salt: str
    """Of the hash that chooses them."""
    programs: tuple[str, ...]
    """Hash of each program that its routes have."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """What `GET /admin/status` tells."""

    version: str
    uptime_s: float
    ready: bool
    not_ready: tuple[str, ...]
    streams: int
    held_bytes: int
    generation: int
    """Counts accepted reloads; 1 after the start."""
    routes: tuple[RouteStatus, ...]
    models: tuple[str, ...]
    """`name@version` of each model that is loaded."""
    unheard: tuple[str, ...]
    """Models that services run, of which nothing has been heard yet."""
    reload: ReloadStatus | None
    bundle: str
    """The signed bundle that policies are of, as `name@version#hash`; empty: they are files."""
    audit_chain: str
    warnings: tuple[str, ...]
    bundle_digest: str = ""
    """SHA-256 of that bundle's `bundle.json`, hex; empty: there is none."""
    candidate: CandidateStatus | None = None
    """The bundle of a share of the callers; null: all are answered by the same."""
    left_out: str = ""
    """Why there is none though there should be one."""
    configuration: str = ""
    """SHA-256 of the configuration, hex."""
    model_hashes: Mapping[str, str] = {}
    """`name@version` of each model that is loaded -> SHA-256 of what its files are, hex."""
    workers: tuple[WorkerStatus, ...] = ()
    """The processes that serve as one; none where there is but one."""


class Inside(Protocol):
    """What the admin listener shows and asks for."""

    async def shown(self) -> Status:
        """Return what is in force."""

    async def metrics(self) -> bytes:
        """Return what is counted, in the Prometheus text format."""

    async def entries(self, count: int) -> Sequence[object]:
        """Return the latest entries of the audit chains, oldest first."""

    async def reload(self) -> None:
        """Load configuration and policies anew.

        Raises:
            FaultyFile: a file is wrong; what was in force stays.
        """


CONSOLE = "/console"
"""The pages for people, and the beginning of their paths."""


def console_at(admin: Address, server: Server) -> str:
    """Return where a browser on this machine finds the pages."""
    return f"{'http' if server.admin_tls is None else 'https'}://{admin}{CONSOLE}/"


class Pages(Protocol):
    """Pages for people, below `CONSOLE`; they see to it themselves who may look."""

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""


class Admin:
    """Answers every request of the admin listener."""

    def __init__(self, inside: Inside, token: str | None, console: Pages) -> None:
        """Show `inside`; ask for `token` (None: only loopback reaches the listener) but for the two probes."""
        self._inside = inside
        self._token = token
        self._console = console
        self._pages: Mapping[tuple[str, str], Callable[[BaseRequest], Awaitable[StreamResponse]]] = {
            ("GET", "/livez"): self._livez,
            ("GET", "/readyz"): self._readyz,
            ("GET", "/metrics"): self._show_metrics,
            ("GET", "/admin/status"): self._status,
            ("GET", "/admin/audit"): self._audit,
            ("POST", "/admin/reload"): self._reload,
        }

    @property
    def _listed(self) -> str:
        return ", ".join(f"`{method} {path}`" for method, path in (*self._pages, ("GET", f"{CONSOLE}/")))

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        response = await self._answer(request)
        response.headers[hdrs.SERVER] = "checkstream"
        return response

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        path = request.rel_url.raw_path
        if path == CONSOLE or path.startswith(f"{CONSOLE}/"):
            return await self._console.respond(request)
        methods = sorted(method for method, known in self._pages if known == path)
        if not methods:
            return _error(404, "not_found", f"there is no `{path[:100]}` here; there is {self._listed}")
        page = self._pages.get((request.method, path))
        if page is None:
            return _error(405, "method_not_allowed", f"it takes {methods[0]}", allow=", ".join(methods))
        if path not in ("/livez", "/readyz") and not self._allowed(request):
            return _error(401, "authentication_error", "no valid token; send it as `Authorization: Bearer TOKEN`")
        if request.method == "POST" and hdrs.ORIGIN in request.headers:
            return _error(403, "forbidden", "a web page may not do this")
        try:
            return await page(request)
        except CheckstreamError as error:
            return _error(row(error).status, row(error).kind, str(error))

    def _allowed(self, request: BaseRequest) -> bool:
        if self._token is None:
            return True
        scheme, _, given = request.headers.get(hdrs.AUTHORIZATION, "").partition(" ")
        expected = self._token.encode()
        return hmac.compare_digest(given.strip().encode("utf-8", "surrogateescape"), expected) and (
            scheme.lower() == "bearer"
        )

    async def _livez(self, _: BaseRequest) -> StreamResponse:
        return Response(text="ok\n")

    async def _readyz(self, _: BaseRequest) -> StreamResponse:
        status = await self._inside.shown()
        if status.ready:
            unheard = [f"nothing heard yet of the service of model `{name}`\n" for name in status.unheard]
            return Response(text="".join(("ready\n", *unheard)))
        return Response(status=503, text="not ready: " + "; ".join(status.not_ready) + "\n")

    async def _show_metrics(self, _: BaseRequest) -> StreamResponse:
        return Response(
            body=await self._inside.metrics(), headers={"content-type": "text/plain; version=0.0.4; charset=utf-8"}
        )

    async def _status(self, _: BaseRequest) -> StreamResponse:
        return _json(await self._inside.shown())

    async def _audit(self, request: BaseRequest) -> StreamResponse:
        asked = request.query.get("last", str(_ENTRIES))
        if not asked.isascii() or not asked.isdecimal() or not 1 <= int(asked[:9]) <= 200:
            return _error(400, "invalid_request_error", f"`last={asked[:40]}` is not a number from 1 to 200")
        return _json(await self._inside.entries(int(asked)))

    async def _reload(self, _: BaseRequest) -> StreamResponse:
        try:
            await self._inside.reload()
        except FaultyFile as error:
            kind = "invalid_configuration" if isinstance(error, ConfigError) else "invalid_policy"
            return _json({"ok": False, "error": kind, "message": str(error), "faults": error.faults}, status=400)
        return _json({"ok": True, "generation": (await self._inside.shown()).generation})


def _json(value: object, *, status: int = 200) -> Response:
    return Response(status=status, body=msgspec.json.encode(value) + b"\n", content_type="application/json")


def _error(status: int, kind: str, message: str, *, allow: str | None = None) -> Response:
    response = _json({"error": {"type": kind, "message": message}}, status=status)
    if allow is not None:
        response.headers[hdrs.ALLOW] = allow
    return response
