r"""The guard of one exchange: a prompt, and the answer to it, streamed or whole. The only file that knows the order.

`receive(event, now)` takes what has happened and returns what is to be done. It waits for nothing and does
nothing itself: scores, time-outs and failures come back as events.

States::

    NEW -> INGRESS -> FORWARDED -> STREAMING -> CLOSING -> CLOSED
                   \            \-> WHOLE ----/ \-> ASSESSING -> CLOSED
                    \-> CLOSED (refused)

An answer that a rule turns goes back to STREAMING, or to FORWARDED when it is not streamed, with a second request.

INVARIANT: text of the answer leaves only through `Outbox`; `Record` comes exactly once, when the state becomes
CLOSED.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import msgspec

from checkstream.core.channel.actions import Halt, Pivot
from checkstream.core.channel.judge import Judge
from checkstream.core.commands import (
    AnyCommand,
    Assess,
    CancelUpstream,
    CloseDownstream,
    ConfirmationWanted,
    Enqueue,
    ForwardRequest,
    Observe,
    Record,
    Reply,
    SendDownstream,
    StartStream,
)
from checkstream.core.events import (
    AnyEvent,
    Assessed,
    DownstreamClosed,
    Draining,
    RequestReceived,
    Scored,
    ScoringFailed,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.answer import Answer
from checkstream.core.exchange.assessment import MOST_CHARS, Assessment
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.heard import Heard
from checkstream.core.exchange.outbox import Released
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.prompt import Prompt, Refusal
from checkstream.core.exchange.watch import Watch
from checkstream.core.terms import Stage, Unit
from checkstream.core.wire import sse
from checkstream.core.wire.surface import Frame, Surface
from checkstream.errors import EventTooLarge, WireError

__all__ = ["Guard", "Plan", "State"]

_CHARS_PER_TOKEN = 4
"""For estimates of usage only: English text in common vocabularies."""
_UPSTREAM_STATUS = {"first_byte": 504, "idle": 504}


class State(enum.Enum):
    """Where an exchange stands."""

    NEW = enum.auto()
    INGRESS = enum.auto()
    FORWARDED = enum.auto()
    STREAMING = enum.auto()
    WHOLE = enum.auto()
    CLOSING = enum.auto()
    ASSESSING = enum.auto()
    CLOSED = enum.auto()


_RUNNING = (State.INGRESS, State.FORWARDED, State.STREAMING, State.WHOLE, State.CLOSING, State.ASSESSING)


class _Ending(msgspec.Struct, frozen=True):
    """Why a stream is closing and what the caller is still told."""

    outcome: str
    error: tuple[str, str] | None = None
    """Kind and message of an error event."""
    terminate: bool = False
    """Policy has cut the upstream off: usage and terminator are ours to send."""


class Guard:
    """The state machine of one exchange."""

    def __init__(self, *, surface: Surface, plan: Plan, digest: Callable[[str], str]) -> None:
        """Start before the request.

        Args:
            surface: The API that the caller speaks.
            plan: What the route asks for.
            digest: Keyed digest of a text, hex; its key is kept outside the audit log.
        """
        self.state = State.NEW
        self._surface = surface
        self._plan = plan
        self._checking = Checking(plan, digest)
        self._ledger = self._checking.ledger
        self._prompt = Prompt(surface, plan, self._checking)
        self._answer = Answer(surface, self._prompt, self._checking)
        self._outbox = self._answer.outbox
        self._decoder = sse.Decoder(plan.event_bytes)
        self._body = bytearray()
        self._status = 200
        self._answer_bytes = 0
        self._upstream_open = False
        self._streaming = False
        self._begun = False
        self._ending: _Ending | None = None
        self._turned: Pivot | None = None
        self._first: tuple[Unit, dict[int, str]] | None = None
        """The first part of a whole answer that was continued."""
        self._given = False
        """The caller has got some of the answer, or is about to."""
        self._assessment = Assessment(plan)
        self._finished: tuple[bytes, str] | None = None
        """A whole answer as it may go out, and the outcome that it stands for."""
        self._watch = Watch(plan, self._checking)

    def receive(self, event: AnyEvent, now: float) -> list[AnyCommand]:
        """Take one event at `now` (monotonic seconds) and return the commands that follow, in order.

        An event that has no meaning in the present state (a late score, a second end) is ignored.
        """
        self._checking.commands = []
        self._checking.now = now
        transition = self._TRANSITIONS.get((self.state, type(event)))
        if transition is not None:
            transition(self, event)
        self._watch.arm_budget()
        return self._checking.commands

    @property
    def _now(self) -> float:
        return self._checking.now

    def _do(self, command: AnyCommand) -> None:
        self._checking.commands.append(command)

    # --- the prompt

    def _on_request(self, event: RequestReceived) -> None:
        self.state = State.INGRESS
        refusal = self._prompt.take(event)
        if refusal is not None:
            self._refuse(refusal)
        else:
            self._go_on_with_prompt()

    def _go_on_with_prompt(self) -> None:
        """Forward or refuse the prompt once every decision on it has been taken."""
        request = self._prompt.request
        if request is None or self._checking.undecided:
            return
        refusal = self._prompt.refusal
        if refusal is not None:
            self._refuse(refusal)
            return
        try:
            body = self._prompt.render(request)
        except WireError as error:
            self._refuse(Refusal(400, "invalid_request_error", f"the body can't be edited as policy wants: {error}"))
            return
        self.state = State.FORWARDED
        self._upstream_open = True
        self._streaming = request.streaming
        self._assessment.read(request)
        self._outbox.holds_end = self._assessment.waits
        most_chars = max(self._plan.scored_chars, MOST_CHARS if self._assessment.waits else 0)
        self._outbox.heard = Heard(whole=self._plan.program.turns, most_chars=most_chars)
        self._do(ForwardRequest(body, request.streaming))

    def _refuse(self, refusal: Refusal) -> None:
        action = "reject" if refusal.confirm is None else "require_confirmation"
        self._ledger.carried_out(action)
        by_policy = refusal.kind in {"request_blocked", "request_needs_confirmation"}
        self._reply(
            refusal.status,
            self._surface.error_body(refusal.kind, refusal.message, refusal.rule_id),
            "refused",
            action=action,
            retry=False if by_policy else None,
            confirm=refusal.confirm,
        )

    # --- the answer comes in

    def _on_opened(self, event: UpstreamOpened) -> None:
        if self._first is not None and (event.streaming or event.status >= 400):
            self._stop_at_turn()
            return
        self._status = event.status
        self._watch.heard()
        self._watch.sent()
        if event.streaming and event.status < 400:
            if not self._streaming and self._assessment.blocks and not self._lets_stream():
                return
            self.state = State.STREAMING
            self._streaming = True
            self._do(StartStream())
            self._watch.begin_stream()
        else:
            self.state = State.WHOLE
            self._streaming = False

    def _lets_stream(self) -> bool:
        """Let the fail mode decide on a stream in the place of a whole answer: what has been sent can't be blocked."""
        if self._plan.fail_mode == "open":
            self._checking.degrade("streamed_not_blocked")
            return True
        message = "the upstream streams an answer that was asked for whole, and this route blocks answers by their risk"
        self._fail("upstream_error", message)
        return False

    def _on_stream_bytes(self, event: UpstreamBytes) -> None:
        if self._answer.turning is not None:
            return  # nothing more is wanted of this upstream
        self._watch.heard()
        data = event.data
        room = self._plan.answer_bytes - self._answer_bytes
        self._answer_bytes += len(data)
        if len(data) > room:
            # What came before the cap counts, wherever the network has cut.
            data = data[:room]
        try:
            frames = self._decoder.decode(data)
        except EventTooLarge as error:
            self._fail("upstream_error", str(error))
            return
        for frame in frames:
            self._take_frame(frame)
            if self._heard_out():
                break
        if self._answer.turning is not None:
            self._settle()
        elif self._ending is None and self._has_last_word:
            self._begin_closing(_Ending("complete"))  # which waits here; the upstream may take its time to end
        elif self._ending is None and len(event.data) > room:
            self._fail("answer_too_large", f"the answer passed {self._plan.answer_bytes} bytes")
        elif self._ending is None and self._decoder.fault is not None:
            self._fail("upstream_error", str(self._decoder.fault))
        else:
            self._settle()

    def _heard_out(self) -> bool:
        """Tell whether nothing more of this upstream is wanted."""
        return self._ending is not None or self._answer.turning is not None or self._has_last_word

    @property
    def _has_last_word(self) -> bool:
        """The upstream has said its last word, before which something is still to be said."""
        return self._outbox.holds_end and self._answer.terminated

    def _on_whole_bytes(self, event: UpstreamBytes) -> None:
        self._body += event.data
        if len(self._body) > self._plan.answer_bytes:
            self._fail("answer_too_large", f"the answer passed {self._plan.answer_bytes} bytes")

    def _on_stream_end(self, _: UpstreamClosed) -> None:
        self._upstream_open = False
        try:
            frames = self._decoder.flush()
        except EventTooLarge as error:
            self._fail("upstream_error", str(error))
            return
        for frame in frames:
            if frame.data is not None and self._ending is None and self._answer.turning is None:
                # The client must get a whole event, or it would join it with what comes next.
                self._take_frame(Frame(frame.raw.rstrip(b"\r\n") + b"\n\n", frame.data, frame.event))
        if self._ending is None and self._answer.turning is None:
            self._begin_closing(_Ending("complete"))
        else:
            self._settle()

    def _on_whole_end(self, _: UpstreamClosed) -> None:
        self._upstream_open = False
        body = bytes(self._body)
        failed = self._status >= 400
        if failed:
            self._ledger.upstream_failure = f"status_{self._status}"
        try:
            unit = self._surface.read_whole(body)
            self._answer.check(unit)
        except WireError as error:
            self._on_unreadable_body(body, str(error))
            return
        if failed and not unit.choices:
            # The upstream's own error object, which SDKs want to see as it is.
            self._ledger.unscanned("midstream:error_body")
            self._reply(self._status, body, "upstream_failed")
            return
        self.state = State.CLOSING
        self._ending = _Ending("complete")
        self._answer.take(unit)
        self._settle()

    def _on_unreadable_body(self, body: bytes, reason: str) -> None:
        """Let the fail mode decide on a body that is not the surface's; an error status stays what it was."""
        if self._plan.fail_mode == "open":
            self._ledger.unscanned("midstream:body")
            self._reply(self._status, body, "upstream_failed" if self._status >= 400 else "complete")
        elif self._status >= 400:
            message = f"the upstream answered with status {self._status} and a body that can't be checked"
            self._reply(self._status, self._surface.error_body("upstream_error", message), "upstream_failed")
        else:
            self._fail("upstream_error", f"the upstream sent an answer that can't be checked: {reason}")

    def _take_frame(self, frame: Frame) -> None:
        try:
            unit = self._surface.read_event(frame)
            self._answer.check(unit)
            reason = "event of an unknown type" if unit.opaque else None
        except WireError as error:
            unit, reason = Unit(raw=frame.raw), str(error)
        if reason is not None:
            if self._plan.fail_mode == "closed":
                self._fail("upstream_error", f"the upstream sent an event that can't be checked: {reason}")
                return
            self._ledger.unscanned("midstream:opaque_event")
        self._answer.take(unit)
        self._look_whether_cut_off()

    def _look_whether_cut_off(self) -> None:
        """Cut the upstream off when a rule has ended the last choice that ran, or has turned the answer."""
        if self._answer.turning is not None:
            self._cancel_upstream()
        elif self._answer.cut_off and (self.state is State.STREAMING or self._answer.turned_down):
            self._cancel_upstream()
            self._ending = _Ending("stopped", terminate=True)
            self.state = State.CLOSING

    def _on_score(self, event: Scored | ScoringFailed) -> None:
        judge = self._checking.answered(event)
        if judge is not None:
            self._go_on_with([judge])

    def _go_on_with(self, judges: Iterable[Judge]) -> None:
        """Take the decisions that judges can take now that they need not wait for a score any more."""
        for judge in judges:
            if judge.stage is Stage.INGRESS:
                self._prompt.rule(judge)
            else:
                self._answer.rule(judge)
                self._look_whether_cut_off()
        if self.state is State.INGRESS:
            self._go_on_with_prompt()
        else:
            self._settle()

    # --- the answer goes out

    def _settle(self) -> None:
        """Send what may leave, then end the exchange if it is closing and nothing waits any more."""
        if self.state is State.CLOSED:
            return
        if self._answer.turning is not None and self.state in {State.STREAMING, State.CLOSING}:
            self._settle_turn()
            return
        if self._streaming and self.state is not State.FORWARDED:
            released = self._outbox.release(self._now)
            if released is not None:
                self._send(released)
            if self._outbox.fault is not None and (self._ending is None or self._ending.error is None):
                self._fail("upstream_error", f"the upstream sent an event that can't be edited: {self._outbox.fault}")
                return
            if self.state is State.STREAMING:
                self._watch_hold()
                return
        if self.state is not State.CLOSING or self._checking.waiting:
            return
        if self._streaming:
            self._close_stream()
        elif self._answer.settled:
            self._give_whole()

    # --- what evidence says of it, while the caller waits

    def _assess(self) -> bool:
        """Have what was said held against evidence, where that is wanted; tell whether it is under way."""
        assessment, heard = self._assessment, self._outbox.heard
        if not assessment.waits:
            return False
        answers = heard.answers
        too_long = heard.too_long or sum(map(len, answers.values())) > MOST_CHARS
        if not answers and not too_long:
            assessment.drop()
            return False
        assessment.asked = True
        self.state = State.ASSESSING
        dialogue = self._prompt.dialogue({} if too_long else answers)
        self._do(Assess(dialogue, assessment.profiles, assessment.deadline_ms))
        return True

    def _on_assessed(self, event: Assessed) -> None:
        self._assessment.take(event)
        for name in event.failed:
            self._checking.degrade(f"not_assessed:{name}")
        self.state = State.CLOSING
        if self._streaming:
            self._close_stream()
        else:
            self._deliver()

    # --- an answer that goes on under stricter parameters

    def _settle_turn(self) -> None:
        """Send what stands before the turn; when all of it is decided, ask the upstream to go on from there."""
        if self._streaming:
            released = self._outbox.release(self._now)
            if released is not None:
                self._send(released)
            if self._outbox.fault is not None:
                self._answer.turning = None
                self._fail("upstream_error", f"the upstream sent an event that can't be edited: {self._outbox.fault}")
                return
        if self._answer.settled and not self._checking.undecided and (not self._streaming or not len(self._outbox)):
            self._turn()

    def _turn(self) -> None:
        """Send the request again, with what the caller has got of the answer as the beginning of it."""
        pivot, request = self._answer.turning, self._prompt.request
        if pivot is None or request is None:
            raise AssertionError("only the answer to a request turns")
        if not self._streaming:
            self._first = self._outbox.first_whole()
        said = self._outbox.said
        self._prompt.wishes.be_safe(pivot.action, pivot.rule, pivot.action.instruction or "")
        self._turned, self._ending = pivot, None
        self._answer.go_on(said)
        try:
            body = self._prompt.render(request, said or None)
        except WireError:
            self._stop_at_turn()  # of a form that can't be gone on with
            return
        self.state = State.STREAMING if self._streaming else State.FORWARDED
        self._decoder = sse.Decoder(self._plan.event_bytes)
        self._body.clear()
        self._upstream_open = True
        self._watch.resume()
        self._do(ForwardRequest(body, request.streaming))

    def _on_continued(self, event: UpstreamOpened) -> None:
        """The upstream goes on with the answer, or will not: then it is stopped where it turned."""
        if self._turned is None or self._answer.turning is not None:
            return
        self._watch.heard()
        self._watch.begin_stream()
        if not event.streaming or event.status >= 400:
            self._stop_at_turn()

    def _stop_at_turn(self) -> None:
        self._cancel_upstream()
        self._checking.degrade("not_continued")
        if self._turned is not None:
            self._answer.stop_here(self._turned)
        self._ending = _Ending("stopped", terminate=True)
        self.state = State.CLOSING
        self._settle()

    # --- whole answers, and ends by policy

    def _give_whole(self) -> None:
        """Answer with the whole answer, edited, now that all of it has been decided."""
        refused = self._answer.refused_whole
        if refused is not None:
            self._refuse_answer(refused)
            return
        try:
            if self._first is not None and not len(self._outbox):
                whole = self._outbox.first_stopped(*self._first)
                data = whole.data
            else:
                whole = self._outbox.whole(self._now)
                data = whole.data
                if self._first is not None:
                    data = self._surface.join_whole(*self._first, self._surface.read_whole(data))
        except WireError as error:
            self._fail("upstream_error", f"the upstream sent an answer that can't be edited: {error}")
            return
        self._ledger.held_s = max(self._ledger.held_s, whole.held_s)
        self._finished = data, "stopped" if self._answer.stopped else "complete"
        if not self._assess():
            self._deliver()

    def _deliver(self) -> None:
        """Give the caller the whole answer, with what was said of it; or say that it is blocked."""
        if self._finished is None:
            raise AssertionError("a whole answer is finished before it is delivered")
        data, outcome = self._finished
        refusal = self._assessment.refusal
        if refusal is not None:
            self._ledger.carried_out("stop")
            body = self._surface.error_body("response_blocked", refusal)
            self._reply(502, body, "stopped", action="stop", retry=False)
            return
        if self._assessment.members:
            try:
                data = self._surface.write_results(data, self._assessment.members)
            except WireError:
                self._checking.degrade("results_not_written")
        self._given = True
        self._reply(self._status, data, outcome, action=self._ledger.action)

    def _refuse_answer(self, halt: Halt) -> None:
        """Answer with an error in place of a whole answer that a rule has stopped with a status."""
        self._ledger.carried_out("stop")
        message = halt.message or "the answer was blocked by policy"
        body = self._surface.error_body("response_blocked", message, halt.rule.id)
        self._reply(halt.status or 502, body, "stopped", action="stop", retry=False)

    def _send(self, released: Released) -> None:
        self._do(SendDownstream(released.data))
        self._given = True
        self._watch.sent()
        if released.held_s > 0:
            self._ledger.held_s = max(self._ledger.held_s, released.held_s)
            self._do(Observe("hold_seconds", released.held_s))
        began_at = self._answer.first_text_at
        if began_at is not None and not self._begun and self._outbox.released_chars:
            self._begun = True
            self._do(Observe("added_ttft_seconds", self._now - began_at))

    def _watch_hold(self) -> None:
        held = self._outbox.bytes_held
        scored = held > 0 and any(judge.asked for judge in self._answer.judges.values())
        if self._watch.holds_too_much(held, scored=scored):
            self._fail("held_too_large", f"more than {self._plan.held_bytes} bytes of the answer had to be held")

    def _on_timer(self, event: TimerFired) -> None:
        self._watch.rang(event.timer)
        if event.timer == "budget":
            self._go_on_with(self._checking.give_up_late())
        elif event.timer == "keepalive":
            if self._watch.wants_comment(held=len(self._outbox) > 0 or self.state is State.ASSESSING):
                self._do(SendDownstream(sse.comment("keep-alive")))
        elif self.state is State.STREAMING and self._watch.stalls():
            self._answer.stall()
            if self._watch.paused and not self._checking.waiting:
                # Nothing is under way that could let go of what is held, and nothing more is being read.
                self._fail("held_too_large", f"more than {self._plan.held_bytes} bytes of the answer had to be held")

    # --- ends

    def _begin_closing(self, ending: _Ending) -> None:
        self._ending = ending
        self.state = State.CLOSING
        if ending.error is not None:
            self._answer.may_turn = False
        self._answer.end()
        self._settle()

    def _close_stream(self) -> None:
        ending = self._ending or _Ending("complete")
        if ending.error is None and self._assess():
            return
        self._outbox.holds_end = False
        last = self._outbox.release(self._now)
        if len(self._outbox):
            # Can't happen while every channel has ended; if it does, the caller must know that text is missing.
            self._checking.degrade("undecided_text")
            ending = _Ending("failed", ("guard_error", "part of the answer could not be decided"))
        data = self._outbox.open_ends()
        if self._assessment.members:
            data += self._surface.result_event(self._outbox.like, self._assessment.members)
        data += last.data if last is not None else b""
        if ending.error is not None:
            data += self._surface.error_event(*ending.error)
        elif ending.terminate and not self._answer.terminated:
            request = self._prompt.request
            data += self._outbox.finish(
                -(-self._prompt.chars // _CHARS_PER_TOKEN),
                -(-self._outbox.released_chars // _CHARS_PER_TOKEN),
                usage_wanted=request is not None and request.usage_wanted,
            )
        if data:
            self._do(SendDownstream(data))
        self._do(CloseDownstream())
        outcome = ending.outcome
        if outcome == "complete" and self._answer.stopped:
            outcome = "stopped"
        elif outcome == "complete" and self._ledger.upstream_failure is not None:
            outcome = "upstream_failed"
        self._close(outcome)

    def _fail(self, kind: str, message: str) -> None:
        """End the exchange because the answer can't be checked or passes a cap: never a silent end."""
        self._cancel_upstream()
        self._ledger.upstream_failure = kind
        self._answer.may_turn = False
        self._answer.turning = None
        if self._streaming:
            self._answer.give_up()
            self._begin_closing(_Ending("failed", (kind, message)))
        else:
            self._reply(502, self._surface.error_body(kind, message), "failed")

    def _on_upstream_failed(self, event: UpstreamFailed) -> None:
        self._upstream_open = False
        if self._answer.turning is not None:
            return  # nothing more was wanted of it
        self._answer.may_turn = False
        self._ledger.upstream_failure = event.kind
        message = f"the upstream failed ({event.kind})"
        if self.state is State.STREAMING:
            self._answer.give_up()
            self._begin_closing(_Ending("upstream_failed", ("upstream_error", message)))
        else:
            status = _UPSTREAM_STATUS.get(event.kind, 502)
            self._reply(status, self._surface.error_body("upstream_error", message), "upstream_failed")

    def _on_draining(self, _: Draining) -> None:
        self._cancel_upstream()
        if self.state is State.ASSESSING:
            self._on_assessed(Assessed(failed=self._assessment.profiles))
            return
        unfinished = self.state is not State.CLOSING or self._answer.turning is not None
        self._answer.may_turn = False
        self._answer.turning = None
        message = "the proxy is shutting down"
        if unfinished and self._streaming and self.state in {State.STREAMING, State.CLOSING}:
            self._answer.give_up()
            self._begin_closing(_Ending("drained", ("server_shutting_down", message)))
        elif unfinished:
            self._reply(503, self._surface.error_body("server_shutting_down", message), "drained")

    def _on_downstream_closed(self, _: DownstreamClosed) -> None:
        self._cancel_upstream()
        self._answer.may_turn = False
        for choice in self._answer.choices.values():
            for judge in choice.judges:
                judge.holdback.end()
                self._checking.advance(judge)
        self._close("downstream_closed")

    def _cancel_upstream(self) -> None:
        if self._upstream_open:
            self._upstream_open = False
            self._do(CancelUpstream())

    def _reply(
        self,
        status: int,
        body: bytes,
        outcome: str,
        *,
        action: str = "allow",
        retry: bool | None = None,
        confirm: ConfirmationWanted | None = None,
    ) -> None:
        retry_after_s = 1 if status == 503 else None
        self._do(Reply(status, body, action=action, retry=retry, retry_after_s=retry_after_s, confirm=confirm))
        self._close(outcome)

    def _close(self, outcome: str) -> None:
        self._checking.close()
        self._watch.end()
        self._look_whether_scored()
        record = self._ledger.record(
            surface=self._surface.name,
            streaming=self._streaming,
            outcome=outcome,
            program=self._plan.program,
            prompt_chars=self._prompt.chars,
            released_chars=self._outbox.released_chars,
            risks=self._assessment.risks,
        )
        # Judges know who checks, who knows the ledger. Apart, all of an exchange is freed when it is left; a full
        # collection, which would have to find it, stops every stream.
        self._ledger.judges.clear()
        self._do(Observe("tokens_in", -(-record.prompt_chars // _CHARS_PER_TOKEN)))
        self._do(Observe("tokens_out", -(-record.released_chars // _CHARS_PER_TOKEN)))
        self._do(Record(record))
        self.state = State.CLOSED

    def _look_whether_scored(self) -> None:
        """Have what the caller has got scored, whole or not: of a part, too, the reader believes what it says."""
        if not self._plan.scored_chars or not self._given:
            return
        heard = self._outbox.heard
        answers = heard.answers
        if heard.too_long or sum(map(len, answers.values())) > self._plan.scored_chars:
            self._checking.degrade("answer_too_long_to_score")
        elif answers:
            self._do(Enqueue(self._prompt.dialogue(answers)))

    # What each event means in each state; any other pair is ignored.
    _TRANSITIONS: ClassVar[Mapping[tuple[State, type], Callable[[Guard, Any], None]]] = {
        (State.NEW, RequestReceived): _on_request,
        (State.FORWARDED, UpstreamOpened): _on_opened,
        (State.FORWARDED, UpstreamFailed): _on_upstream_failed,
        (State.STREAMING, UpstreamOpened): _on_continued,
        (State.STREAMING, UpstreamBytes): _on_stream_bytes,
        (State.STREAMING, UpstreamClosed): _on_stream_end,
        (State.STREAMING, UpstreamFailed): _on_upstream_failed,
        (State.WHOLE, UpstreamBytes): _on_whole_bytes,
        (State.WHOLE, UpstreamClosed): _on_whole_end,
        (State.WHOLE, UpstreamFailed): _on_upstream_failed,
        (State.ASSESSING, Assessed): _on_assessed,
        **dict.fromkeys(((state, Scored) for state in _RUNNING), _on_score),
        **dict.fromkeys(((state, ScoringFailed) for state in _RUNNING), _on_score),
        **dict.fromkeys(((state, TimerFired) for state in _RUNNING), _on_timer),
        **dict.fromkeys(((state, DownstreamClosed) for state in _RUNNING), _on_downstream_closed),
        **dict.fromkeys(((state, Draining) for state in _RUNNING), _on_draining),
    }
