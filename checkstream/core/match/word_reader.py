"""Reads a text as long as it is of words that are known (see `words`), and finds out about those that are not.

INVARIANT: of each text it tells what the search tells: where it is live, and that nothing is found (G3, G4).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from checkstream.core.match.asking import BEFORE_WORDS, begins_in, first_of, tells_words
from checkstream.core.match.chain import undecided
from checkstream.core.match.encoded import ALPHABET
from checkstream.core.match.engine import Regex
from checkstream.core.match.hexed import begun_from
from checkstream.core.match.lane import Lane
from checkstream.core.match.patterns import PatternSet
from checkstream.core.match.phrase_search import PhraseSearch
from checkstream.core.match.words import Word, Words
from checkstream.core.match.work import Work

_WORK: Final = 6
"""Of a piece of text that is known, and once more where patterns are asked about it."""
_ALL: Final = -1
_LONE: Final = 2
"""Characters of a space and a letter."""
_MOST_CHOSEN: Final = 64
_NEVER: Final = 1 << 62


class WordReader:
    """The words at the end of one text."""

    __slots__ = ("_asked", "_before", "_begun", "_chosen", "_known", "_words", "tail", "word")

    def __init__(self, patterns: PatternSet, trigger: Regex | None) -> None:
        """Start before the first character.

        Args:
            patterns: What is searched for.
            trigger: Finds what any view would see something in.
        """
        self.word: Word | None = None
        """What is known of the last word, where all that could still become a match is of known words ..."""
        self.tail = ""
        """... and that word, with the space before it."""
        self._before = 0
        """By these expressions what stands before it could become a match, a bit for each."""
        self._begun = _NEVER
        """Where a match may have begun in what was to be read last: so many characters from its beginning."""
        self._asked = patterns.asked
        """Expressions that are asked about words, each with the view to whose end it is."""
        if patterns.words is None:
            trial = _Trial(patterns, trigger)
            patterns.words = Words(trial.word if tells_words(patterns) else _nothing)
        self._words: Words = patterns.words
        self._known = self._words.known
        self._chosen: dict[int, tuple[tuple[Regex, int, int], ...]] = {}
        """Set of expressions -> they, each with its place and its bit."""

    def read(self, raw: Lane, text: str, work: Work) -> int:
        """Read more text; return the index from which it is live.

        -1: it is not known, and nothing was done.
        """
        word, asked = self.word, self._before
        self._begun = _NEVER
        if word is None:
            return -1
        if text[:1] != " ":
            said = self.tail + text
        elif word.apart or word.passes(text):
            said, asked = text, asked | word.open
        else:
            return -1
        if (word := self._known.get(said)) is not None:
            tail = said
        elif (known := self._words.last(said)) is not None:
            tail, word, asks = known
            asked |= asks
        else:
            return -1
        asked |= word.asks
        whole, before = raw.text + text, 0
        size = len(whole)
        at = size - len(tail)
        low = at + word.live
        if asked:
            floor = raw.floor
            for companion, place, bit in self._chosen.get(asked) or self._choose(asked):
                hit = companion.search(whole, floor, size - word.unread[place])
                if hit is not None:
                    start = hit.start()
                    low = min(low, start)
                    before |= bit if start < at else 0
            if low > floor and (begun := self._first_begun(raw, whole, floor, low)) < low:
                self._begun = begun - (size - len(text))
                return -1
            work.done += _WORK
        raw.text = whole
        self.word, self.tail, self._before = word, tail, before
        work.done += _WORK
        return low

    def reach(self, text: str) -> int:
        """Return how many characters of a text, which `read` did not read, are of known words that it may read."""
        if self.word is None:
            return 0
        tail = "" if text[:1] == " " else self.tail
        return max(min(self._words.reach(tail + text) - len(tail), self._begun), 0)

    @staticmethod
    def _first_begun(raw: Lane, text: str, floor: int, low: int) -> int:
        """Return where a match may begin in some of calm text; its end: nowhere."""
        first = low
        for gate in raw.table.gates:
            hit = gate.search(text, floor)
            if hit is not None:
                first = min(first, hit.start())
        return first

    def _choose(self, asked: int) -> Sequence[tuple[Regex, int, int]]:
        """Return the expressions of a set, each with its place and its bit."""
        chosen = tuple(
            (companion, place, 1 << place) for place, (companion, _) in enumerate(self._asked) if asked >> place & 1
        )
        if len(self._chosen) < _MOST_CHOSEN:
            self._chosen[asked] = chosen
        return chosen

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

    def __init__(self, patterns: PatternSet, trigger: Regex | None) -> None:
        self._patterns = patterns
        self._asked = patterns.asked
        self._views = patterns.chained
        self._trigger = trigger
        self._embeds = patterns.embeds
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
        return Word(
            live - at,
            unread,
            asks,
            goes_on,
            apart=stops[-1] >= size and behind >= size,
            lone=word[1:].isalpha() and len(word) == _LONE and not self._begins_phrase(f"{texts[0]} ", at),
        )

    def _begins_phrase(self, text: str, at: int) -> bool:
        """Tell whether a phrase begins, or stands, behind a place of a text that ends with a space."""
        if self._phrases is None:
            return False
        search = PhraseSearch(self._phrases)
        return search.leftmost(text, at, len(text), None) < len(text) - 1 or bool(search.found)

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
