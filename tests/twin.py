"""Two guards of one exchange: one that takes calm events quickly, and one that takes each event and each word in full.
So it does with whole answers that leave as they came, and with texts in which nothing is found.

The second is the oracle of the first.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from checkstream.core.commands import AnyCommand
from checkstream.core.events import AnyEvent
from checkstream.core.exchange import incoming, machine
from checkstream.core.exchange.calm import Calm
from checkstream.core.exchange.guard import Guard
from checkstream.core.exchange.ingress import joining
from checkstream.core.exchange.silent import finding_nothing
from checkstream.core.exchange.untouched import leaving_as_it_came
from checkstream.core.match.word_reader import WordReader
from tests.fuzz import exchange as fuzzed


class _NeverCalm(Calm):
    __slots__ = ()

    def begin(self) -> None:
        """Take the next event in full."""


class Twin(Guard):
    """Gives each event to both, and holds the commands of one to those of the other."""

    made: list[Twin]
    """All since the last `watched`."""
    slow = False
    """The one that takes all in full has its turn."""

    def __init__(self, **given: Any) -> None:
        given["plan"] = msgspec.structs.replace(given["plan"], turn_work=0)  # where turns end is not the same
        super().__init__(**given)
        self.oracle = Guard(**given)
        self.oracle._calm = _NeverCalm(self.oracle._course, self.oracle._incoming, self.oracle._leaving)
        self.events = self.calm_events = 0
        Twin.made.append(self)

    def receive(self, event: AnyEvent, now: float) -> list[AnyCommand]:
        """Take one event."""
        self.events += 1
        self.calm_events += self._calm._judge is not None
        Twin.slow = True
        expected = self.oracle.receive(event, now)
        Twin.slow = False
        commands = super().receive(event, now)
        assert commands == expected, event
        assert self._known() == self.oracle._course.outbox.bytes_held
        return commands

    def _known(self) -> int:
        ours, theirs = self._course.answer.judges, self.oracle._course.answer.judges
        if self._course.whole.untouched:
            ours = theirs = {}
        assert ours.keys() == theirs.keys()
        for channel, judge in ours.items():
            one, other = judge.holdback, theirs[channel].holdback
            assert (one.received, one.sent, one.releasable) == (other.received, other.sent, other.releasable)
            assert (one.matches.live, one.cleared, list(one.matches.found)) == (
                other.matches.live, other.cleared, list(other.matches.found),
            )  # fmt: skip
        assert self._course.writer.released_chars == self.oracle._course.writer.released_chars
        assert self.state is self.oracle.state
        return self._course.outbox.bytes_held + self._calm.bytes_held


def _nothing() -> Generator[None, None, bool]:
    """Take nothing for what it may be."""
    yield
    return False


@contextmanager
def watched() -> Iterator[list[Twin]]:
    """Have every guard that is made be two, and return them."""
    look = WordReader.look
    Twin.made = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WordReader, "look", lambda *given: None if Twin.slow else look(*given))
        patch.setattr(
            incoming, "leaving_as_it_came", lambda *given: _nothing() if Twin.slow else leaving_as_it_came(*given)
        )
        patch.setattr(joining, "finding_nothing", lambda *given: _nothing() if Twin.slow else finding_nothing(*given))
        patch.setattr(machine, "Guard", Twin)
        patch.setattr(fuzzed, "Guard", Twin)
        yield Twin.made
