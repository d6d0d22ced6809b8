"""What to do with jobs when there is no room: a choice made alike before memory and before the disk. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

Full = Literal["drop_new", "drop_oldest", "sample"]
"""drop_new: what comes has to go. drop_oldest: the oldest has to go. sample: from half full on a shrinking share of the
exchanges is taken, so that what is scored stays spread over all of them."""


class Load(msgspec.Struct, frozen=True):
    """Jobs and their bytes."""

    jobs: int
    bytes: int

    def __add__(self, other: Load) -> Load:
        return Load(self.jobs + other.jobs, self.bytes + other.bytes)

    def __sub__(self, other: Load) -> Load:
        """Never below nothing."""
        return Load(max(0, self.jobs - other.jobs), max(0, self.bytes - other.bytes))

    def fits(self, capacity: Load) -> bool:
        """Tell whether there is room for all of it."""
        return self.jobs <= capacity.jobs and self.bytes <= capacity.bytes


class Arrival(msgspec.Struct, frozen=True):
    """A job that wants in."""

    stream: str
    bytes: int


class Choice(msgspec.Struct, frozen=True):
    """What is taken, and what has to go for it."""

    taken: tuple[bool, ...]
    """One for each arrival."""
    excess: Load
    """So much of what is there already must be dropped, the oldest first."""


def sampled(stream: str, share: float, purpose: str) -> bool:
    """Tell whether an exchange is of a sample: the same whoever asks, and of a larger share if of a smaller one.

    Args:
        stream: Id of the exchange.
        share: 0..1.
        purpose: Samples for different purposes are independent.
    """
    number = int.from_bytes(hashlib.sha256(f"{purpose}\0{stream}".encode()).digest()[:8])
    return number < share * 2**64


def choose(full: Full, capacity: Load, load: Load, arrivals: Sequence[Arrival]) -> Choice:
    """Choose which arrivals are taken.

    INVARIANT: if `load` fits, so does what is left of it together with what is taken.

    Args:
        full: What to do when there is no room.
        capacity: Most that may be there.
        load: What is there; may be more, when the capacity was lowered.
        arrivals: What wants in, in its order.
    """
    if full == "drop_oldest":
        return _newest(capacity, load, arrivals)
    taken = []
    for arrival in arrivals:
        with_it = load + Load(1, arrival.bytes)
        fits = with_it.fits(capacity) and (
            full == "drop_new" or sampled(arrival.stream, _share(capacity, load), "room")
        )
        load = with_it if fits else load
        taken.append(fits)
    return Choice(tuple(taken), Load(0, 0))


def freed(excess: Load, oldest: Iterable[int]) -> int:
    """Return how many of the oldest jobs, given by their bytes, have to go to free so much; all, if all are too few."""
    count = 0
    for size in oldest:
        if not excess.jobs and not excess.bytes:
            break
        excess -= Load(1, size)
        count += 1
    return count


def _newest(capacity: Load, load: Load, arrivals: Sequence[Arrival]) -> Choice:
    """Keep the longest end of the line that there is room for; an arrival that is too large by itself never gets in."""
    kept = Load(0, 0)
    taken = [False] * len(arrivals)
    for place in range(len(arrivals) - 1, -1, -1):
        with_it = kept + Load(1, arrivals[place].bytes)
        if not with_it.fits(capacity):
            if Load(1, arrivals[place].bytes).fits(capacity):
                break
            continue
        kept, taken[place] = with_it, True
    return Choice(tuple(taken), load - (capacity - kept))


def _share(capacity: Load, load: Load) -> float:
    """Return which share is taken: all until half full, then less and less."""
    fill = max(load.jobs / capacity.jobs, load.bytes / capacity.bytes)
    return min(1.0, max(0.0, 2.0 * (1.0 - fill)))
