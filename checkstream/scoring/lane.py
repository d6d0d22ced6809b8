"""A lane: the bounded queue in front of one session, and the tickets that wait behind it.

Each detector has two lanes, one for prompts and one for answers, so that a flood of long prompts neither
delays nor breaks the checks of running answers. A lane decides what is asked next and who gets which
answer; *when* it runs and on which thread is its runner's business.

INVARIANT: a ticket settles exactly once: with scores, with a `ScoringError`, or by being abandoned. Its
entries that still wait are dropped when a batch is formed.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.errors import ScoringError, ScoringReason
from checkstream.scoring.batcher import Entry, next_batch
from checkstream.scoring.breaker import Breaker
from checkstream.scoring.session import Session

Outcome = NDArray[np.float32] | ScoringError
"""Scores of one window, float32[label], or why there are none."""


class LaneLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a lane takes on."""

    queue_tokens: int
    """Tokens that may wait; a request that finds others waiting and doesn't fit is refused."""
    batch_tokens: int
    """Padded tokens of one batch."""
    batch_entries: int = 8
    """Windows of one batch (no more helps: PERFORMANCE.md, table 8)."""


class Ticket:
    """One request to one detector: as many windows as its text needs, one answer."""

    def __init__(self, lane: Lane, deadline: float, *, probe: bool) -> None:
        """Start waiting; the timer is armed by the lane that admits the ticket."""
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[NDArray[np.float32]] = loop.create_future()
        """float32[label]: the highest score of any window, by label."""
        self.entries: list[Entry] = []
        self.probe = probe
        self.started = time.monotonic()
        self._lane = lane
        self._missing = 0
        self._best: NDArray[np.float32] | None = None
        self._over = False
        self._timer = loop.call_later(max(0.0, deadline - self.started), self._expire)

    def expect(self, entries: Sequence[Entry]) -> None:
        """Wait for these windows."""
        self.entries = list(entries)
        self._missing = len(self.entries)

    def take(self, outcome: Outcome) -> None:
        """Take the outcome of one window; the first bad one fails the ticket."""
        if self._over or self.future.done():  # done, not over: its task was cancelled in this very turn
            return
        if isinstance(outcome, ScoringError):
            self.fail(outcome)
            return
        self._best = outcome if self._best is None else np.maximum(self._best, outcome)
        self._missing -= 1
        if self._missing == 0:
            self._leave()
            self._lane.settled(self, None)
            self.future.set_result(self._best)

    def fail(self, error: ScoringError) -> None:
        """Settle without scores."""
        if self._over or self.future.done():
            return
        self._leave()
        self._lane.settled(self, error)
        self.future.set_exception(error)

    def abandon(self) -> None:
        """Note that nobody waits any more; harmless after the ticket has settled."""
        if not self._over:
            self._leave()
            self._lane.forsaken(self)
        if not self.future.cancel() and not self.future.cancelled():
            self.future.exception()  # seen: the loop must not report it as lost

    def _expire(self) -> None:
        name = self._lane.name
        self.fail(ScoringError(f"classifier `{name}` passed its deadline; raise it or ask less", reason="deadline"))

    def _leave(self) -> None:
        self._over = True
        self._timer.cancel()
        for entry in self.entries:
            entry.abandoned = True


class Runner(Protocol):
    """Runs the batches of lanes at the right time and place."""

    def wake(self, lane: Lane) -> None:
        """Note that `lane` has work; its batch is formed at the end of this turn of the loop."""

    async def close(self) -> None:
        """Stop; nothing runs afterwards."""


class Lane:
    """The queue of one detector in one lane, its circuit breaker, and who waits for what."""

    def __init__(
        self,
        name: str,
        session: Session,
        *,
        labels: int,
        limits: LaneLimits,
        breaker: Breaker,
        runner: Runner,
        report: Callable[[Lane, float, ScoringReason | None], None],
        ingress: bool,
    ) -> None:
        """Queue for `session`, run by `runner`; `report` hears of every settled ticket and its seconds."""
        self.name = name
        self.session = session
        self.ingress = ingress
        self.breaker = breaker
        self._labels = labels
        self._limits = limits
        self._runner = runner
        self._report = report
        self._queue: list[Entry] = []
        self._owners: dict[Entry, Ticket] = {}
        self._queued_tokens = 0

    def submit(self, text: str, deadline: float) -> Ticket:
        """Queue a text.

        Args:
            text: what to score.
            deadline: monotonic seconds at which the ticket fails.

        Raises:
            ScoringError: refused at once: the circuit is open or the queue is full (`overload`), or the
                text could not be cut into windows (`crash`, `garbage`).
        """
        admission = self.breaker.admit(time.monotonic())
        if admission == "refuse":
            error = ScoringError(f"classifier `{self.name}` failed too often and is rested", reason="overload")
            self._report(self, 0.0, error.reason)
            raise error
        ticket = Ticket(self, deadline, probe=admission == "probe")
        try:
            entries = self._entries(text, deadline)
        except ScoringError as error:
            ticket.fail(error)
            ticket.abandon()
            raise
        ticket.expect(entries)
        for entry in entries:
            self._owners[entry] = ticket
        self._queue.extend(entries)
        self._queued_tokens += sum(entry.tokens for entry in entries)
        self._runner.wake(self)
        return ticket

    def _entries(self, text: str, deadline: float) -> list[Entry]:
        try:
            windows = self.session.cut(text)
        except Exception as error:  # a model's code may raise anything
            raise ScoringError(f"classifier `{self.name}` failed to read a text", reason="crash") from error
        if not windows or any(window.tokens < 1 for window in windows):
            raise ScoringError(f"classifier `{self.name}` cut a text into nothing", reason="garbage")
        tokens = sum(window.tokens for window in windows)
        # An empty queue takes any text: else one that is larger than the queue could never be scored.
        if self._queue and self._queued_tokens + tokens > self._limits.queue_tokens:
            raise ScoringError(f"classifier `{self.name}` has too much waiting; send less at once", reason="overload")
        return [Entry(window.text, window.tokens, deadline) for window in windows]

    @property
    def waiting(self) -> bool:
        """Some entry waits for a batch."""
        return bool(self._queue)

    def form(self, max_entries: int | None = None) -> list[Entry]:
        """Take the next batch out of the queue; empty when nobody waits for what is queued."""
        limits = self._limits
        now = time.monotonic()
        formed = next_batch(self._queue, limits.batch_tokens, now, max_entries or limits.batch_entries)
        self._queue = formed.rest
        for entry in formed.dropped:
            self._owners.pop(entry, None)
            self._queued_tokens -= entry.tokens
        for entry in formed.batch:
            self._queued_tokens -= entry.tokens
        return formed.batch

    def deliver(self, batch: Sequence[Entry], outcomes: Sequence[Outcome]) -> None:
        """Hand the outcomes of a batch to their tickets."""
        for entry, outcome in zip(batch, outcomes, strict=True):
            owner = self._owners.pop(entry, None)
            if owner is not None:
                owner.take(outcome)

    def run(self, texts: Sequence[str]) -> list[Outcome]:
        """Run the session and judge its output. May be called on the session's thread.

        One text that crashes the model must not fail its neighbours, so a crashed batch is run again
        one by one.
        """
        try:
            return judged(self.session.run(texts), len(texts), self._labels, self.name)
        except Exception as error:  # noqa: BLE001 - a model's code may raise anything
            if len(texts) > 1:
                return [self.run([text])[0] for text in texts]
            crash = ScoringError(f"classifier `{self.name}` crashed", reason="crash")
            crash.__cause__ = error
            return [crash]

    def settled(self, ticket: Ticket, error: ScoringError | None) -> None:
        """Tell the breaker and the report how a ticket ended."""
        now = time.monotonic()
        if error is None:
            self.breaker.succeed(probe=ticket.probe)
        elif error.reason == "overload":  # says nothing about the detector
            self.forsaken(ticket)
        else:
            self.breaker.fail(now, probe=ticket.probe)
        self._report(self, now - ticket.started, None if error is None else error.reason)

    def forsaken(self, ticket: Ticket) -> None:
        """Note that a ticket ended without saying anything about the detector."""
        if ticket.probe:
            self.breaker.release()

    def refuse_all(self) -> None:
        """Fail every waiting ticket: the scorer closes."""
        for ticket in set(self._owners.values()):
            ticket.fail(ScoringError(f"classifier `{self.name}` is closed", reason="overload"))
        self._queue = []
        self._owners.clear()
        self._queued_tokens = 0


def judged(output: object, batch: int, labels: int, name: str) -> list[Outcome]:
    """Check a session's output: float32[batch, label], every value finite and 0..1.

    A bad row fails its own window; a bad shape fails the whole batch.
    """
    if not isinstance(output, np.ndarray) or output.shape != (batch, labels) or output.dtype.kind != "f":
        return [_garbage(name) for _ in range(batch)]
    scores = output.astype(np.float32, copy=True)  # a session may reuse its buffer
    inside = (scores >= 0.0) & (scores <= 1.0)  # False for NaN too
    return [row if fine.all() else _garbage(name) for row, fine in zip(scores, inside, strict=True)]


def _garbage(name: str) -> ScoringError:
    return ScoringError(f"classifier `{name}` gave no usable scores", reason="garbage")
