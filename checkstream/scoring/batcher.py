"""What to run next, and together: takes windows out of a queue, one of each asker in turn.

Pure: no clock, no loop, no model. INVARIANTS: a window is taken once or dropped with its asker, never lost or doubled;
windows of one asker are taken in their order; while an asker waits, nobody else is served twice. So a short text waits
for one window of each text before it, however long those are, and a long one can't starve.

Source: text-embeddings-inference, `core/src/queue.rs` (a token budget, dead entries dropped when a batch is formed);
round robin by asker is ours.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Generic, Protocol, TypeVar

import msgspec

from checkstream.scoring.session import Window


class Asker(Protocol):
    """Who waits for windows of one text; told apart by identity."""

    @property
    def deadline(self) -> float:
        """Monotonic seconds after which nobody wants the answer."""


AskerT = TypeVar("AskerT", bound=Asker)


class Entry(msgspec.Struct, Generic[AskerT], frozen=True, eq=False):
    """One window that was taken out of the queue, and for whom."""

    window: Window
    asker: AskerT


class Queue(Generic[AskerT]):
    """Windows that wait, by who asked."""

    def __init__(self) -> None:
        """Begin empty."""
        self._askers: OrderedDict[AskerT, deque[Window]] = OrderedDict()
        self.tokens = 0
        """Of all windows that wait."""

    def __bool__(self) -> bool:
        """Tell whether some window waits."""
        return bool(self._askers)

    def put(self, asker: AskerT, window: Window) -> None:
        """Append a window; an asker that is new comes last."""
        self._askers.setdefault(asker, deque()).append(window)
        self.tokens += window.tokens

    def take(self, now: float, *, entries: int, tokens: int) -> list[Entry[AskerT]]:
        """Take a batch: one window of each asker in turn, as long as they fit together.

        The budget counts padded tokens (entries x longest window), which is what a model computes. A window that alone
        exceeds it makes a batch of its own, since waiting won't make it smaller. Askers whose deadline has passed are
        dropped as their turn comes.

        Args:
            now: monotonic seconds.
            entries: at most so many windows, at least 1.
            tokens: budget of padded tokens.

        Returns:
            The batch; empty when nobody waits any more.
        """
        batch: list[Entry[AskerT]] = []
        widest = 0
        while self._askers and len(batch) < entries:
            asker, windows = next(iter(self._askers.items()))
            if asker.deadline <= now:
                self.drop(asker)
                continue
            wider = max(widest, windows[0].tokens)
            if batch and wider * (len(batch) + 1) > tokens:
                break
            widest = wider
            window = windows.popleft()
            self.tokens -= window.tokens
            batch.append(Entry(window, asker))
            if windows:
                self._askers.move_to_end(asker)
            else:
                del self._askers[asker]
        return batch

    def drop(self, asker: AskerT) -> None:
        """Forget what waits for an asker; harmless if nothing does."""
        self.tokens -= sum(window.tokens for window in self._askers.pop(asker, ()))
