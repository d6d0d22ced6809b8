"""What to run next, and together: takes windows out of a queue, of each caller in turn, and of each of its texts.

Pure: no clock, no loop, no model. INVARIANTS: a window is taken once or dropped with its asker, never lost or doubled;
windows of one asker are taken in their order; while a share waits, no other share is served twice, and within a share
no asker is served twice while another of it waits. So one caller's batch, however many texts it has and however long
they are, delays another caller's by one window of its own, and a long text can't starve.

Source: text-embeddings-inference, `core/src/queue.rs` (a token budget, dead entries dropped when a batch is formed);
round robin by share and by asker is ours.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import msgspec

from checkstream.scoring.session import Window


class Asker(Protocol):
    """Who waits for windows of one text; told apart by identity."""

    @property
    def share(self) -> str:
        """In whose share of the work it is: that of its caller."""


AskerT = TypeVar("AskerT", bound=Asker)


class Entry(msgspec.Struct, Generic[AskerT], frozen=True, eq=False):
    """One window that was taken out of the queue, and for whom."""

    window: Window
    asker: AskerT


class Queue(Generic[AskerT]):
    """Windows that wait, by share and by who asked."""

    def __init__(self) -> None:
        """Begin empty."""
        self._shares: OrderedDict[str, OrderedDict[AskerT, deque[Window]]] = OrderedDict()
        self.tokens = 0
        """Of all windows that wait."""

    def __bool__(self) -> bool:
        """Tell whether some window waits."""
        return bool(self._shares)

    @property
    def shares(self) -> int:
        """How many shares wait."""
        return len(self._shares)

    def put(self, asker: AskerT, window: Window) -> None:
        """Append a window; an asker that is new comes last, in its share and with it."""
        askers = self._shares.setdefault(asker.share, OrderedDict())
        askers.setdefault(asker, deque()).append(window)
        self.tokens += window.tokens

    def put_back(self, batch: Sequence[Entry[AskerT]]) -> None:
        """Undo `take`: these windows were not read after all, and are the next."""
        for entry in reversed(batch):
            share = entry.asker.share
            askers = self._shares.setdefault(share, OrderedDict())
            askers.setdefault(entry.asker, deque()).appendleft(entry.window)
            askers.move_to_end(entry.asker, last=False)
            self._shares.move_to_end(share, last=False)
            self.tokens += entry.window.tokens

    def take(self, *, entries: int, tokens: int) -> list[Entry[AskerT]]:
        """Take a batch: one window of each share in turn, as long as they fit together.

        The budget counts padded tokens (entries x longest window), which is what a model computes. A window that alone
        exceeds it makes a batch of its own, since waiting won't make it smaller.

        Args:
            entries: at most so many windows, at least 1.
            tokens: budget of padded tokens.

        Returns:
            The batch; empty when nobody waits.
        """
        batch: list[Entry[AskerT]] = []
        widest = 0
        while self._shares and len(batch) < entries:
            share, askers = next(iter(self._shares.items()))
            asker, windows = next(iter(askers.items()))
            widest = max(widest, windows[0].tokens)
            if batch and widest * (len(batch) + 1) > tokens:
                break
            window = windows.popleft()
            self.tokens -= window.tokens
            batch.append(Entry(window, asker))
            if windows:
                askers.move_to_end(asker)
            else:
                del askers[asker]
            if askers:
                self._shares.move_to_end(share)
            else:
                del self._shares[share]
        return batch

    def askers(self) -> list[AskerT]:
        """Return everyone who waits."""
        return [asker for askers in self._shares.values() for asker in askers]

    def drop(self, asker: AskerT) -> None:
        """Forget what waits for an asker; harmless if nothing does."""
        askers = self._shares.get(asker.share)
        if askers is None:
            return
        self.tokens -= sum(window.tokens for window in askers.pop(asker, ()))
        if not askers:
            del self._shares[asker.share]
