"""What stands before a text elsewhere, read on with how the text begins: whoever reads both may put a value together.

A model thinks, then speaks, then calls tools. Each is a text of its own, and its end is another's beginning.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from itertools import accumulate
from typing import Protocol

import msgspec

from checkstream.core.match.patterns import LEFT_CONTEXT_CHARS, PatternSet
from checkstream.core.match.scan import scanning
from checkstream.core.match.work import Work
from checkstream.core.terms import Finding, Span

BEFORE_CHARS = 256
"""Of what stands before a text: more than any number and most keys have."""
_STEP_CHARS = 16
_BETWEEN = ("", " ")
"""What a reader may put between the two."""


class Owner(Protocol):
    """Has one of the texts before."""

    def take_over_seam(self, finding: Finding) -> None:
        """Take what was found over the end of a stretch of the text."""


class Stretch(msgspec.Struct, eq=False):
    """A text before, or the end of one. It stands before many others, and is read by itself once for all of them."""

    text: str
    start: int = 0
    """Where it begins in the text that it is of."""
    owner: Owner | None = None
    """Has that text; None: it is not edited."""
    own: bool = False
    """It is of the same text that goes on."""
    cut: bool = False
    """Something stood before it in the same word: what begins near its beginning is not known."""
    _alone: tuple[PatternSet, list[Finding]] | None = None

    def alone(self, patterns: PatternSet, work: Work) -> list[Finding]:
        """Return what it has by itself."""
        if self._alone is None or self._alone[0] is not patterns:
            scan = scanning(patterns, work)
            self._alone = patterns, scan.feed(self.text) + scan.end()
        return self._alone[1]


class _Reading:
    """One way to put them together."""

    __slots__ = ("scan", "seam", "starts")

    def __init__(self, stretches: Sequence[Stretch], between: str, patterns: PatternSet, work: Work) -> None:
        self.starts = [0, *accumulate(len(each.text) + len(between) for each in stretches)]
        """Where each of them begins, and what follows them."""
        self.seam = self.starts[-1]
        self.scan = scanning(patterns, work)
        self.scan.feed("".join([each.text + between for each in stretches]))

    @property
    def live(self) -> bool:
        """Something that begins before the seam could still become a match."""
        return self.scan.live < self.seam


class Seam:
    """Reads how a text begins, or goes on, together with what stands before it elsewhere.

    Only what stands over the seam counts, and of which no text before has such a thing by itself: an address with the
    word behind it is none.
    """

    __slots__ = ("_before", "_least", "_patterns", "_readings", "_work", "at")

    def __init__(
        self,
        patterns: PatternSet,
        before: Sequence[Stretch],
        at: int,
        work: Work,
        between: Sequence[str] = _BETWEEN,
    ) -> None:
        """Begin with no text.

        Args:
            patterns: What is searched for.
            before: What stands before it, in order.
            at: Where in its own text it goes on.
            work: Takes what reading costs.
            between: What a reader may put between two.
        """
        self._patterns, self._before, self._work = patterns, before, work
        self.at = at
        """The text is held from here on for what may still stand over the seam."""
        readings = (_Reading(before, each, patterns, work) for each in between)
        self._readings = [reading for reading in readings if reading.live]
        self._least = LEFT_CONTEXT_CHARS if before[0].cut else 0
        """Before this the first text is only context."""

    @property
    def over(self) -> bool:
        """Nothing that begins before the text can become a match any more."""
        return not self._readings

    @property
    def ahead(self) -> int:
        """How many characters can be read until each may be dear."""
        return min(reading.scan.ahead for reading in self._readings)

    def feed(self, text: str) -> list[Finding]:
        """Read on; return what stands over the seam, as it stands in the text itself."""
        found: list[Finding] = []
        for reading in self._readings:
            found += self._taken(reading, reading.scan.feed(text))
        if found or not all(reading.live for reading in self._readings):
            self._readings = [reading for reading in self._readings if reading.live]
        return found

    def end(self) -> list[Finding]:
        """The text has ended: decide all."""
        found: list[Finding] = []
        for reading in self._readings:
            found += self._taken(reading, reading.scan.end())
        self._readings = []
        return found

    def _taken(self, reading: _Reading, found: Sequence[Finding]) -> list[Finding]:
        own: list[Finding] = []
        for finding in found:
            span = finding.span
            if not self._least <= span.start < reading.seam < span.end:
                continue
            if any(self._has_alone(each, at, finding) for each, at in zip(self._before, reading.starts, strict=False)):
                continue
            begin = self.at
            for each, at in zip(self._before, reading.starts, strict=False):
                low, high = max(span.start - at, 0), min(span.end - at, len(each.text))
                if low >= high:
                    continue
                stretch = Span(each.start + low, each.start + high)
                if each.own:
                    begin = stretch.start
                elif each.owner is not None:
                    each.owner.take_over_seam(msgspec.structs.replace(finding, span=stretch))
            rest = Span(begin, span.end - reading.seam + self.at)
            own.append(msgspec.structs.replace(finding, span=rest))
        return own

    def _has_alone(self, stretch: Stretch, at: int, finding: Finding) -> bool:
        """Tell whether a text before has by itself, where a finding is, what it is."""
        if not finding.span.start < at + len(stretch.text) or not at < finding.span.end:
            return False
        alone = stretch.alone(self._patterns, self._work)
        return any(each.signal == finding.signal and each.span.end + at > finding.span.start for each in alone)


def reading_as_one(texts: Sequence[Stretch], patterns: PatternSet, work: Work) -> Generator[None, None, None]:
    """Tell the owners of some texts, in steps, what stands over the last border between them."""
    *before, last = texts
    seam = Seam(patterns, before, last.start, work)
    yield
    found: list[Finding] = []
    for at in range(0, len(last.text), _STEP_CHARS):
        if seam.over:
            break
        found += seam.feed(last.text[at : at + _STEP_CHARS])
        yield
    found += seam.end()
    if last.owner is not None:
        for finding in found:
            last.owner.take_over_seam(finding)
