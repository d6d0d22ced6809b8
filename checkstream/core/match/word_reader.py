"""Reads a text as long as it is of words that are known (see `words`), and finds out about those that are not.

INVARIANT: of each text it tells what the search tells: where it is live, and that nothing is found (G3, G4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkstream.core.match.asking import BEFORE_WORDS, begins_in, first_of, tells_words
from checkstream.core.match.chain import undecided
from checkstream.core.match.encoded import ALPHABET
from checkstream.core.match.hexed import begun_from
from checkstream.core.match.lane import Lane
from checkstream.core.match.patterns import PatternSet, Regex, Table
from checkstream.core.match.phrase_search import PhraseSearch
from checkstream.core.match.words import Word, Words
from checkstream.core.match.work import Work

_WORK: Final = 6
"""Of a piece of text that is known, and once more where patterns are asked about it."""
_ALL: Final = -1


class WordReader:
    """The words at the end of one text."""

    __slots__ = ("_before", "_companions", "_numbers", "_words", "tail", "word")

    def __init__(
        self, patterns: PatternSet, checks: Sequence[tuple[Table, int]], views: Sequence[str], trigger: Regex | None
    ) -> None:
        """Start before the first character.

        Args:
            patterns: What is searched for.
            checks: Tables that are asked for what is live, each with the view to whose end it is asked.
            views: Those that read one another; the last of them reads least.
            trigger: Finds what any view would see something in.
        """
        self.word: Word | None = None
        """What is known of the last word, where all that could still become a match is of known words ..."""
        self.tail = ""
        """... and that word, with the space before it."""
        self._before = 0
        """By these expressions what stands before it could become a match, a bit for each."""
        self._companions = tuple(each for table, _ in checks for each in table.companions)
        """Expressions that are asked about words ..."""
        self._numbers = tuple(number for table, number in checks for _ in table.companions)
        """... and the views to whose ends they are."""
        if patterns.words is None:
            asked = tuple(zip(self._companions, self._numbers, strict=True))
            trial = _Trial(patterns, asked, views, trigger)
            patterns.words = Words(trial.word if tells_words(patterns) else _nothing)
        self._words: Words = patterns.words

    def read(self, raw: Lane, text: str, work: Work) -> int:
        """Read more text; return the index from which it is live.

        -1: it is not known, and nothing was done.
        """
        word, asked = self.word, self._before
        if word is None:
            return -1
        if text[:1] != " ":
            known = self._words.last(self.tail + text)
        elif word.apart:
            known, asked = self._words.last(text), asked | word.open
        else:
            return -1
        if known is None:
            return -1
        tail, word, asks = known
        whole = raw.text + text
        at = len(whole) - len(tail)
        low = at + word.live
        asked |= asks | word.asks
        if asked:
            low, before = raw.first_of(whole, (at, low), asked, self._companions, word.unread)
            if low < 0:
                return -1
            self._before = before
            work.done += _WORK
        raw.text = whole
        self.word, self.tail = word, tail
        work.done += _WORK
        return low

    def look(self, raw: Lane, live: int) -> None:
        """Note whether all that could still become a match, from the index `live` on, is of words that are known."""
        at = raw.text.rfind(" ", 0, live + 1)
        if at > 0 and raw.calm and (known := self._words.last(raw.text[at:])) is not None:
            self.tail, self.word, _ = known
            self._before = _ALL if live < len(raw.text) - len(self.tail) else 0

    def leave(self) -> int:
        """Know nothing of the text's end any more; return how many characters the last word had, with its space."""
        self.word = None
        return len(self.tail)


def _nothing(_: str) -> None:
    """Say nothing of a word."""


class _Trial:
    """Finds out about words for one set of patterns."""

    def __init__(
        self,
        patterns: PatternSet,
        asked: Sequence[tuple[Regex, int]],
        views: Sequence[str],
        trigger: Regex | None,
    ) -> None:
        self._patterns = patterns
        self._asked = asked
        self._views = views
        self._trigger = trigger
        self._embeds = bool(patterns.tables["encoded"].numbers)
        self._phrases = patterns.tables["raw"].phrases

    def word(self, word: str) -> Word | None:
        """Return what can be said of a space and a word; None: nothing."""
        texts = [before + word for before in BEFORE_WORDS]
        size, at = len(texts[0]), len(BEFORE_WORDS[0])
        if self._trigger is not None and self._trigger.search(f"{texts[0]} ") is not None:
            return None
        ends, live = self._read(texts[0], at)
        if live <= at:
            return None
        stops, behind = self._read(f"{texts[0]} ", at)
        asks = goes_on = 1 << len(self._asked) if begins_in(self._patterns, word) else 0
        for place, (companion, number) in enumerate(self._asked):
            starts = {first_of(companion, text, at, ends[number]) for text in texts}
            if len(starts) > 1 or at in starts:
                asks |= 1 << place
            else:
                live = min(live, *starts)
            if any(first_of(companion, f"{text} ", at, stops[number]) < size for text in texts):
                goes_on |= 1 << place
        unread = tuple(size - ends[number] for _, number in self._asked)
        return Word(live - at, unread, asks, goes_on, apart=stops[-1] >= size and behind >= size)

    def _read(self, text: str, at: int) -> tuple[tuple[int, ...], int]:
        """Return how far views read a text, and from where on, behind `at`, it is or could be what no member finds."""
        ends: tuple[int, ...] = (len(text), *undecided(text)) if self._views else (len(text),)
        live = end = ends[len(self._views)]
        if self._embeds:
            live = min(live, len(text.rstrip(ALPHABET)), begun_from(text))
        if self._phrases is not None:
            search = PhraseSearch(self._phrases)
            live = min(live, search.leftmost(text, at, end, None))
            if search.found:
                live = at
        return ends, live
