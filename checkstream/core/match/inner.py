"""A text that stands within another one, encoded: a text of its own, with all of its own views, mapped back exactly.

What it holds encoded is a text of its own in turn, up to `MOST_DEEP` times.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Protocol

from checkstream.core.match.lane import Found
from checkstream.core.terms import Finding

MOST_DEEP: Final = 3
"""Times that a text is looked for within another: base64 of base64 is two."""
MOST_LIVE: Final = 16384
"""Characters of the outer text for which an inner one may be undecided: then it is taken for what it may become."""


class Reader(Protocol):
    """What searches the inner text (a `Scan`)."""

    @property
    def live(self) -> int:
        """Oldest place of the inner text that is undecided."""

    def feed(self, text: str) -> list[Finding]:
        """Read on; return what is decided."""

    def give_up(self) -> list[Finding]:
        """Take what is undecided for what it may become, and decide all else."""

    def end(self) -> list[Finding]:
        """Decide all."""


Open = Callable[[], Reader]
"""Begins an inner text."""


class Inner:
    """One inner text; mutable. Positions that go in and out are those of the outer text."""

    __slots__ = ("_base", "_begin", "_ends", "_reader", "_starts", "read_to")

    def __init__(self, begin: Open, at: int) -> None:
        """Begin at the outer offset `at`."""
        self._begin = begin
        self._reader = begin()
        self._base = 0
        """Position, in the inner text, of the first character that the map still knows."""
        self._starts: list[int] = []
        self._ends: list[int] = []
        self.read_to = at
        """Outer offset up to which it has been read."""

    @property
    def live(self) -> int:
        """Oldest place that is undecided."""
        place = self._reader.live - self._base
        return self._starts[place] if place < len(self._starts) else self.read_to

    def append(self, text: str, starts: Sequence[int], ends: Sequence[int], read_to: int, out: list[Found]) -> None:
        """Read on, to the outer offset `read_to`, beyond which no character of `text` ends."""
        at = 0
        while at < len(text):
            # Up to where it may be live for too long: that place is in the text, and not in how it was cut.
            live = self.live if self._starts else starts[at]
            after = max(bisect_right(ends, live + MOST_LIVE, at), at + 1)
            self._starts += starts[at:after]
            self._ends += ends[at:after]
            self.read_to = ends[after - 1]
            self._tell(self._reader.feed(text[at:after]), out)
            at = after
            if self.read_to - self.live > MOST_LIVE:
                self._tell(self._reader.give_up(), out)
                self._reader, self._base, self._starts, self._ends = self._begin(), 0, [], []
            else:
                cut = self._reader.live - self._base
                del self._starts[:cut], self._ends[:cut]
                self._base += cut
        self.read_to = read_to

    def finish(self, out: list[Found]) -> None:
        """End the text."""
        self._tell(self._reader.end(), out)

    def _tell(self, findings: Sequence[Finding], out: list[Found]) -> None:
        for each in findings:
            low, high = each.span.start - self._base, each.span.end - self._base
            out.append(Found(self._starts[low], self._ends[high - 1], each.signal, each.capped, each.recited))
