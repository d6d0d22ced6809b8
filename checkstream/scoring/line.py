"""A line: windows that wait to be read in one way, where and when they are, and whether that works (G24).

A lane has one line, and a second one where a gate stands before its model. What a line counts is work: CPU time of the
thread that reads. How long a window waits for its turn, or a thread for its core, says nothing of the detector (G32).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from checkstream.errors import ScoringError
from checkstream.scoring.batcher import Entry, Queue
from checkstream.scoring.breaker import Breaker, State
from checkstream.scoring.outcomes import Outcome
from checkstream.scoring.session import Window
from checkstream.scoring.ticket import Ticket

Waiting = Entry[Ticket]

MOST_HUNG = 2
"""Reads of one line that hang: while so many do, nothing more is given to it."""


class Read(msgspec.Struct, frozen=True, eq=False):
    """What came of a window."""

    entry: Waiting
    outcome: Outcome | None
    """None: who has read it can't tell."""
    work_s: float = 0.0
    """CPU time that it took; 0 where that is spent elsewhere."""


class LaneLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much a lane takes on at a time."""

    ahead_tokens: int = 2_048
    """Tokens of one text that are cut and wait to be read; the rest of it is cut when they have been."""
    batch_tokens: int = 512
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
        name: str,
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
            name: the detector.
            read: reads one window; may be called on a thread. None: it can't tell.
            take: hears what came of a window, on the loop.
            runner: when and where it is read.
            breaker: the circuit of this way of reading.
            limits: bounds of a batch.
            ingress: windows of prompts.
            brief: reading a window costs less than to put it off: it may be read as it comes.
        """
        self.ingress = ingress
        self.brief = brief
        self.breaker = breaker
        self.apart = False
        """It is read on a thread, not on the loop."""
        self.answered = False
        """A window has been read."""
        self.work_s = 0.0
        """CPU time that all reading has taken ..."""
        self.read_tokens = 0
        """... of so many tokens."""
        self._name = name
        self._read = read
        self._hung = 0
        self._probe: Ticket | None = None
        """Whose result decides over the circuit."""
        self._postponed: list[tuple[Ticket, Callable[[], None]]] = []
        """What waits for that."""
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

    @property
    def state(self) -> State:
        """Of its circuit; open also while too many reads hang."""
        return "open" if self._hung >= MOST_HUNG else self.breaker.state

    # --- whether it works

    def admit(self, ticket: Ticket) -> Literal["pass", "probe", "wait", "refuse"]:
        """Say whether a ticket may be read here; of one that may, `succeed`, `fail` or `release` is called.

        One that is to wait is asked about again when it is known what comes of the probe (see `postpone`).
        """
        if self._hung >= MOST_HUNG:
            return "refuse"
        admission = self.breaker.admit(time.monotonic(), ticket.share)
        if admission == "probe":
            self._probe = ticket
        return admission

    def succeed(self, ticket: Ticket) -> None:
        """Note that all was read that a ticket has here."""
        probe = self._ends(ticket)
        self.breaker.succeed(probe=probe)
        self._go_on(probe=probe)

    def fail(self, ticket: Ticket) -> None:
        """Note that a ticket was not read for a reason that lies here."""
        probe = self._ends(ticket)
        self.breaker.fail(time.monotonic(), ticket.share, probe=probe)
        self._go_on(probe=probe)

    def release(self, ticket: Ticket) -> None:
        """Note that a ticket says nothing of how reading goes; harmless after its result."""
        if self._ends(ticket):
            self.breaker.release()
            self._go_on(probe=True)

    def postpone(self, ticket: Ticket, again: Callable[[], None]) -> None:
        """Have `again` called when it is known what comes of the probe, unless the ticket is over by then."""
        self._postponed.append((ticket, again))

    def _go_on(self, *, probe: bool) -> None:
        """Go on with what has waited for a probe that has ended."""
        if not probe or not self._postponed:
            return
        waited, self._postponed = self._postponed, []
        for ticket, again in waited:
            if not ticket.over:
                again()

    def _ends(self, ticket: Ticket) -> bool:
        if self._probe is not ticket:
            return False
        self._probe = None
        return True

    def late(self) -> ScoringError:
        """Return the error of a window that was worked on for longer than it may be."""
        reason = f"classifier `{self._name}` passed the deadline for its work on a text; raise it, or mend the detector"
        return ScoringError(reason, reason="deadline")

    def hangs(self, entry: Waiting, handed: Sequence[Waiting]) -> None:
        """Note that the read of a window is given up: it was worked on for too long, or does not come back.

        Args:
            entry: the window.
            handed: what stands behind it at the same reader.
        """
        self._hung += 1
        self.deliver([Read(entry, self.late())])
        if self._hung >= MOST_HUNG:
            for ticket in (*(each.asker for each in handed), *self._queue.askers()):
                ticket.fail(self.late())

    def breaks(self, entry: Waiting, cause: BaseException | None) -> None:
        """Note that who read a window is no more: the window is not read again, since it may be what has ended it."""
        crash = ScoringError(f"classifier `{self._name}` ended its thread", reason="crash")
        crash.__cause__ = cause
        self.deliver([Read(entry, crash)])

    def comes_back(self) -> None:
        """Note that a read which was given up has ended after all."""
        self._hung -= 1

    # --- work

    def put(self, ticket: Ticket, window: Window) -> None:
        """Queue a window."""
        self._queue.put(ticket, window)
        self._runner.wake(self)

    def put_back(self, batch: Sequence[Waiting]) -> None:
        """Queue windows again, before all others: whoever reads was too busy."""
        self._queue.put_back([entry for entry in batch if not entry.asker.over])

    def form(self, entries: int | None = None) -> list[Waiting]:
        """Take the next batch out of the queue; empty when nobody waits."""
        return self._queue.take(entries=entries or self._limits.batch_entries, tokens=self._limits.batch_tokens)

    def read(self, entry: Waiting) -> Read:
        """Read a window and count the work. May be called on a thread."""
        began = time.thread_time()
        outcome = self._read(entry.window)
        work_s = time.thread_time() - began
        if work_s > entry.asker.allowed_s(entry.window) and not isinstance(outcome, ScoringError):
            outcome = self.late()
        return Read(entry, outcome, work_s)

    def deliver(self, batch: Sequence[Read]) -> None:
        """Hand on what came of a batch."""
        for read in batch:
            self.work_s += read.work_s
            self.read_tokens += read.entry.window.tokens
            if not read.entry.asker.over:
                self.answered = self.answered or not isinstance(read.outcome, ScoringError)
                self._take(read.entry, read.outcome)

    def drop(self, ticket: Ticket) -> None:
        """Forget what waits for a ticket."""
        self._queue.drop(ticket)
