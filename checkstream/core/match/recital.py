"""Recitals: where a text that arrives in pieces says, word for word, what stands in texts that have fingerprints.

A stretch of words is *supported* by a file of fingerprints when

- each run of up to `run` words in it stands in one of the texts, and
- so do each `least` words in a row in it, and among them stands an anchor.

A *recital* is a supported stretch of so many words as the rule asks for (`least` or more) that can't be made longer.
Whatever stands in a text is supported (see `fingerprints`), so each run of so many words that text and fingerprinted
text have in common lies within a recital, whole. What is supported without standing in one text is stitched together
from pieces of texts that overlap, of `least` words and more; or the filter is wrong of `least` words, of which those of
an anchor stand in a text, and all runs of `run` words do.

A word is held while the stretch that it stands in is supported: it may become a recital. A long recital is found in
pieces of `PIECE_WORDS` words, the last of which has what is left, so that it is not held to its end.

INVARIANT: what is found, and `live`, depend on the text received so far and never on how it was cut (G3); nothing is
found before `live` (G4). Work and state are bounded for each word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.match.patterns import Pattern
from checkstream.core.match.plain_words import PlainWords, Word
from checkstream.core.match.work import Work
from checkstream.core.terms import Finding, Recited, Span

MOST_BETWEEN: Final = 256
"""Characters between two words of a recital."""
PIECE_WORDS: Final = 64
_MOST_KEPT: Final = 512
"""Words that are behind all that is looked at, before they are forgotten."""
_WORD_WORK, _LOOK_WORK, _ESCAPE_WORK = 4, 6, 4
_WORDS_A_LOOK: Final = 8
"""Of the shortest recital that are looked up as one, for each unit of work that this takes besides."""
_NONE: Final = -1


class _Known:
    """The words of a text that are still looked at; mutable. A word's number counts from the text's start."""

    __slots__ = ("base", "ends", "numbers", "size", "starts")

    def __init__(self) -> None:
        self.base = 0
        """Number of the first word that is kept."""
        self.size = 0
        """Words of the text so far."""
        self.numbers: list[int] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, number: int, start: int, end: int) -> None:
        self.numbers.append(number)
        self.starts.append(start)
        self.ends.append(end)
        self.size += 1

    def last(self, count: int) -> Sequence[int]:
        """Return what the last words are."""
        return self.numbers[-count:]

    def forget(self, low: int) -> None:
        """Keep only words from `low` on."""
        gone = low - self.base
        del self.numbers[:gone], self.starts[:gone], self.ends[:gone]
        self.base = low


class _Trail:
    """What one pattern says of one text; mutable. Places are numbers of words."""

    __slots__ = ("_anchor", "_known", "_piece", "_recited", "_start", "_texts", "_told", "_wanted", "signal")

    def __init__(self, texts: Fingerprints, wanted: int, signal: int, known: _Known) -> None:
        self._texts = texts
        self._wanted = wanted
        self._piece = max(wanted, PIECE_WORDS)
        self.signal = signal
        self._known = known
        self._start: int = 0
        """First word of the supported stretch at the text's end."""
        self._told: int = 0
        """Words before this were found, or belong to no recital."""
        self._anchor = _NONE
        """First word of the last anchor."""
        self._recited = 0
        """Words that were found."""

    def read(self, out: list[Finding]) -> None:
        """Read the word that has just been added."""
        known, texts = self._known, self._texts
        last, length = known.size - 1, known.size - self._start
        size = most = min(length, texts.run)
        while size and not texts.has_run(known.numbers[-size:]):
            size -= 1
        if size < most:
            self.part(known.size - size, out, last)
            length = size
        if length >= texts.gram and texts.is_anchor(known.last(texts.gram)):
            self._anchor = known.size - texts.gram
        if length >= texts.least and not self._holds(texts.least):
            self.part(known.size - texts.least + 1, out, last)
            length = texts.least - 1
        if length >= self._wanted and known.size - self.live >= self._piece:
            self._tell(known.size, out)

    def _holds(self, least: int) -> bool:
        """Tell whether the last `least` words stand in one of the texts."""
        return self._anchor >= self._known.size - least and self._texts.has_run(self._known.last(least))

    def part(self, start: int, out: list[Finding], end: int) -> None:
        """End the stretch before the word `end`; the next one begins with `start`, which may stand before that."""
        if end - self._start >= self._wanted and end > self.live:
            self._tell(end, out)
        self._start = start

    def _tell(self, end: int, out: list[Finding]) -> None:
        known, low = self._known, self.live
        self._recited += end - low
        span = Span(known.starts[low - known.base], known.ends[end - 1 - known.base])
        recited = Recited(words=end - self._start, share=self._recited / end)
        out.append(Finding(signal=self.signal, span=span, recited=recited))
        self._told = end

    @property
    def live(self) -> int:
        """First word that may become part of a recital, or of one that goes on; the number of words: none."""
        return max(self._start, self._told)

    @property
    def back(self) -> int:
        """First word from which what is live has to be read to be found again: with what makes it a recital."""
        return max(self._start, self.live - self._wanted)

    @property
    def needed(self) -> int:
        """First word that is still looked at."""
        return min(self.back, self._known.size - self._texts.least - 1)


class Recital:
    """The recitals of one text, for all patterns that ask for some. Positions are code points of the original."""

    __slots__ = ("_known", "_looks", "_trails", "_words", "work")

    def __init__(self, patterns: Sequence[Pattern], work: Work) -> None:
        """Start before the first character.

        Args:
            patterns: What is looked for; each has fingerprints.
            work: Takes what the text costs.
        """
        self.work = work
        self._words = PlainWords()
        self._known = known = _Known()
        self._trails = [
            _Trail(each.texts, each.words, each.signal, known) for each in patterns if each.texts is not None
        ]
        looks = (_LOOK_WORK + each.texts.least // _WORDS_A_LOOK for each in patterns if each.texts is not None)
        self._looks = sum(looks)
        """Work of looking a word up."""

    @property
    def live(self) -> int:
        """Oldest place that may belong to a recital which is not known yet."""
        known = self._known
        low = min(trail.live for trail in self._trails)
        return min(self._words.at, known.starts[low - known.base]) if low < known.size else self._words.at

    @property
    def back(self) -> int:
        """Place from which what is live has to be read to be found again."""
        known = self._known
        low = min(trail.back for trail in self._trails)
        return min(self.live, known.starts[low - known.base]) if low < known.size else self.live

    def feed(self, text: str) -> list[Finding]:
        """Read on; return what is found."""
        out: list[Finding] = []
        escapes = self._words.escapes
        words = self._words.feed(text)
        self.work.done += 1 + len(text) // 64 + _ESCAPE_WORK * (self._words.escapes - escapes)
        for word in words:
            self._read(word, out)
        self._gap(self._words.at, out)
        known = self._known
        if known.size - known.base > 2 * _MOST_KEPT:
            known.forget(max(min(trail.needed for trail in self._trails), known.base))
        return out

    def end(self) -> list[Finding]:
        """The text has ended: decide all."""
        out: list[Finding] = []
        for word in self._words.end():
            self._read(word, out)
        self._part(out)
        return out

    def give_up(self) -> list[Finding]:
        """Take what may become a recital for one, and decide all else: the text is over."""
        live, received = self.live, self._words.received
        if live >= received:
            return self.end()
        low = [trail for trail in self._trails if trail.live < self._known.size] or self._trails
        out = self.end()
        signals = {each.signal for each in out if each.span.start == live}
        span = Span(live, received)
        more = (Finding(signal=trail.signal, span=span, capped=True) for trail in low)
        return [*out, *(each for each in more if each.signal not in signals)]

    def _read(self, word: Word, out: list[Finding]) -> None:
        self.work.done += _WORD_WORK + self._looks
        if word.number is None:
            self._part(out)
            return
        self._gap(word.start, out)
        self._known.add(word.number, word.start, word.end)
        for trail in self._trails:
            trail.read(out)

    def _gap(self, at: int, out: list[Finding]) -> None:
        """Part the text where too much stands between its last word and a place."""
        if self._known.ends and at - self._known.ends[-1] > MOST_BETWEEN:
            self._part(out)

    def _part(self, out: list[Finding]) -> None:
        """No recital goes on from here."""
        size = self._known.size
        for trail in self._trails:
            trail.part(size, out, size)
