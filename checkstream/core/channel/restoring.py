"""The caller's own values, put back where the model has written what stands for them.

A placeholder that stands for nothing stays as it is, and so does one whose value the caller may not see. What a rule
finds within a placeholder that stands for something is found in a name for what the caller has, and counts for
nothing: the value itself is not read again, since the model has not said it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from checkstream.core.channel.holdback import Holdback
from checkstream.core.channel.page import Page
from checkstream.core.channel.replacements import Replacement
from checkstream.core.match.placeholders import PLACEHOLDER, Label, Placeholders
from checkstream.core.pseudonyms.quoting import PLAIN, Quoting
from checkstream.core.pseudonyms.register import Register
from checkstream.core.pseudonyms.runs import parts_of
from checkstream.core.terms import Finding, Span


class Restored(msgspec.Struct, frozen=True):
    """What has been made of some findings."""

    findings: tuple[Finding, ...]
    """Those that rules are asked about."""
    edits: tuple[Replacement, ...]
    places: tuple[Span, ...]
    """Where placeholders stand that stand for something, in order."""


class Restoring:
    """Puts values back into one channel."""

    __slots__ = ("_degrade", "_holdback", "_page", "_placeholders", "_quoting", "_register")

    def __init__(
        self,
        placeholders: Placeholders,
        register: Register,
        page: Page,
        holdback: Holdback,
        degrade: Callable[[str], None],
    ) -> None:
        """Take what is known of the exchange and the channel.

        Args:
            placeholders: Those that the program may have put into the prompt.
            register: What they stand for.
            page: The text as it says.
            holdback: Holds the text.
            degrade: Notes that values don't come back, since they are too much together.
        """
        self._placeholders = placeholders
        self._register = register
        self._page = page
        self._holdback = holdback
        self._degrade = degrade
        self._quoting = Quoting()

    def take(self, findings: Iterable[Finding]) -> Restored:
        """Take findings that are decided together."""
        asked = list[Finding]()
        found = list[Finding]()
        for finding in findings:
            (found if finding.signal == PLACEHOLDER else asked).append(finding)
        if not found:
            return Restored(tuple(asked), (), ())
        edits, places = list[Replacement](), list[Span]()
        for finding in sorted(found, key=self._rank):
            for span, label in self._given(finding.span):
                if any(span.start < place.end and place.start < span.end for place in places):
                    continue
                places.append(span)
                said = self._page.text(span)
                value = self._register.written(label, said, self._way(span.start))
                if value is not None and not self._register.has_room(len(value)):
                    self._degrade("values_not_restored")
                elif value is not None:
                    self._register.restored += 1
                    edits.append(Replacement(span.start, span.end, value, hidden=said))
        left = tuple(each for each in asked if not any(_within(each.span, place) for place in places))
        return Restored(left, tuple(sorted(edits, key=_start)), tuple(sorted(places)))

    def _given(self, span: Span) -> list[tuple[Span, Label | str]]:
        """Return what stands for something in a place that was found: all of it, or each name of several."""
        label = self._placeholders.read(self._page.text(span))
        if label is not None and self._register.is_given(label):
            return [(span, label)]
        self._count(label, span)
        parts = parts_of(self._holdback.text(span), label, self._register) if isinstance(label, str) else ()
        return [(Span(span.start + start, span.start + end), key) for start, end, key in parts]

    def _rank(self, finding: Finding) -> tuple[bool, int, int]:
        """Return which reading of a place counts: a placeholder just as it was given, then the longest."""
        span = finding.span
        plain = finding.view == "raw" and self._holdback.text(Span(span.start, span.start + 1)) == "<"
        return not plain, span.start - span.end, span.start

    def _count(self, label: Label | str | None, span: Span) -> None:
        """Count what is written as placeholders are, and no other words, and stands for nothing."""
        if isinstance(label, Label) and label.bare in self._page.text(span).upper():
            self._register.not_given += 1

    def _way(self, position: int) -> int:
        """Return what the text is written in at a place, besides what edits of JSON see to."""
        way = self._quoting.way(position)
        return way - 1 if way > PLAIN and self._page.is_json(position) else way

    def feed(self, text: str) -> None:
        """Read what comes, for what it is written in."""
        self._quoting.feed(text)

    def forget(self, position: int) -> None:
        """Forget what was before a place."""
        self._quoting.forget(position)

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked (see `match.work`)."""
        return self._quoting.take_work()


def _within(span: Span, place: Span) -> bool:
    return place.start <= span.start and span.end <= place.end


def _start(edit: Replacement) -> int:
    return edit.start
