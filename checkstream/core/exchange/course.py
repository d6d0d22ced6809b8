"""Where one exchange stands: the parts that it is made of, what has happened, and how it comes to its end.

Nothing here waits or looks ahead: `guard` says when.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable

import msgspec

from checkstream.core.commands import (
    AnyCommand,
    CancelUpstream,
    ConfirmationWanted,
    Enqueue,
    Observe,
    Record,
    Reply,
)
from checkstream.core.exchange.assessment import Assessment
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.prompt import Prompt
from checkstream.core.exchange.ingress.refusal import NO_VERDICTS, Refusal
from checkstream.core.exchange.meter import Steps
from checkstream.core.exchange.midstream.answer import Answer
from checkstream.core.exchange.midstream.blocks import Blocks
from checkstream.core.exchange.midstream.decisions import Decisions
from checkstream.core.exchange.midstream.endings import Endings
from checkstream.core.exchange.midstream.intake import Intake
from checkstream.core.exchange.midstream.whole import WholeAnswer
from checkstream.core.exchange.plan import Plan
from checkstream.core.exchange.watch import Watch
from checkstream.core.policy.program import RuleMeta
from checkstream.core.terms import Channel
from checkstream.core.wire.surface import Surface

CHARS_PER_TOKEN = 4
"""For estimates of usage only: English text in common vocabularies."""


class State(enum.Enum):
    """Where an exchange stands."""

    NEW = enum.auto()
    RECALLING = enum.auto()
    INGRESS = enum.auto()
    NAMING = enum.auto()
    FORWARDED = enum.auto()
    STREAMING = enum.auto()
    WHOLE = enum.auto()
    CLOSING = enum.auto()
    ASSESSING = enum.auto()
    CLOSED = enum.auto()


RUNNING = (
    State.RECALLING, State.INGRESS, State.NAMING, State.FORWARDED, State.STREAMING, State.WHOLE, State.CLOSING,
    State.ASSESSING,
)  # fmt: skip


class Ending(msgspec.Struct, frozen=True):
    """Why a stream is closing and what the caller is still told."""

    outcome: str
    error: tuple[str, str, str | None] | None = None
    """Kind and message of an error event, and the rule that it is about."""
    terminate: bool = False
    """Policy has cut the upstream off: usage and terminator are ours to send."""


class Course:
    """The parts of one exchange and its state. INVARIANT: `Record` comes once, when the state becomes CLOSED."""

    def __init__(self, *, surface: Surface, plan: Plan, digest: Callable[[str], str], stream: str) -> None:
        """Start before the request; see `Guard` for the arguments."""
        self.stream = stream
        self.state = State.NEW
        self.surface = surface
        self.plan = plan
        self.checking = Checking(plan, digest)
        self.ledger = self.checking.ledger
        self.prompt = Prompt(surface, plan, self.checking)
        self.answer = Answer(surface, self.prompt, self.checking)
        self.outbox = self.answer.outbox
        self.writer = self.answer.writer
        self.decisions = Decisions(self.answer, self.prompt, self.checking)
        self.endings = Endings(self.answer, self.decisions, self.prompt, self.checking)
        self.intake = Intake(self.answer, self.decisions, self.endings, self.prompt, self.checking)
        self.whole = WholeAnswer(surface, self.outbox, self.writer, self.answer.choices)
        self.assessment = Assessment(plan)
        self.watch = Watch(plan, self.checking)
        self.blocks = Blocks()
        """Of the upstream's answer, as far as they wait for each other."""
        self.status = 200
        """Of the upstream's answer."""
        self.streaming = False
        """The answer is, or is expected to be, an event stream."""
        self.upstream_open = False
        self.given = False
        """The caller has got some of the answer, or is about to."""
        self.ending: Ending | None = None
        self.closing: deque[Steps] = deque()
        """What is left to do about the channels of an answer that is closing."""

    def close_channels(self) -> Steps:
        """End the channels of an answer that is closing, if it is; nothing is told of its end before that."""
        while self.closing:
            yield from self.closing.popleft()

    @property
    def bytes_held(self) -> int:
        """Bytes of events that wait: for decisions, or for other blocks."""
        return self.outbox.bytes_held + self.blocks.held

    @property
    def ended_badly(self) -> bool:
        """It is closing with an error."""
        return self.ending is not None and self.ending.error is not None

    @property
    def now(self) -> float:
        """Time of the event that is being taken, seconds."""
        return self.checking.now

    def do(self, command: AnyCommand) -> None:
        """Have something done, after all that was asked for before."""
        self.checking.commands.append(command)

    @property
    def holds_end(self) -> bool:
        """Something is to be said before the answer's last word."""
        if self.assessment.waits or self.state is State.ASSESSING:
            return True
        return self.answer.terminated and self.plan.tells and self.ledger.tells

    @property
    def members(self) -> dict[str, msgspec.Raw]:
        """What the reply carries besides the answer: what evidence says of it, and what rules have done to it."""
        members = dict(self.assessment.members)
        if not self.plan.tells:
            return members
        halts = (choice.halt for _, choice in sorted(self.answer.choices.items()) if choice.halt is not None)
        told = self.ledger.told(self.stream, next((halt.rule for halt in halts), None))
        if told is not None:
            members["checkstream"] = _joined(members.get("checkstream"), told)
        return members

    def cancel_upstream(self) -> None:
        """Want nothing more of the upstream."""
        if self.upstream_open:
            self.upstream_open = False
            self.do(CancelUpstream())

    def refuse(self, refusal: Refusal) -> None:
        """Answer the prompt with a refusal, and close."""
        action = "reject" if refusal.confirm is None else "require_confirmation"
        by_policy = refusal.kind in {"request_blocked", "request_needs_confirmation"}
        outcome = refusal.kind if refusal.kind in NO_VERDICTS else "refused" if by_policy else "invalid"
        if outcome != "overloaded":
            self.ledger.carried_out(action)
        self.reply(
            refusal.status,
            self.surface.error_body(refusal.kind, refusal.message, refusal.rule_id, refusal.param),
            outcome,
            action=outcome if refusal.kind in NO_VERDICTS else action,
            retry=False if by_policy else None,
            confirm=refusal.confirm,
        )

    def begin_closing(self, ending: Ending) -> None:
        """Have every channel ended (see `close_channels`): the rest of the stream leaves when all of it is decided."""
        self.ending = ending
        self.state = State.CLOSING
        if ending.error is not None:
            self.answer.may_turn = False
        self.closing.append(self.endings.ending())

    def break_off(self, ending: Ending) -> None:
        """End every channel before what is not decided: nobody will come to know what it is."""
        self.closing.append(self.endings.giving_up())
        self.begin_closing(ending)

    def fail(self, kind: str, message: str) -> None:
        """End the exchange because the answer can't be read or passes a cap: never a silent end."""
        self.ledger.upstream_failure = kind
        self._end_by(Ending("failed", (kind, message, None)), 502)

    def cannot_be_checked(self) -> bool:
        """End the exchange if classifiers are too busy for it, or broken; tell whether it ends."""
        if self.state is State.CLOSED or self.ended_badly:
            return False
        if self.checking.refused:
            self._overload()
        elif self.answer.failed is not None:
            self._meet_fail_mode(self.answer.failed)
        else:
            return False
        return True

    def _meet_fail_mode(self, rule: RuleMeta) -> None:
        """End the exchange because a detector is broken that a rule must have: its fail mode is closed."""
        self.ledger.carried_out("stop")
        self.outbox.breaks_off = True
        message = f"a detector of rule {rule.id} failed, so the answer can't be checked; try again"
        self._end_by(Ending("detector_failed", ("detector_failed", message, rule.id)), 503)

    def exceed_work(self) -> None:
        """End the exchange because it takes more work than one may, and the fail mode is closed."""
        message = (
            f"takes more than the {self.plan.work // 1000} ms of work that one exchange may take; send less at a time"
        )
        if self.state in {State.NEW, State.RECALLING, State.INGRESS, State.NAMING}:
            self.refuse(Refusal(413, "work_exceeded", f"checking the prompt {message}"))
            return
        self.ledger.carried_out("stop")
        self._end_by(Ending("work_exceeded", ("work_exceeded", f"checking the answer {message}", None)), 502)

    def _overload(self) -> None:
        """End the exchange because something in it has waited for too long: what has been cleared still leaves."""
        message = "checks take too long at present; try again in a moment"
        if self.state is State.INGRESS:
            self.refuse(Refusal(503, "overloaded", message))
            return
        self.outbox.breaks_off = True
        self.closing.append(self.endings.leaving_undecided())
        self._end_by(Ending("overloaded", ("overloaded", message, None)), 503)

    def _end_by(self, ending: Ending, status: int) -> None:
        self.cancel_upstream()
        self.answer.may_turn = False
        self.answer.turning = None
        if self.streaming and self.state is not State.FORWARDED:
            self.break_off(ending)
        elif ending.error is not None:
            self.reply(status, self.surface.error_body(*ending.error), ending.outcome, action=ending.error[0])

    def reply(
        self,
        status: int,
        body: bytes,
        outcome: str,
        *,
        action: str = "allow",
        retry: bool | None = None,
        confirm: ConfirmationWanted | None = None,
    ) -> None:
        """Answer with one whole response, and close."""
        retry_after_s = 1 if status == 503 else None
        self.do(Reply(status, body, action=action, retry=retry, retry_after_s=retry_after_s, confirm=confirm))
        self.close(outcome)

    def close(self, outcome: str) -> None:
        """Write the record: nothing follows."""
        self.checking.close()
        self.watch.end()
        self._look_whether_scored(stopped=outcome == "stopped")
        remembered = self.prompt.remembered(outcome, self.writer.telling)
        record = self.ledger.record(
            surface=self.surface.name,
            streaming=self.streaming,
            outcome=outcome,
            program=self.plan.program,
            prompt_chars=self.prompt.chars,
            released_chars=self.writer.sent_chars,
            risks=self.assessment.risks,
            register=self.checking.register,
            conversation=self.prompt.conversation.record(self.ledger),
        )
        self.do(Observe("tokens_in", -(-record.prompt_chars // CHARS_PER_TOKEN)))
        self.do(Observe("tokens_out", -(-record.released_chars // CHARS_PER_TOKEN)))
        for each in remembered:
            self.do(each)
        request = self.prompt.request
        self.do(Record(record, "" if request is None else request.model))
        self.state = State.CLOSED

    def _look_whether_scored(self, *, stopped: bool) -> None:
        """Have what the caller has got scored, whole or not: of a part, too, the reader believes what it says."""
        if not self.plan.scored_chars or not self.given:
            return
        heard = self.writer.heard
        answers = heard.answers
        if heard.too_long or sum(map(len, answers.values())) > self.plan.scored_chars:
            self.checking.degrade("answer_too_long_to_score")
        elif answers:
            dialogue = self.prompt.dialogue(answers)
            if stopped:
                judges = {number: self.answer.judges.get(Channel("content", number)) for number in answers}
                ages = {number: judge.arrivals.ages for number, judge in judges.items() if judge is not None}
                dialogue = msgspec.structs.replace(dialogue, ages=ages)
            self.do(Enqueue(dialogue))


def _joined(said: msgspec.Raw | None, told: msgspec.Raw) -> msgspec.Raw:
    """Return two JSON objects as one: what evidence says of an answer stands beside what rules have done to it."""
    known = msgspec.json.decode(said) if said is not None else None
    if not isinstance(known, dict):
        return told
    return msgspec.Raw(msgspec.json.encode({**known, **msgspec.json.decode(told)}))
