"""The gate over HTTP: `POST /evaluate`, `GET /runs`, `/runs/{id}`, `/trend`, `/search`.

INVARIANT: a path that a caller names is read only below the folder that the operator named; a refused request changes
nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import msgspec
import yaml
from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.errors import (
    BodyTooLarge,
    BodyTooSlow,
    CallerUnknown,
    GateError,
    Overloaded,
    RequestInvalid,
    RequestRefused,
    RouteUnknown,
    StepFailed,
)
from checkstream.gate.history import trends
from checkstream.gate.ledger import Ledger
from checkstream.gate.report import Report
from checkstream.gate.settings import GateSettings, settings_of
from checkstream.listen import Admission, Callers, Times, read_body

MOST_RUNS = 1000
_CONFIG = ".llm-reliability.yaml"
_STATUS: Mapping[type[Exception], tuple[int, str]] = {
    StepFailed: (502, "evaluation_failed"),  # before its parent: the first that fits counts
    GateError: (400, "invalid_request_error"),
    RequestInvalid: (400, "invalid_request_error"),
    CallerUnknown: (401, "authentication_error"),
    RouteUnknown: (404, "not_found"),
    BodyTooSlow: (408, "request_timeout"),
    BodyTooLarge: (413, "request_too_large"),
    Overloaded: (429, "overloaded"),
}


class EvaluateRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What `POST /evaluate` asks: a file below the operator's folder, or the configuration itself."""

    config_path: str | None = None
    """Relative to that folder; `.llm-reliability.yaml` when neither is given."""
    config: dict[str, object] | None = None


class GateFace:
    """Answers every request of the gate."""

    def __init__(
        self,
        evaluate: Callable[[GateSettings], Awaitable[Report]],
        ledger: Ledger,
        *,
        root: Path,
        callers: Callers,
        admission: Admission,
        times: Times,
        body_bytes: int = 1 << 20,
    ) -> None:
        """Answer with runs that `evaluate` makes; configurations are read below `root`."""
        self._evaluate = evaluate
        self._ledger = ledger
        self._root = root.resolve()
        self._callers = callers
        self._admission = admission
        self._times = times
        self._body_bytes = body_bytes
        self._pages: Mapping[str, tuple[str, Callable[[BaseRequest], Awaitable[Response]]]] = {
            "/evaluate": ("POST", self._run),
            "/runs": ("GET", self._runs),
            "/trend": ("GET", self._trend),
            "/search": ("GET", self._search),
        }

    def takes(self, path: str) -> bool:
        """Return whether a path is the gate's."""
        return path in self._pages or path.startswith("/runs/")

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request; the path is the gate's or 404."""
        path = request.rel_url.path
        try:
            self._callers.identify(request)
            method, page = self._pages.get(path, ("GET", self._one if path.startswith("/runs/") else None))
            if page is None:
                raise RouteUnknown(f"there is no `{path[:100]}` here; ask {', '.join(self._pages)} or /runs/ID")
            if request.method != method:
                response = _error(405, "method_not_allowed", f"it takes {method}")
                response.headers[hdrs.ALLOW] = method
                return response
            return await page(request)
        except (RequestRefused, RequestInvalid, GateError) as error:
            status, kind = next(found for known, found in _STATUS.items() if isinstance(error, known))
            response = _error(status, kind, str(error))
            if status == 429:
                response.headers[hdrs.RETRY_AFTER] = "5"
            return response

    async def _run(self, request: BaseRequest) -> Response:
        self._admission.enter()
        try:
            body = await read_body(request, self._body_bytes, self._times)
            try:
                asked = msgspec.json.decode(body or b"{}", type=EvaluateRequest)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise RequestInvalid(f"the body is not of the form that is asked for: {error}") from error
            if asked.config is not None and asked.config_path is not None:
                raise RequestInvalid("`config` and `config_path` are both given; send one of them")
            given = asked.config if asked.config is not None else await asyncio.to_thread(self._file, asked.config_path)
            return _json(await self._evaluate(settings_of(given)))
        finally:
            self._admission.leave()

    def _file(self, path: str | None) -> object:
        """Read a configuration below the root.

        Raises:
            RouteUnknown: there is no such file there.
            GateError: it is no YAML.
        """
        try:
            found = (self._root / (path or _CONFIG)).resolve(strict=True)
            inside = found.is_relative_to(self._root) and found.is_file()
            content = found.read_bytes() if inside and found.stat().st_size <= self._body_bytes else None
        except (OSError, ValueError, RuntimeError):
            content = None
        if content is None:
            raise RouteUnknown(
                f"there is no configuration `{(path or _CONFIG)[:200]}` here; name one below the served folder"
            )
        return read_yaml(path or _CONFIG, content)

    async def _runs(self, request: BaseRequest) -> Response:
        since, limit = _number(request, "since"), _number(request, "limit")
        found = await asyncio.to_thread(
            self._ledger.runs,
            since=since,
            config_hash=request.rel_url.query.get("config_hash"),
            target=request.rel_url.query.get("target"),
            limit=int(min(max(limit or 100, 1), MOST_RUNS)),
        )
        return _json({"runs": found})

    async def _one(self, request: BaseRequest) -> Response:
        run_id = request.rel_url.path.removeprefix("/runs/")
        report = await asyncio.to_thread(self._ledger.report, run_id)
        if report is not None:
            return Response(body=report.encode() + b"\n", content_type="application/json")
        run = await asyncio.to_thread(self._ledger.run, run_id)
        if run is None:
            raise RouteUnknown(f"there is no run `{run_id[:100]}`; `/runs` lists them")
        return _json(run)

    async def _trend(self, request: BaseRequest) -> Response:
        query = request.rel_url.query
        runs = await asyncio.to_thread(
            self._ledger.runs,
            since=_number(request, "since"),
            config_hash=query.get("config_hash"),
            target=query.get("target"),
            decided=True,
            limit=MOST_RUNS,
        )
        return _json({"trends": trends(runs)})

    async def _search(self, request: BaseRequest) -> Response:
        query = request.rel_url.query
        found = await asyncio.to_thread(
            self._ledger.search,
            query.get("q", ""),
            kind=query.get("kind"),
            since=_number(request, "since"),
            until=_number(request, "until"),
        )
        return _json({"found": found})


def read_yaml(name: str, content: bytes) -> object:
    """Read YAML.

    Raises:
        GateError: it is none.
    """
    try:
        return yaml.safe_load(content.decode())
    except (UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise GateError(f"`{name}` is no YAML: {' '.join(str(error).split())[:300]}") from error


def _number(request: BaseRequest, name: str) -> float | None:
    """Read a number of the query.

    Raises:
        RequestInvalid: it is none.
    """
    text = request.rel_url.query.get(name)
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < 1e12:
        raise RequestInvalid(f"`{name}` is `{text[:50]}`; give seconds since 1970, or a count, as a number")
    return value


def _json(value: object, *, status: int = 200) -> Response:
    return Response(status=status, body=msgspec.json.encode(value) + b"\n", content_type="application/json")


def _error(status: int, kind: str, message: str) -> Response:
    return _json({"error": {"type": kind, "message": message}}, status=status)
