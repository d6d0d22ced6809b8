"""One choice of the answer: its channels and tool calls, how it ends, and the texts that are added to it."""

from __future__ import annotations

import msgspec

from checkstream.core.channel.actions import Halt
from checkstream.core.channel.judge import Judge
from checkstream.core.exchange.closing import Closing, Said
from checkstream.core.exchange.midstream.border import Border
from checkstream.core.exchange.midstream.waiting import CALL
from checkstream.core.terms import Channel, Delta, Span, Unit


class Choice(msgspec.Struct):
    """What the guard knows of one choice of the answer."""

    judges: list[Judge] = msgspec.field(default_factory=list)
    calls: dict[int, list[Judge]] = msgspec.field(default_factory=dict)
    """Number of a tool call -> the judges of its name and arguments."""
    members: dict[Channel, int] = msgspec.field(default_factory=dict)
    """What stands in no text field, and belongs to a tool call -> the number of that."""
    border: Border = msgspec.field(default_factory=Border)
    """Where one of its texts goes over to the next."""
    dropped: set[int] = msgspec.field(default_factory=set)
    """Tool calls of which nothing may leave: blocked by a rule, or torn."""
    functions: set[int] = msgspec.field(default_factory=set)
    """Tool calls whose arguments are JSON; what else is called takes any text."""
    anew: dict[int, int] = msgspec.field(default_factory=dict)
    """Tool call -> where in its arguments those begin that were told last, if they were told otherwise before."""
    served: set[int] = msgspec.field(default_factory=set)
    """Tool calls that the provider makes itself."""
    over: set[int] = msgspec.field(default_factory=set)
    """Tool calls that are complete and wait for no others: they leave as soon as they are decided."""
    calling: set[int] = msgspec.field(default_factory=set)
    """Tool calls that may still go on: the one that has begun last, and those that have gone on since."""
    torn: set[int] = msgspec.field(default_factory=set)
    """Tool calls of which the answer says itself that they were broken off."""
    strayed: bool = False
    """Calls of it were left out, since they stood where no client of the kind looks for any."""
    calls_nothing: bool = False
    """Its finish reason says that tools are called, and no call is left."""
    withheld: str = ""
    """Stands in place of calls that the upstream has left torn."""
    halt: Halt | None = None
    """A rule has ended it; what follows in it is never sent."""
    ended_in: int | None = None
    """The tool call in which a rule has ended it."""
    says_why: bool = True
    """The message of that rule is added: not to half an object, where clients take it for one of its values."""
    finished: bool = False
    """The upstream has given its finish reason."""
    at_once: bool = False
    """All of it has come in one unit, its end included."""
    alone: bool = False
    """All of it is one text, which has come in one unit with its end."""
    closed: bool = False
    """Its last unit has been released."""
    begun: bool = False
    """Some of its content has been released."""
    inserted: set[str] = msgspec.field(default_factory=set)
    """Texts that have been put behind sentences of it."""
    trailing: list[str] = msgspec.field(default_factory=list)
    """Texts that belong behind its last sentence."""
    closings: list[Closing] = msgspec.field(default_factory=list)
    """Texts that wait for its end."""
    like: Unit | None = None
    """Its latest unit that has left before its end: other events of it have the same ids."""
    said: Said | None = None
    """Reads what is sent of it, where a closing counts only if the answer doesn't have it."""

    def last_words(self) -> str:
        """Return what is added at its end: the message of the rule that has ended it, and what waits for the end.

        Nothing waits for the end of an answer that has not begun.
        """
        words = self.withheld if self.halt is None else self.halt.message if self.says_why else ""
        if not self.begun:
            return words
        words += "".join(self.trailing)
        said = self.said or Said()
        said.feed(words + "".join(each.text for each in self.closings if not each.unless_said))
        return words + "".join(each.text for each in self.closings if not said.has(each))

    def call_of(self, channel: Channel) -> int | None:
        """Return the number of the tool call that a channel is of: its name, its arguments, or any other member."""
        return channel.call if channel.kind in CALL else self.members.get(channel)

    def begin_call(self, number: int, judge: Judge) -> None:
        """Take the first text of a tool call's name or arguments."""
        if number not in self.calls:
            self.calls[number] = []
            self.calling.clear()
        self.calls[number].append(judge)

    def go_on_with_call(self, delta: Delta, start: int) -> None:
        """Note that text of a tool call has come, which begins at `start` of its channel."""
        self.calling.add(delta.channel.call)
        if delta.channel.kind == "tool_arguments" and not delta.free and not delta.channel.tells_ahead:
            self.functions.add(delta.channel.call)
        if delta.anew:
            self.anew[delta.channel.index] = start

    def arguments_of(self, number: int) -> list[Judge]:
        """Return who judges the arguments of a tool call; what tells them ahead only where nothing else does."""
        found = [judge for judge in self.calls[number] if judge.channel.kind == "tool_arguments"]
        whole = [judge for judge in found if not judge.channel.tells_ahead]
        return whole if any(judge.holdback.received for judge in whole) else found

    def arguments(self, judge: Judge) -> str:
        """Return the arguments of a tool call, of which `judge` is, as they were told last."""
        return judge.holdback.text(Span(self.anew.get(judge.channel.index, 0), judge.holdback.received))

    @property
    def decided(self) -> bool:
        """Every decision has been taken that could still add to what is sent of it, once it has ended."""
        return self.closed or all(judge.complete for judge in self.judges)

    @property
    def running(self) -> bool:
        """Neither the upstream nor a rule has ended it."""
        return self.halt is None and not self.finished
