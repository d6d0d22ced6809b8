"""The work of one exchange: how much a turn of it may do before others get theirs, and how much it may do at all.

What takes long is written as steps: a generator that yields wherever a turn may end. Nothing depends on where it does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from typing import Protocol, TypeVar

from checkstream.core.match.work import Work
from checkstream.core.steps import Pace, Steps, done

__all__ = ["CHANNEL_WORK", "DONE", "FEED_WORK", "Meter", "Reader", "Steps", "done", "is_short"]

FEED_WORK = 30
"""Of any piece of text, however short."""
CHANNEL_WORK = 60
"""Of beginning a channel, and of ending it (see `match.work`)."""
DONE: Iterable[None] = ()
"""Nothing is left to do."""
Result = TypeVar("Result")

NEVER = 1 << 62
"""More work than is ever done."""
FEW_CHARS = 128
"""Of a text that is read in one step ..."""
_LEAST_CHARS = 2
"""... however dear each of so many is."""
_TURN_S = 0.002
"""Of a turn: work is counted in units that are about a microsecond each, and may be off by much for once."""


class Reader(Protocol[Result]):
    """What reads a text as it comes."""

    @property
    def ahead(self) -> int:
        """How many characters can be read until each may be dear."""

    def feed(self, text: str) -> list[Result]:
        """Take text; return what it makes due."""

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked (see `match.work`)."""


class Meter:
    """Counts the work of one exchange (see `match.work`)."""

    __slots__ = ("_budget", "_most", "_turn", "_turn_ends", "_turn_ends_s", "clock", "spent", "stops_at")

    def __init__(self, *, turn: int, budget: int) -> None:
        """Begin with nothing spent.

        Args:
            turn: The most work of one turn; 0: a turn does all there is.
            budget: The most work of the exchange; 0: no limit.
        """
        self.clock: Callable[[], float] | None = None
        """Tells the time, seconds: a turn ends after some of it, too. Only where turns end depends on that."""
        self._turn_ends_s = 0.0
        self.spent = 0
        self._turn = turn
        self._turn_ends = turn
        self._budget = budget
        self._most = budget or NEVER
        self.stops_at = NEVER
        """What may have been spent at the end of a turn at the most, whatever the clock says."""

    def begin_turn(self) -> None:
        """Note that a turn begins."""
        turn, most, clock = self._turn, self._most, self.clock
        self._turn_ends = ends = self.spent + turn
        self.stops_at = ends if turn > 0 and ends < most else most
        if clock is not None:
            self._turn_ends_s = clock() + _TURN_S

    def begin_anew(self) -> None:
        """Forget what has been spent: what comes is to be read as if nothing had come before."""
        self._turn_ends -= self.spent
        self.spent = 0

    def spend(self, work: int) -> None:
        """Note work that has been done."""
        self.spent += work

    @property
    def turn_over(self) -> bool:
        """This turn has done its work."""
        if self._turn > 0 and self.spent >= self._turn_ends:
            return True
        return self.clock is not None and self.clock() >= self._turn_ends_s

    @property
    def pauses(self) -> bool:
        """The next step is not this turn's, or none."""
        return self.turn_over or 0 < self._budget <= self.spent

    @property
    def exhausted(self) -> bool:
        """The exchange has done all the work that it may do."""
        return 0 < self._budget <= self.spent

    def stepping(self, steps: Generator[None, None, Result], work: int) -> Generator[None, None, Result]:
        """Do some steps, each of so much work."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: Result = end.value
                return result
            self.spend(work)
            yield

    def counting(self, steps: Generator[None, None, Result], work: Work) -> Generator[None, None, Result]:
        """Do some steps, which count their work themselves."""
        while True:
            try:
                next(steps)
            except StopIteration as end:
                self.spend(work.take())
                result: Result = end.value
                return result
            self.spend(work.take())
            yield

    def feed(self, reader: Reader[Result], text: str) -> list[Result] | None:
        """Feed a short text to a reader, and return what it makes of it; None: it is long (see `feeding`)."""
        if not is_short(reader, text):
            return None
        made = reader.feed(text)
        self.spent += reader.take_work() + FEED_WORK
        return made

    def feeding(self, reader: Reader[Result], text: str) -> Generator[None, None, list[Result]]:
        """Feed a text to a reader, such as a judge, in pieces, as if it had come so; return what it makes of it."""
        short = self.feed(reader, text)
        if short is not None:
            return short
        checks, at, pace = list[Result](), 0, Pace()
        while at < len(text):
            piece = text[at : at + min(pace.chars, max(reader.ahead, _LEAST_CHARS))]
            checks += reader.feed(piece)
            at += len(piece)
            work = reader.take_work()
            self.spend(work)
            pace.took(len(piece), work)
            yield
        return checks


def is_short(reader: Reader[Result], text: str) -> bool:
    """Tell whether a text can be read in one step."""
    return len(text) <= _LEAST_CHARS or (len(text) <= FEW_CHARS and reader.ahead >= len(text))
