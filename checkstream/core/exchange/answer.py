"""The answer of one exchange: its choices and channels, what rules do to them, and the queue to the caller."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TypeVar

import msgspec

from checkstream.core.channel.actions import Halt, Pivot, refused_call
from checkstream.core.channel.checks import EVERYTHING, Check
from checkstream.core.channel.execution import NOT_ADDED
from checkstream.core.channel.judge import Judge, Ruling
from checkstream.core.exchange.calls import Calls
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.choice import Choice
from checkstream.core.exchange.closing import Closing, Said, closing_of
from checkstream.core.exchange.meter import DONE, FEED_WORK, FEW_CHARS, Steps
from checkstream.core.exchange.outbox import Outbox
from checkstream.core.exchange.prompt import Prompt
from checkstream.core.exchange.sieve import Sieve
from checkstream.core.exchange.waiting import CALL, Part, Waiting
from checkstream.core.exchange.writer import Writer
from checkstream.core.policy.program import RuleMeta
from checkstream.core.terms import COMMON, Channel, Delta, Span, Stage, Unit
from checkstream.core.wire.json_spans import Path
from checkstream.core.wire.surface import Surface

_Result = TypeVar("_Result")
_SPOKEN = ("reasoning", "content", "refusal")
_RULINGS = 128
"""That are carried out in one step."""
_CHANNEL_WORK = 60
"""Of beginning a channel, and of ending it (see `match.work`)."""


def _place(judge: Judge) -> tuple[int, int, int]:
    """Return where a channel stands in a message: models think, then speak, then call tools; extras last."""
    channel = judge.channel
    if channel.kind in _SPOKEN:
        return _SPOKEN.index(channel.kind), channel.index, 0
    if channel.kind == "extra":
        return len(_SPOKEN) + 1, channel.index, 0
    return len(_SPOKEN), channel.index, channel.kind == "tool_arguments"


def _leaves_half_an_object(choice: Choice, judge: Judge | None, halt: Halt) -> bool:
    """Tell whether content of a choice that is JSON breaks off where a rule ends it."""
    return any(
        each.channel.kind == "content"
        and each.is_json
        and (halt.position if each is judge else each.holdback.received) > 0
        for each in choice.judges
    )


class Answer:
    """What the upstream has answered so far, streamed or whole."""

    def __init__(self, surface: Surface, prompt: Prompt, checking: Checking) -> None:
        """Start before the first unit.

        Args:
            surface: Writes what is edited.
            prompt: Its rules may put disclaimers around every choice.
            checking: Makes judges and asks classifiers.
        """
        self.choices: dict[int, Choice] = {}
        self.common = Choice()
        """What belongs to no choice."""
        self.judges: dict[Channel, Judge] = {}
        self._paths: dict[Channel, Path] = {}
        """Where the latest text of each channel stood."""
        self._prefixes: list[str] = []
        self.writer = Writer(surface, self.choices, self._prefixes)
        self.outbox = Outbox(self.writer, self.choices)
        self.terminated = False
        """The upstream has sent its terminator."""
        self.cut_off = False
        """A rule has ended the last choice that ran: nothing more is wanted of the upstream."""
        self.turning: Pivot | None = None
        """The upstream is to be cut off and asked to go on from here, once all before it has been sent."""
        self.turned_down = False
        """A rule has ended it before the place where it was to turn: of what stands behind that nothing is sent."""
        self.may_turn = True
        """The upstream can still be asked to go on."""
        self.failed: RuleMeta | None = None
        """A detector of this rule is broken, and its fail mode is closed."""
        self.first_text_at: float | None = None
        self.sieve = Sieve(surface, prompt, checking, choices=self.choices, judges=self.judges)
        self._calls = Calls(prompt, checking)
        self._surface = surface
        self._prompt = prompt
        self._checking = checking

    @property
    def stopped(self) -> bool:
        """A rule has ended a choice."""
        return any(choice.halt is not None for choice in (*self.choices.values(), self.common))

    @property
    def refused_whole(self) -> Halt | None:
        """The stop that makes an error of the whole answer, when it is not streamed: the first that has a status."""
        choices = (*(choice for _, choice in sorted(self.choices.items())), self.common)
        halts = (choice.halt for choice in choices if choice.halt is not None)
        return next((halt for halt in halts if halt.status is not None), None)

    @property
    def running(self) -> bool:
        """A choice still runs that neither the upstream nor a rule has ended."""
        request = self._prompt.request
        wanted = request.choices if request is not None else 1
        begun = sum(number < wanted for number in self.choices)
        return begun < wanted or any(choice.running for choice in self.choices.values())

    @property
    def settled(self) -> bool:
        """Every channel has ended and been decided."""
        return all(judge.holdback.settled for judge in self.judges.values())

    def take(self, unit: Unit) -> Steps:
        """Give a unit's text to its channels, put the unit in the queue, take the decisions that it allows."""
        ledger = self._checking.ledger
        for number in unit.choices:
            if number not in self.choices:
                self._begin(number)
                yield
        self._look_whether_at_once(unit)
        due: list[tuple[Judge, list[Check]]] = []
        parts = yield from self._take_deltas(unit, due)
        for name in unit.unscanned:
            ledger.unscanned(f"midstream:{name}")
        if unit.failure is not None:
            ledger.upstream_failure = ledger.upstream_failure or "error_event"
        called = self.outbox.calls_whole and any(self._is_calling(number) for number in unit.choices)
        self.outbox.put(Waiting(unit, parts, self._checking.now, called))
        yield from self._go_on_with(due)
        for judge in self.sieve.extras.passed(unit):
            yield from self._let_go(judge)
        if self.turning is not None:
            return
        for number in unit.finished:
            yield from self._finish(number, due, unit.broken.get(number))
        if unit.terminator:
            self.terminated = True
            yield from self.ending()

    def take_more(self, unit: Unit) -> Iterable[None] | None:
        """Take the common unit, which has more of one short text and nothing else, as `take` does.

        Returns:
            What is left to do, mostly `DONE`; None: it is another unit, and nothing was done.
        """
        if len(unit.deltas) != 1 or len(unit.choices) != 1 or unit.finished or self.sieve.extras.has_open:
            return None
        delta = unit.deltas[0]
        channel = delta.channel
        judge = self.judges.get(channel)
        if judge is None or channel.kind in CALL or channel.kind == "extra" or judge.holdback.ended:
            return None
        choice = self.choices[channel.choice]
        latest = self._paths[channel]
        if not choice.running or (latest is not delta.path and latest[2:] != delta.path[2:]):
            return None
        if len(delta.text) > FEW_CHARS:
            return None
        start = judge.holdback.received
        checking = self._checking
        checks = judge.feed(delta.text)
        checking.meter.spent += FEED_WORK + judge.take_work()
        self._paths[channel] = delta.path
        if self.first_text_at is None:
            self.first_text_at = checking.now
        called = bool(choice.calls) and self.outbox.calls_whole
        self.outbox.put(Waiting(unit, (Part(judge, start, judge.holdback.received),), checking.now, called))
        if checks:
            self._ask(judge, checks)
        rulings = checking.advance_some(judge)
        if rulings or judge.behind:
            return self._carrying_out(judge, rulings)
        choice.trailing += judge.take_trailing()
        return DONE

    def _look_whether_at_once(self, unit: Unit) -> None:
        """Note the choices of which all comes in this unit: they are decided at their end, channel after channel."""
        for number in unit.finished:
            choice = self.choices[number]
            if choice.running:
                choice.at_once = all(judge.holdback.received == judge.prelude for judge in choice.judges)

    def _is_calling(self, number: int) -> bool:
        """Tell whether a choice has begun to call a tool, and goes on."""
        choice = self.choices[number]
        return bool(choice.calls) and choice.running

    def _is_at_once(self, judge: Judge) -> bool:
        return self._choice(judge.channel.choice).at_once

    def _let_go(self, judge: Judge) -> Steps:
        """Hold a text no longer for what may follow."""
        self._ask(judge, (yield from self._worked(judge, judge.letting_go())))
        yield from self.ruling(judge)
        yield

    def _worked(self, judge: Judge, steps: Generator[None, None, _Result]) -> Generator[None, None, _Result]:
        """Do some steps of a judge, and count what they cost."""
        meter = self._checking.meter
        while True:
            try:
                next(steps)
            except StopIteration as end:
                meter.spent += judge.take_work() + _CHANNEL_WORK
                result: _Result = end.value
                return result
            meter.spent += judge.take_work()
            yield

    def _choice(self, number: int) -> Choice:
        return self.common if number == COMMON else self.choices[number]

    def _take_deltas(self, unit: Unit, due: list[tuple[Judge, list[Check]]]) -> Generator[None, None, tuple[Part, ...]]:
        """Give the deltas of a unit to their channels.

        What stands at another place than the text before it, or beside it in one unit, is another part of it. Of what
        nobody knows each piece is one: it may be a text of its own that is said again.
        """
        parts: list[Part] = []
        seen: set[Channel] = set()
        for delta in unit.deltas:
            channel, path = delta.channel, delta.path
            latest = self._paths.get(channel, path)
            if channel in self.judges and (
                channel in seen
                or channel.kind == "extra"
                or (latest is not path and channel.kind not in CALL and latest[2:] != path[2:])
            ):
                yield from self._worked(self.judges[channel], self.judges[channel].parting())
            self._paths[channel] = path
            part = yield from self._take_delta(delta, due)
            parts.append(part)
            if seen:
                yield  # one event can speak in many channels
            seen.add(channel)
        return tuple(parts)

    def _take_delta(self, delta: Delta, due: list[tuple[Judge, list[Check]]]) -> Generator[None, None, Part]:
        """Give one delta to its channel and note its checks in `due`; text of a choice that has ended goes nowhere."""
        choice = self._choice(delta.channel.choice)
        if not choice.running:
            if choice.halt is None:
                self._checking.degrade("text_after_end")
            return Part(None, 0, 0)
        judge = self.judges.get(delta.channel)
        if judge is None:
            judge = self.judges[delta.channel] = self._judge(delta.channel, choice)
            self._checking.meter.spent += _CHANNEL_WORK
            if delta.channel.kind == "tool_name" and self._prompt.wishes.limits:
                judge.holdback.fence = 0  # whether a tool may be called is known when its name is
            choice.judges.append(judge)
            if delta.channel.kind in CALL:
                choice.begin_call(delta.channel.index, judge)
            if delta.channel.kind == "extra":
                self._checking.ledger.scanned(f"midstream:extra:{self.sieve.extras.judged(judge)}")
        if delta.channel.kind in CALL:
            choice.go_on_with_call(delta)
        start = judge.holdback.received
        if not delta.text and judge.holdback.ended:
            return Part(judge, start, start)
        meter = self._checking.meter
        checks = meter.feed(judge, delta.text)
        due.append((judge, (yield from meter.feeding(judge, delta.text)) if checks is None else checks))
        if self.first_text_at is None and delta.text:
            self.first_text_at = self._checking.now
        return Part(judge, start, judge.holdback.received)

    def _judge(self, channel: Channel, choice: Choice, said: str = "") -> Judge:
        """Return a judge for a channel of a choice, of which `said` has been sent already."""
        judge = self._checking.judge(channel, Stage.MIDSTREAM, structured=self._prompt.structured, said=said)
        judge.share_insertions(choice.inserted)
        return judge

    def _go_on_with(self, due: Iterable[tuple[Judge, list[Check]]]) -> Steps:
        """Take the decisions of channels that text has come for, and ask about it."""
        for judge, checks in due:
            if not self._is_at_once(judge):
                if judge.channel.kind == "tool_arguments":
                    yield from self._end_name(judge.channel)  # asked about before they are, whatever came with them
                self._ask(judge, checks)
                yield from self.ruling(judge)
                yield

    def _ask(self, judge: Judge, checks: Iterable[Check]) -> None:
        """Ask about those of some checks that still matter."""
        self._checking.ask(judge, filter(judge.holdback.expects, checks))

    def _end_name(self, arguments: Channel) -> Steps:
        """End a tool's name where its arguments begin, so that they don't wait for the end of the choice."""
        judge = self.judges.get(Channel("tool_name", arguments.choice, arguments.index))
        if judge is not None and not judge.holdback.ended:
            yield from self._end_channel(judge)

    def _end_channel(self, judge: Judge) -> Steps:
        """End a channel; a tool's name is known then, and whether it may be called."""
        known = judge.holdback.ended
        self._checking.ask(judge, judge.holdback.end())
        self._checking.meter.spent += _CHANNEL_WORK
        if judge.channel.kind == "tool_name" and self._prompt.wishes.limits and not known:
            self._limit(judge)
        yield from self.ruling(judge)
        yield

    def _limit(self, judge: Judge) -> None:
        """End the choice before a call of a tool that a rule does not permit; else let the name go."""
        channel, holdback = judge.channel, judge.holdback
        span = Span(0, holdback.received)
        name = holdback.text(span)
        limit = next((limit for limit in self._prompt.wishes.limits if not limit.permits(name)), None)
        holdback.fence = EVERYTHING
        if limit is None:
            return
        self._checking.decided([refused_call(limit.rule, channel, span)])
        self._halt(self.choices[channel.choice], judge, Halt(0, limit.rule, limit.message))

    def _finish(self, number: int, due: Sequence[tuple[Judge, list[Check]]] = (), broken: str | None = None) -> Steps:
        """End a choice: all of its channels, then the calls of which something is missing.

        Args:
            number: Which one.
            due: What is to be asked about text that came with its end.
            broken: Why it was broken off; None: it has come to its end.
        """
        choice = self.choices[number]
        if choice.finished:
            return
        choice.finished = True
        for judge in sorted(choice.judges, key=_place) if choice.at_once else choice.judges:
            if choice.at_once:
                for checks in (checks for owner, checks in due if owner is judge):
                    self._ask(judge, checks)
            yield from self._end_channel(judge)
        if choice.calls and choice.halt is None and self.outbox.calls_whole:
            self._calls.withhold_torn(choice, broken)

    def ending(self) -> Steps:
        """End every channel that still runs: nothing more will come."""
        for number in sorted(self.choices):
            yield from self._finish(number, broken="no_end")
        yield from self.end_common()

    def end_common(self) -> Steps:
        """End the channels that belong to no choice."""
        for judge in self.common.judges:
            yield from self._end_channel(judge)

    def giving_up(self) -> Steps:
        """End every channel before what a pattern could still match: it stays undecided, so it must not leave (G4)."""
        for choice in (*(choice for _, choice in sorted(self.choices.items())), self.common):
            if choice.finished:
                continue
            choice.finished = True
            for judge in choice.judges:
                if judge.channel.kind == "tool_name" and self._prompt.wishes.limits and not judge.holdback.ended:
                    judge.holdback.fence = EVERYTHING
                    judge.holdback.stop(judge.holdback.sent)  # nobody knows what the name would have been
                self._checking.ask(judge, judge.holdback.abandon())
                self._checking.meter.spent += _CHANNEL_WORK
                yield from self.ruling(judge)
                yield
            if self._calls.drop_torn(choice, over=False):
                self._calls.note("no_end")

    def leaving_undecided(self) -> Steps:
        """End every channel where what has been decided ends: nothing is waited for any more."""
        for choice in (*self.choices.values(), self.common):
            choice.finished = True
            for judge in choice.judges:
                judge.holdback.stop(judge.holdback.releasable)
                self._checking.meter.spent += _CHANNEL_WORK
                yield from self.ruling(judge)
                yield
        while judges := self._checking.give_up_waiting(whatever=True):
            for judge in judges:
                yield from self.ruling(judge)
                yield

    def stall(self) -> None:
        """The upstream is silent: ask early about what is there."""
        for judge in self.judges.values():
            self._checking.ask(judge, judge.holdback.stall())

    def ruling(self, judge: Judge) -> Steps:
        """Take the decisions of a channel that can be taken now, and carry out what they mean for its choice."""
        return self._carrying_out(judge, self._checking.advance_some(judge))

    def _carrying_out(self, judge: Judge, rulings: list[Ruling]) -> Steps:
        """Carry out some decisions of a channel and all others that can be taken now."""
        choice = self._choice(judge.channel.choice)
        if judge.behind:
            yield
            rulings += yield from self._checking.advancing(judge)
        for number, ruling in enumerate(rulings, 1):
            if not number % _RULINGS:
                self._checking.meter.spent += 2 * _RULINGS
                yield
            self._take_asks(choice, ruling)
            if ruling.failed is not None:
                self.failed = self.failed or ruling.failed
            elif ruling.halt is not None and choice is self.common:
                self._halt_all(judge, ruling.halt)
            elif ruling.halt is not None:
                self._halt(choice, judge, ruling.halt)
            elif ruling.pivot is not None:
                self._turn(choice, judge, ruling.pivot)
        choice.trailing += judge.take_trailing()

    def _begin(self, number: int) -> None:
        """Begin a choice, with what the prompt's rules have asked for it."""
        wishes = self._prompt.wishes
        choice = self.choices[number] = Choice()
        if not self._prompt.structured:
            self._prefixes[:] = wishes.prefixes
        elif wishes.prefixes:
            self._checking.degrade(NOT_ADDED)
        for closing in (*wishes.closings, *self._checking.required()):
            if closing.unless_said:
                choice.said = choice.said or Said()
                choice.said.look_for(closing)
        for closing in wishes.closings:
            self._close_with(choice, closing)

    def _close_with(self, choice: Choice, closing: Closing) -> None:
        """Add a text to the end of a choice, once."""
        if self._prompt.structured:
            self._checking.degrade(NOT_ADDED)
        elif closing not in choice.closings:
            choice.closings.append(closing)

    def _take_asks(self, choice: Choice, ruling: Ruling) -> None:
        for ask in ruling.outcome.asks:
            closing = closing_of(ask, ruling.judge.page, self._prompt.documents)
            if closing is not None:
                self._close_with(choice, closing)

    def _halt(self, choice: Choice, judge: Judge | None, halt: Halt) -> None:
        """End a choice by policy, in all its channels; of a call that it ends in, nothing is sent.

        Args:
            choice: Which one.
            judge: Has cut its own channel; None: no channel of the choice was cut.
            halt: Why.
        """
        if judge is not None and judge.channel.kind in CALL:
            self._calls.drop(choice, judge.channel.index)
            if not halt.message:
                halt = msgspec.structs.replace(halt, message=f"[a tool call was withheld by policy: {halt.rule.id}]")
        if halt.message and _leaves_half_an_object(choice, judge, halt):
            choice.says_why = False
            self._checking.degrade(NOT_ADDED)
        choice.halt = halt
        if self.turning is not None:
            self.turning, self.turned_down = None, True
            self.terminated = False
        self._checking.ledger.carried_out("stop")
        self._end_others(choice, judge)
        self._calls.drop_torn(choice, over=choice.finished)
        self.cut_off = self.cut_off or not self.running

    def _halt_all(self, judge: Judge, halt: Halt) -> None:
        """End every choice by policy, for what stands in none of them."""
        self.common.halt = halt
        self._end_others(self.common, judge)
        self._checking.ledger.carried_out("stop")
        for choice in self.choices.values():
            if choice.running:
                self._halt(choice, None, halt)
        self.cut_off = True

    def _end_others(self, choice: Choice, judge: Judge | None) -> None:
        """End all other channels of a choice that `judge` has cut: nothing more of them will be sent."""
        for other in choice.judges:
            if other is judge:
                continue
            if choice.at_once and judge is not None and _place(other) > _place(judge):
                other.holdback.stop(other.holdback.sent)  # streamed, it would not have come any more
            elif not other.asked:
                other.holdback.end()  # what has come is all of it, so nothing of it waits for more
                for ruling in self._checking.advance(other):
                    self._take_asks(choice, ruling)
                    if judge is not None and _place(other) < _place(judge):
                        choice.halt = ruling.halt or choice.halt  # the first of a message ends it
            other.holdback.stop(other.holdback.releasable)
            for ruling in self._checking.advance(other):
                self._take_asks(choice, ruling)
            choice.trailing += other.take_trailing()
        self._checking.forget(choice.judges)

    def _turn(self, choice: Choice, judge: Judge, pivot: Pivot) -> None:
        """Cut the answer where the upstream is to go on under stricter parameters; stop it where that can't be."""
        if self.turning is not None:
            self.turning = pivot  # another rule turns it earlier
            return
        request = self._prompt.request
        plain = judge.channel.kind == "content" and all(each.channel.kind not in CALL for each in choice.judges)
        may_turn = self.may_turn and choice.halt is None  # it has ended, if behind this place
        if request is None or request.choices != 1 or not plain or not may_turn:
            self._halt(choice, judge, Halt(pivot.position, pivot.rule, pivot.action.message))
            return
        self.may_turn = False  # once an answer: what it says then is stopped
        self.turning = pivot
        self._checking.ledger.carried_out("safe_mode")
        self._end_others(choice, judge)
        self.outbox.turn(judge)

    def go_on(self, said: str) -> None:
        """Take what comes from here on as the continuation of `said`, which has been sent."""
        self.turning = None
        choice = self.choices.setdefault(0, Choice())
        self.terminated = choice.finished = False
        self.judges.clear()
        channel = Channel("content")
        last = next((judge for judge in choice.judges if judge.channel == channel), None)
        judge = self.judges[channel] = self._judge(channel, choice, said=said)
        if last is not None:
            judge.take_over(last)
        choice.judges = [judge]
        self.outbox.go_on()

    def stop_here(self, pivot: Pivot) -> None:
        """Stop an answer that could not be continued, with the message that its rule has for that."""
        choice = self.choices[0]
        judge = choice.judges[0]
        self.turning = None
        judge.holdback.stop(judge.holdback.received)
        self._halt(choice, judge, Halt(judge.holdback.received, pivot.rule, pivot.action.message))
