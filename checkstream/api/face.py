"""Answers HTTP requests with a table of operations: keys, limits, deadlines, and errors that say what to do.

INVARIANT: work is done only for a caller that is known and still there; a request is answered or refused, and what one
caller sends costs others no more than its share of the limits.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from typing import Protocol
from urllib.parse import unquote

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response
from prometheus_client import Histogram

from checkstream.api.nodes import Nodes
from checkstream.api.openapi import SCORING, About, description
from checkstream.api.operation import Operation
from checkstream.api.problem import Problem, ProblemBody, refused
from checkstream.errors import (
    ActConflicts,
    ActForbidden,
    BodyTooLarge,
    BodyTooSlow,
    CallerUnknown,
    ConfigError,
    ControlUnusable,
    EvidenceError,
    GateError,
    NodeRefused,
    NotReady,
    Overloaded,
    RequestInvalid,
    RouteUnknown,
    RunsUnusable,
    StepFailed,
    ThingUnknown,
    TookTooLong,
)
from checkstream.listen import Admission, Callers, Identity, Times, connection_of, read_body, who_of
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Family

DESCRIPTION = "/openapi.json"
_STATUS: Mapping[type[Exception], tuple[int, str]] = {
    StepFailed: (502, "evaluation_failed"),  # before their parent: the first that fits counts
    RunsUnusable: (503, "runs_unavailable"),
    GateError: (400, "invalid_request_error"),
    RequestInvalid: (400, "invalid_request_error"),
    CallerUnknown: (401, "authentication_error"),
    ActForbidden: (403, "permission_error"),
    NodeRefused: (403, "node_refused"),
    ThingUnknown: (404, "not_found"),
    ActConflicts: (409, "conflict"),
    RouteUnknown: (404, "not_found"),
    BodyTooSlow: (408, "request_timeout"),
    BodyTooLarge: (413, "request_too_large"),
    Overloaded: (429, "overloaded"),
    TookTooLong: (503, "deadline_exceeded"),
    NotReady: (503, "not_ready"),
    EvidenceError: (503, "evidence_unavailable"),
    ConfigError: (503, "not_ready"),
    ControlUnusable: (503, "store_unavailable"),
}
STORE_FAILS = "the server's store can't be used; ask again later: the operator's log says what failed"
"""What is told of it; hosts and paths are nobody's business."""
_LEFT = 499
"""What is counted where the caller has left: nobody reads it."""
_RETRY_S = {429: "1", 503: "5"}


class Counting(Protocol):
    """Counts what is answered."""

    @property
    def api(self) -> Family[Histogram]:
        """Time of answers, by path and status."""


class Face:
    """Answers every request of the API."""

    def __init__(
        self,
        operations: Sequence[Operation],
        *,
        callers: Callers,
        admission: Admission,
        times: Times,
        body_bytes: int,
        metrics: Counting,
        log: Log,
        version: str,
        nodes: Nodes | None = None,
        about: About = SCORING,
    ) -> None:
        """Answer with `operations`; `version` and what it is `about` are told in the description."""
        self._nodes = nodes or Nodes({})
        self._operations = operations
        self._metrics = metrics
        self._log = log
        self._callers = callers
        self._admission = admission
        self._times = times
        self._body_bytes = body_bytes
        self._description = msgspec.json.encode(description(operations, version, keys=callers.known, about=about))
        self.draining = False
        """No more is taken."""

    async def respond(self, request: BaseRequest) -> Response:
        """Answer one request.

        Raises:
            ConnectionError: the caller has left.
        """
        begun, status = time.perf_counter(), 500
        try:
            try:
                response = await self._answer(request)
            except tuple(_STATUS) as error:
                told, kind = status_of(error)
                response = problem(told, kind, self._words(error))
            status = response.status
        except ConnectionError:
            status = _LEFT
            raise
        finally:
            self._metrics.api.of(self._named(request), str(status)).observe(time.perf_counter() - begun)
        response.headers[hdrs.SERVER] = "checkstream"
        return response

    def _words(self, error: Exception) -> str:
        """Return what a caller is told: of a store that fails neither hosts nor users, which its operator is told."""
        told = str(error)
        if isinstance(error, ControlUnusable):
            told = STORE_FAILS
        elif isinstance(error, EvidenceError):
            told = "the evidence or the history can't be used; ask again later: the operator's log says what failed"
        elif isinstance(error, StepFailed):
            told = error.told
        if told != str(error):
            kind = "store" if isinstance(error, ControlUnusable) else "evidence"
            self._log.error(f"api.{kind}_failed", detail=str(error))
        return told

    def _named(self, request: BaseRequest) -> str:
        """Return the path of the operation that was asked for, as the description writes it; of others nothing."""
        path = request.rel_url.raw_path
        return next((each.path for each in self._operations if each.taken(path) is not None), "other")

    async def _answer(self, request: BaseRequest) -> Response:
        path = request.rel_url.raw_path
        if request.method == "GET":
            if path == "/livez":
                return Response(text="ok\n")
            if path == "/readyz":
                return Response(status=503, text="draining\n") if self.draining else Response(text="ready\n")
            if path == DESCRIPTION:
                return Response(body=self._description, content_type="application/json")
        found = [(each, value) for each in self._operations if (value := each.taken(path)) is not None]
        if any(each.asker == "node" and each.method == request.method for each, _ in found):
            identity = Identity(self._nodes.named(request))
        else:
            identity = await self._callers.identify(request)
        if not found:
            raise RouteUnknown(f"there is no `{path[:100]}` here; `{DESCRIPTION}` lists what there is")
        for operation, value in found:
            if operation.method == request.method:
                return await self._carried_out(operation, unquote(value, errors="replace"), request, identity)
        allowed = ", ".join(sorted(operation.method for operation, _ in found))
        response = problem(405, "method_not_allowed", f"`{path[:100]}` takes {allowed}")
        response.headers[hdrs.ALLOW] = allowed
        return response

    async def _carried_out(
        self, operation: Operation, value: str, request: BaseRequest, identity: Identity
    ) -> Response:
        if self.draining:
            raise NotReady("the process is ending; ask again in a moment")
        with self._admission.visit(who_of(request, identity)) as visit:
            visit.begin()
            if operation.method == "POST":
                body = await read_body(request, self._body_bytes, self._times, visit)
                if operation.asker == "node":
                    self._nodes.require(request, body)
                asked = body if operation.packed else _read(body, operation.asks)
            else:
                asked = _query(request, operation, value)
            visit.enter()
            given = await _while_there(request, operation, asked, identity)
            return Response(body=msgspec.json.encode(given) + b"\n", content_type="application/json")


async def _while_there(request: BaseRequest, operation: Operation, asked: object, caller: Identity) -> object:
    """Return what the work gives, unless the caller leaves or the time is over: either ends the wait for it.

    Raises:
        TookTooLong: the time is over.
        ConnectionError: the caller has left.
    """
    connection = connection_of(request)
    try:
        async with asyncio.timeout(operation.seconds) as limit:
            connection.watch(lambda: limit.reschedule(0), lambda: None)
            try:
                return await operation.work(asked, caller)
            finally:
                connection.unwatch()
    except TimeoutError:
        if not limit.expired():
            raise
        if connection.left:
            raise ConnectionResetError("the caller has left") from None
        raise TookTooLong(f"this took more than {operation.seconds:g} s; send less text at once") from None


def _read(body: bytes, asks: object) -> object:
    """Read a body.

    Raises:
        RequestInvalid: it is not of the form; says where.
    """
    try:
        return msgspec.json.decode(body, type=asks)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise RequestInvalid(refused("body", error)) from error


def _query(request: BaseRequest, operation: Operation, value: str) -> object:
    """Read the query, and the path's parameter.

    Raises:
        RequestInvalid: something in it is not of the form, not known, or there twice.
    """
    query = request.rel_url.query
    if len(set(query)) < len(query) or operation.parameter in query:
        raise RequestInvalid("the query names something twice; name it once")
    given = {**query, operation.parameter: value} if operation.parameter else dict(query)
    try:
        return msgspec.convert(given, operation.asks, strict=False)
    except msgspec.ValidationError as error:
        raise RequestInvalid(refused("query", error)) from error


def status_of(error: Exception) -> tuple[int, str]:
    """Return the status and the kind by which callers are told of an error.

    Raises:
        StopIteration: it is none that they are told of: a bug.
    """
    return next(found for known, found in _STATUS.items() if isinstance(error, known))


def problem(status: int, kind: str, message: str) -> Response:
    """Return what a caller is told where there is no answer."""
    place = message.rpartition(" - at `")[2].partition("`")[0] if " - at `" in message else None
    body = ProblemBody(error=Problem(type=kind, code=kind, message=message, param=place))
    response = Response(status=status, body=msgspec.json.encode(body) + b"\n", content_type="application/json")
    if status in _RETRY_S:
        response.headers[hdrs.RETRY_AFTER] = _RETRY_S[status]
    return response
