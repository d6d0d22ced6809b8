"""A line: windows that wait to be read in one way, where and when they are, and whether that works (G24).

A lane has one line, and a second one where a gate stands before its model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from checkstream.errors import ScoringError
from checkstream.scoring.batcher import Entry, Queue
from checkstream.scoring.breaker import Breaker
from checkstream.scoring.outcomes import Outcome
from checkstream.scoring.session import Window
from checkstream.scoring.ticket import Ticket

Waiting = Entry[Ticket]


class LaneLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a lane takes on."""

    queue_tokens: int
    """Tokens that may wait; a request that finds others waiting and doesn't fit is refused."""
    batch_tokens: int
    """Padded tokens of one batch."""
    batch_entries: int = 8
    """Windows of one batch (no more helps: PERFORMANCE.md, table 8)."""


class Runner(Protocol):
    """Runs the windows of lines at the right time and place."""

    def wake(self, line: Line) -> None:
        """Note that `line` has work; it is taken at the end of this turn of the loop, if not at once."""

    async def close(self) -> None:
        """Stop; nothing runs afterwards."""


class Line:
    """Windows that wait for one way of reading them."""

    def __init__(
        self,
        read: Callable[[Window], Outcome | None],
        take: Callable[[Waiting, Outcome | None], None],
        *,
        runner: Runner,
        breaker: Breaker,
        limits: LaneLimits,
        ingress: bool,
        brief: bool = False,
    ) -> None:
        """Begin empty.

        Args:
            read: reads one window; may be called on a thread. None: it can't tell.
            take: hears what came of a window, on the loop.
            runner: when and where it is read.
            breaker: the circuit of this way of reading.
            limits: bounds of a batch.
            ingress: windows of prompts.
            brief: reading a window costs less than to put it off: it may be read as it comes.
        """
        self.read = read
        self.ingress = ingress
        self.brief = brief
        self.breaker = breaker
        self.answered = 0.0
        """When a window was last read in time, monotonic seconds."""
        self._probe: Ticket | None = None
        """Whose result decides over the circuit."""
        self._take = take
        self._runner = runner
        self._limits = limits
        self._queue: Queue[Ticket] = Queue()

    @property
    def waiting(self) -> bool:
        """Some window waits."""
        return bool(self._queue)

    @property
    def tokens(self) -> int:
        """Of all windows that wait."""
        return self._queue.tokens

    def admit(self, ticket: Ticket) -> Literal["pass", "probe", "refuse"]:
        """Say whether a ticket may be read here; of one that may, `succeed`, `fail` or `release` is called."""
        admission = self.breaker.admit(time.monotonic())
        if admission == "probe":
            self._probe = ticket
        return admission

    def succeed(self, ticket: Ticket) -> None:
        """Note that all was read that a ticket has here."""
        self.breaker.succeed(probe=self._ends(ticket))

    def fail(self, ticket: Ticket) -> None:
        """Note that a ticket was not read for a reason that lies here."""
        self.breaker.fail(time.monotonic(), probe=self._ends(ticket))

    def release(self, ticket: Ticket) -> None:
        """Note that a ticket says nothing of how reading goes; harmless after its result."""
        if self._ends(ticket):
            self.breaker.release()

    def _ends(self, ticket: Ticket) -> bool:
        if self._probe is not ticket:
            return False
        self._probe = None
        return True

    def put(self, ticket: Ticket, window: Window) -> None:
        """Queue a window."""
        self._queue.put(ticket, window)
        self._runner.wake(self)

    def form(self, entries: int | None = None) -> list[Waiting]:
        """Take the next batch out of the queue; empty when nobody waits for what is queued."""
        limits = self._limits
        return self._queue.take(time.monotonic(), entries=entries or limits.batch_entries, tokens=limits.batch_tokens)

    def deliver(self, batch: Sequence[Waiting], outcomes: Sequence[Outcome | None]) -> None:
        """Hand on what came of a batch."""
        for entry, outcome in zip(batch, outcomes, strict=True):
            if not entry.asker.over:
                if not isinstance(outcome, ScoringError):
                    self.answered = time.monotonic()
                self._take(entry, outcome)

    def drop(self, ticket: Ticket) -> None:
        """Forget what waits for a ticket."""
        self._queue.drop(ticket)
