"""The service behind remote detectors: `POST /v1/detect` with the models of this machine, for many proxies.

`checkstream score` runs it. Queues, deadlines and breakers are the scorer's, as in the proxy. INVARIANT: a request is
refused or answered for every text, in the time that it gives; what one text does to a model is told of that text alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest, Response, StreamResponse

from checkstream.errors import (
    BodyTooLarge,
    BodyTooSlow,
    CallerUnknown,
    Overloaded,
    RequestInvalid,
    RequestRefused,
    RouteUnknown,
    ScoringError,
)
from checkstream.listen import Admission, Callers, Times, read_body, who_of
from checkstream.scoring import Model, Scorer
from checkstream.scoring.remote import PATH, DetectEntity, DetectRequest, DetectResponse, DetectResult

MAX_TEXTS = 256
MAX_DEADLINE_MS = 60_000.0
_IN_TIME = 0.8
"""Share of its time after which a request is told that there is too much to do: it must hear so before it gives up."""
_STATUS: Mapping[type[Exception], tuple[int, str]] = {
    RequestInvalid: (400, "invalid_request_error"),
    CallerUnknown: (401, "authentication_error"),
    RouteUnknown: (404, "not_found"),
    BodyTooSlow: (408, "request_timeout"),
    BodyTooLarge: (413, "request_too_large"),
    Overloaded: (429, "overloaded"),
}


class ServedModel(msgspec.Struct, frozen=True, kw_only=True):
    """What `GET /v1/detect` tells of a model."""

    name: str
    version: str
    labels: tuple[str, ...]
    entities: tuple[str, ...]


class Detection:
    """Answers every request of the service."""

    def __init__(
        self,
        models: tuple[Model, ...],
        scorer: Scorer,
        *,
        callers: Callers,
        admission: Admission,
        times: Times,
        body_bytes: int,
    ) -> None:
        """Answer with `scorer` for `models`."""
        self._scorer = scorer
        self._callers = callers
        self._admission = admission
        self._times = times
        self._body_bytes = body_bytes
        self._models = {
            model.name: ServedModel(
                name=model.name,
                version=model.entry.version,
                labels=model.labels,
                entities=tuple(kind.entity for kind in model.entry.entities),
            )
            for model in models
        }
        self.draining = False
        """No more is taken; `/readyz` says so."""
        self._pages: Mapping[tuple[str, str], Callable[[BaseRequest], Awaitable[StreamResponse]]] = {
            ("GET", "/livez"): self._livez,
            ("GET", "/readyz"): self._readyz,
            ("GET", PATH): self._describe,
            ("POST", PATH): self._detect,
        }

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request."""
        response = await self._answer(request)
        response.headers[hdrs.SERVER] = "checkstream"
        return response

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        path = request.rel_url.raw_path
        page = self._pages.get((request.method, path))
        try:
            if page is not None:
                return await page(request)
            allowed = sorted(method for method, known in self._pages if known == path)
            if allowed:
                response = _error(405, "method_not_allowed", f"it takes {' and '.join(allowed)}")
                response.headers[hdrs.ALLOW] = ", ".join(allowed)
                return response
            raise RouteUnknown(f"there is no `{path[:100]}` here; ask `{PATH}`")
        except (RequestRefused, RequestInvalid) as error:
            status, kind = _STATUS[type(error)]
            response = _error(status, kind, str(error))
            if status == 429:
                response.headers[hdrs.RETRY_AFTER] = "1"
            return response

    async def _livez(self, _: BaseRequest) -> StreamResponse:
        return Response(text="ok\n")

    async def _readyz(self, _: BaseRequest) -> StreamResponse:
        return Response(status=503, text="draining\n") if self.draining else Response(text="ready\n")

    async def _describe(self, request: BaseRequest) -> StreamResponse:
        await self._callers.identify(request)
        return _json({"models": tuple(self._models.values())})

    async def _detect(self, request: BaseRequest) -> StreamResponse:
        identity = await self._callers.identify(request)
        with self._admission.visit(who_of(request, identity)) as visit:
            visit.begin()
            asked = self._read(await read_body(request, self._body_bytes, self._times, visit))
            visit.enter()
            fresh = asked.fresh_chars or (0,) * len(asked.texts)
            results = await asyncio.gather(
                *(self._one(asked, text, chars) for text, chars in zip(asked.texts, fresh, strict=True))
            )
            return _json(DetectResponse(results=tuple(results)))

    def _read(self, body: bytes) -> DetectRequest:
        """Read a request's body.

        Raises:
            RequestInvalid: it is not of the form, or asks too much at once.
            RouteUnknown: there is no such model here.
        """
        try:
            asked = msgspec.json.decode(body, type=DetectRequest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RequestInvalid(
                f"the body is not of the form that is asked for: {error}; see models/README.md"
            ) from error
        if asked.model not in self._models:
            raise RouteUnknown(f"there is no model `{asked.model[:100]}` here; there are {', '.join(self._models)}")
        if not 1 <= len(asked.texts) <= MAX_TEXTS:
            raise RequestInvalid(f"`texts` has {len(asked.texts)} entries; send 1 to {MAX_TEXTS}")
        if asked.fresh_chars and len(asked.fresh_chars) != len(asked.texts):
            raise RequestInvalid("`fresh_chars` has another length than `texts`; give one number for each, or none")
        if min(asked.fresh_chars, default=0) < 0:
            raise RequestInvalid("`fresh_chars` has a number below 0; count characters at the end of the text")
        if not 0 < asked.deadline_ms <= MAX_DEADLINE_MS:
            raise RequestInvalid(
                f"`deadline_ms` is {asked.deadline_ms}; give more than 0, at most {MAX_DEADLINE_MS:.0f}"
            )
        return asked

    async def _one(self, asked: DetectRequest, text: str, fresh_chars: int) -> DetectResult:
        fresh_chars = min(fresh_chars, len(text))
        try:
            async with asyncio.timeout(asked.deadline_ms * _IN_TIME / 1000):
                checked = await self._scorer.score(
                    (asked.model,),
                    text,
                    asked.deadline_ms,
                    ingress=asked.ingress,
                    fresh_chars=fresh_chars,
                    open_chars=fresh_chars,
                )
        except TimeoutError:
            return DetectResult(error="overload")
        except ScoringError as error:
            return DetectResult(error=error.reason)
        return DetectResult(
            scores={name.partition(".")[2]: score for name, score in checked.scores.items()},
            entities=tuple(DetectEntity(each.entity, each.start, each.end, each.score) for each in checked.entities),
        )


def _json(value: object, *, status: int = 200) -> Response:
    return Response(status=status, body=msgspec.json.encode(value) + b"\n", content_type="application/json")


def _error(status: int, kind: str, message: str) -> Response:
    return _json({"error": {"type": kind, "message": message}}, status=status)
