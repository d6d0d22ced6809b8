"""What decisions of rules do to the answer: its choices are stopped, texts are added to them, or it turns."""

from __future__ import annotations

import msgspec

from checkstream.core.channel.actions import Halt, Pivot
from checkstream.core.channel.execution import NOT_ADDED
from checkstream.core.channel.judge import Judge, Ruling
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.closing import closing_of
from checkstream.core.exchange.ingress.prompt import Prompt
from checkstream.core.exchange.meter import CHANNEL_WORK, Steps
from checkstream.core.exchange.midstream.answer import Answer
from checkstream.core.exchange.midstream.border import Border
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.waiting import CALL
from checkstream.core.match.work import Work
from checkstream.core.steps import Walk
from checkstream.core.terms import Channel

_SPOKEN = ("reasoning", "content", "refusal")
_OF_CALLS = ("tool_name", "tool_arguments", "extra")
_GO_ON = frozenset({"reasoning", "refusal", "extra"})
"""Texts of an answer that its rest may go on with, besides its content."""
_SAID_CHARS = 256
"""Of the end of such a text."""
_RULINGS = 128
"""That are carried out in one step."""


def place_in(choice: Choice, judge: Judge) -> tuple[int, int, int]:
    """Return where a channel stands in a message: models think, then speak, then call tools; extras last of each."""
    channel = judge.channel
    if channel.kind in _SPOKEN:
        return _SPOKEN.index(channel.kind), channel.index, 0
    call = choice.call_of(channel)
    if call is None:
        return len(_SPOKEN) + 1, channel.index, 0
    return len(_SPOKEN), call, _OF_CALLS.index(channel.kind)


def _leaves_half_an_object(choice: Choice, judge: Judge | None, halt: Halt) -> bool:
    """Tell whether content of a choice that is JSON breaks off where a rule ends it."""
    return any(
        each.channel.kind == "content"
        and each.is_json
        and (halt.position if each is judge else each.holdback.received) > 0
        for each in choice.judges
    )


class Decisions:
    """Takes the decisions on one answer and carries them out."""

    def __init__(self, answer: Answer, prompt: Prompt, checking: Checking) -> None:
        """Begin with none.

        Args:
            answer: What they are about.
            prompt: Says whether the answer can turn, and what texts may speak of.
            checking: Asks the judges.
        """
        self._answer = answer
        self._prompt = prompt
        self._checking = checking

    def deciding(self, judge: Judge) -> Steps:
        """Take the decisions of a channel that can be taken now, and carry out what they mean for its choice."""
        return self.carrying_out(judge, self._checking.advance_some(judge))

    def carrying_out(self, judge: Judge, rulings: list[Ruling]) -> Steps:
        """Carry out some decisions of a channel and all others that can be taken now."""
        choice = self._answer.choice(judge.channel.choice)
        if judge.behind:
            yield
            rulings += yield from self._checking.advancing(judge)
        rulings.reverse()
        while rulings:  # each is let go when it is carried out: to free all of many at once is a long step
            ruling = rulings.pop()
            if len(rulings) % _RULINGS == _RULINGS - 1:
                self._checking.meter.spent += 2 * _RULINGS
                yield
            self._take_asks(choice, ruling)
            if ruling.failed is not None:
                self._answer.failed = self._answer.failed or ruling.failed
            elif ruling.halt is not None and choice is self._answer.common:
                yield from self._halting_all(judge, ruling.halt)
            elif ruling.halt is not None:
                yield from self.halting(choice, judge, ruling.halt)
            elif ruling.pivot is not None:
                yield from self._turning(choice, judge, ruling.pivot)
        choice.trailing += judge.take_trailing()

    def _take_asks(self, choice: Choice, ruling: Ruling) -> None:
        for ask in ruling.outcome.asks:
            closing = closing_of(ask, ruling.judge.page, self._prompt.documents)
            if closing is not None:
                self._answer.close_with(choice, closing)

    # --- choices that are stopped

    def halting(self, choice: Choice, judge: Judge | None, halt: Halt) -> Walk:
        """End a choice by policy, in steps, in all its channels; of a call that it ends in, nothing is sent.

        Args:
            choice: Which one.
            judge: Has cut its own channel; None: no channel of the choice was cut.
            halt: Why.
        """
        call = None if judge is None else choice.call_of(judge.channel)
        if call is not None and call in choice.calls:
            self._answer.calls.drop(choice, call)
            for behind in [number for number in choice.calls if number > call and number not in choice.over]:
                self._answer.calls.drop(choice, behind)  # streamed one by one, it would not have come any more
            choice.ended_in = call
            if not halt.message:
                halt = msgspec.structs.replace(halt, message=f"[a tool call was withheld by policy: {halt.rule.id}]")
        if halt.message and _leaves_half_an_object(choice, judge, halt):
            choice.says_why = False
            self._checking.degrade(NOT_ADDED)
        choice.halt = halt
        if self._answer.turning is not None:
            self._answer.turning, self._answer.turned_down = None, True
            self._answer.terminated = False
        self._checking.ledger.carried_out("stop")
        yield from self._ending_others(choice, judge)
        yield from self._answer.calls.dropping_torn(choice, over=choice.finished)
        self._answer.cut_off = self._answer.cut_off or not self._answer.running

    def _halting_all(self, judge: Judge, halt: Halt) -> Steps:
        """End every choice by policy, for what stands in none of them."""
        self._answer.common.halt = halt
        yield from self._ending_others(self._answer.common, judge)
        self._checking.ledger.carried_out("stop")
        for choice in self._answer.choices.values():
            if choice.running:
                yield from self.halting(choice, None, halt)
        self._answer.cut_off = True

    def _ending_others(self, choice: Choice, judge: Judge | None) -> Steps:
        """End all other channels of a choice that `judge` has cut: nothing more of them will be sent."""
        yield from self._checking.meter.counting(choice.border.ending(choice.judges, work := Work()), work)
        ending = None if judge is None else place_in(choice, judge)
        for other in choice.judges:
            if other is judge:
                continue
            place = place_in(choice, other)
            if choice.at_once and ending is not None and place > ending:
                other.holdback.stop(other.holdback.sent)  # streamed, it would not have come any more
            elif not other.asked:
                other.holdback.end()  # what has come is all of it, so nothing of it waits for more
                for ruling in self._checking.advance(other):
                    self._take_asks(choice, ruling)
                    if ending is not None and place < ending:
                        choice.halt = ruling.halt or choice.halt  # the first of a message ends it
            other.holdback.stop(other.holdback.releasable)
            for ruling in self._checking.advance(other):
                self._take_asks(choice, ruling)
            choice.trailing += other.take_trailing()
            self._checking.meter.spent += CHANNEL_WORK
            yield
        self._checking.forget(choice.judges)

    # --- answers that are continued

    def _turning(self, choice: Choice, judge: Judge, pivot: Pivot) -> Steps:
        """Cut the answer where the upstream is to go on under stricter parameters; stop it where that can't be."""
        if self._answer.turning is not None:
            self._answer.turning = pivot  # another rule turns it earlier
            return
        request = self._prompt.request
        plain = judge.channel.kind == "content" and all(each.channel.kind not in CALL for each in choice.judges)
        may_turn = self._answer.may_turn and choice.halt is None  # it has ended, if behind this place
        if request is None or request.choices != 1 or not plain or not may_turn:
            yield from self.halting(choice, judge, Halt(pivot.position, pivot.rule, pivot.action.message))
            return
        self._answer.may_turn = False  # once an answer: what it says then is stopped
        self._answer.turning = pivot
        self._checking.ledger.carried_out("safe_mode")
        yield from self._ending_others(choice, judge)
        self._answer.outbox.turn(judge)

    def go_on(self, said: str, doubled: str, spent: tuple[int, int]) -> None:
        """Take what comes from here on as the continuation of `said`, which has been sent.

        Args:
            said: All that was sent of the answer.
            doubled: The end of that, of which the model does not know: it may say it once more.
            spent: Tokens of the prompt and of the answer that have been spent before.
        """
        self._answer.turning = None
        choice = self._answer.choices.setdefault(0, Choice())
        self._answer.terminated = choice.finished = False
        self._answer.judges.clear()
        channel = Channel("content")
        last = next((judge for judge in choice.judges if judge.channel == channel), None)
        judge = self._answer.judges[channel] = self._answer.judge(channel, choice, said=said)
        choice.border = Border(judge, said)
        choice.members.clear()
        self._answer.before_turn = {
            each.channel: each.holdback.end_of(_SAID_CHARS) for each in choice.judges if each.channel.kind in _GO_ON
        }
        if last is not None:
            judge.take_over(last)
        choice.judges = [judge]
        self._answer.outbox.go_on(spent)
        self._answer.sieve.doubled = doubled

    def stopping_here(self, pivot: Pivot) -> Walk:
        """Stop an answer that could not be continued, in steps, with the message that its rule has for that."""
        choice = self._answer.choices[0]
        judge = choice.judges[0]
        self._answer.turning = None
        judge.holdback.stop(judge.holdback.received)
        return self.halting(choice, judge, Halt(judge.holdback.received, pivot.rule, pivot.action.message))
