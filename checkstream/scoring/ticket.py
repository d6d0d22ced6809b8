"""A ticket: one request to one detector, as many windows as its text needs, one answer.

INVARIANT: a ticket settles exactly once: with a reading, with a `ScoringError`, or by being abandoned.
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

from checkstream.errors import ScoringError
from checkstream.scoring.outcomes import Outcome
from checkstream.scoring.session import Reading, joined


class Issuer(Protocol):
    """Who gives out tickets, and hears how they end."""

    @property
    def name(self) -> str:
        """The detector, as errors call it."""

    def settled(self, ticket: Ticket, outcome: Outcome) -> None:
        """Hear that a ticket got this answer, or this error."""

    def forsaken(self, ticket: Ticket) -> None:
        """Hear that a ticket ended before it was answered, since nobody waits any more."""


class Ticket:
    """Who waits for what a model says of a text."""

    def __init__(self, issuer: Issuer, deadline: float, *, alone: bool, key: bytes | None = None) -> None:
        """Start waiting; `alone`: nothing else waited in the lane when it came, `key`: what its text is known by."""
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Reading] = self._loop.create_future()
        """What the model says of the whole text."""
        self.deadline = deadline
        self.alone = alone
        self.key = key
        self.started = time.monotonic()
        self.doubted = False
        """A gate has passed some window on to the model behind it ..."""
        self.owed = 0
        """... which has not read so many of them."""
        self._issuer = issuer
        self._missing = 0
        self._sealed = False
        self._readings: list[Reading] = []
        self._over = False
        self._timer: asyncio.TimerHandle | None = None

    @property
    def over(self) -> bool:
        """Nobody waits any more. May be asked on a thread."""
        return self._over or self.future.done()  # done, not over: its task was cancelled in this very turn

    def wait(self) -> None:
        """Fail at the deadline, unless it has settled: most do before anybody has to wait."""
        if not self._over:
            self._timer = self._loop.call_later(max(0.0, self.deadline - self.started), self.expire)

    def expect(self) -> None:
        """Wait for one window more."""
        self._missing += 1

    def seal(self) -> None:
        """Note that the windows which are expected are the whole text."""
        self._sealed = True
        self._look_whether_all()

    def take(self, outcome: Outcome) -> None:
        """Take the outcome of one window; the first bad one fails the ticket."""
        if self.over:
            return
        if isinstance(outcome, ScoringError):
            self.fail(outcome)
            return
        self._readings.append(outcome)
        self._missing -= 1
        self._look_whether_all()

    def _look_whether_all(self) -> None:
        if self._sealed and not self._missing and not self.over:
            reading = joined(self._readings)
            self._leave()
            self._issuer.settled(self, reading)
            self.future.set_result(reading)

    def recall(self, reading: Reading) -> None:
        """Settle with what is known already; the issuer does not hear of it, since nothing was asked of its model."""
        self._over = True
        self.future.set_result(reading)

    def fail(self, error: ScoringError) -> None:
        """Settle without scores."""
        if self.over:
            return
        self._leave()
        self._issuer.settled(self, error)
        self.future.set_exception(error)

    def expire(self) -> None:
        """Settle at the deadline."""
        name = self._issuer.name
        self.fail(ScoringError(f"classifier `{name}` passed its deadline; raise it or ask less", reason="deadline"))

    def abandon(self) -> None:
        """Note that nobody waits any more; harmless after the ticket has settled."""
        if not self._over:
            self._leave()
            self._issuer.forsaken(self)
        if not self.future.cancel() and not self.future.cancelled():
            self.future.exception()  # seen: the loop must not report it as lost

    def _leave(self) -> None:
        self._over = True
        if self._timer is not None:
            self._timer.cancel()
