"""What models find in a text as it comes, made into findings: each span once, and none that may still grow.

A model reads windows that overlap, and says again, with more text behind it, what it has said before. So a span is
decided by the first check that lets go of its text: until then it waits, and what is said of it later replaces it.

Where several have found something over the same text:

- entities of the same name are one, of all that they cover;
- of what a validator has found, nothing is left to a model; the rest of the model's span stands;
- of two spans of models the longer one stands, then the surer one.

INVARIANT: what is decided follows from the text and from what was found in its windows, never from how it was cut.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

import msgspec

from checkstream.core.terms import Span


class Found(msgspec.Struct, frozen=True):
    """A stretch of the text that names something, as a model says."""

    name: str
    """What kind of entity it is."""
    span: Span
    score: float
    """How sure the model is, 0..1."""


class ModelEntities:
    """The entities of one text that models find."""

    __slots__ = ("_done", "_exact", "_text")

    def __init__(self, text: Callable[[Span], str], done: int = 0) -> None:
        """Start with nothing found.

        Args:
            text: Returns the original text of a span that is not older than a window.
            done: Text before this place is decided.
        """
        self._text = text
        self._done = done
        self._exact: list[tuple[Span, str]] = []
        """What validators have found, as far as a model may still say something of its text."""

    def note(self, span: Span, name: str) -> None:
        """Note that a validator has found the entity `name`; spans come in the order of their starts."""
        self._exact.append((span, name))

    def decide(self, found: Iterable[Found], gone: int, end: int, begun: int) -> tuple[list[Found], int]:
        """Take all that models have found in the window of one check; return what is decided by it.

        Args:
            found: In the text's coordinates.
            gone: Text before this place has been let go of, whoever has decided it.
            end: Text before this place is let go of.
            begun: What begins here or later, and goes on behind `end`, waits for the next check.

        Returns:
            What is decided, disjoint and in the order of the text, and the end of the text that may be let go of:
            `end`, or the start of what waits.
        """
        self._done = max(self._done, gone)
        spans = _disjoint(self._left(found))
        end = next((item.span.start for item in spans if begun <= item.span.start < end < item.span.end), end)
        decided = [item for item in spans if item.span.start < end]
        self._done = max(self._done, end, *(item.span.end for item in decided))
        self._exact = [(span, name) for span, name in self._exact if span.end > self._done]
        return decided, end

    def _left(self, found: Iterable[Found]) -> list[Found]:
        """Return what is left of some findings behind what is decided, and beside what validators have found."""
        left: list[Found] = []
        ends = list(accumulate((exact.end for exact, _ in self._exact), max))
        for item in found:
            pieces = [Span(max(item.span.start, self._done), item.span.end)]
            for place in range(bisect_right(ends, pieces[0].start), len(ends)):
                exact, name = self._exact[place]
                if exact.start >= item.span.end:
                    break
                pieces = [piece for whole in pieces for piece in self._beside(whole, exact, same=name == item.name)]
            trimmed = (self._trimmed(piece, item.span) for piece in pieces if piece.start < piece.end)
            left += (msgspec.structs.replace(item, span=span) for span in trimmed if span.start < span.end)
        return left

    def _beside(self, span: Span, exact: Span, *, same: bool) -> Sequence[Span]:
        if span.end <= exact.start or exact.end <= span.start:
            return (span,)
        if exact.start <= span.start and span.end <= exact.end:
            return ()
        if same:
            return (Span(max(min(span.start, exact.start), self._done), max(span.end, exact.end)),)
        return Span(span.start, exact.start), Span(exact.end, span.end)

    def _trimmed(self, piece: Span, whole: Span) -> Span:
        """Return what is left of a span without what stands between words where it was cut; empty if that is all."""
        text = self._text(piece)
        words = [place for place, char in enumerate(text) if char.isalnum()]
        if not words:
            return Span(piece.start, piece.start)
        start = piece.start + words[0] if piece.start > whole.start else piece.start
        end = piece.start + words[-1] + 1 if piece.end < whole.end else piece.end
        return Span(start, end)


def _disjoint(found: Sequence[Found]) -> list[Found]:
    """Return findings of which no two overlap, in the order of the text."""
    kept: list[Found] = []
    for item in sorted(_merged(found), key=_weight):
        place = bisect_right(kept, item.span.start, key=lambda other: other.span.start)
        before = kept[place - 1].span.end if place else 0
        behind = kept[place].span.start if place < len(kept) else item.span.end
        if before <= item.span.start and item.span.end <= behind:
            kept.insert(place, item)
    return kept


def _merged(found: Iterable[Found]) -> list[Found]:
    """Make one of entities of the same name that overlap."""
    merged: dict[str, list[Found]] = {}
    for item in sorted(found, key=lambda item: item.span):
        same = merged.setdefault(item.name, [])
        if same and item.span.start < same[-1].span.end:
            last = same[-1]
            whole = Span(last.span.start, max(last.span.end, item.span.end))
            same[-1] = msgspec.structs.replace(last, span=whole, score=max(last.score, item.score))
        else:
            same.append(item)
    return [item for items in merged.values() for item in items]


def _weight(item: Found) -> tuple[int, float, Span, str]:
    return item.span.start - item.span.end, -item.score, item.span, item.name
