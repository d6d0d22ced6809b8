"""How the text of a unit gets to its channels, and the unit into the queue."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import TypeVar

from checkstream.core.channel.checks import Check
from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.prompt import Prompt
from checkstream.core.exchange.meter import CHANNEL_WORK, DONE, FEED_WORK, Steps, is_short
from checkstream.core.exchange.midstream.answer import Answer
from checkstream.core.exchange.midstream.border import BORDERING
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.decisions import Decisions
from checkstream.core.exchange.midstream.endings import Endings
from checkstream.core.exchange.midstream.waiting import CALL, Part, Waiting
from checkstream.core.terms import REASONING_NAMES, Channel, Delta, Unit
from checkstream.core.wire.json_text.spans import Path

_Result = TypeVar("_Result")
_SAID_CHARS = 256
"""Of a text that a new one is joined to."""


class Intake:
    """Takes the units of one answer, in the order in which they come."""

    def __init__(
        self, answer: Answer, decisions: Decisions, endings: Endings, prompt: Prompt, checking: Checking
    ) -> None:
        """Start before the first unit.

        Args:
            answer: What has come so far.
            decisions: Takes those that more text allows.
            endings: Ends the choices that a unit ends.
            prompt: Its rules may limit which tools are called.
            checking: Asks about the text, and counts work.
        """
        self._answer = answer
        self._judges = answer.judges
        self._choices = answer.choices
        self._outbox = answer.outbox
        self._sieve = answer.sieve
        self._decisions = decisions
        self._endings = endings
        self._prompt = prompt
        self._checking = checking
        self._paths: dict[Channel, Path] = {}
        """Where the latest text of each channel stood, or what it was a part of."""
        self._details: dict[int, Channel] = {}
        """Of each choice the detail of its reasoning that has begun last: readers join them."""

    @property
    def memory(self) -> object:
        """What is known of each channel that has spoken."""
        return self._paths

    def take(self, unit: Unit) -> Steps:
        """Give a unit's text to its channels, put the unit in the queue, take the decisions that it allows."""
        ledger = self._checking.ledger
        for number in unit.choices:
            if number not in self._choices:
                self._answer.begin(number)
                yield
        yield from self._keeping_as(unit.kept_as)
        for number in unit.stray.values():
            self._choices[number].strayed = True
        self._look_whether_at_once(unit)
        due: list[tuple[Judge, list[Check]]] = []
        parts = yield from self._take_deltas(unit, due)
        for name in (*unit.unscanned, *unit.sealed):
            ledger.unscanned(f"midstream:{name}")
        if unit.failure is not None:
            ledger.upstream_failure = ledger.upstream_failure or "error_event"
        called = self._outbox.calls_whole and any(self._is_calling(number) for number in unit.choices)
        self._outbox.put(Waiting(unit, parts, self._checking.now, called))
        yield from self._go_on_with(due)
        yield from self._take_calls(unit)
        for judge in self._sieve.extras.passed(unit):
            yield from self._let_go(judge)
        if self._answer.turning is not None:
            return
        for number in unit.finished:
            yield from self._endings.finish(number, due, unit.broken.get(number))
        if unit.terminator:
            self._answer.terminated = True
            yield from self._endings.ending()

    def _keeping_as(self, ids: Sequence[str]) -> Steps:
        """Keep what is to be known where a request goes on from this answer."""
        self._prompt.conversation.keep_as(ids)
        names = yield from self._prompt.naming.keeping_as(ids)
        if names is not None:
            self._checking.commands.append(names)

    def _take_calls(self, unit: Unit) -> Steps:
        """Note the calls that the provider makes itself, and those that are torn, and end those that are over."""
        for call in unit.served:
            self._choices[0].served.add(call)
        for call in unit.torn:
            self._choices[0].torn.add(call)
        for call in unit.over:
            for channel in [each for each, number in self._choices[0].members.items() if number == call]:
                yield from self._let_go(self._judges[channel])
            yield from self._endings.end_call(0, call)

    def take_more(self, unit: Unit) -> Iterable[None] | None:
        """Take the common unit, which has more of one short text and nothing else, as `take` does.

        Returns:
            What is left to do, mostly `DONE`; None: it is another unit, and nothing was done.
        """
        if len(unit.deltas) != 1 or len(unit.choices) != 1 or unit.finished or self._sieve.extras.has_open:
            return None
        delta = unit.deltas[0]
        channel = delta.channel
        judge = self._judges.get(channel)
        if judge is None or channel.kind in CALL or channel.kind == "extra" or judge.holdback.ended:
            return None
        choice = self._choices[channel.choice]
        latest, place = self._paths[channel], delta.part or delta.path
        if not choice.running or (latest is not place and _within(latest) != _within(place)):
            return None
        if choice.border.owed or choice.border.latest is not judge or not is_short(judge, delta.text):
            return None
        start = judge.holdback.received
        checking = self._checking
        checks = judge.feed(delta.text)
        checking.meter.spent += FEED_WORK + judge.take_work()
        self._paths[channel] = place
        if self._answer.first_text_at is None:
            self._answer.first_text_at = checking.now
        called = len(choice.calls) > len(choice.over) and self._outbox.calls_whole
        self._outbox.put(Waiting(unit, (Part(judge, start, judge.holdback.received),), checking.now, called))
        if checks:
            self._answer.ask(judge, checks)
        rulings = checking.advance_some(judge)
        if rulings or judge.behind:
            return self._decisions.carrying_out(judge, rulings)
        choice.trailing += judge.take_trailing()
        return DONE

    def goes_on(self, channel: Channel, place: Path) -> bool:
        """Tell whether what stands at a place goes on with the latest text of a channel."""
        latest = self._paths.get(channel)
        return latest is not None and (latest is place or _within(latest) == _within(place))

    def _look_whether_at_once(self, unit: Unit) -> None:
        """Note the choices of which all comes in this unit: they are decided at their end, channel after channel."""
        for number in unit.finished:
            choice = self._choices[number]
            if choice.running:
                choice.at_once = all(judge.holdback.received == judge.prelude for judge in choice.judges)
                choice.alone = choice.at_once and not choice.judges and len(unit.deltas) == 1

    def _is_calling(self, number: int) -> bool:
        """Tell whether a choice has begun to call a tool, and goes on."""
        choice = self._choices[number]
        return len(choice.calls) > len(choice.over) and choice.running

    def _is_at_once(self, judge: Judge) -> bool:
        return self._answer.choice(judge.channel.choice).at_once

    def _let_go(self, judge: Judge) -> Steps:
        """Hold a text no longer for what may follow."""
        yield from self._answer.asking(judge, (yield from self._worked(judge, judge.letting_go())))
        yield from self._decisions.deciding(judge)
        yield

    def _worked(self, judge: Judge, steps: Generator[None, None, _Result]) -> Generator[None, None, _Result]:
        """Do some steps of a judge, and count what they cost."""
        meter = self._checking.meter
        while True:
            try:
                next(steps)
            except StopIteration as end:
                meter.spent += judge.take_work() + CHANNEL_WORK
                result: _Result = end.value
                return result
            meter.spent += judge.take_work()
            yield

    def _take_deltas(self, unit: Unit, due: list[tuple[Judge, list[Check]]]) -> Generator[None, None, tuple[Part, ...]]:
        """Give the deltas of a unit to their channels.

        What stands at another place than the text before it, or beside it in one unit, is another part of it. Of what
        nobody knows each piece is one: it may be a text of its own that is said again.
        """
        parts: list[Part] = []
        seen: set[Channel] = set()
        for delta in unit.deltas:
            channel, path = delta.channel, delta.part or delta.path
            latest = self._paths.get(channel, path)
            if channel in self._judges and (
                channel in seen
                or channel.kind == "extra"
                or (latest is not path and channel.kind not in CALL and _within(latest) != _within(path))
            ):
                judge = self._judges[channel]
                yield from self._worked(judge, judge.parting(spaced=channel.kind != "extra"))
            self._paths[channel] = path
            part = yield from self._take_delta(delta, due)
            parts.append(part)
            if seen:
                yield  # one event can speak in many channels
            seen.add(channel)
        return tuple(parts)

    def _take_delta(self, delta: Delta, due: list[tuple[Judge, list[Check]]]) -> Generator[None, None, Part]:
        """Give one delta to its channel and note its checks in `due`; text of a choice that has ended goes nowhere."""
        choice = self._answer.choice(delta.channel.choice)
        judge = self._judges.get(delta.channel)
        is_over = delta.channel.call in choice.over or (judge is not None and judge.holdback.ended)
        behind = delta.text and delta.channel.kind in CALL and is_over
        if not choice.running or behind:
            if choice.halt is None:
                self._checking.degrade("text_after_end")
            return Part(None, 0, 0)
        if judge is None:
            judge = yield from self._begin(delta.channel, choice)
        start = judge.holdback.received
        if delta.channel.kind in CALL:
            choice.go_on_with_call(delta, start)
        if not delta.text and judge.holdback.ended:
            return Part(judge, start, start)
        if choice.border.latest is not judge and delta.text and delta.channel.kind in BORDERING:
            choice.border.cross(judge)
            self._checking.meter.spend(judge.take_work() + CHANNEL_WORK)
            yield
        meter = self._checking.meter
        checks = meter.feed(judge, delta.text)
        due.append((judge, (yield from meter.feeding(judge, delta.text)) if checks is None else checks))
        if self._answer.first_text_at is None and delta.text:
            self._answer.first_text_at = self._checking.now
        return Part(judge, start, judge.holdback.received)

    def _begin(self, channel: Channel, choice: Choice) -> Generator[None, None, Judge]:
        """Return a judge for a channel whose first text has come."""
        said = self._said_before(channel)
        judge = self._judges[channel] = self._answer.judge(channel, choice, said)
        self._checking.meter.spent += CHANNEL_WORK
        if said:
            yield from self._worked(judge, judge.parting())  # what comes may go on with it, or be a text of its own
        if channel.kind == "tool_name" and self._prompt.wishes.limits:
            judge.holdback.fence = 0  # whether a tool may be called is known when its name is
        choice.judges.append(judge)
        if channel.kind in CALL:
            choice.begin_call(channel.call, judge)
        if channel.kind == "extra":
            unknown = self._sieve.extras.judged(judge)
            if unknown is not None:
                self._checking.ledger.scanned(f"midstream:extra:{unknown}")
            call = self._sieve.extras.call_of(channel)
            if call is not None:
                choice.members[channel] = call
        return judge

    def _said_before(self, channel: Channel) -> str:
        """Return what readers join to the text of a new channel: it has come in others, or before a turn."""
        said = self._answer.before_turn.get(channel, "")
        if channel.kind == "extra":
            return said or self._sieve.extras.said_before(channel)
        if said or channel.kind != "reasoning" or channel.index < REASONING_NAMES:
            return said
        before = self._judges.get(self._details.get(channel.choice, channel))
        self._details[channel.choice] = channel
        return "" if before is None else before.holdback.end_of(_SAID_CHARS)

    def _go_on_with(self, due: Iterable[tuple[Judge, list[Check]]]) -> Steps:
        """Take the decisions of channels that text has come for, and ask about it."""
        for judge, checks in due:
            if not self._is_at_once(judge):
                if judge.channel.kind == "tool_arguments":
                    # It is asked about before they are, whatever came with them.
                    yield from self._endings.end_name(judge.channel)
                yield from self._answer.asking(judge, checks)
                yield from self._decisions.deciding(judge)
                yield
                yield from self._cross(self._answer.choice(judge.channel.choice))

    def _cross(self, choice: Choice) -> Steps:
        """Let texts go behind which another speaks, once nothing can go over to it any more."""
        if choice.border.is_crossed and choice.running:
            for judge in choice.border.take_owed():
                if not judge.holdback.ended:
                    yield from self._let_go(judge)


def _within(path: Path) -> Path:
    """Return the place of a text within its choice; of a surface that has no list of them, within the event."""
    return path[2:] if path[0] == "choices" else path
