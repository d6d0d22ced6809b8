"""Disjoint ranges of a text, in its order: added at the end, looked up by position, forgotten from the start."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from checkstream.core.terms import Span


class Ranges:
    """Half-open ranges in the order of the text that don't overlap: looked up by halving, kept as plain numbers."""

    __slots__ = ("_ends", "_starts")

    def __init__(self) -> None:
        """Start empty."""
        self._starts = array("q")
        self._ends = array("q")

    def add(self, start: int, end: int) -> None:
        """Add a range behind all others."""
        self._starts.append(start)
        self._ends.append(end)

    def around(self, position: int) -> Span | None:
        """Return the range that starts at or before `position` and is the last to do so."""
        place = bisect_right(self._starts, position) - 1
        return Span(self._starts[place], self._ends[place]) if place >= 0 else None

    def over(self, span: Span) -> list[Span]:
        """Return the ranges that have a character in common with a span, in order."""
        first, last = bisect_right(self._ends, span.start), bisect_left(self._starts, span.end)
        return [Span(self._starts[place], self._ends[place]) for place in range(first, last)]

    def forget(self, position: int) -> None:
        """Drop what ends before `position`, when that is enough to be worth the work."""
        count = bisect_left(self._ends, position)
        if count > _MIN_FORGOTTEN and 2 * count >= len(self._ends):
            del self._starts[:count], self._ends[:count]


_MIN_FORGOTTEN = 256
