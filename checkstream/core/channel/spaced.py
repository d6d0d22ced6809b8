"""The parts of a text, read with a space between them, as some readers join them."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Sequence

import msgspec

from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.scan import scanning
from checkstream.core.match.work import Work
from checkstream.core.terms import Finding, Span

_GAP = " "
_STEP_CHARS = 256
_MOST_GAPS = 512
"""That are remembered before it is asked which of them still matter."""

Own = Iterable[tuple[int, Span]]
"""Signals and places of what parts have by themselves."""


class Spaced:
    """One reading of a text whose parts stand apart, for as long as something that begins before a gap is live.

    Only what stands over a gap counts, and of which no part before the last has such a thing by itself: an address with
    the word behind it is none. All gaps are read in one go, so a part costs what it says, whatever stands before it.
    """

    __slots__ = ("_first", "_gaps", "_least", "_passed", "_scan", "_size")

    def __init__(self, patterns: PatternSet, first: int, least: int, work: Work) -> None:
        """Begin before the first character that is read.

        Args:
            patterns: What is searched for.
            first: Where that stands in the text.
            least: What begins before this in the text is decided.
            work: Takes what reading costs.
        """
        self._scan = scanning(patterns, work)
        self._first = first
        self._least = least
        self._gaps: list[int] = []
        """Where the gaps stand in what is read; of those that still matter."""
        self._passed = 0
        """How many there were before those."""
        self._size = 0

    @property
    def over(self) -> bool:
        """Nothing that begins before the last gap can become a match any more."""
        return self._scan.live >= self._gaps[-1]

    @property
    def live(self) -> int:
        """Oldest start in the text that could still become a match."""
        return self._own(self._scan.live)

    @property
    def ahead(self) -> int:
        """How many characters can be read until each may be dear."""
        return self._scan.ahead

    def begin(self, text: str) -> Generator[None, None, None]:
        """Read, in steps, what stands before the first gap."""
        for at in range(0, len(text), _STEP_CHARS):
            self._scan.feed(text[at : at + _STEP_CHARS])
            yield
        self._size = len(text)

    def part(self, own: Own) -> list[Finding]:
        """Read a gap: a part ends here; return what is found by that, as it stands in the text."""
        if self._gaps and self._gaps[-1] == self._size - 1:
            return []  # the part was empty
        if len(self._gaps) >= _MOST_GAPS:
            passed = bisect_left(self._gaps, self._scan.live - 1)
            self._passed += passed
            del self._gaps[:passed]
        self._gaps.append(self._size)
        return self.feed(_GAP, own)

    def feed(self, text: str, own: Own) -> list[Finding]:
        """Read on; return what stands over a gap, as it stands in the text."""
        self._size += len(text)
        found = self._scan.feed(text)
        return self._taken(found, own) if found else found

    def end(self, own: Own) -> list[Finding]:
        """The text has ended: decide all."""
        return self._taken(self._scan.end(), own)

    def _own(self, at: int) -> int:
        """Return where in the text stands what is read at a place."""
        return self._first + at - self._passed - bisect_left(self._gaps, at)

    def _taken(self, found: Sequence[Finding], own: Own) -> list[Finding]:
        taken: list[Finding] = []
        for finding in found:
            behind = bisect_left(self._gaps, finding.span.end)
            if behind <= bisect_right(self._gaps, finding.span.start):
                continue  # it stands in one part
            span = Span(self._own(finding.span.start), self._own(finding.span.end))
            last = self._own(self._gaps[behind - 1])
            if span.start < self._least and (finding.recited is None or span.end <= self._least):
                continue
            span = Span(max(span.start, self._least), span.end)  # a recital goes on behind what is decided
            touched = (at for signal, at in own if signal == finding.signal)
            if finding.recited is None and any(at.start < last and at.end > span.start for at in touched):
                continue
            taken.append(msgspec.structs.replace(finding, span=span))
        return taken
