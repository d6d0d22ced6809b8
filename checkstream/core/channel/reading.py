"""What conditions may know of a text as a stream: how many tokens, in which language, at what risk.

Of equal text and equal scores the same is known, however the text was cut.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right

from checkstream.core.match.language import UNDETERMINED, language_of
from checkstream.core.match.tokens import TokenGrid

_LANGUAGE_CHARS = 256
"""Characters from the start by which the language is told."""
_LEAST_CHARS = 16
"""Below this nothing is said of the language."""


class Reading:
    """Reads one channel along with its holdback and answers for every place that has been read, until it is forgotten.

    What it says of a place does not change with what comes behind that.
    """

    __slots__ = ("_begin", "_forgotten", "_grid", "_languages", "_offset", "_starts")

    def __init__(self, before: str = "") -> None:
        """Start before the first character; `before` stands in front of it and is known too."""
        self._grid = TokenGrid()
        self._starts = array("q")
        self._forgotten = 0
        """Tokens that begin before those."""
        self._begin = ""
        self._languages: dict[int, str] = {}
        self._offset = len(before)
        self.feed(before)

    def feed(self, text: str) -> None:
        """Take the next piece of the text."""
        self._starts.extend(start for start, _ in self._grid.feed(text))
        if len(self._begin) < _LANGUAGE_CHARS:
            self._begin += text[: _LANGUAGE_CHARS - len(self._begin)]

    def tokens(self, position: int) -> int:
        """Return how many tokens begin before `position`."""
        position += self._offset
        count = self._forgotten + bisect_left(self._starts, position)
        begun = self._grid.begun
        return count + (begun is not None and begun < position)

    def forget(self, position: int) -> None:
        """Forget what lies before `position`: nobody will ask for the tokens of a place before it."""
        old = bisect_left(self._starts, position + self._offset)
        self._forgotten += old
        del self._starts[:old]

    def language(self, position: int) -> str:
        """Return the language of the text before `position`, as far as its first characters tell."""
        # Told at a few lengths only, so that a word more does not change the answer at every finding.
        size = min(position + self._offset, len(self._begin))
        while size & (size - 1):
            size &= size - 1
        if size < _LEAST_CHARS:
            return UNDETERMINED
        if size not in self._languages:
            self._languages[size] = language_of(self._begin[:size])
        return self._languages[size]


class Risks:
    """The risk of one text, check by check: the highest of its scores so far, fading with each check.

    Answers for every place, until it is forgotten.
    """

    __slots__ = ("_left", "_positions", "_start", "_trends", "_values", "latest")

    def __init__(self, left: float, start: tuple[float, float] = (0.0, 0.0)) -> None:
        """Start with a risk, and its latest change, that is known already; `left`: its share after a quiet check."""
        self._left = left
        self.latest = self._start = start
        """The risk after the latest check, 0..1, and the change that it made."""
        self._positions = array("q")
        self._values = array("d")
        self._trends = array("d")

    def take(self, position: int, score: float) -> None:
        """Take the highest score, 0..1, of the check that ends at `position`."""
        before, _ = self.latest
        risk = max(self._left * before, score)
        self.latest = risk, risk - before
        self._positions.append(position)
        self._values.append(risk)
        self._trends.append(risk - before)

    def at(self, position: int) -> tuple[float, float]:
        """Return the risk and its change after the checks that end at or before `position`."""
        place = bisect_right(self._positions, position) - 1
        return (self._values[place], self._trends[place]) if place >= 0 else self._start

    def forget(self, position: int) -> None:
        """Forget what lies before `position`: nobody will ask for a place before it."""
        self._start = self.at(position)
        old = bisect_right(self._positions, position)
        for known in (self._positions, self._values, self._trends):
            del known[:old]
