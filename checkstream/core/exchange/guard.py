r"""The guard of one exchange: a prompt, and the answer to it, streamed or whole. The only file that knows the order.

`receive(event, now)` takes what has happened and returns what is to be done. It waits for nothing and does
nothing itself: scores, time-outs and failures come back as events.

States::

    NEW -> INGRESS -> FORWARDED -> STREAMING -> CLOSING -> CLOSED
      \     /     \            \-> WHOLE ----/ \-> ASSESSING -> CLOSED
    RECALLING      \-> CLOSED (refused)

A request of a conversation waits in RECALLING for what is known of that, and once more where something was found in it.
An answer that a rule turns goes back to STREAMING, or to FORWARDED when it is not streamed, with a second request.

An event only changes what is known (`_TRANSITIONS`); then the exchange goes as far as it can (`_go_on`). What takes
long comes in steps: a turn does some of them and asks for the next with `Yield`, so that no text makes others wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, ClassVar

from checkstream.core.channel.judge import Judge
from checkstream.core.commands import AnyCommand, ForwardRequest, Recall, StartStream
from checkstream.core.events import (
    AnyEvent,
    Assessed,
    DownstreamClosed,
    Draining,
    NamesFailed,
    NamesKept,
    NamesKnown,
    Recalled,
    RequestReceived,
    Resumed,
    Scored,
    ScoringFailed,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.assessment import MOST_CHARS
from checkstream.core.exchange.calm import Calm
from checkstream.core.exchange.course import RUNNING, Course, Ending, State
from checkstream.core.exchange.heard import Heard, Spoken
from checkstream.core.exchange.incoming import Incoming
from checkstream.core.exchange.ingress.refusal import Refusal
from checkstream.core.exchange.leaving import Leaving
from checkstream.core.exchange.meter import CHANNEL_WORK, Steps
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.quiet import Quiet
from checkstream.core.exchange.stepping import Stepping
from checkstream.core.exchange.timers import Timers
from checkstream.core.exchange.turning import Turning
from checkstream.core.exchange.watch import UPSTREAM_STATUS
from checkstream.core.terms import Stage
from checkstream.core.wire.surface import Request, Surface
from checkstream.errors import NamesUnreadable, WireError

__all__ = ["Guard", "Plan", "State"]

_RELEASE_WORK = 2000
"""Of as many units as leave at a time (see `match.work`)."""
_LOOK_WORK = 5
"""Of looking whether a text may leave, and of letting it."""
_JUDGES_A_STEP, _JUDGES_WORK = 32, 300
_WRITING_WORK = 500
"""Of a step of writing a whole answer."""
_NOTING_WORK = 300
"""Of a step of noting what was found in channels."""
_OF_UPSTREAM = (UpstreamOpened, UpstreamBytes, UpstreamClosed, UpstreamFailed)


class Guard(Stepping):
    """The state machine of one exchange."""

    def __init__(
        self,
        *,
        surface: Surface,
        plan: Plan,
        digest: Callable[[str], str],
        stream: str = "",
        clock: Callable[[], float] | None = None,
        quiet: Quiet | None = None,
    ) -> None:
        """Start before the request.

        Args:
            surface: The API that the caller speaks.
            plan: What the route asks for.
            digest: Keyed digest of a text, hex; its key is kept outside the audit log.
            stream: Id of the exchange, as the caller is told it.
            clock: Tells the time, seconds, to end turns by; None: they end by work that is counted alone. Nothing else
                depends on it.
            quiet: What was found in texts of the caller before. The caller's exchanges share it, and what they
                come to does not depend on it.
        """
        self._course = Course(surface=surface, plan=plan, digest=digest, stream=stream)
        super().__init__(self._course.checking, self._course.watch)
        self._course.checking.meter.clock = clock
        self._course.checking.quiet = quiet
        self._incoming = Incoming(self._course)
        self._leaving = Leaving(self._course)
        self._turning = Turning(self._course, self._leaving)
        self._timers = Timers(self._course, self._leaving)
        self._calm = Calm(self._course, self._incoming, self._leaving)

    def receive(self, event: AnyEvent, now: float) -> list[AnyCommand]:
        """Take one event at `now` (monotonic seconds) and return the commands that follow, in order.

        An event that has no meaning in the present state (a late score, a second end) is ignored.
        """
        calm = self._calm
        quick = calm.take(event, now)
        if quick is not None:
            return quick
        if calm.rest is not None:
            self._steps = self._going_on(calm.rest)
            event = Resumed()
        commands = super().receive(event, now)
        if self._steps is None and not self._events and not self._exhausted:
            calm.begin()
        return commands

    @property
    def state(self) -> State:
        """Where the exchange stands."""
        return self._course.state

    @property
    def over(self) -> bool:
        """The record was written: nothing follows."""
        return self._course.state is State.CLOSED

    def _forgetting(self) -> Steps:
        """Take apart what the exchange has known, in steps."""
        answer, checking = self._course.answer, self._course.checking
        checking.left += (answer.judges, answer.choices, *answer.sieve.extras.known, *self._incoming.memory)
        checking.left += (*self._course.writer.sending.memory, *self._course.prompt.conversation.memory)
        checking.left.append(self._course.intake.memory)
        answer.common = Choice()
        self._course.prompt.request = None
        yield from checking.forgetting()

    def _steps_of(self, event: AnyEvent) -> Steps:
        """Take one event, then go as far as that allows."""
        course = self._course
        transition = self._TRANSITIONS.get((course.state, type(event)))
        return self._going_on(transition(self, event)) if transition is not None else iter(())

    def _going_on(self, steps: Steps | None = None) -> Steps:
        """Do some steps, then go as far as what is known allows."""
        course = self._course
        if steps is not None:
            yield from steps
        if course.state is State.INGRESS and not course.cannot_be_checked():
            yield from self._go_on_with_prompt()
        while True:
            if course.closing:
                yield from course.close_channels()
            if course.state is State.CLOSING and not course.checking.waiting:
                yield from self._noting()
            if not course.cannot_be_checked() and not (yield from self._going_further()):
                break
            yield
        if self._may_give_whole and (yield from course.answer.settling()):
            yield from course.checking.meter.stepping(self._leaving.giving_whole(), _WRITING_WORK)

    def _steps_without_work(self) -> Steps | None:
        """Let the fail mode decide on an exchange that has done all the work that it may do; None: it goes on."""
        course = self._course
        if course.state is State.CLOSED or course.ended_badly:
            return None
        course.checking.degrade("work_exceeded")
        return None if course.plan.fail_mode == "open" else self._give_up_work()

    def _give_up_work(self) -> Steps:
        self._course.exceed_work()
        yield from self._going_on()

    def _going_further(self) -> Generator[None, None, bool]:
        """Do the next that what is known allows; return whether that has opened a further way to go."""
        course = self._course
        if course.answer.turning is not None and course.state in {State.STREAMING, State.CLOSING}:
            return (yield from self._going_to_turn())
        return self._go_on()

    def _go_on(self) -> bool:
        """Send what may leave, then end the exchange if it is closing and nothing waits any more.

        Returns:
            Whether that has opened a further way to go.
        """
        course = self._course
        if course.state is State.CLOSED:
            return False
        if course.streaming and course.state is not State.FORWARDED:
            if self._release():
                return True
            if course.state is State.STREAMING:
                return self._incoming.has_ended() or self._timers.gives_up_holding()
        if course.state is State.CLOSING and course.streaming and not course.checking.waiting:
            return self._leaving.close_stream()
        return False

    @property
    def _may_give_whole(self) -> bool:
        """A whole answer waits for nobody."""
        course = self._course
        if course.state is not State.CLOSING or course.streaming or course.checking.waiting:
            return False
        return course.answer.turning is None

    def _noting(self, *, whatever: bool = False) -> Steps:
        """Note for the record, in steps, what was found in the channels (see `Ledger.noting`)."""
        course = self._course
        return course.checking.meter.stepping(course.ledger.noting(whatever=whatever), _NOTING_WORK)

    def _release(self) -> bool:
        """Send what may leave of a stream; return whether that has opened a further way to go."""
        course = self._course
        if not self._leaving.release() and not course.ended_badly:
            course.fail("upstream_error", f"the upstream sent an event that can't be edited: {course.outbox.fault}")
            return True
        return self._is_behind()

    def _is_behind(self) -> bool:
        """Count what the last release has cost; tell whether more may leave."""
        meter, outbox = self._course.checking.meter, self._course.outbox
        meter.spent += _LOOK_WORK * outbox.looked
        if outbox.behind:
            meter.spent += _RELEASE_WORK
        return outbox.behind

    def _going_to_turn(self) -> Generator[None, None, bool]:
        closing = yield from self._turning.steps()
        if closing:
            return True
        if self._course.answer.turning is not None:
            return self._course.streaming and self._is_behind()
        self._incoming.begin_anew()
        # What waits of the upstream is of the answer that was cut off.
        self._events = deque(event for event in self._events if not isinstance(event, _OF_UPSTREAM))
        return False

    # --- the prompt

    def _on_request(self, event: RequestReceived) -> Steps:
        course = self._course
        course.state = State.INGRESS
        refusal = yield from course.prompt.take(event)
        if refusal is not None:
            course.refuse(refusal)
        elif course.prompt.conversation.key:
            course.state = State.RECALLING
            course.do(Recall(course.prompt.conversation.key))
        else:
            yield from course.prompt.begin()

    def _on_recalled(self, event: Recalled) -> Steps:
        course = self._course
        course.state = State.INGRESS
        again = course.prompt.conversation.is_begun
        refusal = course.prompt.looked_again(event) if again else course.prompt.recalled(event)
        if refusal is not None:
            course.refuse(refusal)
        elif not again:
            yield from course.prompt.begin()

    def _go_on_with_prompt(self) -> Steps:
        """Forward or refuse the prompt once every decision on it has been taken."""
        course = self._course
        request = course.prompt.request
        if request is None or (course.checking.undecided and not course.prompt.rejected):
            return
        if not (yield from course.prompt.settling()):
            return
        refusal = course.prompt.refusal
        begun = course.prompt.begun() if refusal is None else ()
        if begun:  # what others find at the same time counts here, or this counts there
            course.state = State.RECALLING
            for each in begun:
                course.do(each)
            course.do(Recall(course.prompt.conversation.key))
            return
        refusal = refusal or (yield from course.prompt.outside.looking(course.prompt.judged))
        yield from self._noting(whatever=refusal is not None)
        if refusal is not None:
            course.refuse(refusal)
            return
        yield from course.prompt.remember_found()
        if course.prompt.naming.asks:
            course.state = State.NAMING
            course.do(course.prompt.naming.recall())
            return
        yield from self._forward(request)

    def _on_names(self, event: NamesKnown) -> Steps:
        """Write the prompt with the names that are known; keep those that are new before it is sent."""
        course = self._course
        request = course.prompt.request
        try:
            known = yield from course.prompt.naming.taking(event)
        except NamesUnreadable:
            known = False
        if not known or request is None:
            yield from self._on_names_failed(NamesFailed())
        else:
            yield from self._forward(request)

    def _on_names_kept(self, _: NamesKept) -> Steps:
        request = self._course.prompt.request
        if request is not None:
            self._course.prompt.naming.settle()
            yield from self._forward(request)

    def _on_names_failed(self, _: NamesFailed) -> Steps:
        """Let the fail mode decide: names that are not kept may mean somebody else in the next request."""
        course = self._course
        request = course.prompt.request
        if course.plan.fail_mode == "closed" or request is None:
            message = "what stands for personal data in this conversation can't be read or kept; try again"
            course.refuse(Refusal(503, "overloaded", message))
            return
        course.checking.degrade("names_not_kept")
        course.prompt.naming.settle()
        yield from self._forward(request)

    def _forward(self, request: Request) -> Steps:
        course = self._course
        try:
            body = yield from course.prompt.rendering(request)
        except WireError as error:
            course.refuse(course.prompt.unwritable(error))
            return
        keep = yield from course.prompt.naming.keeping()
        if keep is not None:
            course.state = State.NAMING
            course.do(keep)
            return
        course.state = State.FORWARDED
        course.upstream_open = True
        course.streaming = request.streaming
        course.assessment.read(request)
        most_chars = max(course.plan.scored_chars, MOST_CHARS if course.assessment.waits else 0)
        course.writer.telling = Spoken() if course.prompt.conversation.keeps and request.choices == 1 else None
        course.writer.heard = Heard(whole=course.plan.program.turns, most_chars=most_chars)
        course.do(ForwardRequest(body, request.streaming, course.prompt.outside.left_out))

    # --- the answer

    def _on_opened(self, event: UpstreamOpened) -> Steps | None:
        course = self._course
        if course.whole.turned and (event.streaming or event.status >= 400):
            return self._turning.stopping()
        course.status = event.status
        course.watch.heard()
        course.watch.sent()
        if event.streaming and event.status < 400:
            if not course.streaming and course.assessment.blocks and not self._lets_stream():
                return None
            course.state = State.STREAMING
            course.streaming = True
            course.do(StartStream())
            course.watch.begin_stream()
        else:
            course.state = State.WHOLE
            course.streaming = False
        return None

    def _lets_stream(self) -> bool:
        """Let the fail mode decide on a stream in the place of a whole answer: what has been sent can't be blocked."""
        course = self._course
        if course.plan.fail_mode == "open":
            course.checking.degrade("streamed_not_blocked")
            return True
        message = "the upstream streams an answer that was asked for whole, and this route blocks answers by their risk"
        course.fail("upstream_error", message)
        return False

    def _on_continued(self, event: UpstreamOpened) -> Steps | None:
        return self._turning.continued(status=event.status, streaming=event.streaming)

    def _on_stream_bytes(self, event: UpstreamBytes) -> Steps:
        return self._incoming.take_stream_bytes(event.data)

    def _on_stream_end(self, _: UpstreamClosed) -> Steps:
        return self._incoming.end_stream()

    def _on_whole_bytes(self, event: UpstreamBytes) -> None:
        self._incoming.take_whole_bytes(event.data)

    def _on_whole_end(self, _: UpstreamClosed) -> Steps:
        return self._incoming.end_whole()

    def _on_score(self, event: Scored | ScoringFailed) -> Steps:
        return self._ruling(self._course.checking.answered(event))

    def _ruling(self, judges: Iterable[Judge]) -> Steps:
        """Take the decisions that judges can take now that they need not wait for a score any more."""
        for count, judge in enumerate(judges, 1):
            if judge.stage is Stage.INGRESS:
                yield from self._course.prompt.ruling(judge)
            else:
                yield from self._course.decisions.deciding(judge)
                self._incoming.look_whether_cut_off()
            if count % _JUDGES_A_STEP == 0:  # short texts are asked about hundreds at a time, and most say nothing
                self._course.checking.meter.spend(_JUDGES_WORK)
                yield

    def _on_assessed(self, event: Assessed) -> Steps | None:
        course = self._course
        course.assessment.take(event)
        for name in event.failed:
            course.checking.degrade(f"not_assessed:{name}")
        course.state = State.CLOSING
        if course.streaming:
            self._leaving.close_stream()
            return None
        return course.checking.meter.stepping(self._leaving.delivering(), _WRITING_WORK)

    def _on_timer(self, event: TimerFired) -> Steps:
        return self._ruling(self._timers.rang(event.timer))

    # --- ends that nobody here has asked for

    def _on_upstream_failed(self, event: UpstreamFailed) -> None:
        course = self._course
        course.upstream_open = False
        if course.answer.turning is not None:
            return  # nothing more was wanted of it
        course.answer.may_turn = False
        if course.state is State.STREAMING and course.answer.terminated:
            course.checking.degrade("broken_behind_end")  # the answer is whole: an error behind its last word is none
            course.begin_closing(Ending("complete"))
            return
        course.ledger.upstream_failure = event.kind
        kind, message = event.told
        outcome = "overloaded" if event.kind == "room" else "upstream_failed"
        if course.state is State.STREAMING:
            course.break_off(Ending(outcome, (kind, message, None)))
        else:
            status = UPSTREAM_STATUS.get(event.kind, 502)
            course.reply(status, course.surface.error_body(kind, message), outcome, action=kind)

    def _on_draining(self, _: Draining) -> Steps | None:
        course = self._course
        course.cancel_upstream()
        if course.state is State.ASSESSING:
            return self._on_assessed(Assessed(failed=course.assessment.profiles))
        unfinished = course.state is not State.CLOSING or course.answer.turning is not None
        course.answer.may_turn = False
        course.answer.turning = None
        message = "the proxy is shutting down"
        if unfinished and course.streaming and course.state in {State.STREAMING, State.CLOSING}:
            course.break_off(Ending("drained", ("server_shutting_down", message, None)))
        elif unfinished:
            course.reply(503, course.surface.error_body("server_shutting_down", message), "drained")
        return None

    def _on_downstream_closed(self, _: DownstreamClosed) -> Steps:
        course = self._course
        course.cancel_upstream()
        course.answer.may_turn = False
        for choice in (*course.answer.choices.values(), course.answer.common):
            for judge in choice.judges:
                judge.holdback.end()
                yield from course.checking.advancing(judge)
                course.checking.meter.spent += CHANNEL_WORK
                yield
        yield from self._noting(whatever=True)
        course.close(self._leaving.delivered or "downstream_closed")

    # What each event means in each state; any other pair is ignored.
    _TRANSITIONS: ClassVar[Mapping[tuple[State, type], Callable[[Guard, Any], Steps | None]]] = {
        (State.NEW, RequestReceived): _on_request,
        (State.RECALLING, Recalled): _on_recalled,
        (State.NAMING, NamesKnown): _on_names,
        (State.NAMING, NamesKept): _on_names_kept,
        (State.NAMING, NamesFailed): _on_names_failed,
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
        **dict.fromkeys(((state, Scored) for state in RUNNING), _on_score),
        **dict.fromkeys(((state, ScoringFailed) for state in RUNNING), _on_score),
        **dict.fromkeys(((state, TimerFired) for state in RUNNING), _on_timer),
        **dict.fromkeys(((state, DownstreamClosed) for state in RUNNING), _on_downstream_closed),
        **dict.fromkeys(((state, Draining) for state in RUNNING), _on_draining),
    }
