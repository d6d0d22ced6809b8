r"""The guard of one exchange: a prompt, and the answer to it, streamed or whole. The only file that knows the order.

`receive(event, now)` takes what has happened and returns what is to be done. It waits for nothing and does
nothing itself: scores, time-outs and failures come back as events.

States::

    NEW -> INGRESS -> FORWARDED -> STREAMING -> CLOSING -> CLOSED
                   \            \-> WHOLE ----/
                    \-> CLOSED (refused)

INVARIANT: text of the answer leaves only through `Outbox`; `Record` comes exactly once, when the state becomes
CLOSED.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Literal

import msgspec

from checkstream.core.actions import Halt, disclaimer_text
from checkstream.core.commands import (
    AnyCommand,
    ArmTimer,
    CancelUpstream,
    CloseDownstream,
    Decided,
    Degraded,
    DisarmTimer,
    ForwardRequest,
    Observe,
    PauseUpstream,
    Record,
    Reply,
    ResumeUpstream,
    Score,
    SendDownstream,
    StartStream,
)
from checkstream.core.events import (
    AnyEvent,
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
from checkstream.core.holdback import Check, HoldSettings
from checkstream.core.judge import FailMode, Judge, Ruling
from checkstream.core.ledger import Ledger
from checkstream.core.outbox import Choice, Outbox, Part, Released, Waiting
from checkstream.core.policy.program import InjectDisclaimer, Program, Reject, RuleMeta
from checkstream.core.terms import Channel, Delta, Stage, Unit
from checkstream.core.wire import sse
from checkstream.core.wire.surface import Frame, Request, Surface
from checkstream.errors import EventTooLarge, RequestInvalid, WireError

_CHARS_PER_TOKEN = 4
"""For estimates of usage only: English text in common vocabularies."""
_UPSTREAM_STATUS = {"first_byte": 504, "idle": 504}


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What one route asks of the guard. An exchange keeps the plan that it started with (G25)."""

    program: Program
    hold: HoldSettings = HoldSettings()
    fail_mode: FailMode = "closed"
    ingress_deadline_ms: float = 150.0
    check_deadline_ms: float = 50.0
    check_budget_ms: float = 6.0
    """Above it a check counts as slow; its answer still decides."""
    keepalive_ms: float = 15_000.0
    held_bytes: int = 2_097_152
    """Most bytes of events that may wait in one stream."""
    event_bytes: int = 1_048_576
    answer_bytes: int = 16_777_216
    prompt_chars: int = 400_000
    parts: Literal["pass", "refuse"] = "pass"
    """What becomes of parts of a prompt that are not text."""


class State(enum.Enum):
    """Where an exchange stands."""

    NEW = enum.auto()
    INGRESS = enum.auto()
    FORWARDED = enum.auto()
    STREAMING = enum.auto()
    WHOLE = enum.auto()
    CLOSING = enum.auto()
    CLOSED = enum.auto()


class _Ticket(msgspec.Struct, frozen=True):
    judge: Judge
    check: Check
    asked_at: float


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
        self._digest = digest
        self._commands: list[AnyCommand] = []
        self._now = 0.0
        self._ledger = Ledger()
        self._tickets: dict[int, _Ticket] = {}
        self._next_ticket = 1
        self._request: Request | None = None
        self._prompt: list[Judge] = []
        self._rejects: list[tuple[RuleMeta, Reject]] = []
        self._failed: RuleMeta | None = None
        self._prefixes: list[str] = []
        self._suffixes: list[str] = []
        self._judges: dict[Channel, Judge] = {}
        self._choices: dict[int, Choice] = {}
        self._outbox = Outbox(surface, self._choices, self._prefixes)
        self._decoder = sse.Decoder(plan.event_bytes)
        self._body = bytearray()
        self._status = 200
        self._answer_bytes = 0
        self._upstream_open = False
        self._streaming = False
        self._paused = False
        self._terminated = False
        self._ending: _Ending | None = None
        self._last_byte_at = 0.0
        self._last_sent_at = 0.0
        self._first_text_at: float | None = None
        self._timers: set[str] = set()

    def receive(self, event: AnyEvent, now: float) -> list[AnyCommand]:
        """Take one event at `now` (monotonic seconds) and return the commands that follow, in order.

        An event that has no meaning in the present state (a late score, a second end) is ignored.
        """
        self._commands = []
        self._now = now
        transition = self._TRANSITIONS.get((self.state, type(event)))
        if transition is not None:
            transition(self, event)
        return self._commands

    # --- the prompt

    def _on_request(self, event: RequestReceived) -> None:
        self.state = State.INGRESS
        try:
            request = self._surface.read_request(event.body)
        except RequestInvalid as error:
            self._refuse(400, "invalid_request_error", str(error))
            return
        self._request = request
        fault = self._request_fault(request)
        if fault is not None:
            self._refuse(*fault)
            return
        for delta in request.unit.deltas:
            judge = self._new_judge(delta, Stage.INGRESS, grid=False)
            self._prompt.append(judge)
            checks = judge.feed(delta.text)
            self._ask(judge, [*checks, *judge.holdback.end()])
        for judge in self._prompt:
            self._rule_prompt(judge)
        self._go_on_with_prompt()

    def _request_fault(self, request: Request) -> tuple[int, str, str] | None:
        """Return status, kind and message if the request may not be forwarded, whatever the policy says."""
        chars = sum(len(delta.text) for delta in request.unit.deltas)
        if chars > self._plan.prompt_chars:
            limit = self._plan.prompt_chars
            return 413, "prompt_too_large", f"the prompt has {chars} characters, the limit is {limit}; send less"
        if request.unknown_fields:
            names = ", ".join(f"`{name}`" for name in request.unknown_fields)
            if self._plan.fail_mode == "closed":
                return 400, "unknown_field", f"fields that can't be checked are not forwarded: {names}; leave them out"
            for name in request.unknown_fields:
                self._ledger.unscanned(f"ingress:{name}")
        for name in request.unit.unscanned:
            if self._plan.parts == "refuse":
                return 400, "unsupported_part", f"`{name}` can't be checked and this route refuses it; send text only"
            self._ledger.unscanned(f"ingress:{name}")
        return None

    def _rule_prompt(self, judge: Judge) -> None:
        for ruling in self._advance(judge):
            if ruling.outcome.reject is not None:
                self._rejects.append(ruling.outcome.reject)
            self._failed = self._failed or ruling.failed

    def _go_on_with_prompt(self) -> None:
        """Forward or refuse the prompt once every decision on it has been taken."""
        if any(ticket.judge.leads or ticket.judge.adds_text for ticket in self._tickets.values()):
            return
        if self._rejects:
            rule, reject = self._rejects[0]
            self._refuse(reject.status, "request_blocked", reject.message, rule.id)
        elif self._failed is not None:
            message = "a check of the prompt could not be completed; try again later"
            self._refuse(503, "guard_unavailable", message, self._failed.id)
        else:
            self._forward()

    def _forward(self) -> None:
        if self._request is None:
            raise AssertionError("a prompt is forwarded after it was read")
        texts = {
            place: judge.holdback.render(0, judge.holdback.received)
            for place, judge in enumerate(self._prompt)
            if judge.holdback.changed(0, judge.holdback.received)
        }
        self.state = State.FORWARDED
        self._upstream_open = True
        self._streaming = self._request.streaming
        body = self._surface.write_request(self._request, texts)
        self._commands.append(ForwardRequest(body, self._request.streaming))

    def _refuse(self, status: int, kind: str, message: str, rule_id: str | None = None) -> None:
        self._tickets.clear()
        self._ledger.carried_out("reject")
        self._reply(
            status,
            self._surface.error_body(kind, message, rule_id),
            "refused",
            action="reject",
            retry=False if kind == "request_blocked" else None,
        )

    # --- the answer comes in

    def _on_opened(self, event: UpstreamOpened) -> None:
        self._status = event.status
        self._last_byte_at = self._last_sent_at = self._now
        if event.streaming and event.status < 400:
            self.state = State.STREAMING
            self._streaming = True
            self._commands.append(StartStream())
            self._arm("keepalive", self._plan.keepalive_ms)
        else:
            self.state = State.WHOLE
            self._streaming = False

    def _on_stream_bytes(self, event: UpstreamBytes) -> None:
        self._last_byte_at = self._now
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
            if self._ending is not None:
                break
        if self._ending is None and len(event.data) > room:
            self._fail("answer_too_large", f"the answer passed {self._plan.answer_bytes} bytes")
        elif self._ending is None and self._decoder.fault is not None:
            self._fail("upstream_error", str(self._decoder.fault))
        else:
            self._settle()

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
            if frame.data is not None and self._ending is None:
                # The client must get a whole event, or it would join it with what comes next.
                self._take_frame(Frame(frame.raw.rstrip(b"\r\n") + b"\n\n", frame.data, frame.event))
        if self._ending is None:
            self._begin_closing(_Ending("complete"))
        else:
            self._settle()

    def _on_whole_end(self, _: UpstreamClosed) -> None:
        self._upstream_open = False
        body = bytes(self._body)
        if self._status >= 400:
            self._ledger.upstream_failure = f"status_{self._status}"
            self._ledger.unscanned("midstream:error_body")
            self._reply(self._status, body, "upstream_failed")
            return
        try:
            unit = self._surface.read_whole(body)
        except WireError as error:
            if self._plan.fail_mode == "closed":
                self._fail("upstream_error", f"the upstream sent an answer that can't be checked: {error}")
                return
            self._ledger.unscanned("midstream:body")
            self._reply(self._status, body, "complete")
            return
        self.state = State.CLOSING
        self._ending = _Ending("complete")
        self._take_unit(unit)
        self._settle()

    def _take_frame(self, frame: Frame) -> None:
        try:
            unit = self._surface.read_event(frame)
            reason = "event of an unknown type" if unit.opaque else None
        except WireError as error:
            unit, reason = Unit(raw=frame.raw), str(error)
        if reason is not None:
            if self._plan.fail_mode == "closed":
                self._fail("upstream_error", f"the upstream sent an event that can't be checked: {reason}")
                return
            self._ledger.unscanned("midstream:opaque_event")
        self._take_unit(unit)

    def _take_unit(self, unit: Unit) -> None:
        """Give a unit's text to its channels, put the unit in the queue, take the decisions that it allows."""
        for number in unit.choices:
            if number not in self._choices:
                self._choices[number] = Choice(suffixes=list(self._suffixes))
        parts = tuple(self._take_delta(delta) for delta in unit.deltas)
        for name in unit.unscanned:
            self._ledger.unscanned(f"midstream:{name}")
        if unit.failure is not None:
            self._ledger.upstream_failure = "error_event"
            self._ledger.unscanned("midstream:error_event")
        self._outbox.put(Waiting(unit, parts, self._now))
        for part in parts:
            if part.judge is not None:
                self._rule(part.judge)
        for number in unit.finished:
            self._finish_choice(number)
        if unit.terminator:
            self._terminated = True
            self._end_all()

    def _take_delta(self, delta: Delta) -> Part:
        """Give one delta to its channel; text of a choice that has ended goes nowhere."""
        choice = self._choices[delta.channel.choice]
        if choice.halt is not None or choice.finished:
            return Part(None, 0, 0)
        judge = self._judges.get(delta.channel)
        if judge is None:
            judge = self._judges[delta.channel] = self._new_judge(delta, Stage.MIDSTREAM)
            choice.judges.append(judge)
        start = judge.holdback.received
        checks = judge.feed(delta.text)
        if checks:
            self._ask(judge, checks)
        if self._first_text_at is None and delta.text:
            self._first_text_at = self._now
        return Part(judge, start, judge.holdback.received)

    def _finish_choice(self, number: int) -> None:
        choice = self._choices[number]
        if choice.finished:
            return
        choice.finished = True
        for judge in choice.judges:
            self._ask(judge, judge.holdback.end())
            self._rule(judge)

    def _end_all(self) -> None:
        """End every channel that still runs: nothing more will come."""
        for number in sorted(self._choices):
            self._finish_choice(number)

    def _give_up(self) -> None:
        """End every channel before what a pattern could still match: it stays undecided, so it must not leave (G4)."""
        for _, choice in sorted(self._choices.items()):
            if choice.finished:
                continue
            choice.finished = True
            for judge in choice.judges:
                self._ask(judge, judge.holdback.abandon())
                self._rule(judge)

    # --- decisions

    def _new_judge(self, delta: Delta, stage: Stage, *, grid: bool = True) -> Judge:
        settings = self._plan.hold
        judge = Judge(
            delta.channel,
            stage,
            program=self._plan.program,
            settings=settings,
            fail_mode=self._plan.fail_mode,
            digest=self._digest,
            grid=grid,
        )
        judge.follow(stage, settings, grid=grid)
        if stage is Stage.MIDSTREAM:
            judge.follow(Stage.EGRESS, settings, grid=grid)
        self._ledger.judges += (judge, *judge.followers)
        return judge

    def _ask(self, judge: Judge, checks: Iterable[Check]) -> None:
        for check in checks:
            check.ticket = self._next_ticket
            self._next_ticket += 1
            self._tickets[check.ticket] = _Ticket(judge, check, self._now)
            ingress = judge.stage is Stage.INGRESS
            self._commands.append(
                Score(
                    ticket=check.ticket,
                    classifiers=judge.asked,
                    text=judge.holdback.text(check.window),
                    deadline_ms=self._plan.ingress_deadline_ms if ingress else self._plan.check_deadline_ms,
                    ingress=ingress,
                )
            )

    def _advance(self, judge: Judge) -> list[Ruling]:
        """Take the decisions that a judge can take now and note what they come to."""
        rulings = judge.advance()
        for ruling in rulings:
            self._ask(ruling.judge, ruling.checks)
            verdicts = ruling.outcome.verdicts
            self._ledger.judged(verdicts)
            self._commands.extend(Decided(verdict) for verdict in verdicts)
            if ruling.degraded is not None:
                self._degrade(ruling.degraded)
            for disclaimer in ruling.outcome.disclaimers:
                self._add_disclaimer(judge, disclaimer)
        return rulings

    def _add_disclaimer(self, judge: Judge, disclaimer: InjectDisclaimer) -> None:
        """Note a disclaimer, for every choice (a rule on the prompt) or for one; each text once."""
        if judge.stage is not Stage.INGRESS:
            texts = self._choices[judge.channel.choice].suffixes
        else:
            texts = self._prefixes if disclaimer.position == "start" else self._suffixes
        text = disclaimer_text(disclaimer)
        if text not in texts:
            texts.append(text)

    def _rule(self, judge: Judge) -> None:
        """Take the decisions of an answer's channel and carry out what they mean for its choice."""
        for ruling in self._advance(judge):
            if ruling.halt is not None:
                self._halt(judge, ruling.halt)

    def _halt(self, judge: Judge, halt: Halt) -> None:
        """End a choice by policy; when it was the last one that ran, cut the upstream off."""
        choice = self._choices[judge.channel.choice]
        choice.halt = halt
        self._ledger.carried_out("stop")
        for other in choice.judges:
            if other is not judge:
                other.holdback.stop(other.holdback.releasable)
                self._advance(other)
        for number, ticket in list(self._tickets.items()):
            if ticket.judge in choice.judges and not ticket.judge.holdback.expects(ticket.check):
                del self._tickets[number]
        if self.state is State.STREAMING and not self._running():
            self._cancel_upstream()
            self._ending = _Ending("stopped", terminate=True)
            self.state = State.CLOSING

    def _running(self) -> bool:
        """Tell whether a choice still runs that neither the upstream nor a rule has ended."""
        asked = range(self._request.choices if self._request is not None else 1)
        numbers = {*asked, *self._choices}
        choices = (self._choices.get(number) for number in numbers)
        return any(choice is None or (choice.halt is None and not choice.finished) for choice in choices)

    def _on_scored(self, event: Scored) -> None:
        ticket = self._tickets.pop(event.ticket, None)
        if ticket is None:
            return
        ticket.check.scores = event.scores
        elapsed_ms = (self._now - ticket.asked_at) * 1000
        if elapsed_ms > self._plan.check_budget_ms and ticket.judge.stage is not Stage.INGRESS:
            self._degrade("check_over_budget")
        self._on_answer(ticket.judge)

    def _on_scoring_failed(self, event: ScoringFailed) -> None:
        ticket = self._tickets.pop(event.ticket, None)
        if ticket is None:
            return
        ticket.check.failed = event.reason
        self._on_answer(ticket.judge)

    def _on_answer(self, judge: Judge) -> None:
        if judge.stage is Stage.INGRESS:
            self._rule_prompt(judge)
            if self.state is State.INGRESS:
                self._go_on_with_prompt()
                return
        else:
            self._rule(judge)
        self._settle()

    def _degrade(self, reason: str) -> None:
        if self._ledger.degraded(reason):
            self._commands.append(Degraded(reason))

    # --- the answer goes out

    def _settle(self) -> None:
        """Send what may leave, then end the exchange if it is closing and nothing waits any more."""
        if self.state is State.CLOSED:
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
        if self.state is not State.CLOSING or self._tickets:
            return
        if self._streaming:
            self._close_stream()
        elif all(judge.holdback.settled for judge in self._judges.values()):
            try:
                whole = self._outbox.whole(self._now)
            except WireError as error:
                self._fail("upstream_error", f"the upstream sent an answer that can't be edited: {error}")
                return
            self._ledger.held_s = max(self._ledger.held_s, whole.held_s)
            outcome = "stopped" if any(choice.halt for choice in self._choices.values()) else "complete"
            self._reply(self._status, whole.data, outcome, action=self._ledger.action)

    def _send(self, released: Released) -> None:
        self._commands.append(SendDownstream(released.data))
        self._last_sent_at = self._now
        if released.held_s > 0:
            self._ledger.held_s = max(self._ledger.held_s, released.held_s)
            self._commands.append(Observe("hold_seconds", released.held_s))
        if self._first_text_at is not None and self._first_text_at >= 0 and self._outbox.released_chars:
            self._commands.append(Observe("added_ttft_seconds", self._now - self._first_text_at))
            self._first_text_at = -1.0

    def _watch_hold(self) -> None:
        """Keep what waits within its caps, in bytes and in time."""
        held = self._outbox.bytes_held
        if held > self._plan.held_bytes and not self._paused:
            if not self._tickets:
                self._fail("held_too_large", f"more than {self._plan.held_bytes} bytes of the answer had to be held")
                return
            self._paused = True
            self._commands.append(PauseUpstream())
        elif self._paused and held <= self._plan.held_bytes // 2:
            self._paused = False
            self._commands.append(ResumeUpstream())
        if held and "stall" not in self._timers and any(judge.asked for judge in self._judges.values()):
            self._arm("stall", self._plan.hold.max_delay_ms)

    def _arm(self, timer: Literal["stall", "keepalive"], after_ms: float) -> None:
        self._timers.add(timer)
        self._commands.append(ArmTimer(timer, after_ms))

    def _on_timer(self, event: TimerFired) -> None:
        self._timers.discard(event.timer)
        if event.timer == "keepalive":
            quiet_ms = (self._now - self._last_sent_at) * 1000
            if quiet_ms >= self._plan.keepalive_ms and len(self._outbox):
                self._commands.append(SendDownstream(sse.comment("keep-alive")))
                self._last_sent_at = self._now
                quiet_ms = 0.0
            self._arm("keepalive", max(self._plan.keepalive_ms - quiet_ms, 1000.0))
            return
        silent_ms = (self._now - self._last_byte_at) * 1000
        if silent_ms < self._plan.hold.max_delay_ms:
            self._arm("stall", self._plan.hold.max_delay_ms - silent_ms)
            return
        for judge in self._judges.values():
            self._ask(judge, judge.holdback.stall())
        if self._paused and not self._tickets:
            # Nothing is under way that could let go of what is held, and nothing more is being read.
            self._fail("held_too_large", f"more than {self._plan.held_bytes} bytes of the answer had to be held")

    # --- ends

    def _begin_closing(self, ending: _Ending) -> None:
        self._ending = ending
        self.state = State.CLOSING
        self._end_all()
        self._settle()

    def _close_stream(self) -> None:
        ending = self._ending or _Ending("complete")
        if len(self._outbox):
            # Can't happen while every channel has ended; if it does, the caller must know that text is missing.
            self._degrade("undecided_text")
            ending = _Ending("failed", ("guard_error", "part of the answer could not be decided"))
        data = self._outbox.open_ends()
        if ending.error is not None:
            data += self._surface.error_event(*ending.error)
        elif ending.terminate and not self._terminated:
            wanted = self._request is not None and self._request.usage_wanted
            prompt_chars = sum(judge.holdback.received for judge in self._prompt)
            data += self._outbox.finish(
                -(-prompt_chars // _CHARS_PER_TOKEN),
                -(-self._outbox.released_chars // _CHARS_PER_TOKEN),
                usage_wanted=wanted,
            )
        if data:
            self._commands.append(SendDownstream(data))
        self._commands.append(CloseDownstream())
        outcome = ending.outcome
        if outcome == "complete" and any(choice.halt is not None for choice in self._choices.values()):
            outcome = "stopped"
        elif outcome == "complete" and self._ledger.upstream_failure is not None:
            outcome = "upstream_failed"
        self._close(outcome)

    def _fail(self, kind: str, message: str) -> None:
        """End the exchange because the answer can't be checked or passes a cap: never a silent end."""
        self._cancel_upstream()
        self._ledger.upstream_failure = kind
        if self._streaming:
            self._give_up()
            self._begin_closing(_Ending("failed", (kind, message)))
        else:
            self._reply(502, self._surface.error_body(kind, message), "failed")

    def _on_upstream_failed(self, event: UpstreamFailed) -> None:
        self._upstream_open = False
        self._ledger.upstream_failure = event.kind
        message = f"the upstream failed ({event.kind})"
        if self.state is State.STREAMING:
            self._begin_closing(_Ending("upstream_failed", ("upstream_error", message)))
        else:
            status = _UPSTREAM_STATUS.get(event.kind, 502)
            self._reply(status, self._surface.error_body("upstream_error", message), "upstream_failed")

    def _on_draining(self, _: Draining) -> None:
        self._cancel_upstream()
        message = "the proxy is shutting down"
        if self.state is State.STREAMING:
            self._give_up()
            self._begin_closing(_Ending("drained", ("server_shutting_down", message)))
        elif self.state is not State.CLOSING:
            self._reply(503, self._surface.error_body("server_shutting_down", message), "drained")

    def _on_downstream_closed(self, _: DownstreamClosed) -> None:
        self._cancel_upstream()
        for number in sorted(self._choices):
            for judge in self._choices[number].judges:
                judge.holdback.end()
                self._advance(judge)
        self._close("downstream_closed")

    def _cancel_upstream(self) -> None:
        if self._upstream_open:
            self._upstream_open = False
            self._commands.append(CancelUpstream())

    def _reply(
        self, status: int, body: bytes, outcome: str, *, action: str = "allow", retry: bool | None = None
    ) -> None:
        retry_after_s = 1 if status == 503 else None
        self._commands.append(Reply(status, body, action=action, retry=retry, retry_after_s=retry_after_s))
        self._close(outcome)

    def _close(self, outcome: str) -> None:
        self._tickets.clear()
        self._commands.extend(DisarmTimer(timer) for timer in ("stall", "keepalive") if timer in self._timers)
        record = self._ledger.record(
            surface=self._surface.name,
            streaming=self._streaming,
            outcome=outcome,
            program=self._plan.program,
            released_chars=self._outbox.released_chars,
        )
        self._commands.append(Observe("tokens_in", -(-record.prompt_chars // _CHARS_PER_TOKEN)))
        self._commands.append(Observe("tokens_out", -(-record.released_chars // _CHARS_PER_TOKEN)))
        self._commands.append(Record(record))
        self.state = State.CLOSED

    # What each event means in each state; any other pair is ignored.
    _TRANSITIONS: ClassVar[Mapping[tuple[State, type], Callable[[Guard, Any], None]]] = {
        (State.NEW, RequestReceived): _on_request,
        (State.INGRESS, Scored): _on_scored,
        (State.INGRESS, ScoringFailed): _on_scoring_failed,
        (State.FORWARDED, UpstreamOpened): _on_opened,
        (State.FORWARDED, UpstreamFailed): _on_upstream_failed,
        (State.FORWARDED, Scored): _on_scored,
        (State.FORWARDED, ScoringFailed): _on_scoring_failed,
        (State.WHOLE, Scored): _on_scored,
        (State.WHOLE, ScoringFailed): _on_scoring_failed,
        (State.STREAMING, UpstreamBytes): _on_stream_bytes,
        (State.STREAMING, UpstreamClosed): _on_stream_end,
        (State.STREAMING, UpstreamFailed): _on_upstream_failed,
        (State.STREAMING, Scored): _on_scored,
        (State.STREAMING, ScoringFailed): _on_scoring_failed,
        (State.STREAMING, TimerFired): _on_timer,
        (State.WHOLE, UpstreamBytes): _on_whole_bytes,
        (State.WHOLE, UpstreamClosed): _on_whole_end,
        (State.WHOLE, UpstreamFailed): _on_upstream_failed,
        (State.CLOSING, Scored): _on_scored,
        (State.CLOSING, ScoringFailed): _on_scoring_failed,
        (State.INGRESS, DownstreamClosed): _on_downstream_closed,
        (State.INGRESS, Draining): _on_draining,
        (State.FORWARDED, DownstreamClosed): _on_downstream_closed,
        (State.FORWARDED, Draining): _on_draining,
        (State.STREAMING, DownstreamClosed): _on_downstream_closed,
        (State.STREAMING, Draining): _on_draining,
        (State.WHOLE, DownstreamClosed): _on_downstream_closed,
        (State.WHOLE, Draining): _on_draining,
        (State.CLOSING, DownstreamClosed): _on_downstream_closed,
        (State.CLOSING, Draining): _on_draining,
    }
