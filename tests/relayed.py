"""Runs the pump on real sockets for tests, with a scripted guard, classifiers and ledger around it."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from aiohttp.test_utils import TestServer

from checkstream.config import Address, Upstream
from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.terms import Dialogue
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import AuditError
from checkstream.listen import Admission, Listener, Times, Visit, Who, connection_of, read_body
from checkstream.proxy.capacity import Capacity
from checkstream.proxy.counts import Counted
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.relay import Admitted, Exchange, Services
from checkstream.proxy.upstream import UpstreamClient
from checkstream.scoring import Asked, Checked
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics

SURFACE = SURFACES["openai.chat"]
RECORD = do.StreamRecord(
    surface="openai.chat", streaming=True, action="allow", outcome="complete", policies=(), program="", scanned=(),
    unscanned=(), detectors=(), findings=(), verdicts=(), degradations=(), upstream_failure=None, held_ms=0.0,
    prompt_chars=0, answer_chars=0, released_chars=0,
)  # fmt: skip


React = Callable[[on.AnyEvent], list[do.AnyCommand]]


def passing(event: on.AnyEvent) -> list[do.AnyCommand]:
    """Pass everything on."""
    match event:
        case on.RequestReceived(body):
            return [do.ForwardRequest(body, streaming=True)]
        case on.UpstreamOpened():
            return [do.StartStream()]
        case on.UpstreamBytes(data):
            return [do.SendDownstream(data)]
        case on.UpstreamClosed():
            return [do.SendDownstream(b"data: [DONE]\n\n"), do.CloseDownstream(), do.Record(RECORD)]
        case on.UpstreamFailed(kind):
            body = f"{kind}".encode()
            return [do.Reply(502, body), do.Record(RECORD)]
        case on.DownstreamClosed() | on.Draining():
            return [do.CancelUpstream(), do.Record(RECORD)]
        case _:
            return []


class ScriptedGuard:
    def __init__(self, react: React) -> None:
        self.react = react
        self.events: list[on.AnyEvent] = []

    def receive(self, event: on.AnyEvent, now: float) -> list[do.AnyCommand]:
        assert now > 0
        self.events.append(event)
        return self.react(event)

    def kinds(self) -> list[str]:
        return [type(event).__name__ for event in self.events]


class KeptRecords:
    def __init__(self, error: AuditError | None = None) -> None:
        self.records: list[do.StreamRecord] = []
        self.error = error

    async def write(self, record: do.StreamRecord) -> None:
        if self.error is not None:
            raise self.error
        self.records.append(record)

    def write_now(self, record: do.StreamRecord) -> None:
        self.records.append(record)


class Pending(Asked):
    """An answer that never comes."""

    def __init__(self) -> None:
        super().__init__(())
        self.left = 0

    @property
    def settled(self) -> bool:
        return False

    async def answer(self) -> Checked:
        await asyncio.Event().wait()
        raise AssertionError

    def leave(self) -> None:
        self.left += 1


class Asking:
    """Classifiers that give these answers in turn."""

    def __init__(self, *answers: Asked | Exception) -> None:
        self.answers = list(answers)
        self.questions: list[tuple[object, ...]] = []

    def wait_s(self, share: str, chars: int) -> float:  # noqa: ARG002 - nobody is asked that here
        raise AssertionError

    def ask(
        self,
        classifiers: tuple[str, ...],
        text: str,
        deadline_ms: float,
        *,
        ingress: bool = False,
        fresh_chars: int = 0,
        open_chars: int = 0,
        caller: str | None = None,
        share: str = "",
        parts: Sequence[int] = (),
    ) -> Asked:
        assert share == "somebody"
        self.questions.append((classifiers, text, deadline_ms, ingress, fresh_chars, open_chars, caller))
        assert not parts or sum(parts) + len(parts) - 1 == len(text)
        given = self.answers.pop(0)
        if isinstance(given, Exception):
            raise given
        return given


class Rig:
    def __init__(self, react: React, error: AuditError | None = None, **upstream: Any) -> None:
        self.guard = ScriptedGuard(react)
        self.ledger = KeptRecords(error)
        self.admission = Admission(streams=10, held_bytes=1 << 30)
        self.who = Who()
        self.visits: list[Visit] = []
        self.log = io.BytesIO()
        self.upstream_settings = upstream
        self.times = Times(header_s=5, write_s=5)
        self.url = ""
        self.exchange: Exchange | None = None
        self.client: UpstreamClient | None = None
        self.scorer = Asking()
        self.enqueue: Callable[[Dialogue], None] | None = None
        self.assess: Callable[[do.Assess], Awaitable[on.Assessed]] | None = None

    async def respond(self, request: web.BaseRequest) -> web.StreamResponse:
        assert self.client is not None
        visit = self.admission.visit(self.who)
        self.visits.append(visit)
        visit.begin()
        body = await read_body(request, 1 << 20, self.times, visit)
        visit.enter()
        self.exchange = Exchange(
            request,
            connection_of(request),
            guard=self.guard,
            surface=SURFACE,
            upstream=self.client,
            outgoing=Outgoing("/v1/chat/completions", (), None),
            services=Services(
                scorer=self.scorer,
                ledger=self.ledger,
                enqueue=self.enqueue,
                assess=self.assess,
            ),
            admitted=Admitted(
                visit=visit, load=Capacity(0.9).admit(), share="somebody", shed=lambda: self.admission.shed("r")
            ),
            counts=Counted(Metrics(), open_log("json", self.log)).begun("s", "r", None),
            headers={"x-checkstream-stream": "s"},
            fail_closed=True,
        )
        with visit:
            return await self.exchange.run(on.RequestReceived(body))

    @asynccontextmanager
    async def serving(self, upstream_url: str) -> AsyncIterator[str]:
        self.client = UpstreamClient("u", Upstream(url=upstream_url, **self.upstream_settings), {})
        listener = Listener(self.respond, self.times)
        await listener.open(Address("127.0.0.1", 0))
        try:
            yield f"http://{listener.address}/"
        finally:
            await listener.close()
            await self.client.close()
            assert not [visit for visit in self.visits if visit.held]
            assert [t for t in asyncio.all_tasks() if "Exchange" in repr(t) or "Fetching" in repr(t)] == []

    @asynccontextmanager
    async def asked(self, upstream_url: str) -> AsyncIterator[aiohttp.ClientResponse]:
        async with (
            self.serving(upstream_url) as url,
            aiohttp.ClientSession() as session,
            session.post(url, data=b"{}") as response,
        ):
            yield response


@asynccontextmanager
async def model(handler: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_post("/v1/chat/completions", handler)
    server = TestServer(app, access_log=None, handler_cancellation=True)
    await server.start_server()
    try:
        yield str(server.make_url("/")).rstrip("/")
    finally:
        await server.close()


def streaming(*pieces: bytes) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream", "x-request-id": "r1"})
        await response.prepare(request)
        for piece in pieces:
            await response.write(piece)
        return response

    return handle


class Hanging:
    """A model that answers `first` and then nothing, and notes when its caller goes."""

    def __init__(self, first: bytes | None) -> None:
        self.first = first
        self.reached = asyncio.Event()
        self.left = asyncio.Event()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        try:
            if self.first is not None:
                await response.prepare(request)
                await response.write(self.first)
            self.reached.set()
            await asyncio.Event().wait()
        finally:
            self.left.set()
        return response
