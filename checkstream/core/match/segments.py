"""Words and sentences of a text that arrives in pieces: the fixed rules by which edits take more than a span.

- A *word* is a run of characters that are not white space.
- A *sentence* is a run of words. It ends behind a run of `.!?…` that white space follows, or before a line end.
- `。！？` end a word and a sentence by themselves: their scripts put no white space there.
- Closing quotes and brackets belong to the run of stops that they follow.
- Neither is longer than `MAX_SEGMENT_CHARS`: there a sentence ends behind its last whole word, and both are cut if
  they have no such place.

White space around them belongs to none. Words lie inside sentences, whatever the text. Where a segment ends
depends on the text alone, never on how it was cut; it is known when the character behind it is.
"""

# ruff: noqa: RUF001, RUF002 - full-width stops are meant

from __future__ import annotations

from typing import Final, Literal

from checkstream.core.match.ranges import Ranges
from checkstream.core.terms import Span

MAX_SEGMENT_CHARS: Final = 1000
LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
_STOPS: Final = frozenset(".!?…。！？")
_UNSPACED_STOPS: Final = frozenset("。！？")
_CLOSERS: Final = frozenset("\"'’”“»)]}」』）］｝】〕〉》")


class Segments:
    """The words, or the sentences, of one channel. Positions are code points of its text."""

    __slots__ = ("_complete", "_ended", "_position", "_start", "_stops", "_unspaced", "_word", "_word_end", "_words")

    def __init__(self, grain: Literal["word", "sentence"]) -> None:
        """Start before the text."""
        self._words = grain == "word"
        self._complete = Ranges()
        self._position = 0
        self._start: int | None = None
        """Start of the segment that has not ended yet."""
        self._word: int | None = None
        """Start of the word that has not ended yet."""
        self._word_end = 0
        """End of the last whole word; in the unfinished segment if it lies behind its start."""
        self._stops = False
        """The text so far ends in a run of stops and closers."""
        self._unspaced = False
        """One of them needs no white space."""
        self._ended = False

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        for position, char in enumerate(text, self._position):
            if self._start is not None and position - self._start >= MAX_SEGMENT_CHARS:
                self._cap(position, char)
            if char.isspace():
                self._space(position, char)
            elif self._stops and (char in _STOPS or char in _CLOSERS):
                self._unspaced = self._unspaced or char in _UNSPACED_STOPS
            else:
                if self._unspaced:
                    self._end_word(position)
                    self._finish()
                if self._word is None:
                    self._word = position
                    if self._start is None:
                        self._start = position
                self._stops = char in _STOPS
                self._unspaced = char in _UNSPACED_STOPS
        self._position += len(text)

    def end(self) -> None:
        """Take the end of the text, which ends every segment."""
        self._end_word(self._position)
        self._finish()
        self._ended = True

    def floor(self, position: int) -> int:
        """Return where the segment starts that holds `position`, or could come to hold it; else `position`."""
        if self._start is not None and self._start <= position:
            return self._start
        segment = self._complete.around(position)
        return segment.start if segment is not None and position < segment.end else position

    def around(self, span: Span) -> Span | None:
        """Return the span with all of the segments that it touches; None while the end of the last is not known.

        An empty span touches what holds its place. What has been forgotten is not touched any more.
        """
        last = max(span.start, span.end - 1)
        if self._start is not None and self._start <= last:
            return None
        if last >= self._position and not self._ended:
            return None  # an empty span: what comes next may be the segment that holds its place
        segment = self._complete.around(last)
        end = segment.end if segment is not None and last < segment.end else span.end
        return Span(self.floor(span.start), max(end, span.end))

    @property
    def earliest_end(self) -> int:
        """Where the unfinished segment ends at the earliest; the text behind that may turn out to be beyond it."""
        return self._word_end if self._start is not None and self._word_end > self._start else self._position

    def forget(self, position: int) -> None:
        """Drop what ends before `position`."""
        self._complete.forget(position)

    def _space(self, position: int, char: str) -> None:
        if self._word is not None:
            self._end_word(position)
        if self._words or self._stops or char in LINE_ENDS:
            self._finish()
        self._stops = self._unspaced = False

    def _end_word(self, position: int) -> None:
        if self._word is not None:
            self._word, self._word_end = None, position

    def _finish(self) -> None:
        """End the segment behind its last whole word."""
        if self._start is not None:
            self._complete.add(self._start, self._word_end)
            self._start = None

    def _cap(self, position: int, char: str) -> None:
        """End the segment that has as many characters as one may have, now that the one behind them is known."""
        if self._word == self._start or char.isspace():
            self._end_word(position)
            self._stops = self._unspaced = False
        self._finish()
        self._start = self._word
