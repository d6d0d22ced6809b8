"""When events are due in an open loop: the schedule is fixed when a stream starts and waits for nobody.

PURE: no clock, no IO. A loop that falls behind gets all that it missed at once, and how late each event is shows
how far the load generator itself was behind. (A closed loop, which sends the next event when the last one has
come back, would slow down together with what it measures and hide its delays.)
"""

from __future__ import annotations

import heapq

import msgspec


class Due(msgspec.Struct, frozen=True, order=True):
    """One event that is to be sent."""

    at_s: float
    """When it was due, on the clock that the caller of the pacer uses."""
    stream: int
    number: int
    """Position among the events of its stream, from 0."""


class Pacer:
    """The schedule of many streams, each with its own start and one common rate."""

    def __init__(self, per_s: float) -> None:
        """Start with no stream.

        Args:
            per_s: Events a second of each stream.

        Raises:
            ValueError: the rate is not positive.
        """
        if not per_s > 0:
            raise ValueError(f"a stream needs a positive rate, not `{per_s}`")
        self._period_s = 1 / per_s
        self._starts: dict[int, float] = {}
        self._heap: list[Due] = []

    def __len__(self) -> int:
        """Return how many streams run."""
        return len(self._starts)

    def add(self, stream: int, start_s: float) -> None:
        """Begin a stream whose first event is due at `start_s`.

        Raises:
            ValueError: the stream runs already.
        """
        if stream in self._starts:
            raise ValueError(f"stream `{stream}` runs already")
        self._starts[stream] = start_s
        heapq.heappush(self._heap, Due(start_s, stream, 0))

    def remove(self, stream: int) -> None:
        """End a stream: nothing of it is due any more. One that doesn't run is left alone."""
        if self._starts.pop(stream, None) is not None:
            self._heap = [due for due in self._heap if due.stream != stream]
            heapq.heapify(self._heap)

    def due(self, now_s: float) -> list[Due]:
        """Return all that is due at `now_s` and was not returned before, in the order of the schedule."""
        found: list[Due] = []
        while self._heap and self._heap[0].at_s <= now_s:
            first = self._heap[0]
            found.append(first)
            number = first.number + 1
            # From the start, not from the last event: rounding must not add up to drift.
            at_s = self._starts[first.stream] + number * self._period_s
            heapq.heapreplace(self._heap, Due(at_s, first.stream, number))
        return found
