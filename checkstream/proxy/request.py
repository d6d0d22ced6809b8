"""The whole path of a request on one screen: accept, read, guard, relay; or pass on unguarded, and say so."""

from __future__ import annotations

import asyncio
import collections
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import msgspec
from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestKey, RequestPayloadError, Response, StreamResponse

from checkstream.core.commands import Assess
from checkstream.core.events import Assessed, RequestReceived
from checkstream.core.exchange.heads import holds
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.rpc.toolbook import Pins
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.places import asked_like
from checkstream.core.wire.surface import Spoken, Surface
from checkstream.core.wire.surfaces import SURFACES, spoken
from checkstream.errors import AuditError, BodyTooLarge, CheckstreamError, NotReady, RequestInvalid, UpstreamError
from checkstream.listen import (
    Admission,
    Callers,
    Times,
    Visit,
    Who,
    connection_of,
    read_body,
    too_large,
    who_of,
)
from checkstream.proxy.accept import Route, candidates, choosing, on_path
from checkstream.proxy.background import Afterwards, Assessor, Background, risk_header
from checkstream.proxy.candidate import Candidate, party_of
from checkstream.proxy.capacity import Load
from checkstream.proxy.confirm import CONFIRM, Asked, Confirmations, Confirming
from checkstream.proxy.cors import origins_of, preflight, shown_to
from checkstream.proxy.counts import Counted, StreamCounts
from checkstream.proxy.headers import media_of_request
from checkstream.proxy.ids import STREAM, new_id
from checkstream.proxy.machine import Machine
from checkstream.proxy.meter import Meter
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.passing import Passing
from checkstream.proxy.questions import Classifiers, Names, Past, Tools
from checkstream.proxy.quiet import QuietOfCaller, QuietTexts
from checkstream.proxy.recorder import Recorder
from checkstream.proxy.relay import Admitted, Exchange, Services
from checkstream.proxy.replies import POLICY, error_response
from checkstream.proxy.sent import CONTEXT, CONVERSATION, Sent, method_of, one_of, read_around, readable, unread
from checkstream.proxy.sessions import Sessions
from checkstream.proxy.trail import ExchangeTrail, Trail
from checkstream.proxy.turns import Turns
from checkstream.proxy.witness import Witness
from checkstream.telemetry.traces import TRACEPARENT

_MOST_BOOKS = 1000
"""Of callers and routes whose tools are remembered."""
_DEFAULT_SHAPE = SURFACES["openai.chat"]
"""Whose error object a caller gets on a path that no surface has."""
_ROUTE = RequestKey("checkstream.route", str)
"""Where a request has the name of the route that has taken it."""


class Intake(msgspec.Struct, frozen=True):
    """What may come in."""

    callers: Callers
    admission: Admission
    times: Times
    body_bytes: int
    meter: Meter


class _Guarded(msgspec.Struct, frozen=True, kw_only=True):
    """A request that is guarded, and what is there for it."""

    route: Route
    surface: Surface | Mcp
    plan: Plan
    services: Services
    ledger: ExchangeTrail
    admitted: Admitted
    counts: StreamCounts


class Proxy:
    """Answers every request of the proxy's listener."""

    def __init__(
        self,
        *,
        intake: Intake,
        routes: Callable[[], Sequence[Route]],
        candidate: Callable[[], Candidate | None] = lambda: None,
        trail: Trail,
        digests: Callable[[str | None], Callable[[str], str]],
        counts: Counted,
        conversations: Past | None = None,
        vault: Names | None = None,
        tools: Tools | None = None,
        recorder: Recorder | None = None,
        witness: Witness | None = None,
        background: Background | None = None,
        assessor: Assessor | None = None,
        confirmations: Confirmations | None = None,
    ) -> None:
        """Take what the path needs.

        Args:
            intake: Callers and limits.
            routes: Returns the routes in force; asked once for each request.
            candidate: Returns those of a share of the callers, if there are some.
            trail: Takes the records.
            digests: By caller, the keyed digest of a text, hex.
            counts: Takes metrics and logs.
            tools: Keeps how tools of servers were described; without it this process remembers what it has seen.
            vault: Keeps what stands for whose data in a conversation; without it names are of one request.
            conversations: Knows what earlier requests came to; without it nothing is known.
            recorder: Records a sample of the exchanges, if any are to be recorded.
            witness: Keeps evidence of exchanges, if of any it is to be kept.
            background: Scores answers afterwards; without it none are.
            assessor: Holds answers against evidence while their callers wait; without it nobody does.
            confirmations: Of this process and others; without it tokens are good in this one alone.
        """
        self._conversations = conversations
        self._vault = vault
        self._pins = tools
        self._recorder = recorder
        self._witness = witness
        self._background = background
        self._assessor = assessor
        self._intake = intake
        self._routes = routes
        self._candidate = candidate
        self._in_use = collections.Counter[Classifiers]()
        self._trail = trail
        self._digests = digests
        self._counts = counts
        self._confirmations = confirmations or Confirmations()
        self._quiet = QuietTexts()
        self._turns = Turns()
        self._running: set[Exchange] = set()
        self._draining = False
        self._tools: dict[tuple[str, str | None], Pins] = {}

    async def respond(self, request: BaseRequest) -> StreamResponse:
        """Answer one request. Every error has its row in `replies.TABLE`."""
        stream = new_id()
        path = request.rel_url.raw_path
        shape = self._shape(path)
        asks_first = preflight(self._routes(), request)
        if asks_first is not None:
            self._counts.answered(self._named(request), asks_first.status)
            return asks_first
        headers = {STREAM: stream, **shown_to(origins_of(self._routes(), path), request)}
        try:
            return await self._take(request, stream)
        except CheckstreamError as error:
            response = error_response(error, shape, headers)
            self._counts.refused(stream, error, self._named(request))
            if not request.content.is_eof():
                response.force_close()  # what remains of the body is not read
            return response
        except ConnectionError:
            return Response(status=499)  # the caller left while its body was read: nobody hears this
        except Exception as error:  # noqa: BLE001 - a bug in one request is that request's alone
            self._counts.crashed(stream, error, self._named(request))
            return error_response(error, shape, headers)

    def _named(self, request: BaseRequest) -> str | None:
        """Return the name of the route that has taken a request, or that alone could; None: nobody can tell."""
        taken: str | None = request.get(_ROUTE)
        method = request.headers.get(hdrs.ACCESS_CONTROL_REQUEST_METHOD, method_of(request))
        there = {route.name for route in on_path(self._routes(), request.rel_url.raw_path) if method in route.methods}
        return taken or (there.pop() if len(there) == 1 else None)

    def _shape(self, path: str) -> Spoken:
        """Return the surface whose error objects are understood at a path."""
        here = next((route.surface for route in on_path(self._routes(), path) if route.surface is not None), None)
        known = asked_like(path)
        return here or (_DEFAULT_SHAPE if known is None else spoken(known))

    async def _take(self, request: BaseRequest, stream: str) -> StreamResponse:
        identity = await self._intake.callers.identify(request)
        who = who_of(request, identity)
        found = candidates(self._routes_of(request, who), request.rel_url.raw_path, method_of(request))
        if self._draining:
            raise NotReady("the proxy is shutting down; try again on another one")
        scorers = {route.scorer for route in found if route.scorer is not None}
        self._in_use.update(scorers)
        try:
            media = media_of_request(
                request.headers.getall(hdrs.CONTENT_TYPE, ()), request.headers.getall(hdrs.CONTENT_ENCODING, ())
            )
            with self._intake.admission.visit(who) as visit:
                visit.begin([(route.name, route.quota) for route in found])
                body = await self._read(request, found, visit)
                route = await self._choose(found, request.rel_url.raw_path, body, who.party("caller"))
                request[_ROUTE] = route.name
                if len(body) > self._most_bytes(route):
                    raise BodyTooLarge(too_large(self._most_bytes(route), "routes[].body_bytes"))
                self._intake.admission.look_whether_shed(route.name)
                visit.enter(route.name, route.quota)
                sent = Sent(identity, body, media, who.party("caller"))
                return await self._admit(request, stream, route, sent, visit)
        finally:
            self._in_use.subtract(scorers)
            self._in_use += collections.Counter()  # forget those that nobody uses

    def _routes_of(self, request: BaseRequest, who: Who) -> Sequence[Route]:
        """Return the routes of the bundle that decides for a caller."""
        candidate = self._candidate()
        if candidate is None or not candidate.chosen.has(party_of(who, request.headers.get(CONVERSATION))):
            return self._routes()
        return candidate.routes

    async def _choose(self, found: Sequence[Route], path: str, body: bytes, share: str) -> Route:
        """Choose the route that takes a request's model; others have their turns while a long body is read."""
        choosing_ = choosing(found, path, body)
        while True:
            try:
                next(choosing_)
            except StopIteration as end:
                route: Route = end.value
                return route
            await self._turns.next(share)

    def _most_bytes(self, route: Route) -> int:
        """Return how long a body a route takes."""
        return self._intake.body_bytes if route.body_bytes is None else min(route.body_bytes, self._intake.body_bytes)

    async def _read(self, request: BaseRequest, found: Sequence[Route], visit: Visit) -> bytes:
        """Return a body that some of the routes could take."""
        most = max(map(self._most_bytes, found))
        setting = "server.limits.body_bytes" if most == self._intake.body_bytes else "routes[].body_bytes"
        try:
            return await read_body(request, most, self._intake.times, visit, setting)
        except RequestPayloadError as error:
            if connection_of(request).left:
                raise ConnectionResetError from error
            raise RequestInvalid("the request body is broken; check its encoding and length") from error

    async def _admit(self, request: BaseRequest, stream: str, route: Route, sent: Sent, visit: Visit) -> StreamResponse:
        """Answer a request, if what has been admitted leaves time to check it."""
        if route.plan is None or route.scorer is None:
            return await self._answer(request, stream, route, sent, visit, None)
        chars = min(readable(sent.body), route.plan.prompt_chars)
        wait_s = route.scorer.wait_s(sent.share, chars)
        load = self._intake.meter.admit(sent.share, wait_s=wait_s, most_s=route.plan.hold_ms(chars) / 1000)
        if request.method == hdrs.METH_GET:
            load.end()  # it waits for its server, for hours, and needs nothing until that speaks
        try:
            return await self._answer(request, stream, route, sent, visit, load)
        finally:
            load.end()

    async def _answer(  # noqa: PLR0917 - one request and what it has
        self, request: BaseRequest, stream: str, route: Route, sent: Sent, visit: Visit, load: Load | None
    ) -> StreamResponse:
        identity = sent.identity
        if self._trail.failure and (route.plan is None or route.plan.fail_mode == "closed"):
            raise AuditError(self._trail.failure)
        traceparent = request.headers.getall(TRACEPARENT, ())
        counts = self._counts.begun(stream, route.name, identity.name, traceparent, candidate=route.candidate)
        ledger = ExchangeTrail(self._trail, stream, route.name, identity.name, counts)
        if route.plan is None or route.surface is None or route.scorer is None or load is None:
            try:
                response = await self._pass_on(request, route, unread(request, sent), sent.body, ledger)
            except UpstreamError as error:
                counts.upstream_failed(error)
                raise
        else:
            shed = partial(self._intake.admission.shed, route.name)
            guarded = _Guarded(
                route=route,
                surface=route.surface,
                plan=route.plan,
                services=Services(
                    scorer=route.scorer,
                    ledger=ledger,
                    assess=self._assessing(route, stream),
                    conversations=self._conversations,
                    vault=self._vault,
                    tools=self._pins,
                    turns=self._turns,
                ),
                ledger=ledger,
                admitted=Admitted(visit=visit, load=load, share=sent.share, shed=shed),
                counts=counts,
            )
            response = await self._answer_guarded(request, stream, sent, guarded)
        counts.ended(response.status)
        return response

    async def _answer_guarded(self, request: BaseRequest, stream: str, sent: Sent, guarded: _Guarded) -> StreamResponse:
        route, body, caller = guarded.route, sent.body, sent.identity.name
        sessions = None
        if isinstance(guarded.surface, Mcp):  # a server of tools knows nobody behind the proxy
            sessions = Sessions(self._digests(caller), route.upstream.name, caller)
        outgoing, envelope = read_around(
            request, sent, route=guarded.route, plan=guarded.plan, surface=guarded.surface, sessions=sessions
        )
        context, named = (one_of(name, request.headers.getall(name, ())) for name in (CONTEXT, CONVERSATION))
        asked = Asked(
            caller=caller, route=route.name, program=guarded.plan.program.hash,
            context=context, conversation=named, body=body,
        )  # fmt: skip
        confirming = await self._confirming(asked, request.headers.getall(CONFIRM, ()))
        afterwards = Afterwards(self._background, route, stream, caller)
        plan, risk = afterwards.plan(guarded.plan), afterwards.earlier_risk(body, named)
        quiet = self._quiet.of(caller, plan.program.hash)
        exchange = Exchange(
            request,
            connection_of(request),
            guard=self._machine(guarded, plan, quiet=quiet, path=request.rel_url.raw_path),
            surface=guarded.surface,
            upstream=route.upstream,
            outgoing=outgoing,
            services=msgspec.structs.replace(guarded.services, enqueue=afterwards.put),
            admitted=guarded.admitted,
            counts=guarded.counts,
            headers={
                STREAM: stream,
                POLICY: route.policies,
                **risk_header(risk),
                **shown_to(route.origins, request),
            },
            fail_closed=guarded.plan.fail_mode == "closed",
            respond=confirming.respond,
            bind=None if sessions is None else sessions.bind,
            holds=partial(holds, plan.program),
        )
        received = RequestReceived(
            body, caller, context, confirming.rules, risk, envelope, named, request.method, sent.identity.known
        )
        self._running.add(exchange)
        try:
            return await exchange.run(received)
        finally:
            self._running.discard(exchange)
            guarded.counts.looked_up(asked=quiet.asked, known=quiet.known)

    async def _confirming(self, asked: Asked, tokens: Sequence[str]) -> Confirming:
        """Return what came with a request that confirms it, spent.

        Raises:
            NotReady: nobody can tell whether it was spent before.
        """
        if tokens and self._confirmations.waits:
            return await asyncio.to_thread(self._confirmations.open, asked, tokens)
        return self._confirmations.open(asked, tokens)

    def _machine(self, guarded: _Guarded, plan: Plan, *, quiet: QuietOfCaller, path: str) -> Machine:
        """Return what guards an exchange, recorded where recordings are made."""
        route, surface, ledger = guarded.route, guarded.surface, guarded.ledger
        guard: Machine = machine_for(
            surface,
            plan,
            self._digests(ledger.caller),
            stream=ledger.stream,
            clock=time.perf_counter,
            quiet=quiet,
            tools=self._tools_of(route, ledger.caller),
            server=f"{route.upstream.name} {path}",
        )
        if self._witness is not None:
            guard = self._witness.follow(guard, surface, plan, ledger=ledger)
        if self._recorder is None:
            return guard
        return self._recorder.follow(guard, surface, plan, stream=ledger.stream, route=route.name)

    def _tools_of(self, route: Route, caller: str | None) -> Pins | None:
        """Return what is known of the tools behind a route, as a caller has seen them."""
        if not isinstance(route.surface, Mcp):
            return None
        book = self._tools.pop((route.name, caller), None) or Pins()
        self._tools[route.name, caller] = book  # the latest is the last
        if len(self._tools) > _MOST_BOOKS:
            del self._tools[next(iter(self._tools))]
        return book

    def _assessing(self, route: Route, stream: str) -> Callable[[Assess], Awaitable[Assessed]] | None:
        return None if self._assessor is None else partial(self._assessor.assess, stream=stream, route=route)

    async def _pass_on(
        self, request: BaseRequest, route: Route, outgoing: Outgoing, body: bytes, ledger: ExchangeTrail
    ) -> StreamResponse:
        """Send a request on unguarded and its answer back as it comes; the audit chain says so."""

        async def record(status: int) -> None:
            await ledger.passed(request.method, request.rel_url.raw_path, status)

        passing = Passing(
            request, connection_of(request), {STREAM: ledger.stream, **shown_to(route.origins, request)}, record
        )
        return await passing.run(route, outgoing, body)

    @property
    def streams(self) -> int:
        """Requests that run."""
        return self._intake.admission.streams

    def uses(self, scorer: Classifiers) -> bool:
        """Tell whether some request that runs asks these classifiers, or may."""
        return scorer in self._in_use

    def refuse_new(self) -> None:
        """Take no new request: the process is about to end. Streams that only wait for their servers end at once."""
        self._draining = True
        for exchange in self._running:
            if exchange.waits:
                exchange.drain()

    def drain(self) -> None:
        """Tell every guard that still runs that the drain period is over."""
        for exchange in self._running:
            exchange.drain()
