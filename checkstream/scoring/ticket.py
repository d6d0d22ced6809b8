"""A ticket: one request to one detector, as many windows as its text needs, one answer.

A ticket waits as long as it must. It knows how much work a window of its text may cost, and nothing of the clock: a
detector that is busy is not broken (G32), and whoever can't wait any longer abandons the ticket.

INVARIANT: a ticket settles exactly once: with a reading, with a `ScoringError`, or by being abandoned.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Protocol

from checkstream.errors import ScoringError
from checkstream.scoring.among import Among
from checkstream.scoring.outcomes import Outcome
from checkstream.scoring.session import Reading, Window, joined

UNIT_TOKENS = 64
"""What a deadline is meant for: the work on a window of so many tokens, as a check of an answer has. A larger window
gets it once for each such part."""


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

    def __init__(
        self,
        issuer: Issuer,
        windows: Iterator[Window | None],
        *,
        deadline_s: float,
        share: str = "",
        key: bytes | None = None,
        caller: str | None = None,
        chars: int = 0,
    ) -> None:
        """Start waiting.

        Args:
            issuer: hears how it ends.
            windows: the text, cut as they are taken.
            deadline_s: the most work on `UNIT_TOKENS` of it, seconds.
            share: in whose share of the work it is.
            key: what its text is known by.
            caller: to whom the parts of it are known; None: to nobody.
            chars: how long it is.
        """
        self.future: asyncio.Future[Reading] = asyncio.get_running_loop().create_future()
        """What the model says of the whole text."""
        self.windows = windows
        """What is not cut yet."""
        self.share = share
        self.key = key
        self.chars = chars
        self.caller = caller
        self.started = time.monotonic()
        self.doubted = False
        """A gate has passed some window on to the model behind it ..."""
        self.owed = 0
        """... which has not read so many of them."""
        self.ahead = 0
        """Tokens of the windows that are cut and not answered."""
        self.sealed = False
        """All of it is cut."""
        self.parted = False
        """It has several windows."""
        self.recalled = False
        """What is said of it was known."""
        self._deadline_s = deadline_s
        self._issuer = issuer
        self._missing = 0
        self._readings: list[Reading] = []
        self._among: list[Among | None] = []
        """Of each reading how it counts."""
        self._over = False

    @property
    def over(self) -> bool:
        """Nobody waits any more. May be asked on a thread."""
        return self._over or self.future.done()  # done, not over: its task was cancelled in this very turn

    @property
    def empty(self) -> bool:
        """No window of it has been cut yet."""
        return not self._missing and not self._readings

    def allowed_s(self, window: Window) -> float:
        """Return the most work that a window may cost, seconds."""
        return self._deadline_s * max(1, -(-window.tokens // UNIT_TOKENS))

    def expect(self, window: Window) -> None:
        """Wait for one window more."""
        self.parted = not self.empty
        self._missing += 1
        self.ahead += window.tokens

    def replaced(self, window: Window) -> None:
        """Note that nothing is to be said of a window itself: those are expected that were made of it."""
        if self.over:
            return
        self._missing -= 1
        self.ahead -= window.tokens
        self._look_whether_all()

    def seal(self) -> None:
        """Note that the windows which are expected are the whole text."""
        self.sealed = True
        self._look_whether_all()

    def take(self, window: Window, outcome: Outcome) -> None:
        """Take the outcome of one window; the first bad one fails the ticket."""
        if self.over:
            return
        if isinstance(outcome, ScoringError):
            self.fail(outcome)
            return
        self._readings.append(outcome)
        self._among.append(window.among)
        self._missing -= 1
        self.ahead -= window.tokens
        self._look_whether_all()

    def _look_whether_all(self) -> None:
        if self.sealed and not self._missing and not self.over:
            reading = joined(self._readings, self._among)
            self._over = True
            self._issuer.settled(self, reading)
            self.future.set_result(reading)

    def recall(self, reading: Reading) -> None:
        """Settle with what is known already; the issuer does not hear of it, since nothing was asked of its model."""
        self._over = self.recalled = True
        self.future.set_result(reading)

    def fail(self, error: ScoringError) -> None:
        """Settle without scores."""
        if self.over:
            return
        self._over = True
        self._issuer.settled(self, error)
        self.future.set_exception(error)

    def abandon(self) -> None:
        """Note that nobody waits any more; harmless after the ticket has settled."""
        if not self._over:
            self._over = True
            self._issuer.forsaken(self)
        if not self.future.cancel() and not self.future.cancelled():
            self.future.exception()  # seen: the loop must not report it as lost
