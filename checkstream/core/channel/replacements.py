"""What is sent in place of parts of a channel's text: replaced spans, and insertions between characters."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator

import msgspec

from checkstream.core.policy.action import Pseudonymise
from checkstream.core.policy.program import Signal
from checkstream.core.terms import Span

_A_STEP = 1024
"""Replacements that are forgotten at a time."""


class Alias(msgspec.Struct, frozen=True):
    """What is asked for that stands for a text and can be told from it; which one is known when all of them are."""

    signal: Signal
    """What found the text."""
    action: Pseudonymise


class Replacement(msgspec.Struct, frozen=True):
    """A span of the original text and what is sent in its place.

    An empty span is an insertion: it is sent together with the character that follows it, right before that.
    """

    start: int
    end: int
    text: str
    rewritten: bool = False
    """The text says some of what the original said, so it is not proof against later edits of a part of the span."""
    bare: str = ""
    """What a number in the span becomes in JSON; empty: a string with the text."""
    behind: str = ""
    """Insertions inside the span: they are sent behind the text."""
    alias: Alias | None = None
    """In a prompt: in place of the text stands what can be put back."""
    hidden: str | None = None
    """What the model has said here, where the text has values of the caller that it does not know; None: the text."""


class Replacements:
    """The replacements of one channel, disjoint and in the order of the text.

    An insertion stands before the span that starts at its place and behind the one that ends there, never inside one.
    """

    __slots__ = ("hides", "items")

    def __init__(self) -> None:
        """Start with none."""
        self.items: list[Replacement] = []
        self.hides = False
        """Something is sent, or was, that the model does not know."""

    def __iter__(self) -> Iterator[Replacement]:
        return iter(self.items)

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self.items)

    def add(self, item: Replacement, sent: int) -> None:
        """Add a replacement; it merges with those it overlaps.

        The later one decides the text of what it covers whole; of an overlap only the free part is added, but text
        that has only been rewritten gives way whole. An insertion inside a replaced span, whichever came first, is
        put behind it.

        Args:
            item: What is sent, and for what.
            sent: End of the text that has been sent, `whole` by that. A span starts there or later; an insertion
                is put there at least.
        """
        self.hides = self.hides or item.hidden is not None
        if item.start == item.end:
            self._insert(max(item.start, sent), item.text)
        elif not self.items or item.start >= self.items[-1].end:
            self.items.append(item)
        else:
            self._overlay(item)

    def _insert(self, position: int, text: str) -> None:
        place = bisect_right(self.items, position, key=lambda item: item.end)
        if place < len(self.items) and self.items[place].start < position:
            item = self.items[place]
            self.items[place] = msgspec.structs.replace(item, behind=item.behind + text)
        else:
            self.items.insert(place, Replacement(position, position, text))

    def _overlay(self, new: Replacement) -> None:
        start, end = new.start, new.end
        first = self._first(start)
        last = bisect_right(self.items, end, first, key=lambda item: item.start)
        near = self.items[first:last]
        for item in near:
            if item.rewritten and item.start < end and start < item.end:
                start, end = min(start, item.start), max(end, item.end)
        covered = [item for item in near if item.start < item.end and start <= item.start and item.end <= end]
        kept = [item for item in near if item.start == item.end or item.start < start or end < item.end]
        for item in kept:
            if item.start < start < item.end:
                start = item.end
            if item.start < end < item.end:
                end = item.start
        if start < end:
            inside = [item for item in kept if item.start == item.end and start < item.start < end]
            kept = [item for item in kept if item not in inside]
            # Text to be sent behind a span that is covered whole is sent behind what covers it.
            behind = "".join(
                item.text if item.start == item.end else item.behind for item in sorted((*covered, *inside), key=_place)
            )
            kept.append(msgspec.structs.replace(new, start=start, end=end, behind=new.behind + behind))
        self.items[first:last] = sorted(kept, key=_place)

    def _first(self, position: int) -> int:
        """Return the place of the first replacement that ends at `position` or behind it."""
        return bisect_left(self.items, position, key=lambda item: item.end)

    def within(self, span: Span) -> list[Replacement]:
        """Return the replacements that stand in a span or over its bounds, in order; none of those that touch it."""
        found: list[Replacement] = []
        for place in range(bisect_right(self.items, span.start, key=lambda item: item.end), len(self.items)):
            if self.items[place].start >= span.end:
                break
            found.append(self.items[place])
        return found

    def touch(self, start: int, end: int) -> bool:
        """Tell whether what is sent for `start..end` differs from the original."""
        place = self._first(start)
        while place < len(self.items) and self.items[place].start < end:
            if self.items[place].end > start or self.items[place].start == start:
                return True
            place += 1
        return False

    def render(
        self, start: int, end: int, original: Callable[[Span], str], *, cut: bool = False, hidden: bool = False
    ) -> str:
        """Return what is sent for `start..end` of the original text: a replacement stands where its span starts.

        Args:
            start: Start of the text.
            end: End of it.
            original: Returns the original text of a span.
            cut: The text goes on behind `end`, and nothing of that is sent but what is inserted at `end`.
            hidden: Without the values of the caller that the model does not know.
        """
        parts: list[str] = []
        at = start
        for place in range(self._first(start), len(self.items)):
            item = self.items[place]
            if item.start >= end and not (cut and item.end == end):
                break
            if item.start >= start:
                said = item.text if item.hidden is None or not hidden else item.hidden
                parts += (original(Span(at, item.start)), said, item.behind)
            at = max(at, item.end)
        if at < end:
            parts.append(original(Span(at, end)))
        return "".join(parts)

    def whole(self, position: int) -> int:
        """Return `position`, or where the replaced span starts in which it stands, for that is sent all at once."""
        over = self.within(Span(position, position + 1))
        return min(position, over[0].start) if over else position

    def cut(self, position: int) -> None:
        """Drop what starts at `position` or behind it; what is inserted there stays."""
        self.items = [item for item in self.items if item.start < position or item.end == position]

    def forget(self, position: int) -> bool:
        """Drop some of what ends before `position`; return whether there is more of it: thousands at once take long."""
        gone = self._first(position)
        del self.items[: min(gone, _A_STEP)]
        return gone > _A_STEP


def _place(item: Replacement) -> tuple[int, int]:
    return item.start, item.end
