"""The pump: what happens goes to the guard as events, what the guard wants is carried out. It decides nothing.

Everything that happens to one exchange (upstream bytes, scores, timers, the caller's leaving, the end of the drain
period) comes into one inbox, and the guard hears of it in the same turn of the loop: no task wakes for a token. What is
released together leaves in one write. Only where something has to be waited for (the head of a stream, a record that
goes to the disk, a turn that somebody else has first) does the task of the request do it, and what happens meanwhile
waits in the inbox; so the guard sees events in one order, and commands are carried out in theirs.

INVARIANT: when `run` returns, no task, timer or connection of the exchange is left, and its record is in the journal.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, assert_never

import msgspec
from aiohttp import hdrs
from aiohttp.http import StreamWriter
from aiohttp.web import BaseRequest, Response, StreamResponse
from multidict import CIMultiDict

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.terms import Dialogue
from checkstream.core.wire.surface import Spoken
from checkstream.errors import AuditError, CheckstreamError
from checkstream.listen import Connection, Visit
from checkstream.proxy.capacity import Load
from checkstream.proxy.counts import StreamCounts
from checkstream.proxy.fetching import OF_UPSTREAM, Fetching
from checkstream.proxy.headers import condemned
from checkstream.proxy.ids import identify
from checkstream.proxy.inbox import Inbox
from checkstream.proxy.machine import Machine, last_commands
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.questions import Classifiers, Names, Past, Questions, Tools
from checkstream.proxy.replies import error_response, guard_response
from checkstream.proxy.timers import Timers
from checkstream.proxy.turns import Turns
from checkstream.proxy.upstream import UpstreamClient

_TURN_S = 0.002
"""After which others get their turn, whatever more has come: the last thing that is done in a turn takes as long."""
_WAITED_FOR = frozenset({do.StartStream, do.CloseDownstream, do.Record, do.Remember, do.Recall})
"""Commands that may take until later to be carried out: those behind them wait."""
_STREAM_HEADERS = {"cache-control": "no-cache", "x-accel-buffering": "no"}


class Ledger(Protocol):
    """Where records go."""

    async def write(self, record: do.StreamRecord) -> None:
        """Append the exchange's record, as durably as configured.

        Raises:
            AuditError: it can't be written.
        """

    def write_now(self, record: do.StreamRecord) -> None:
        """Append without waiting for the disk, when nobody is left to wait. Never raises."""


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """What an exchange was admitted with."""

    visit: Visit
    """The room that the request has; counts what is held of the answer."""
    load: Load
    """Hears of the answer."""
    share: str
    """In whose share of the checks it is."""
    shed: Callable[[], None]
    """Refuses new requests of the route for a moment."""


class Services(msgspec.Struct, frozen=True, kw_only=True):
    """What an exchange asks of the rest of the process."""

    scorer: Classifiers
    """Answers `Score`."""
    ledger: Ledger
    """Takes the record."""
    enqueue: Callable[[Dialogue], None] | None = None
    """Takes what is to be scored later, without waiting; None: nobody does."""
    assess: Callable[[do.Assess], Awaitable[on.Assessed]] | None = None
    """Answers `Assess`; None: nobody can."""
    conversations: Past | None = None
    """Answers `Recall`, takes what is to be remembered; None: nobody does."""
    vault: Names | None = None
    """Answers `RecallNames` and `KeepNames`; None: nobody can."""
    tools: Tools | None = None
    """Answers `RecallTools` and `KeepTools`; None: nobody can."""
    turns: Turns = msgspec.field(default_factory=Turns)
    """Grants turns of work, shared with the other exchanges of the loop."""


class Exchange:
    """One guarded request and the answer to it."""

    def __init__(
        self,
        request: BaseRequest,
        connection: Connection,
        *,
        guard: Machine,
        surface: Spoken,
        upstream: UpstreamClient,
        outgoing: Outgoing,
        services: Services,
        admitted: Admitted,
        counts: StreamCounts,
        headers: Mapping[str, str],
        fail_closed: bool,
        respond: Callable[[do.Reply, Mapping[str, str]], Response] = guard_response,
        bind: Callable[[CIMultiDict[str]], None] | None = None,
        holds: Callable[[str], bool] | None = None,
    ) -> None:
        """Hold all that the exchange needs; nothing runs yet.

        Args:
            request: The caller's request, its body read.
            connection: The caller's connection.
            guard: A fresh guard.
            surface: For an error that the guard can't report, being the one that failed.
            upstream: Where the request goes.
            outgoing: What goes there besides the body.
            services: What it asks of the rest of the process.
            admitted: What it was admitted with.
            counts: Takes metrics and log lines.
            headers: For the response (`x-checkstream-...`).
            fail_closed: An answer whose record can't be written is not finished.
            respond: Makes the response of a whole answer.
            bind: Binds what the upstream's headers name to the caller; None: nothing is to be bound.
            holds: Tells whether a rule would find something in what a header says; None: no rule reads headers.
        """
        self._request = request
        self._connection = connection
        self._guard = guard
        self._surface = surface
        self._services = services
        self._admitted = admitted
        self._counts = counts
        self._headers = {**headers, "server": "checkstream"}
        self._fail_closed = fail_closed
        self._respond = respond
        self._bind = bind
        self._holds = holds
        self._loop = asyncio.get_running_loop()
        self._inbox = Inbox()
        self._woken = asyncio.Event()
        self._left: list[do.AnyCommand] = []
        """Commands that the request's task is to carry out."""
        self._failure: BaseException | None = None
        """What a turn has come to that nobody waited for."""
        self._goes_on = False
        self._timers = Timers(self._inbox.put)
        self._tasks = asyncio.TaskGroup()
        self._questions = Questions(
            services.scorer,
            services.assess,
            services.vault,
            services.conversations,
            services.tools,
            tasks=self._tasks,
            counts=counts,
            post=self._inbox.put,
        )
        self._fetching = Fetching(
            upstream,
            outgoing,
            media=surface.framing.media,
            connection=connection,
            post=self._inbox.put,
            visit=admitted.visit,
            load=admitted.load,
            counts=counts,
            tasks=self._tasks,
        )
        self._response: StreamResponse | None = None
        self._chunked = False
        """What is written to the caller is framed as HTTP's chunks."""
        self._out: list[bytes] = []
        self._recorded = False
        self._guard_s = 0.0

    @property
    def waits(self) -> bool:
        """Nobody waits for its end: it is a stream of a server's own."""
        return self._request.method == hdrs.METH_GET

    def drain(self) -> None:
        """Tell the guard that the process ends: the drain period is over."""
        self._inbox.put(on.Draining())

    async def run(self, received: on.RequestReceived) -> StreamResponse:
        """Carry the exchange through and return the response, which may have been sent already."""
        self._questions.caller, self._questions.share = received.caller or "", self._admitted.share
        self._inbox.put(received)
        self._connection.watch(self._caller_left, self._fetching.look_whether_to_read)
        try:
            async with self._tasks:
                try:
                    await self._attend()
                finally:
                    self._inbox.listen(None)
                    self._end_tasks()
        except BaseException as error:
            self._close_after(error)
            if not isinstance(error, Exception):
                raise
            if self._response is None or not self._response.prepared:
                self._response = error_response(CheckstreamError("internal error"), self._surface, self._headers)
        finally:
            self._fetching.forget()  # else only a collection would find that nobody needs the exchange
            self._counts.guarded(self._guard_s)
            self._connection.unwatch()
            self._admitted.visit.hold(-self._admitted.visit.held)
        return self._response if self._response is not None else StreamResponse(status=499)

    # --- events in

    def _caller_left(self) -> None:
        """Cut the upstream off at once; the guard hears of it next and closes the books."""
        self._cancel_upstream()
        self._inbox.put(on.DownstreamClosed())

    def _go_on(self) -> None:
        """Do what can be done without waiting; wake the request's task for the rest."""
        try:
            self._take_turn()
            self._flush()
            self._fetching.look_whether_to_go_on()
        except BaseException as error:  # noqa: BLE001 - whoever called has brought news, and is not to blame
            self._failure = error
        if self._left or self._inbox or self._goes_on or self._failure is not None:
            self._woken.set()
        else:
            self._inbox.listen(self._go_on)

    async def _attend(self) -> None:
        """Carry out what has to be waited for, until the record is written."""
        while True:
            self._go_on()
            if self._recorded and not self._goes_on and self._failure is None:
                return
            await self._woken.wait()
            self._woken.clear()
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            commands, self._left = self._left, []
            if commands:
                await self._carry_out(commands)
                self._flush()
            if self._recorded and not self._goes_on:
                return
            if self._goes_on:
                self._goes_on = False
                await self._services.turns.next(self._admitted.share)
                self._inbox.put(on.Resumed())
            elif self._inbox and not commands:  # an upstream at full speed must not keep the loop from the others
                await self._services.turns.next(self._admitted.share)

    def _take_turn(self) -> None:
        """Give the guard what has happened, as far as one turn goes."""
        turn_ends = time.perf_counter() + _TURN_S
        while self._inbox and not self._goes_on:
            event = self._inbox.take()
            if type(event) is on.UpstreamBytes:
                self._fetching.taken(len(event.data))
            began = time.perf_counter()
            commands = self._guard.receive(event, self._loop.time())
            ended = time.perf_counter()
            self._guard_s += ended - began
            for command in commands:
                if type(command) in _WAITED_FOR:
                    self._left = list(commands)
                    return
            for command in commands:
                self._carry_out_at_once(command)
            if ended >= turn_ends:
                return

    # --- commands out

    async def _carry_out(self, commands: list[do.AnyCommand]) -> None:
        """Carry out commands in order, but first what is to be kept before the caller has the end.

        With `strict` the record is on disk then; and the next request of the conversation finds what this has come to.
        """
        for command in commands:
            if isinstance(command, do.Remember):
                await self._questions.remember(command)
            elif isinstance(command, do.Record) and not await self._put_on_record(command):
                return
        for command in commands:
            match command:
                case do.StartStream():
                    await self._start_stream()
                case do.CloseDownstream():
                    await self._close_stream()
                case do.Recall():
                    await self._questions.recall(command)
                case do.Record() | do.Remember():
                    pass  # done before the others
                case _:
                    self._carry_out_at_once(command)

    async def _put_on_record(self, command: do.Record) -> bool:
        """Write the record; tell whether the answer may be finished."""
        self._recorded = True
        self._counts.recorded(command.record, command.model)
        try:
            await self._services.ledger.write(command.record)
        except AuditError as error:
            self._counts.crashed(error)
            if self._fail_closed:
                await self._refuse_to_finish(error)
                return False
        return True

    def _carry_out_at_once(self, command: do.AnyCommand) -> None:  # noqa: C901, PLR0912 - one arm for each command
        match command:
            case do.SendDownstream():
                self._out.append(command.data)
            case do.Observe():
                self._counts.observe(command)
            case do.Score():
                self._questions.score(command)
            case do.Assess():
                self._questions.assess(command)
            case do.ArmTimer():
                self._timers.arm(command)
            case do.DisarmTimer():
                self._timers.disarm(command.timer)
            case do.Decided():
                self._counts.decided(command)
            case do.Degraded():
                self._counts.degraded(command.reason)
            case do.ShedRequests():
                self._admitted.shed()
            case do.PauseUpstream():
                self._fetching.hold_back(held=True)
            case do.ResumeUpstream():
                self._fetching.hold_back(held=False)
            case do.ForwardRequest():
                self._fetching.begin(command.body, command.without)
            case do.Reply():
                self._response = self._respond(command, self._headers_of_reply())
            case do.CancelUpstream():
                self._cancel_upstream()
            case do.Enqueue():
                self._put(command)
            case do.RecallTools() | do.KeepTools():
                self._questions.describe(command)
            case do.RecallNames() | do.KeepNames():
                self._questions.name(command)
            case do.Yield():
                self._goes_on = True
            case do.StartStream() | do.CloseDownstream() | do.Record() | do.Remember() | do.Recall():
                raise AssertionError("this command is waited for")
            case _:
                assert_never(command)

    def _cancel_upstream(self) -> None:
        """Cut the upstream off; what has come of it and not been taken yet is not wanted any more."""
        self._fetching.cancel()
        for event in self._inbox.drop(OF_UPSTREAM):
            if isinstance(event, on.UpstreamBytes):
                self._fetching.dropped(len(event.data))

    def _put(self, command: do.Enqueue) -> None:
        """Hand over what is to be scored later; what fails there is not the caller's."""
        if self._services.enqueue is not None:
            try:
                self._services.enqueue(command.dialogue)
            except Exception as error:  # noqa: BLE001 - a bug behind the queue is no answer's
                self._counts.crashed(error)

    # --- the caller's side

    async def _start_stream(self) -> None:
        headers = self._headers_of_answer()
        headers.update(_STREAM_HEADERS)
        headers.update(self._headers)
        identify(headers, self._surface.id_headers)
        headers["content-type"] = f"{self._surface.framing.media}; charset=utf-8"
        self._response = StreamResponse(status=200, headers=headers)
        if not self._connection.left:
            try:
                writer = await self._response.prepare(self._request)
                self._chunked = isinstance(writer, StreamWriter) and writer.chunked
            except ConnectionError:
                self._caller_left()

    def _flush(self) -> None:
        """Write all that was released, in one piece; nobody waits for the caller to read it."""
        if not self._out:
            return
        transport = self._connection.transport
        if self._response is None or not self._response.prepared or self._connection.left:
            self._out.clear()
            return
        if transport is None or transport.is_closing():
            self._out.clear()
            self._caller_left()
            return
        data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
        self._out.clear()
        self._admitted.visit.hold(-min(self._admitted.visit.held, len(data)))
        transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)
        self._counts.wrote()

    async def _close_stream(self) -> None:
        self._flush()
        if self._response is not None and not self._connection.left:
            try:
                await self._response.write_eof()
            except ConnectionError:
                self._caller_left()

    def _headers_of_reply(self) -> CIMultiDict[str]:
        """Return the upstream's headers that a whole answer keeps, with the proxy's own."""
        headers = self._headers_of_answer()
        headers.update(self._headers)
        identify(headers, self._surface.id_headers)
        return headers

    def _headers_of_answer(self) -> CIMultiDict[str]:
        answer = self._fetching.answer
        headers: CIMultiDict[str] = answer.headers.copy() if answer is not None else CIMultiDict()
        for name in condemned(headers.items(), self._holds) if self._holds is not None else ():
            del headers[name]
            self._counts.degraded("header_dropped")
        if self._bind is not None:
            self._bind(headers)
        return headers

    async def _refuse_to_finish(self, error: AuditError) -> None:
        """End an exchange whose record can't be written, without the words that would make it look complete."""
        self._cancel_upstream()
        self._out.clear()
        if self._response is None or not self._response.prepared:
            self._response = error_response(error, self._surface, self._headers)
            return
        error_event = self._surface.error_event("unavailable", "the answer can't be recorded")
        self._out.append(self._surface.framing.out(error_event))
        await self._close_stream()

    # --- the end

    def _end_tasks(self) -> None:
        self._timers.end()
        self._fetching.end()
        self._questions.leave()

    def _close_after(self, error: BaseException) -> None:
        """Close the books of an exchange that was cut off from inside: egress runs always (G7)."""
        if isinstance(error, Exception):
            self._counts.crashed(error)
        if self._recorded:
            return
        self._recorded = True
        try:
            commands = last_commands(self._guard, self._loop.time)
        except Exception as second:  # noqa: BLE001 - the guard itself is broken; the log has it
            self._counts.crashed(second)
            return
        for command in commands:
            match command:
                case do.Record():
                    record = msgspec.structs.replace(command.record, outcome="failed")
                    self._counts.recorded(record, command.model)
                    self._services.ledger.write_now(record)
                case do.Decided():
                    self._counts.decided(command)
                case do.Degraded():
                    self._counts.degraded(command.reason)
                case do.Enqueue():
                    self._put(command)
        if self._response is not None and self._response.prepared and self._request.transport is not None:
            self._request.transport.abort()  # a stream that broke off must not look complete
