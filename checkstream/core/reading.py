"""What conditions may know of a text as a stream: how many tokens, in which language. A function of the text alone."""

from __future__ import annotations

from array import array
from bisect import bisect_left

from checkstream.core.match.language import UNDETERMINED, language_of
from checkstream.core.match.tokens import TokenGrid

_LANGUAGE_CHARS = 512
"""Characters from the start by which the language is told."""
_LEAST_CHARS = 16
"""Below this nothing is said of the language."""


class Reading:
    """Reads one channel along with its holdback and answers for every place that has been read."""

    __slots__ = ("_begin", "_grid", "_languages", "_starts")

    def __init__(self) -> None:
        """Start before the first character."""
        self._grid = TokenGrid()
        self._starts = array("q")
        self._begin = ""
        self._languages: dict[int, str] = {}

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        self._starts.extend(start for start, _ in self._grid.feed(text))
        if len(self._begin) < _LANGUAGE_CHARS:
            self._begin += text[: _LANGUAGE_CHARS - len(self._begin)]

    def tokens(self, position: int) -> int:
        """Return how many tokens begin before `position`."""
        count = bisect_left(self._starts, position)
        begun = self._grid.begun
        return count + (begun is not None and begun < position)

    def language(self, position: int) -> str:
        """Return the language of the text before `position`, as far as its first characters tell."""
        # Told at a few lengths only, so that a word more does not change the answer at every finding.
        size = min(position, len(self._begin))
        while size & (size - 1):
            size &= size - 1
        if size < _LEAST_CHARS:
            return UNDETERMINED
        if size not in self._languages:
            self._languages[size] = language_of(self._begin[:size])
        return self._languages[size]
