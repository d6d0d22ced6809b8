"""The judges of one exchange, the scores that they wait for, and what they have decided.

Prompt and answer use the same `Checking`: it makes judges, asks classifiers for them, hands answers back to them and
notes what follows in the ledger.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain

import msgspec

from checkstream.core.channel.holdback import Check
from checkstream.core.channel.judge import Brief, Judge, Ruling
from checkstream.core.channel.page import Page
from checkstream.core.commands import AnyCommand, Decided, Degraded, Score, ShedRequests
from checkstream.core.events import Scored, ScoringFailed
from checkstream.core.exchange.closing import Closing, required
from checkstream.core.exchange.ledger import Ledger
from checkstream.core.exchange.meter import Meter, done
from checkstream.core.exchange.plan import BUDGET_CHARS, Plan
from checkstream.core.match.hidden import legible
from checkstream.core.policy.program import Program
from checkstream.core.terms import ANSWER_CHANNELS, Channel, ExchangeFacts, Stage, Verdict

MAX_UNDER_WAY = 8
"""Checks of one exchange that classifiers are asked at a time, a batch of theirs: a long answer that comes in one piece
must not fill their queue."""
_PRELUDE_CHARS = 512
"""Of an answer that goes on: text before it that patterns and classifiers read along."""
_MOST_TOKEN_CHARS = 128
_SLACK_S = 0.001
"""Timers of an event loop may fire this much early."""


_DECISIONS = 32
"""Decisions of one judge that are taken at a time."""
_RULING_WORK = 60
"""Of one decision that came to something (see `match.work`)."""


def is_token(text: str) -> bool:
    """Tell whether a text is a token, a number or a word of a protocol: classifiers read sentences."""
    return len(text) <= _MOST_TOKEN_CHARS and text.isascii() and len(text.split(None, 1)) <= 1


class _Ticket(msgspec.Struct, frozen=True):
    judge: Judge
    check: Check
    asked_at: float


class Checking:
    """What is being checked in one exchange."""

    def __init__(self, plan: Plan, digest: Callable[[str], str]) -> None:
        """Start with nothing to check.

        Args:
            plan: What the route asks for.
            digest: Keyed digest of a text, hex.
        """
        self.ledger = Ledger()
        self.now = 0.0
        """Time of the event that is being taken, seconds."""
        self.commands: list[AnyCommand] = []
        """What is to be done about that event, in order."""
        self.exchange = ExchangeFacts()
        """What policies know of the exchange; set once the request has been read, before any judge is made."""
        self._plan = plan
        self._digest = digest
        self._tickets: dict[int, _Ticket] = {}
        self._queue: deque[tuple[Judge, Check]] = deque()
        """Checks that are due and have not been asked yet."""
        self._next_ticket = 1
        self.meter = Meter(turn=plan.turn_work, budget=plan.work)
        """What the exchange has cost."""
        self.refused = False
        """A text that matters has not been read, since there is too much to do: the exchange can only end."""
        self._due: dict[int, float] = {}
        """Ticket -> when its budget ends, seconds; of those that cheaper detectors can decide then."""

    @property
    def program(self) -> Program:
        """The compiled policies."""
        return self._plan.program

    @property
    def refuses_parts(self) -> bool:
        """The route refuses what is not text."""
        return self._plan.parts == "refuse"

    def judge(
        self,
        channel: Channel,
        stage: Stage,
        *,
        grid: bool = True,
        asks: bool = True,
        seams: tuple[int, ...] = (),
        structured: bool = False,
        said: str = "",
    ) -> Judge:
        """Return a new judge for `channel`, with its followers.

        Args:
            channel: Which text it is.
            stage: The section of the policy that applies.
            grid: As `Judge` has it.
            asks: As `Judge` has it.
            seams: As `Judge` has them.
            structured: As `Judge` has it.
            said: What has been sent of the channel already, when it goes on.
        """
        prelude = said[-_PRELUDE_CHARS:]
        brief = Brief(
            program=self._plan.program,
            settings=self._plan.hold,
            fail_mode=self._plan.fail_mode,
            exchange=self.exchange,
            digest=self._digest,
            degrade=self.degrade,
        )
        before = said[: len(said) - len(prelude)]
        judge = Judge(
            channel,
            stage,
            brief,
            grid=grid,
            asks=asks,
            seams=seams,
            structured=structured,
            before=before,
            prelude=prelude,
        )
        judge.follow(stage, said=said)
        if stage is Stage.MIDSTREAM:
            judge.follow(Stage.EGRESS, said=said)
        self.ledger.judges += (judge, *judge.followers)
        return judge

    def page(self) -> Page:
        """Return a page for texts to the caller that belong to no channel: values are judged as an answer is."""
        program = self._plan.program
        return Page(
            None,
            program=program,
            scope=program.scope(Stage.MIDSTREAM, "content"),
            exchange=self.exchange,
            digest=self._digest,
            degrade=self.degrade,
        )

    def required(self) -> list[Closing]:
        """Return the texts that rules on the answer may ask for unless it has them."""
        program, page = self._plan.program, self.page()
        asked = {
            each: None
            for stage in (Stage.MIDSTREAM, Stage.EGRESS)
            for channel in ANSWER_CHANNELS
            for each in program.scope(stage, channel).requires
        }
        return [required(page.written(text, program.rules[rule])) for rule, text in asked]

    def ask(self, judge: Judge, checks: Iterable[Check]) -> None:
        """Ask the judge's classifiers about windows of its text, a few at a time."""
        for check in checks:
            if judge.channel.kind == "extra" and is_token(judge.holdback.text(check.window)):
                check.spared = True
                continue
            check.ticket = self._next_ticket
            self._next_ticket += 1
            self._queue.append((judge, check))
        self._go_on()

    def _go_on(self) -> None:
        """Ask what waits, as far as few enough are under way."""
        while self._queue and len(self._tickets) < MAX_UNDER_WAY:
            judge, check = self._queue.popleft()
            self._tickets[check.ticket] = _Ticket(judge, check, self.now)
            ingress = judge.stage is Stage.INGRESS
            text = legible(judge.holdback.text(check.window))
            deadline_ms = self._plan.ingress_deadline_ms if ingress else self._plan.check_deadline_ms
            if self._plan.on_exceeded == "degrade" and judge.degradable:
                self._due[check.ticket] = self.now + self._budget_ms(judge, check) / 1000
            self.commands.append(
                Score(
                    ticket=check.ticket,
                    classifiers=judge.asked,
                    text=text,
                    deadline_ms=deadline_ms,
                    ingress=ingress,
                    fresh_chars=check.position - check.fresh if judge.on_grid else 0,
                    open_chars=check.position - check.open if judge.on_grid else 0,
                )
            )

    def answered(self, event: Scored | ScoringFailed) -> Judge | None:
        """Note a classifier's answer; return the judge that goes on with it, None when nobody does."""
        ticket = self._tickets.pop(event.ticket, None)
        self._due.pop(event.ticket, None)
        if ticket is None:
            return None
        self._go_on()
        if isinstance(event, Scored):
            ticket.check.scores, ticket.check.entities = event.scores, event.entities
        else:
            ticket.check.failed = event.reason
            if event.reason == "overload":
                self._look_whether_refused(ticket)
        if (self.now - ticket.asked_at) * 1000 > self._budget_ms(ticket.judge, ticket.check):
            self.degrade("ingress_over_budget" if ticket.judge.stage is Stage.INGRESS else "check_over_budget")
            if self._plan.on_exceeded == "shed":
                self.commands.append(ShedRequests())
        return ticket.judge if not self.refused else None

    def _budget_ms(self, judge: Judge, check: Check) -> float:
        """Return what a check may take; a long prompt has more to read than a short one, and as much more time."""
        if judge.stage is not Stage.INGRESS:
            return self._plan.check_budget_ms
        chars = check.window.end - check.window.start
        return self._plan.ingress_budget_ms * max(1.0, chars / BUDGET_CHARS)

    @property
    def budget_left_ms(self) -> float | None:
        """Time until the first check passes its budget that can then be decided without its answer; None: no such."""
        due = min(self._due.values(), default=None)
        return None if due is None else max((due - self.now) * 1000, 0.0)

    def give_up_late(self) -> list[Judge]:
        """Wait no longer for checks over their budget that cheaper detectors can decide; return whose they were.

        Their answers, should they still come, find no ticket and change nothing.
        """
        late = [number for number, due in self._due.items() if due <= self.now + _SLACK_S]
        judges: dict[int, Judge] = {}
        for number in late:
            del self._due[number]
            ticket = self._tickets.pop(number)
            ticket.check.degraded = True
            judges[id(ticket.judge)] = ticket.judge
        self._go_on()
        return list(judges.values())

    @property
    def hold_left_ms(self) -> float | None:
        """Time until the first check has waited for too long; None: none waits."""
        first = next(iter(self._tickets.values()), None)
        return None if first is None else max((first.asked_at - self.now) * 1000 + self._plan.max_hold_ms, 0.0)

    def _look_whether_refused(self, ticket: _Ticket) -> None:
        """Note that a check was not answered since there is too much to do."""
        self.refused = self.refused or ticket.judge.leads or ticket.judge.changes
        ticket.check.failed = "overload"

    def give_up_waiting(self, *, whatever: bool = False) -> list[Judge]:
        """Take checks that have waited for too long, or `whatever` waits, as not answered; return whose they were."""
        latest = self.now + _SLACK_S - self._plan.max_hold_ms / 1000
        given_up = [number for number, ticket in self._tickets.items() if whatever or ticket.asked_at <= latest]
        left = [self._tickets.pop(number) for number in given_up]
        if whatever:
            left += [_Ticket(judge, check, self.now) for judge, check in self._queue]
            self._queue.clear()
        for ticket in left:
            self._due.pop(ticket.check.ticket, None)
            self._look_whether_refused(ticket)
        self._go_on()
        judges = {id(ticket.judge): ticket.judge for ticket in left}
        return list(judges.values()) if whatever or not self.refused else []

    def advance(self, judge: Judge) -> list[Ruling]:
        """Take the decisions that a judge can take now and note what they come to."""
        return done(self.advancing(judge))

    def advancing(self, judge: Judge) -> Generator[None, None, list[Ruling]]:
        """Take the decisions that a judge can take now, some at a time; return what they come to."""
        rulings = self.advance_some(judge)
        while judge.behind:
            yield
            rulings += self.advance_some(judge)
        return rulings

    def advance_some(self, judge: Judge) -> list[Ruling]:
        """Take some of the decisions that a judge can take now; `judge.behind` tells whether there may be more."""
        some = judge.advance(_DECISIONS)
        for ruling in some:
            self.ask(ruling.judge, ruling.checks)
            judge.behind = judge.behind or any(check.spared for check in ruling.checks)
            self.decided(ruling.outcome.verdicts)
            for reason in ruling.degraded:
                self.degrade(reason)
        if some or judge.followers:
            self.meter.spent += judge.take_work() + _RULING_WORK * len(some)
        return some

    def decided(self, verdicts: Sequence[Verdict]) -> None:
        """Note verdicts."""
        self.ledger.judged(verdicts)
        self.commands.extend(Decided(verdict) for verdict in verdicts)

    def degrade(self, reason: str) -> None:
        """Note that something was checked less or later; each reason once."""
        if self.ledger.degraded(reason):
            self.commands.append(Degraded(reason))

    @property
    def waiting(self) -> bool:
        """Classifiers still owe an answer."""
        return bool(self._tickets) or bool(self._queue)

    @property
    def pending(self) -> int:
        """How many answers classifiers owe."""
        return len(self._tickets) + len(self._queue)

    @property
    def undecided(self) -> bool:
        """Classifiers still owe an answer that can change what is forwarded or sent."""
        judges = chain((ticket.judge for ticket in self._tickets.values()), (judge for judge, _ in self._queue))
        return any(judge.leads or judge.changes for judge in judges)  # nearly always the first

    def forget(self, judges: Sequence[Judge]) -> None:
        """Drop what was asked for these judges and can no longer matter to them."""
        for number, ticket in list(self._tickets.items()):
            if ticket.judge in judges and not ticket.judge.holdback.expects(ticket.check):
                del self._tickets[number]
                self._due.pop(number, None)
        kept = [(judge, check) for judge, check in self._queue if judge not in judges or judge.holdback.expects(check)]
        self._queue = deque(kept)
        self._go_on()

    def close(self) -> None:
        """Wait for nothing any more."""
        self._tickets.clear()
        self._queue.clear()
        self._due.clear()
