"""How channels and choices come to their end: with the upstream's, at a tool's arguments, or given up."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from checkstream.core.channel.actions import Halt, refused_call
from checkstream.core.channel.checks import EVERYTHING, Check
from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.checking import Checking
from checkstream.core.exchange.ingress.prompt import Prompt
from checkstream.core.exchange.meter import CHANNEL_WORK, Steps
from checkstream.core.exchange.midstream.answer import Answer
from checkstream.core.exchange.midstream.choice import Choice
from checkstream.core.exchange.midstream.decisions import Decisions, place_in
from checkstream.core.exchange.midstream.together import condemned
from checkstream.core.match.work import Work
from checkstream.core.terms import Channel, Span, Stage


class Endings:
    """Ends what has come of one answer."""

    def __init__(self, answer: Answer, decisions: Decisions, prompt: Prompt, checking: Checking) -> None:
        """Begin with an answer that has not ended.

        Args:
            answer: What is to be ended.
            decisions: Takes those that an end allows.
            prompt: Its rules may limit which tools are called.
            checking: Asks about what is left.
        """
        self._answer = answer
        self._decisions = decisions
        self._prompt = prompt
        self._checking = checking

    def stall(self) -> list[Judge]:
        """The upstream is silent: ask early about what is there; return who had nothing to ask about."""
        spared = list[Judge]()
        for judge in self._answer.judges.values():
            checks = judge.holdback.stall()
            self._checking.ask(judge, checks)
            if any(check.spared for check in checks):
                spared.append(judge)
        return spared

    def end_name(self, arguments: Channel) -> Steps:
        """End a tool's name where its arguments begin, so that they don't wait for the end of the choice."""
        judge = self._answer.judges.get(Channel("tool_name", arguments.choice, arguments.call))
        if judge is not None and not judge.holdback.ended:
            yield from self._end_channel(judge)

    def end_call(self, number: int, call: int) -> Steps:
        """End a call that is over; it waits for the end of its choice only where others may have to do with it.

        Nobody puts what the provider itself is asked beside the caller's calls. Of these several may say together what
        rules condemn (see `together`).
        """
        choice = self._answer.choices[number]
        if not choice.running or call not in choice.calls or call in choice.over or call in choice.dropped:
            return
        joins = len(self._checking.program.scope(Stage.MIDSTREAM, "tool_arguments").hold) > 0
        if joins and call not in choice.served:
            return
        for judge in choice.calls.get(call, ()):
            if not judge.holdback.ended:
                yield from self._end_channel(judge)
        if choice.halt is None and (yield from self._answer.calls.being_whole(choice, call)):
            choice.over.add(call)

    def finish(self, number: int, due: Sequence[tuple[Judge, list[Check]]] = (), broken: str | None = None) -> Steps:
        """End a choice: all of its channels, then the calls of which something is missing.

        Args:
            number: Which one.
            due: What is to be asked about text that came with its end.
            broken: Why it was broken off; None: it has come to its end.
        """
        choice = self._answer.choices[number]
        if choice.finished:
            return
        choice.finished = True
        yield from self._checking.meter.counting(choice.border.ending(choice.judges, work := Work()), work)
        asked: dict[int, list[Check]] = {}
        if choice.at_once:
            for owner, checks in due:
                if checks:
                    asked.setdefault(id(owner), []).extend(checks)
        for judge in sorted(choice.judges, key=partial(place_in, choice)) if choice.at_once else choice.judges:
            yield from self._answer.asking(judge, asked.get(id(judge), ()))
            yield from self._end_channel(judge)
        if choice.calls and choice.halt is None and self._answer.outbox.calls_whole:
            yield from self._withhold_together(choice, number)
        if choice.calls and choice.halt is None and self._answer.outbox.calls_whole:
            yield from self._answer.calls.withholding_torn(choice, broken)
        if choice.strayed and broken is None and not choice.calls.keys() - choice.dropped:
            choice.calls_nothing = True

    def _withhold_together(self, choice: Choice, number: int) -> Steps:
        """Let nothing leave of calls that say together what rules condemn (G35)."""
        found = yield from condemned(choice, number, self._checking)
        if found is None:
            return
        self._answer.calls.withhold(choice, found.calls, found.rule_id)
        if found.halt is not None:
            yield from self._decisions.halting(choice, None, found.halt)

    def ending(self) -> Steps:
        """End every channel that still runs: nothing more will come."""
        for number in sorted(self._answer.choices):
            yield from self.finish(number, broken="no_end")
        yield from self.end_common()

    def end_common(self) -> Steps:
        """End the channels that belong to no choice."""
        for judge in self._answer.common.judges:
            yield from self._end_channel(judge)

    def giving_up(self) -> Steps:
        """End every channel before what a pattern could still match: it stays undecided, so it must not leave (G4)."""
        for choice in (*(choice for _, choice in sorted(self._answer.choices.items())), self._answer.common):
            if choice.finished:
                continue
            choice.finished = True
            for judge in choice.judges:
                if judge.channel.kind == "tool_name" and self._prompt.wishes.limits and not judge.holdback.ended:
                    judge.holdback.fence = EVERYTHING
                    judge.holdback.stop(judge.holdback.sent)  # nobody knows what the name would have been
                self._checking.ask(judge, judge.holdback.abandon())
                self._checking.meter.spent += CHANNEL_WORK
                yield from self._decisions.deciding(judge)
                yield
            if (yield from self._answer.calls.dropping_torn(choice, over=False)):
                self._answer.calls.note("no_end")

    def leaving_undecided(self) -> Steps:
        """End every channel where what has been decided ends: nothing is waited for any more."""
        for choice in (*self._answer.choices.values(), self._answer.common):
            choice.finished = True
            for judge in choice.judges:
                judge.holdback.stop(judge.holdback.releasable)
                self._checking.meter.spent += CHANNEL_WORK
                yield from self._decisions.deciding(judge)
                yield
            yield from self._answer.calls.dropping_torn(choice, over=False)
        while judges := (yield from self._checking.giving_up()):
            for judge in judges:
                yield from self._decisions.deciding(judge)
                yield

    def _end_channel(self, judge: Judge) -> Steps:
        """End a channel; a tool's name is known then, and whether it may be called."""
        known = judge.holdback.ended
        self._checking.ask(judge, judge.holdback.end())
        self._checking.meter.spent += CHANNEL_WORK
        if judge.channel.kind == "tool_name" and self._prompt.wishes.limits and not known:
            yield from self._limiting(judge)
        yield from self._decisions.deciding(judge)
        yield

    def _limiting(self, judge: Judge) -> Steps:
        """End the choice before a call of a tool that a rule does not permit; else let the name go."""
        channel, holdback = judge.channel, judge.holdback
        span = Span(0, holdback.received)
        name = judge.page.restored(holdback.text(span))
        limit = next((limit for limit in self._prompt.wishes.limits if not limit.permits(name)), None)
        holdback.fence = EVERYTHING
        if limit is None:
            return
        self._checking.decided([refused_call(limit.rule, channel, span)])
        halt = Halt(0, limit.rule, limit.message)
        yield from self._decisions.halting(self._answer.choices[channel.choice], judge, halt)
