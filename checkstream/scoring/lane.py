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
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import msgspec
import numpy as np

from checkstream.errors import ScoringError, ScoringReason
from checkstream.scoring.batcher import Entry, next_batch
from checkstream.scoring.breaker import Breaker
from checkstream.scoring.session import Reading, Readings, Session, Window, joined

Outcome = Reading | ScoringError
"""What the model says of one window, or why it says nothing."""

CUT_SLICE_S = 0.001
"""How long texts may be cut into windows before other streams get their turn."""


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

    def __init__(self, lane: Lane, deadline: float, *, probe: bool, alone: bool) -> None:
        """Start waiting; `alone`: nothing else waited in the lane when it came."""
        loop = asyncio.get_running_loop()
        self.future: asyncio.Future[Reading] = loop.create_future()
        """What the model says of the whole text."""
        self.entries: list[Entry] = []
        self.deadline = deadline
        self.probe = probe
        self.alone = alone
        self.started = time.monotonic()
        self._lane = lane
        self._missing = 0
        self._sealed = False
        self._readings: list[Reading] = []
        self._over = False
        self._timer = loop.call_later(max(0.0, deadline - self.started), self._expire)

    @property
    def over(self) -> bool:
        """Nobody waits any more."""
        return self._over or self.future.done()  # done, not over: its task was cancelled in this very turn

    def expect(self, entry: Entry) -> None:
        """Wait for this window too."""
        self.entries.append(entry)
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
            self._leave()
            self._lane.settled(self, None)
            self.future.set_result(joined(self._readings))

    def fail(self, error: ScoringError) -> None:
        """Settle without scores."""
        if self.over:
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
        self._answered = 0.0
        """When the model last read a window in time, monotonic seconds."""
        self._uncut: deque[tuple[Ticket, Iterator[Window]]] = deque()
        """Texts of which more windows are to be made; the first is the one that is being cut."""
        self._cutting: asyncio.Handle | None = None

    def submit(self, text: str, deadline: float, fresh_chars: int = 0) -> Ticket:
        """Queue a text. A long one is cut in slices of the loop, while its first windows are being read.

        Args:
            text: what to score.
            deadline: monotonic seconds at which the ticket fails.
            fresh_chars: so much at the end of the text must be covered; 0: all.

        Returns:
            The ticket. It fails, perhaps at once, with `crash` or `garbage` when the text can't be cut into windows,
            and with `overload` when the queue is full.

        Raises:
            ScoringError: refused, since the circuit is open (`overload`).
        """
        admission = self.breaker.admit(time.monotonic())
        if admission == "refuse":
            error = ScoringError(f"classifier `{self.name}` failed too often and is rested", reason="overload")
            self._report(self, 0.0, error.reason)
            raise error
        ticket = Ticket(self, deadline, probe=admission == "probe", alone=not self._queue and not self._uncut)
        self._uncut.append((ticket, self._windows(text, fresh_chars)))
        if self._cutting is None:
            self._cut()
        return ticket

    def _cut(self) -> None:
        """Cut waiting texts into windows until a slice of the loop is used up; the rest follows in the next turn."""
        self._cutting = None
        until = time.monotonic() + CUT_SLICE_S
        while self._uncut and time.monotonic() < until:
            ticket, windows = self._uncut[0]
            if ticket.over:
                self._uncut.popleft()
                continue
            try:
                window = next(windows, None)
            except ScoringError as error:
                ticket.fail(error)
                continue
            if window is not None:
                self._queue_up(ticket, window)
                continue
            self._uncut.popleft()
            ticket.seal()
        if self._uncut:
            self._cutting = asyncio.get_running_loop().call_soon(self._cut)

    def _windows(self, text: str, fresh_chars: int) -> Iterator[Window]:
        """Cut a text, with whatever goes wrong as a `ScoringError`."""
        found = False
        try:
            for window in self.session.cut(text, fresh_chars):
                if window.tokens < 1:
                    break
                found = True
                yield window
        except Exception as error:  # a model's code may raise anything
            raise ScoringError(f"classifier `{self.name}` failed to read a text", reason="crash") from error
        if not found:
            raise ScoringError(f"classifier `{self.name}` cut a text into nothing", reason="garbage")

    def _queue_up(self, ticket: Ticket, window: Window) -> None:
        # A lane where nothing waits takes any text: else one that is larger than the queue could never be scored.
        if not ticket.alone and self._queue and self._queued_tokens + window.tokens > self._limits.queue_tokens:
            reason = f"classifier `{self.name}` has too much waiting; send less at once"
            ticket.fail(ScoringError(reason, reason="overload"))
            return
        entry = Entry(window, ticket.deadline)
        ticket.expect(entry)
        self._owners[entry] = ticket
        self._queue.append(entry)
        self._queued_tokens += window.tokens
        self._runner.wake(self)

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
            self._queued_tokens -= entry.window.tokens
        for entry in formed.batch:
            self._queued_tokens -= entry.window.tokens
        return formed.batch

    def deliver(self, batch: Sequence[Entry], outcomes: Sequence[Outcome]) -> None:
        """Hand the outcomes of a batch to their tickets."""
        for entry, outcome in zip(batch, outcomes, strict=True):
            owner = self._owners.pop(entry, None)
            if owner is not None:
                if isinstance(outcome, Reading) and not owner.over:
                    self._answered = time.monotonic()
                owner.take(outcome)

    def run(self, windows: Sequence[Window]) -> list[Outcome]:
        """Run the session and judge its output. May be called on a thread.

        One text that crashes the model must not fail its neighbours, so a crashed batch is run again
        one by one.
        """
        try:
            return judged(self.session.run(windows), len(windows), self._labels, self.name)
        except Exception as error:  # noqa: BLE001 - a model's code may raise anything
            if len(windows) > 1:
                return [self.run([window])[0] for window in windows]
            crash = ScoringError(f"classifier `{self.name}` crashed", reason="crash")
            crash.__cause__ = error
            return [crash]

    def settled(self, ticket: Ticket, error: ScoringError | None) -> None:
        """Tell the breaker and the report how a ticket ended."""
        now = time.monotonic()
        if error is None:
            self.breaker.succeed(probe=ticket.probe)
        elif error.reason == "overload" or (error.reason == "deadline" and self._answered > ticket.started):
            self.forsaken(ticket)  # says nothing about the detector: there was too much to read, and it went on reading
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
        for ticket, _ in self._uncut:
            ticket.fail(ScoringError(f"classifier `{self.name}` is closed", reason="overload"))
        if self._cutting is not None:
            self._cutting.cancel()
            self._cutting = None
        self._uncut.clear()
        self._queue = []
        self._owners.clear()
        self._queued_tokens = 0


def judged(output: object, batch: int, labels: int, name: str) -> list[Outcome]:
    """Check a session's output: float32[batch, label], every score finite and 0..1.

    A bad row fails its own window; a bad shape fails the whole batch.
    """
    scores = output.scores if isinstance(output, Readings) else None
    if not isinstance(scores, np.ndarray) or scores.shape != (batch, labels) or scores.dtype.kind != "f":
        return [_garbage(name) for _ in range(batch)]
    found = output.entities if isinstance(output, Readings) and output.entities else ((),) * batch
    if len(found) != batch:
        return [_garbage(name) for _ in range(batch)]
    scores = scores.astype(np.float32, copy=True)  # a session may reuse its buffer
    inside = np.all((scores >= 0.0) & (scores <= 1.0), axis=1).tolist()  # False for NaN too
    return [
        Reading(row, entities) if fine and all(0.0 <= entity.score <= 1.0 for entity in entities) else _garbage(name)
        for row, fine, entities in zip(scores, inside, found, strict=True)
    ]


def _garbage(name: str) -> ScoringError:
    return ScoringError(f"classifier `{name}` gave no usable scores", reason="garbage")
