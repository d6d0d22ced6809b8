"""What of a text must be decided together: words, sentences, and what a form such as JSON doesn't let be parted."""

from __future__ import annotations

from typing import Literal, Protocol

from checkstream.core.match.segments import Segments
from checkstream.core.terms import Span

Scope = Literal["span", "word", "sentence"]
"""What of a text an edit takes: what was found, or all of the words or sentences that it touches."""


class Joints(Protocol):
    """Tells what must stay together in a text, such as an escape of a JSON string."""

    def whole(self, position: int) -> int:
        """Return the last place at or before `position` at which the text may be parted."""

    def open(self, position: int) -> bool:
        """Tell whether `position` stands in something of which the end has not come yet."""

    def clip(self, whole: Span, span: Span) -> Span:
        """Return what of `whole`, which holds `span`, can be edited together with it."""


class Grain:
    """The units in which one text is decided and released."""

    __slots__ = ("_joints", "_segments", "_words", "plain", "segmented")

    def __init__(self, scope: Scope, joints: Joints | None) -> None:
        """Start before the first character.

        Args:
            scope: The largest scope of an edit: text is decided in whole words or sentences, so that all of one can be
                edited for what stands at its end.
            joints: Where the text may be parted, None: anywhere. An edit takes all of what must stay together, so
                none of that may have left, and all of it must have come.
        """
        self._joints = joints
        self._words = Segments("word") if scope != "span" else None
        self._segments = Segments("sentence") if scope == "sentence" else self._words
        self.segmented = self._segments is not None
        """Text is decided in words or sentences."""
        self.plain = joints is None and not self.segmented
        """Text may be parted anywhere."""

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        if self._segments is not None:
            self._segments.feed(text)
            if self._words is not None and self._words is not self._segments:
                self._words.feed(text)

    def end(self) -> None:
        """Take the end of the text."""
        if self._segments is not None:
            self._segments.end()
        if self._words is not None:
            self._words.end()

    def forget(self, position: int) -> None:
        """Forget what lies before `position`."""
        if self._segments is not None and self._words is not None:
            self._segments.forget(position)
            self._words.forget(position)

    def floor(self, position: int) -> int:
        """Return the last place at or before `position` up to which the text can be released."""
        if self._segments is not None:
            position = self._segments.floor(position)
        return position if self._joints is None else self._joints.whole(position)

    def parts(self, position: int) -> bool:
        """Tell whether a place stands in something that must stay together and whose end has not come."""
        return self._joints is not None and self._joints.open(position)

    def touched(self, span: Span, cut: int | None) -> Span | None:
        """Return a span with what it touches, up to where the text was cut; None while the end of that is not known."""
        return span if self._segments is None else self._clipped(self._segments.around(span), span, cut)

    def widen(self, span: Span, scope: Scope, cut: int | None, received: int) -> Span:
        """Return a span with all of the words or the sentences that it touches, as far as they have come."""
        segments = self._words if scope == "word" else self._segments
        if segments is None or scope == "span":
            return span
        whole = segments.around(span) or Span(segments.floor(span.start), received)
        return self._clipped(whole, span, cut) or span

    def _clipped(self, whole: Span | None, span: Span, cut: int | None) -> Span | None:
        if whole is None:
            return None
        if cut is not None:
            whole = Span(whole.start, max(min(whole.end, cut), span.end))
        return whole if self._joints is None else self._joints.clip(whole, span)
