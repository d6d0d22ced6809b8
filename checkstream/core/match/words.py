"""What is known of words, so that a text of words that say nothing is not searched anew for each of them.

Whether something begins at a place that could still become a match is told by the text from one character before on.
So of a word between two spaces most is always the same: which views see something in it, whether a phrase or a run
begins in it, and of many sets whether any match can reach over its end. It is found out once for each word (see
`word_reader`) and looked up from then on.

Only what looks like a word of English prose is remembered: letters, with a mark behind them. No number ever is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

LONGEST: Final = 20
"""Characters of a word that is remembered, with the space before it."""
_MOST_KNOWN: Final = 1 << 14
_MARKS: Final = ",.;:?"
_LONE: Final = 3
"""Characters of a space and two letters, of which views that wait for what follows may have read one."""
_MOST_AT_ONCE: Final = 16
"""Words of one piece that are looked at one by one: those of a longer one are all known."""
_MOST_NEW: Final = 3
"""Words of one piece, besides its last, about which something is found out: that may take a millisecond for each."""
_ALONE: Final = 1 << 62
"""Beside the expressions of a word between two others: more is to be known of the one behind it."""


class Word(msgspec.Struct, frozen=True, gc=False):
    """What is known of a space and a word that end a text, behind any other word.

    Patterns are asked in a few expressions, each the union of some; a set of these is a number, a bit for each.
    """

    live: int
    """From here on, in characters from the space, it could still become something, whatever stands before it."""
    unread: tuple[int, ...]
    """How many characters of its end views have not read that are asked about it, in the order in which they are."""
    asks: int
    """Of the rest these expressions are to be asked: what they say of the space depends on what stands before it."""
    open: int
    """Once a space stands behind it, something in it could still become a match of these."""
    apart: bool
    """Once a space stands behind it no view sees anything in it, and it can't become a phrase or a run any more."""
    lone: bool = False
    """It is so once a space and a word of three letters stand behind it: a letter by itself may begin a run of such."""

    def passes(self, following: str) -> bool:
        """Tell whether no view sees anything in it, now that a space and the beginning of a word stand behind it."""
        return self.apart or (self.lone and goes_on(following))


def goes_on(text: str) -> bool:
    """Tell whether a text is a space and the beginning of a word of three letters or more."""
    return len(text) > _LONE and text[1:4].isalpha()


Try = Callable[[str], Word | None]


class Words:
    """What is known for one set of patterns: a function of the word, whoever has asked before."""

    __slots__ = ("_between", "_try", "known")

    def __init__(self, tried: Try) -> None:
        """Know nothing yet; `tried` finds out about one, None: nothing can be said of it."""
        self.known: dict[str, Word | None] = {}
        """A space and a word -> what is known; None: nothing can be said."""
        self._between: dict[str, int] = {}
        """A word that stands between two others and is nothing -> which expressions it asks (see `Word`)."""
        self._try = tried

    @property
    def size(self) -> int:
        """How many words are remembered."""
        return len(self.known)

    def get(self, word: str) -> Word | None:
        """Return what is known of a space and a word; None: nothing can be said."""
        try:
            return self.known[word]
        except KeyError:
            return self._find_out(word)

    def _find_out(self, word: str) -> Word | None:
        if len(word) > LONGEST or not _is_word(word):
            return None
        if len(self.known) >= _MOST_KNOWN:
            self.known.clear()
            self._between.clear()
        found = self.known[word] = self._try(word)
        if found is not None and (found.apart or found.lone):
            self._between[word[1:]] = found.asks | found.open | (0 if found.apart else _ALONE)
        return found

    def last(self, text: str) -> tuple[str, Word, int] | None:
        """Return the last word of a text that begins with a space, what is known of it, and what those before it ask.

        None: something in the text is not known, or goes on over a space otherwise than as patterns have it.
        """
        if text.find(" ", 1) < 0:
            word = self.get(text)
            return None if word is None else (text, word, 0)
        _, *before, tail = text.split(" ")
        asks = 0
        for each in set(map(self._between.get, before)):
            if each is None:
                return self._find_out_last(before, tail)
            asks |= each
        if asks & _ALONE and not self._all_pass(before, tail):
            return None
        word = self.get(f" {tail}")
        return None if word is None else (f" {tail}", word, asks & ~_ALONE)

    def reach(self, text: str) -> int:
        """Return how many characters of a text that begins with a space are of words that are nothing, as is known."""
        at = 0
        for each in text[1:].split(" "):
            if each not in self._between:
                break
            at += len(each) + 1
        return at

    def _all_pass(self, before: Sequence[str], tail: str) -> bool:
        """Tell whether what stands behind each of some words is enough for it to be nothing."""
        following = (*before[1:], tail)
        return all(
            not self._between[each] & _ALONE or goes_on(f" {behind}")
            for each, behind in zip(before, following, strict=True)
        )

    def _find_out_last(self, before: Sequence[str], tail: str) -> tuple[str, Word, int] | None:
        """Return what `last` does of words that were not all known, if they are few."""
        if len(before) >= _MOST_AT_ONCE:
            return None
        asks = 0
        new = _MOST_NEW
        for each, following in zip(before, (*before[1:], tail), strict=True):
            new -= f" {each}" not in self.known
            if new < 0:
                return None
            word = self.get(f" {each}")
            if word is None or not word.passes(f" {following}"):
                return None
            asks |= word.asks | word.open
        word = self.get(f" {tail}")
        return None if word is None else (f" {tail}", word, asks)


def _is_word(text: str) -> bool:
    """Tell whether a text is a space and a word, with a mark behind it or none."""
    if text[:1] != " " or not text.isascii():
        return False
    letters = text[1:-1] if text[-1] in _MARKS else text[1:]
    return letters[:1].isalpha() and letters.replace("'", "").replace("-", "").isalpha()
