r"""The guard of one exchange of messages: what a caller sends to a server, and what comes of it, message by message.

States::

    NEW -> INGRESS -> FORWARDED -> STREAMING -> CLOSED
                   \            \-> WHOLE ---/
                    \-> CLOSED (refused)

A stream of the server's is read one message at a time: each is judged whole and leaves, before the next is looked at.
So nothing waits but for its own checks, order is kept, and an hour's stream takes no more room than a moment's.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, ClassVar

from checkstream.core.channel.judge import Judge
from checkstream.core.commands import (
    ForwardRequest,
    Recall,
)
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    Draining,
    Recalled,
    RequestReceived,
    Scored,
    ScoringFailed,
    TimerFired,
    ToolsFailed,
    ToolsKept,
    ToolsKnown,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.body import Body
from checkstream.core.exchange.course import State
from checkstream.core.exchange.ingress.refusal import Refusal
from checkstream.core.exchange.meter import Steps
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.rpc.asker import why_of
from checkstream.core.exchange.rpc.course import Course
from checkstream.core.exchange.rpc.described import Described
from checkstream.core.exchange.rpc.inbox import Inbox
from checkstream.core.exchange.rpc.message import Message
from checkstream.core.exchange.rpc.toolbook import Pins
from checkstream.core.exchange.stepping import Stepping
from checkstream.core.exchange.watch import UPSTREAM_STATUS
from checkstream.core.wire import sse
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.framing import PIECE_WORK, pieces
from checkstream.core.wire.mcp import messages, refusals
from checkstream.core.wire.mcp.bound import Bound
from checkstream.core.wire.mcp.heads import Head
from checkstream.core.wire.mcp.surface import Mcp
from checkstream.core.wire.mcp.tools import has_tools
from checkstream.errors import ToolsUnreadable, WireError

_RUNNING = (State.RECALLING, State.INGRESS, State.FORWARDED, State.STREAMING, State.WHOLE)
_FRAME_WORK = 20
_WRITING_WORK = 300
_LETTING_GO_WORK = 300
_OLD_TRANSPORT = "endpoint"
"""Type of the event by which the transport begins that streamable HTTP has replaced."""


class Messages(Stepping):
    """The state machine of one exchange of messages."""

    def __init__(
        self,
        *,
        surface: Mcp,
        plan: Plan,
        digest: Callable[[str], str],
        stream: str = "",
        clock: Callable[[], float] | None = None,
        tools: Pins | None = None,
        server: str = "",
    ) -> None:
        """Start before the request; see `Guard`.

        Args:
            surface: Reads and writes messages.
            plan: What the route asks for.
            digest: Keyed digest of a text, hex.
            stream: Id of the exchange.
            clock: Tells the time, seconds, to end turns by.
            tools: What is known of the server's tools, by other exchanges too.
            server: Whose tools they are, where that is kept for other processes.
        """
        self._course = course = Course(surface, plan, digest)
        self._checking, self._request, self._asker = course.checking, course.request, course.asker
        self._checking.meter.clock = clock
        super().__init__(self._checking, course.watch)
        self._stream = stream
        self._tools = Described(Pins() if tools is None else tools, plan, self._checking, server)
        self._inbox = Inbox(course)
        self._message: Message | None = None
        """The server's that is being judged ..."""
        self._frame: Frame | None = None
        """... and the event that it came in."""
        self._body = Body()
        self._ended = False
        """Nothing more will come of the server."""
        self._digest = digest
        self._bound: Bound
        """Binds what the server names to the caller; None: callers have no names."""

    # --- the order of things

    @property
    def over(self) -> bool:
        """The record was written: nothing follows."""
        return self._course.state is State.CLOSED

    @property
    def state(self) -> State:
        """Where the exchange stands."""
        return self._course.state

    def _forgetting(self) -> Steps:
        """Take apart what the exchange has known, in steps."""
        self._request.request = self._message = None
        yield from self._checking.forgetting()

    def _steps_of(self, event: AnyEvent) -> Steps:
        """Take one event, then go as far as that allows."""
        transition = self._TRANSITIONS.get((self._course.state, type(event)))
        return self._going_on(transition(self, event)) if transition is not None else iter(())

    def _going_on(self, steps: Steps | None) -> Steps:
        if steps is not None:
            yield from steps
        while self._course.state in _RUNNING:
            if self._checking.refused:
                self._course.fail(Refusal(503, "overloaded", "checks take too long at present; try again in a moment"))
            elif self._course.state is State.RECALLING or self._waits_for_checks or self._tools.waits:
                return
            elif self._course.state is State.INGRESS:
                yield from self._forward()
                return
            elif self._message is not None:
                yield from self._let_go(self._message)
            elif self._inbox:
                yield from self._take_frame(self._inbox.next())
                yield
            elif self._ended and not self._checking.waiting:
                self._course.end_stream()
            else:
                return

    @property
    def _waits_for_checks(self) -> bool:
        """What is to leave next has not been decided."""
        about = self._request if self._course.state is State.INGRESS else self._message
        if about is None:
            return False
        if self._checking.undecided and not about.rejected:
            return True
        # With a whole answer the exchange ends, and its record is to have all that is found.
        return self._course.state is State.WHOLE and self._checking.waiting

    def _steps_without_work(self) -> Steps | None:
        """Let the fail mode decide on a message that takes more work than one may; None: it goes on."""
        if self._course.state is State.CLOSED:
            return None
        self._checking.degrade("work_exceeded")
        return None if self._course.plan.fail_mode == "open" else self._give_up_work()

    def _give_up_work(self) -> Steps:
        most = self._course.plan.work // 1000
        message = f"checking the message takes more than the {most} ms of work that one may take; send less at a time"
        self._course.fail(
            Refusal(413 if self._course.state in {State.RECALLING, State.INGRESS} else 502, "work_exceeded", message)
        )
        yield

    # --- the caller's message

    def _on_request(self, event: RequestReceived) -> Steps:
        self._course.state = State.INGRESS
        refusal = yield from self._request.take(event)
        self._asker.head, self._asker.verb = self._request.head, event.method
        self._bound = Bound(self._digest, self._course.plan.upstream, event.caller)
        if refusal is not None:
            self._course.refuse(refusal)
        elif self._request.conversation.key:
            self._course.state = State.RECALLING
            self._course.do(Recall(self._request.conversation.key))
        else:
            yield from self._request.begin()

    def _on_recalled(self, event: Recalled) -> Steps:
        self._course.state = State.INGRESS
        refusal = self._request.recalled(event)
        if refusal is not None:
            self._course.refuse(refusal)
        else:
            yield from self._request.begin()

    def _forward(self) -> Steps:
        """Forward or refuse the message, now that every decision on it has been taken; ask first what is still open."""
        if not (yield from self._request.settling()):
            return
        request = self._request.request
        refusal = self._request.refusal
        if request is None:
            return
        if refusal is None and request.tools:
            if (recall := self._tools.recalling()) is not None:
                self._course.do(recall)
                return
            refusal = self._tools.refusal_of(request.tools[0])
        if refusal is None:
            refusal = yield from self._request.outside.looking(self._request.judged)
        body = b""
        if refusal is None:
            try:
                body = yield from self._request.rendering(request)
            except WireError as error:
                message = f"the message can't be edited as policy wants: {error}"
                refusal = Refusal(400, "invalid_request_error", message)
        if refusal is not None:
            self._course.refuse(refusal)
            return
        self._course.state = State.FORWARDED
        self._course.upstream_open = True
        self._checking.meter.begin_anew()
        for each in self._request.begun():
            self._course.do(each)
        self._course.do(ForwardRequest(body, streaming=True, without=self._request.outside.left_out))

    # --- the server's messages

    def _on_opened(self, event: UpstreamOpened) -> None:
        self._course.status = event.status
        self._course.watch.heard()
        self._course.watch.sent()
        if event.streaming and event.status < 400:
            self._course.open_stream()
        else:
            self._course.state = State.WHOLE

    def _on_stream_bytes(self, event: UpstreamBytes) -> Steps:
        self._course.watch.heard()
        for piece in pieces(event.data):
            if self._course.state is State.STREAMING:
                self._inbox.take(piece)
            if piece is not event.data:
                self._checking.meter.spend(PIECE_WORK)
                yield

    def _on_stream_end(self, _: UpstreamClosed) -> None:
        self._course.upstream_open = False
        self._inbox.end()
        self._ended = True

    def _take_frame(self, frame: Frame) -> Steps:
        """Take the next event: let go at once what says nothing, begin to judge what does."""
        self._checking.meter.spend(_FRAME_WORK)
        frame = self._bound.event(frame, self._request.session)
        if frame.event == _OLD_TRANSPORT:
            message = "the upstream speaks the transport `HTTP+SSE`, which streamable HTTP has replaced"
            self._course.fail(Refusal(502, "upstream_error", message))
        elif frame.strange:
            self._unreadable(frame, "an event with fields that nobody knows")
        elif not frame.data:
            self._course.send(frame.raw)
            self._asker.resumable = self._asker.resumable or b"id: " in frame.raw
        elif frame.event not in ("", *self._course.surface.events):
            self._checking.degrade("event_dropped")  # clients pass over it
        else:
            yield from self._hear(frame.data, frame)

    def _hear(self, data: bytes, frame: Frame | None) -> Steps:
        message = Message(self._course.surface.servers, self._course.plan, self._checking, self._checking.now)
        self._course.begin_message()
        try:
            yield from message.hearing(data)
        except WireError as error:
            self._unreadable(frame, str(error))
            return
        head = message.head
        if head is not None and head.kind in {"result", "error"} and not self._asker.expects(head):
            self._unreadable(frame, "it answers what was not asked")
            return
        self._message, self._frame = message, frame

    def _unreadable(self, frame: Frame | None, reason: str) -> None:
        """Let the fail mode decide on what can't be checked."""
        if self._course.plan.fail_mode == "open":
            self._course.ledger.unscanned("ingress:message")
            if frame is not None:
                self._course.send(frame.raw)
            else:
                self._course.give_whole(self._body.data, "complete")
            return
        self._course.fail(
            Refusal(502, "upstream_error", f"the upstream sent a message that can't be checked: {reason}")
        )

    def _let_go(self, message: Message) -> Steps:
        """Let a message leave, edited, or what stands in its place."""
        request, frame = message.request, self._frame
        if request is None:
            raise AssertionError("a message leaves after it was read")
        head = message.head or Head("error")
        if message.refusal is None and has_tools(request.members):
            owed = self._tools.recalling() or (yield from self._tools.looking(message, request))
            if owed is not None:
                self._course.do(owed)
                return
        data = yield from self._written(message, head)
        yield from self._checking.meter.stepping(self._course.ledger.letting_go(), _LETTING_GO_WORK)
        self._message = self._frame = None
        self._course.end_message(message)
        self._checking.meter.begin_anew()
        self._exhausted = False
        self._asker.answered = self._asker.answered or head.kind in {"result", "error"}
        if frame is None:
            self._course.give_whole(data or b"", "upstream_failed" if self._course.status >= 400 else "complete")
        elif data is not None:
            self._course.released_chars += message.chars
            named = b"id: " in frame.raw[: len(frame.raw) - len(frame.data or b"")]
            self._asker.resumable = self._asker.resumable or named
            self._course.send(frame.raw if data is request.unit.raw else sse.reframe(frame.raw, data))
        del request
        message.request = None
        yield from self._checking.forgetting()

    def _written(self, message: Message, head: Head) -> Generator[None, None, bytes | None]:
        """Return, in steps, what leaves of a message."""
        request, refusal = message.request, message.refusal
        if request is None:
            raise AssertionError("a message leaves after it was read")
        if refusal is None:
            try:
                data = yield from message.rendering(request)
                told = self._course.ledger.told(self._stream, None) if self._course.plan.tells else None
                if data is not request.unit.raw and told is not None and head.kind == "result":
                    data = yield from self._checking.meter.stepping(messages.marking(data, told), _WRITING_WORK)
            except WireError as error:
                refusal = Refusal(502, "upstream_error", f"a message can't be edited as policy wants: {error}")
            else:
                return data
        kind = "response_blocked" if refusal.kind.startswith("request_") else refusal.kind
        if refusal.kind != "overloaded":
            self._course.ledger.carried_out("reject")
        return refusals.instead(head, self._asker.method, why_of(refusal, kind), request.members.get("result"))

    def _on_whole_bytes(self, event: UpstreamBytes) -> None:
        self._body.add(event.data)
        if len(self._body) > self._course.plan.answer_bytes:
            message = f"the answer passed {self._course.plan.answer_bytes} bytes"
            self._course.fail(Refusal(502, "answer_too_large", message))

    def _on_whole_end(self, _: UpstreamClosed) -> Steps:
        """Hear that a whole answer is there: a message, or nothing where nothing was asked."""
        self._course.upstream_open = False
        body = self._body.data
        if self._course.status >= 400:
            self._course.ledger.upstream_failure = f"status_{self._course.status}"
        if not body.strip():
            if self._asker.asks and self._course.status < 400:
                self._course.fail(
                    Refusal(502, "upstream_error", f"the upstream answered {self._course.status} and said nothing")
                )
            elif self._course.status >= 400:
                self._course.say_status()
            else:
                self._course.give_whole(b"", "complete")
        elif self._course.status >= 400:
            yield from self._hear_error(body)
        else:
            yield from self._hear(body, None)

    def _hear_error(self, body: bytes) -> Steps:
        """Read what a server says with an error of HTTP, which may be no message."""
        try:
            yield from self._hear_message(body)
        except WireError:
            self._course.say_status()

    def _hear_message(self, body: bytes) -> Steps:
        message = Message(self._course.surface.errors, self._course.plan, self._checking, self._checking.now)
        yield from message.hearing(body)
        self._message = message

    # --- ends that nobody here has asked for

    def _on_upstream_failed(self, event: UpstreamFailed) -> None:
        self._course.upstream_open = False
        self._course.ledger.upstream_failure = event.kind
        kind, message = event.told
        self._break_off(Refusal(UPSTREAM_STATUS.get(event.kind, 502), kind, message), "upstream_failed")

    def _on_draining(self, _: Draining) -> None:
        self._course.cancel_upstream()
        self._break_off(Refusal(503, "server_shutting_down", "the proxy is shutting down"), "drained")

    def _break_off(self, refusal: Refusal, outcome: str) -> None:
        self._inbox.clear()
        self._message = None
        self._course.break_off(refusal, outcome)

    def _on_downstream_closed(self, _: DownstreamClosed) -> None:
        """Hear that the caller has gone, as all do who have opened a stream, and many who have their answer."""
        self._course.cancel_upstream()
        over = self._message is None and not self._inbox and self._course.state is State.STREAMING
        self._course.close("complete" if over and not self._asker.is_owed else "downstream_closed")

    def _on_tools(self, event: ToolsKnown) -> None:
        """Go on with what is known of the server's tools: a list is looked at anew where others have kept something."""
        try:
            known = self._tools.take(event)
        except ToolsUnreadable:
            known = False
        if not known:
            self._on_tools_failed(ToolsFailed())

    def _on_tools_kept(self, _: ToolsKept) -> None:
        self._tools.kept()

    def _on_tools_failed(self, _: ToolsFailed) -> None:
        """Let the fail mode decide: a tool may be another than the one that was agreed to."""
        if self._course.plan.fail_mode == "open":
            self._tools.keep_nothing()
            return
        message = "how the tools of this server were described can't be read or kept; try again"
        self._course.fail(Refusal(503, "overloaded", message))

    def _on_score(self, event: Scored | ScoringFailed) -> Steps:
        return self._ruling(self._checking.answered(event))

    def _ruling(self, judges: Iterable[Judge]) -> Steps:
        """Take the decisions that judges can take now; of a message that has gone, they are only noted."""
        for judge in judges:
            owner = next((each for each in (self._message, self._request) if each and each.owns(judge)), None)
            yield from self._checking.advancing(judge) if owner is None else owner.ruling(judge)

    def _on_timer(self, event: TimerFired) -> Steps:
        self._course.watch.rang(event.timer)
        if event.timer == "keepalive":
            if self._course.state is State.STREAMING and self._course.watch.wants_comment(
                held=self._message is not None
            ):
                self._course.send_sign_of_life()
            return
        judges = self._checking.give_up_late() if event.timer == "budget" else self._checking.give_up_waiting()
        yield from self._ruling(judges)

    # What each event means in each state; any other pair is ignored.
    _TRANSITIONS: ClassVar[Mapping[tuple[State, type], Callable[[Messages, Any], Steps | None]]] = {
        (State.NEW, RequestReceived): _on_request,
        (State.RECALLING, Recalled): _on_recalled,
        (State.FORWARDED, UpstreamOpened): _on_opened,
        (State.FORWARDED, UpstreamFailed): _on_upstream_failed,
        (State.STREAMING, UpstreamBytes): _on_stream_bytes,
        (State.STREAMING, UpstreamClosed): _on_stream_end,
        (State.STREAMING, UpstreamFailed): _on_upstream_failed,
        (State.WHOLE, UpstreamBytes): _on_whole_bytes,
        (State.WHOLE, UpstreamClosed): _on_whole_end,
        (State.WHOLE, UpstreamFailed): _on_upstream_failed,
        **dict.fromkeys(((state, Scored) for state in _RUNNING), _on_score),
        **dict.fromkeys(((state, ScoringFailed) for state in _RUNNING), _on_score),
        **dict.fromkeys(((state, ToolsKnown) for state in _RUNNING), _on_tools),
        **dict.fromkeys(((state, ToolsKept) for state in _RUNNING), _on_tools_kept),
        **dict.fromkeys(((state, ToolsFailed) for state in _RUNNING), _on_tools_failed),
        **dict.fromkeys(((state, TimerFired) for state in _RUNNING), _on_timer),
        **dict.fromkeys(((state, DownstreamClosed) for state in _RUNNING), _on_downstream_closed),
        **dict.fromkeys(((state, Draining) for state in _RUNNING), _on_draining),
    }
