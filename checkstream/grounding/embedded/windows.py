"""Which stretches of a passage a claim is compared with: the sentences that share most with it. Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from checkstream.core.terms import Span
from checkstream.grounding.embedded.lexical import Sentence, prepared, weight
from checkstream.grounding.embedded.reading import Reading, Word, found_stem, reading, words
from checkstream.grounding.sentences import sentences

_BEST = 5
"""So many sentences of a passage are looked at closely."""
_LONGEST = 3
"""Sentences of a stretch: a claim often joins what neighbouring sentences say."""
_SENTENCE_WORDS = 64
"""Longer sentences are read in pieces: lists, tables and text without marks are no sentences."""
_PLACES = 32
"""Of a word that stands everywhere, so many places are looked at."""


class PassageReader:
    """One passage, cut into sentences and words once for all claims."""

    def __init__(self, text: str) -> None:
        """Read the passage."""
        self.text = text
        found = words(text)
        self.whole: Reading = reading(text, found)
        self._bounds = _bounds(sentences(text), found)
        self._sentence_of = [number for number, (first, stop) in enumerate(self._bounds) for _ in range(first, stop)]
        self.words: Sequence[Word] = found
        self._stretches: dict[tuple[int, int], Sentence] = {}

    def stretches(self, claim: Sentence) -> Iterator[Sentence]:
        """Yield the stretches worth comparing; each is of one to three sentences that follow each other."""
        count = len(self._bounds)
        wanted = {
            (first, last)
            for best in self._best(claim)
            for first in range(max(0, best - _LONGEST + 1), best + 1)
            for last in range(best, min(count, first + _LONGEST))
        }
        for first, last in sorted(wanted):
            yield self._stretch(first, last)

    def _stretch(self, first: int, last: int) -> Sentence:
        if (first, last) not in self._stretches:
            begin = self._bounds[first][0]
            inside = self.words[begin : self._bounds[last][1]]
            self._stretches[first, last] = prepared(self.text, inside)
        return self._stretches[first, last]

    def _best(self, claim: Sentence) -> list[int]:
        """Return the sentences that share most words with a claim; the first of them when none shares any."""
        if len(self._bounds) <= _BEST:
            return list(range(len(self._bounds)))
        shared: dict[int, float] = {}
        for word in {word.stem: word for word in claim.read.words}.values():
            other, strength = found_stem(word.stem, self.whole)
            places = self.whole.places[other] if other is not None else ()
            if len(places) > _PLACES and weight(word) < 1:
                continue
            for number in {self._sentence_of[place] for place in places}:
                shared[number] = shared.get(number, 0.0) + weight(word) * strength
        return heapq.nsmallest(_BEST, shared, key=lambda number: (-shared[number], number))

    def sentences(self) -> list[Span]:
        """Return where its sentences stand: from the first word of one to that of the next, all of the text in one."""
        begins = [self.words[first].start for first, _ in self._bounds]
        ends = [*begins[1:], len(self.text)]
        starts = [0, *begins[1:]]
        return [Span(start, end) for start, end in zip(starts, ends, strict=True)]

    def holders(self, stem: str) -> tuple[set[int], float]:
        """Return which sentences have a word with this stem, or one like it, and how like: 0 to 1."""
        other, strength = found_stem(stem, self.whole)
        places = self.whole.places[other] if other is not None else ()
        return {self._sentence_of[place] for place in places}, strength


def _bounds(spans: Sequence[Span], found: Sequence[Word]) -> list[tuple[int, int]]:
    """Return first word and the one behind the last of each sentence that has words, or piece of a long one."""
    bounds: list[tuple[int, int]] = []
    at = 0
    for number, span in enumerate(spans):
        begin = at
        limit = spans[number + 1].start if number + 1 < len(spans) else span.end
        while at < len(found) and found[at].start < max(limit, span.end):
            at += 1
        bounds += _pieces(begin, at)
    return bounds + _pieces(at, len(found))


def _pieces(first: int, stop: int) -> list[tuple[int, int]]:
    return [(at, min(at + _SENTENCE_WORDS, stop)) for at in range(first, stop, _SENTENCE_WORDS)]
