"""What to run together: forms batches from a queue. Pure: no clock, no loop, no model.

INVARIANT: `batch`, `dropped` and `rest` part the queue: nothing is lost, doubled or reordered, and
`rest` is what stood behind the last entry that was looked at.

Source: text-embeddings-inference, `core/src/queue.rs` (a deque, a token budget, dead entries dropped
when a batch is formed).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.scoring.session import Window


class Entry(msgspec.Struct, eq=False):
    """One window that waits for its scores."""

    window: Window
    deadline: float
    """Monotonic seconds after which nobody wants the answer."""
    abandoned: bool = False
    """The asker has gone or has failed; set by the owner of the queue."""


class Formed(msgspec.Struct, frozen=True, eq=False):
    """One batch and what became of the queue."""

    batch: list[Entry]
    rest: list[Entry]
    dropped: list[Entry]
    """Expired or abandoned entries that stood before the end of the batch."""


def next_batch(entries: Sequence[Entry], token_budget: int, now: float, max_entries: int = 8) -> Formed:
    """Take the oldest live entries that fit the budget together.

    The budget counts padded tokens (entries x longest entry), which is what a model computes. An entry
    that alone exceeds the budget forms a batch of its own, since waiting won't make it smaller.

    Args:
        entries: the queue, oldest first.
        token_budget: padded tokens of one batch.
        now: monotonic seconds.
        max_entries: cap on the entries of one batch.

    Returns:
        The batch (empty when no live entry is left), the rest of the queue, and the dropped entries.
    """
    batch: list[Entry] = []
    dropped: list[Entry] = []
    longest = 0
    for position, entry in enumerate(entries):
        if entry.abandoned or entry.deadline <= now:
            dropped.append(entry)
            continue
        widest = max(longest, entry.window.tokens)
        if batch and (len(batch) >= max_entries or widest * (len(batch) + 1) > token_budget):
            return Formed(batch, list(entries[position:]), dropped)
        batch.append(entry)
        longest = widest
    return Formed(batch, [], dropped)
