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

import msgspec

from checkstream.core.match.shapes import LETTERS, SHAPES, folded, is_word, words_of


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
        worded = [words_of(key) for key in self.keys if is_word(key[0])]
        self.firsts = frozenset(words[0] for words in worded)
        self.singles = frozenset(words[0] for words in worded if len(words) == 1)
        self.pairs = frozenset((words[0], words[1]) for words in worded if len(words) > 1)
        beginnings = (first.decode() for first in self.firsts)
        self.beginnings = frozenset(first[:size].encode() for first in beginnings for size in range(1, len(first) + 1))
        opening = {key: words_of(key)[0] for key in self.keys if is_word(key[0])}
        spaced = {key: first for key, first in opening.items() if key[len(first.decode()) :].startswith(" ")}
        self.opens = frozenset(spaced.values())
        """First words behind which a phrase has a space."""
        seconds: dict[bytes, set[bytes]] = {}
        odd = set()
        for key, first in opening.items():
            rest = key[len(first.decode()) :]
            if rest[:1] == " " and is_word(rest[1]):
                seconds.setdefault(first, {b""}).add(words_of(rest)[0])
            elif rest:
                odd.add(first)
        self.odd = frozenset(odd)
        """First words behind which a phrase has something else than a space and a word."""
        self.seconds = {first: b" ".join(sorted(words)) for first, words in seconds.items()}
        """First word -> each second one, with a space before it: what one begins with is found as it stands."""

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
        letters = text[at:end].translate(LETTERS)
        shown = letters.split()
        words = [word.encode() for word in shown]
        unfinished = letters[-1:] != " "
        last = len(words) - 1
        place, out = 0, []
        for number, word in enumerate(words):
            place = letters.index(shown[number], place)
            if number == last:
                begins = word in (self.beginnings if unfinished else self.firsts)
            elif unfinished and number == last - 1 and word in self.firsts:
                begins = True
            else:
                begins = word in self.singles or (word, words[number + 1]) in self.pairs
            if begins and (place or not at or not is_word(text[at - 1])):
                out.append(at + place)
            place += len(shown[number])
        if self.leads:
            shape = text[at:end].translate(SHAPES)
            out += [at + place for place, char in enumerate(shape) if char in self.leads]
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
