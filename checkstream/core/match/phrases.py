r"""Literal phrases, however many, found without the regex engine: by the words that they begin with.

The phrases of a set stand sorted by their shapes (see `shapes`), so that all that begin alike stand together: one
bisection tells whether text from some place is the beginning of any, and, through links from each phrase to the
longest other that it begins with, which of them it has in full.

That is asked only from places where the first two words are those of a phrase. A *word* here is a run of characters
that belong to words (`is_word`): as a phrase stands alone, its words are words of the text. Most text is passed over
by look-ups of a whole chunk's words in sets, at the speed of C (see `phrase_search`).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from checkstream.core.match.shapes import GAP_CHARS, folded, is_word, lettered
from checkstream.core.match.syntax import MAX_REGEX_CHARS
from checkstream.errors import PatternError

_MOST_PHRASES: Final = 1 << 14
_QUOTED: Final = str.maketrans({char: f"\\{char}" for char in "\\.+*?()|[]{}^$"} | {" ": f"\\s{{1,{GAP_CHARS}}}"})


class Phrase(msgspec.Struct, frozen=True):
    """A literal phrase of a set of patterns."""

    number: int
    """Position in its set."""
    signal: int
    words: str
    """Its words with one space between them."""
    view_cap: int
    """As `Member` has it."""


class PhraseIndex:
    """The phrases of one set. Immutable."""

    __slots__ = (
        "_links",
        "beginnings",
        "firsts",
        "keys",
        "leads",
        "least_cap",
        "numbers",
        "odd",
        "opens",
        "pairs",
        "phrases",
        "seconds",
        "singles",
    )  # fmt: skip

    def __init__(self, phrases: Sequence[Phrase]) -> None:
        """Sort `phrases`, of which there is one at least."""
        same: dict[str, list[Phrase]] = {}
        for phrase in phrases:
            same.setdefault(folded(phrase.words), []).append(phrase)
        self.keys = sorted(same)
        """Shapes, each once."""
        self.phrases = [tuple(same[key]) for key in self.keys]
        """Beside each shape."""
        self.least_cap = min(phrase.view_cap for phrase in phrases)
        self.numbers = frozenset(phrase.number for phrase in phrases)
        self._links = _links(self.keys)
        self.leads = frozenset(key[0] for key in self.keys if not is_word(key[0]))
        """First characters of phrases that begin with no word."""
        worded = {key: lettered(key).split() for key in self.keys if is_word(key[0])}
        self.firsts = frozenset(words[0] for words in worded.values())
        self.singles = frozenset(words[0] for words in worded.values() if len(words) == 1)
        self.pairs = frozenset((words[0], words[1]) for words in worded.values() if len(words) > 1)
        self.beginnings = frozenset(first[:size] for first in self.firsts for size in range(1, len(first) + 1))
        """What a first word begins with."""
        self.opens = frozenset(words[0] for key, words in worded.items() if key.startswith(words[0] + " "))
        """First words behind which a phrase has a space."""
        seconds: dict[str, set[str]] = {}
        odd = set()
        for key, words in worded.items():
            rest = key[len(words[0]) :]
            if rest[:1] == " " and is_word(rest[1]):
                seconds.setdefault(words[0], {""}).add(words[1])
            elif rest:
                odd.add(words[0])
        self.odd = frozenset(odd)
        """First words behind which a phrase has something else than a space and a word."""
        self.seconds = {first: " ".join(sorted(others)) for first, others in seconds.items()}
        """First word -> each second one, with a space before it: what one begins with is found as it stands."""

    def begins(self, shape: str) -> bool:
        """Whether some phrase begins with `shape`."""
        place = bisect_left(self.keys, shape)
        return place < len(self.keys) and self.keys[place].startswith(shape)

    def begun(self, shape: str) -> Iterator[int]:
        """Yield the places in `keys` of all phrases that begin with `shape`."""
        place = bisect_left(self.keys, shape)
        while place < len(self.keys) and self.keys[place].startswith(shape):
            yield place
            place += 1

    def within(self, shape: str) -> Iterator[int]:
        """Yield the places in `keys` of all phrases with which `shape` begins, the longest first."""
        place = bisect_right(self.keys, shape) - 1
        while place >= 0:
            if shape.startswith(self.keys[place]):
                yield place
            place = self._links[place]

    def candidates(self, text: str, at: int, end: int) -> list[int]:
        """Return the indexes in `text[at:end]` from which a phrase may match or be begun, in order."""
        piece = text[at:end]
        letters = lettered(piece)
        words = letters.split()
        unfinished = letters[-1:] != " "
        pairs, singles = self.pairs, self.singles
        numbers = [number for number, pair in enumerate(pairwise(words)) if pair in pairs or pair[0] in singles]
        last = len(words) - 1
        if unfinished and last > 0 and words[last - 1] in self.firsts and numbers[-1:] != [last - 1]:
            numbers.append(last - 1)
        if words and words[last] in (self.beginnings if unfinished else self.firsts):
            numbers.append(last)
        place, seen, out = 0, 0, []
        for number in numbers:
            for word in words[seen:number]:
                place = letters.index(word, place) + len(word)
            place, seen = letters.index(words[number], place), number
            if place or not at or not is_word(text[at - 1]):
                out.append(at + place)
        if self.leads:
            out += [at + place for place, char in enumerate(folded(piece)) if char in self.leads]
            out.sort()
        return out


def _links(keys: Sequence[str]) -> list[int]:
    """Return, beside each of the sorted keys, the place of the longest other that it begins with; -1: none."""
    links: list[int] = []
    for place, key in enumerate(keys):
        link = place - 1
        while link >= 0 and not key.startswith(keys[link]):
            link = links[link]
        links.append(link)
    return links


@lru_cache(maxsize=_MOST_PHRASES)
def phrase_regex(phrase: str) -> str:
    """Return the expression for a literal phrase: any letter case, 1 to 8 white space characters between words.

    Raises:
        PatternError: the phrase has no word, has a lone surrogate or is too long.
    """
    words = phrase.split()
    if not words:
        raise PatternError("a phrase needs a word; remove the empty phrase")
    if not phrase.isascii() and any("\ud800" <= char <= "\udfff" for char in phrase):
        raise PatternError("a lone surrogate is not a character; remove it")
    regex = "(?i)" + " ".join(words).translate(_QUOTED)
    if len(regex) > MAX_REGEX_CHARS:
        raise PatternError(f"is longer than {MAX_REGEX_CHARS} characters as an expression; shorten it")
    return regex


def phrase_refine(text: str, start: int, end: int) -> Sequence[tuple[int, int]]:
    """Return the candidate if it stands alone: no letter, digit, mark or underscore of it touches another (Unicode)."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if (is_word(before) and is_word(text[start])) or (is_word(after) and is_word(text[end - 1])):
        return ()
    return ((start, end),)
