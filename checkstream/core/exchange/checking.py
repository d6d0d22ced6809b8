"""The judges of one exchange, the scores that they wait for, and what they have decided.

Prompt and answer use the same `Checking`: it makes judges, asks classifiers for them, hands answers back to them and
notes what follows in the ledger.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence

import msgspec

from checkstream.core.channel.brief import Brief, Manner
from checkstream.core.channel.checks import Check
from checkstream.core.channel.judge import Judge, Ruling
from checkstream.core.channel.page import Page
from checkstream.core.commands import AnyCommand, Decided, Degraded, Score, ShedRequests
from checkstream.core.events import Scored, ScoringFailed
from checkstream.core.exchange.closing import Closing, required
from checkstream.core.exchange.ledger import Ledger
from checkstream.core.exchange.meter import Meter, Steps, done
from checkstream.core.exchange.plan import BUDGET_CHARS, Plan
from checkstream.core.exchange.queued import Question, Queue
from checkstream.core.exchange.quiet import Quiet
from checkstream.core.policy.program import Program
from checkstream.core.pseudonyms.register import Register
from checkstream.core.steps import dropping
from checkstream.core.terms import ANSWER_CHANNELS, Channel, ExchangeFacts, Stage, Verdict
from checkstream.core.wire.surface import Request

MAX_UNDER_WAY = 8
"""Checks of one exchange that classifiers are asked at a time, a batch of theirs: a long answer that comes in one piece
must not fill their queue."""
_JOINED_CHARS = 400
"""Of short texts that are asked about together: what a window of a model holds."""
_PRELUDE_CHARS = 512
"""Of an answer that goes on: text before it that patterns and classifiers read along."""
_MOST_TOKEN_CHARS = 128
_SLACK_S = 0.001
"""Timers of an event loop may fire this much early."""


_DECISIONS = 32
"""Decisions of one judge that are taken at a time."""
_RULING_WORK = 60
"""Of one decision that came to something (see `match.work`)."""
_GIVEN_UP_A_STEP, _GIVING_UP_WORK = 512, 400
"""Questions that are given up at a time, and what that costs."""
_JUDGES_A_STEP, _VALUES_A_STEP = 64, 768
_FORGETTING_WORK = 500
"""Of forgetting so many judges, or so many texts and values."""


def is_token(text: str) -> bool:
    """Tell whether a text is a token, a number or a word of a protocol: classifiers read sentences."""
    return len(text) <= _MOST_TOKEN_CHARS and text.isascii() and len(text.split(None, 1)) <= 1


class _Asked(msgspec.Struct, frozen=True):
    question: Question
    at: float
    until: float
    """When it has waited for too long."""


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
        self.register = Register()
        """What stands for which value of the prompt."""
        self.quiet: Quiet | None = None
        """What was found in texts of the caller before; None: nobody remembers."""
        self._plan = plan
        self.digest = digest
        """Keyed digest of a text, hex."""
        self.together = False
        """There are so many texts that short ones are asked about together. What comes of them is what would come of
        one text that they were parts of: a score below all thresholds counts for each, else each is asked about."""
        self._gathered: list[tuple[Judge, Check]] = []
        """Short ones that the next question is about."""
        self._tickets: dict[int, _Asked] = {}
        self._queue = Queue()
        """What is to be asked and has not been yet."""
        self._next_ticket = 1
        self.meter = Meter(turn=plan.turn_work, budget=plan.work)
        """What the exchange has cost."""
        self.left: list[object] = []
        """What is forgotten at the end (see `forgetting`): lists and objects, whose entries nobody else keeps then."""
        self.refused = False
        """A text that matters has not been read, since there is too much to do: the exchange can only end."""
        self._heard: set[str] = set()
        """Names of classifiers that have answered something."""
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

    def judge(self, channel: Channel, stage: Stage, manner: Manner, *, said: str = "", followed: bool = True) -> Judge:
        """Return a new judge for `channel`.

        Args:
            channel: Which text it is.
            stage: The section of the policy that applies.
            manner: How it is read.
            said: Has been sent of it already, when it goes on.
            followed: With its followers; else they have nothing to do.
        """
        prelude = said[-_PRELUDE_CHARS:]
        before = said[: len(said) - len(prelude)]
        judge = Judge(channel, stage, self._brief(), manner, before=before, prelude=prelude)
        if manner.scope is None and followed:
            judge.follow(stage, said=said)
        if stage is Stage.MIDSTREAM:
            judge.follow(Stage.EGRESS, said=said)
        self.ledger.judges += (judge, *judge.followers)
        return judge

    def most_held_of(self, kinds: Iterable[str]) -> int:
        """Return how many bytes of an answer's texts of these kinds may wait to be whole; 0: no rule edits them."""
        scopes = [self._plan.program.scope(Stage.MIDSTREAM, kind) for kind in kinds]
        return self._plan.call_bytes if any(scope.held for scope in scopes) else 0

    def page(self) -> Page:
        """Return a page for texts to the caller that belong to no channel: values are judged as an answer is."""
        return Page(None, self._brief(), self._plan.program.scope(Stage.MIDSTREAM, "content"))

    def _brief(self) -> Brief:
        """Return what all judges of the exchange share, once what policies know of it is known."""
        return Brief(
            program=self._plan.program,
            settings=self._plan.hold,
            fail_mode=self._plan.fail_mode,
            exchange=self.exchange,
            digest=self.digest,
            degrade=self.degrade,
            clock=self,
            register=self.register,
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
            check.owed += 1
            if self.together and judge.joinable and check.window.end - check.window.start <= _JOINED_CHARS:
                self._gather(judge, check)
            else:
                self._queue.put(self._question((judge, check)))
        self._go_on()

    def ask_besides(self, judge: Judge, check: Check, text: str) -> None:
        """Ask about a text that stands encoded in a judge's text, too; the highest scores count."""
        check.owed += 1
        self._queue.put(self._question((judge, check), besides=text))
        self._go_on()

    def _question(self, *about: tuple[Judge, Check], besides: str | None = None) -> Question:
        self._next_ticket += 1
        return Question(self._next_ticket - 1, about, besides)

    def _gather(self, judge: Judge, check: Check) -> None:
        """Put a short text to those before it; ask about them first if it is of another kind, or one too many."""
        chars = sum(other.window.end - other.window.start + 1 for _, other in self._gathered)
        full = chars + check.window.end - check.window.start > _JOINED_CHARS
        if self._gathered and (full or self._gathered[0][0].asked != judge.asked):
            self.ask_gathered()
        self._gathered.append((judge, check))

    def ask_gathered(self) -> None:
        """Ask about the short texts that have come."""
        if self._gathered:
            self._queue.put(self._question(*self._gathered))
            self._gathered = []
            self._go_on()

    def _go_on(self) -> None:
        """Ask what waits, as far as few enough are under way."""
        while self._queue and len(self._tickets) < MAX_UNDER_WAY:
            question = self._queue.take()
            until = self.now + self._plan.hold_ms(question.chars) / 1000
            self._tickets[question.ticket] = _Asked(question, self.now, until)
            judge, check = question.about[0]
            ingress = judge.stage is Stage.INGRESS
            deadline_ms = self._plan.ingress_deadline_ms if ingress else self._plan.check_deadline_ms
            if self._plan.on_exceeded == "degrade" and all(each.degradable for each in question.judges):
                self._due[question.ticket] = self.now + self._budget_ms(question) / 1000
            texts = question.texts
            self.commands.append(
                Score(
                    ticket=question.ticket,
                    classifiers=judge.asked,
                    text="\n".join(texts),
                    deadline_ms=deadline_ms,
                    ingress=ingress,
                    fresh_chars=check.position - check.fresh if judge.manner.grid else 0,
                    open_chars=check.position - check.open if judge.manner.grid else 0,
                    parts=tuple(map(len, texts)) if len(texts) > 1 else (),
                )
            )

    def asker(self, ticket: int) -> Judge | None:
        """Return the one judge that a question is asked for; None: there are several, or nobody waits for it."""
        asked = self._tickets.get(ticket)
        about = asked.question.about if asked is not None else ()
        return about[0][0] if len(about) == 1 else None

    def answered(self, event: Scored | ScoringFailed) -> list[Judge]:
        """Note a classifier's answer; return the judges that go on with it."""
        asked = self._tickets.pop(event.ticket, None)
        self._due.pop(event.ticket, None)
        if asked is None:
            return []
        about, judges = asked.question.about, asked.question.judges
        self._heard.update(judges[0].asked)
        if len(about) > 1 and isinstance(event, Scored) and not all(judge.unmoved(event.scores) for judge in judges):
            self._queue.put_first([self._question(pair) for pair in about])
            self._go_on()
            return []
        self._go_on()
        for judge, check in about:
            if isinstance(event, Scored):
                check.hear(event.scores, event.entities if asked.question.besides is None else check.entities)
            else:
                check.failed = event.reason
                if event.reason == "overload":
                    self._look_whether_refused(judge)
        took_s = self.now - asked.at
        self.ledger.checked_s = max(self.ledger.checked_s, took_s)
        if took_s * 1000 > self._budget_ms(asked.question):
            self.degrade("ingress_over_budget" if judges[0].stage is Stage.INGRESS else "check_over_budget")
            if self._plan.on_exceeded == "shed":
                self.commands.append(ShedRequests())
        return judges if not self.refused else []

    def _budget_ms(self, question: Question) -> float:
        """Return what a check may take; a long prompt has more to read than a short one, and as much more time."""
        if question.about[0][0].stage is not Stage.INGRESS:
            return self._plan.check_budget_ms
        return self._plan.ingress_budget_ms * max(1.0, question.chars / BUDGET_CHARS)

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
            for judge, check in self._tickets.pop(number).question.about:
                check.degraded = True
                judges[id(judge)] = judge
        self._go_on()
        return list(judges.values())

    @property
    def hold_left_ms(self) -> float | None:
        """Time until some check may have waited for too long; None: none waits."""
        if not self._tickets:
            return None
        first = min(asked.until for asked in self._tickets.values())
        # No later than the least that a check may wait for: one of a shorter text can still join those that wait.
        return min(max((first - self.now) * 1000, 0.0), self._plan.max_hold_ms)

    def _look_whether_refused(self, judge: Judge) -> None:
        """Look whether the exchange can go on without a check of a judge, for which there was too much to do."""
        self.refused = self.refused or judge.leads or judge.changes

    def give_up_waiting(self) -> list[Judge]:
        """Take checks that have waited for too long as not answered; return whose they were."""
        late = [number for number, asked in self._tickets.items() if asked.until <= self.now + _SLACK_S]
        judges: dict[int, Judge] = {}
        for number in late:
            self._due.pop(number, None)
            self._give_up(self._tickets.pop(number).question, judges)
        self._go_on()
        return list(judges.values()) if not self.refused else []

    def giving_up(self) -> Generator[None, None, list[Judge]]:
        """Take all checks that wait as not answered, in steps: a long text has many; return whose they were."""
        runs = [deque(asked.question for asked in self._tickets.values()), *self._queue.take_all()]
        self._tickets.clear()
        self._due.clear()
        judges: dict[int, Judge] = {}
        count = 0
        for questions in runs:
            while questions:
                self._give_up(questions.popleft(), judges)
                count += 1
                if count % _GIVEN_UP_A_STEP == 0:
                    self.meter.spend(_GIVING_UP_WORK)
                    yield
        return list(judges.values())

    def _give_up(self, question: Question, judges: dict[int, Judge]) -> None:
        """Take a question as not answered, and note whose it was."""
        for judge, check in question.about:
            check.failed = "overload"
            self._look_whether_refused(judge)
            judges[id(judge)] = judge

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
            if ruling.outcome.verdicts:
                self.decided([self._told(ruling.judge, each) for each in ruling.outcome.verdicts])
            for reason in ruling.degraded:
                self.degrade(reason)
        if some or judge.followers or judge.behind:
            self.meter.spent += judge.take_work() + _RULING_WORK * len(some)
        return some

    def _told(self, judge: Judge, verdict: Verdict) -> Verdict:
        """Return a verdict with what is told of it besides: how long it took, and which model has scored."""
        latency_ms = round(judge.took_s(verdict) * 1000, 3) or msgspec.UNSET
        model = verdict.model
        if model is not msgspec.UNSET:
            model = self._plan.models.get(model, model)
        elif latency_ms is msgspec.UNSET:
            return verdict
        return msgspec.structs.replace(verdict, latency_ms=latency_ms, model=model)

    def decided(self, verdicts: Sequence[Verdict]) -> None:
        """Note verdicts."""
        self.ledger.judged(verdicts)
        self.commands.extend(Decided(verdict) for verdict in verdicts)

    def degrade(self, reason: str) -> None:
        """Note that something was checked less or later; each reason once."""
        if self.ledger.degraded(reason):
            self.commands.append(Degraded(reason))

    def keep_request(self, request: Request) -> None:
        """Keep what a request is made of, however soon others forget it."""
        self.left += (list(request.unit.deltas), request.members)

    def forgetting(self) -> Steps:
        """Forget, in steps, what was read and judged: as much as came in many steps takes long if it goes in one."""
        for count, judge in enumerate(self.ledger.gone, 1):
            self.left += judge.holdback.checks.memory
            if count % _VALUES_A_STEP == 0:
                self.meter.spend(_FORGETTING_WORK)
                yield
        yield from self.meter.stepping(dropping(self.left, _VALUES_A_STEP), _FORGETTING_WORK)
        yield from self.meter.stepping(dropping(self.ledger.gone, _JUDGES_A_STEP), _FORGETTING_WORK)

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
        return any(judge.leads or judge.changes for judge in self._owed())  # nearly always the first

    def _owed(self) -> Iterator[Judge]:
        """Yield the judges that classifiers owe an answer, each once at least."""
        for asked in self._tickets.values():
            yield from asked.question.judges
        yield from self._queue.judges()

    def forget(self, judges: Sequence[Judge]) -> None:
        """Drop what was asked for these judges and can no longer matter to them."""
        for number, asked in list(self._tickets.items()):
            if not asked.question.matters(judges):
                del self._tickets[number]
                self._due.pop(number, None)
        self.left += self._queue.forget(judges)
        self._go_on()

    def close(self) -> None:
        """Wait for nothing any more; what was to be asked at this event is not asked."""
        owing = {name for judge in self._owed() for name in judge.asked}
        self.ledger.unheard |= owing - self._heard
        self.commands = [command for command in self.commands if not isinstance(command, Score)]
        self._tickets.clear()
        self.left += self._queue.take_all()
        self._due.clear()


def some_together(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts, short ones together, as they are asked about."""
    lines: list[str] = []
    chars = 0
    for text in texts:
        if lines and chars + len(text) > _JOINED_CHARS:
            yield "\n".join(lines)
            lines, chars = [], 0
        lines.append(text)
        chars += len(text)
    if lines:
        yield "\n".join(lines)
