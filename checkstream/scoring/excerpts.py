"""What of a text is read by itself as well: orders that are known by their words, and what is legible among letters.

A window says one thing of all that stands in it. An order in the midst of a page of prose, or of a page in a script
that the vocabulary has no words for, is a small part of its window, and a model that reads the whole may miss it. So
the sentence around a known phrase, and the words between letters that say nothing to the model, are read alone too.

Pure. INVARIANT: work and tokens are linear in the text, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

BLOCK_CHARS = 1_024
"""A text is searched in blocks of so many, with a pause after each."""
EVERY_CHARS = 256
"""Of so many characters one order at most is read by itself: a text full of them is found by any of its windows."""
_BEFORE_CHARS, _AFTER_CHARS = 200, 250
"""So much of a sentence is read before and behind where a phrase begins."""
_PHRASE_CHARS, _MOST_WORDS = 80, 8
"""A phrase is so long at most."""
_LEAST_CHARS = 20
"""No sentence ends within a phrase: a line may."""
_ENDS = ("\n", ". ", "! ", "? ")
LEAST_WORDS = 4
"""So many words that follow one another are worth reading."""


class Orders:
    """Finds phrases, however they are written in capitals and white space, and gives the sentences around them."""

    def __init__(self, phrases: Sequence[str]) -> None:
        """Look for phrases of several words in lower case, `a|b` for either; the last word may go on."""
        self._phrases: dict[str, list[tuple[list[frozenset[str]], tuple[str, ...]]]] = {}
        for phrase in phrases:
            first, *middle, last = (slot.split("|") for slot in phrase.split())
            for word in first:
                self._phrases.setdefault(word, []).append(([frozenset(slot) for slot in middle], tuple(last)))

    def sentences(self, text: str, start: int = 0) -> Iterator[str | None]:
        """Yield the sentence of every phrase that may end behind `start`; None after each block."""
        last = -EVERY_CHARS
        for begin in range(max(0, start - _PHRASE_CHARS), len(text), BLOCK_CHARS):
            block = _lowered(text[begin : begin + BLOCK_CHARS + _PHRASE_CHARS])
            for at in sorted(at for word in self._phrases for at in self._places(block, word)):
                if begin + at >= last + EVERY_CHARS:
                    last = begin + at
                    yield _sentence(text, last)
            yield None

    def _places(self, block: str, word: str) -> Iterator[int]:
        """Yield where phrases begin with a word, within the block itself."""
        at = block.find(word)
        while 0 <= at < BLOCK_CHARS:
            behind = at + len(word)
            said = block[behind : at + _PHRASE_CHARS].split(None, _MOST_WORDS)
            if block[behind : behind + 1].isspace() and any(
                len(middle) < len(said)
                and said[len(middle)].startswith(last)
                and all(given in slot for given, slot in zip(said, middle, strict=False))
                for middle, last in self._phrases[word]
            ):
                yield at
            at = block.find(word, behind)


class Legible:
    """Finds what a model can read in a window that is mostly letters of which its vocabulary has no words."""

    def __init__(self, foreign: NDArray[np.bool_], words: NDArray[np.bool_]) -> None:
        """Tell pieces apart.

        Args:
            foreign: bool[id], letters of such a script and the unknown word.
            words: bool[id], pieces of words.
        """
        self._foreign = foreign
        self._words = words

    def of(self, inside: Sequence[int]) -> list[int]:
        """Return the runs of pieces that hold words enough, joined; a single letter within one is left out."""
        found: list[int] = []
        run: list[int] = []
        missed = 0
        for piece, strange in zip(inside, self._foreign[np.asarray(inside, np.intp)].tolist(), strict=True):
            if not strange:
                run.append(piece)
                missed = 0
                continue
            missed += 1
            if missed > 1:
                found += self._worth(run)
                run = []
        return found + self._worth(run)

    def _worth(self, run: list[int]) -> list[int]:
        return run if len(run) >= LEAST_WORDS and self._words[run].sum() >= LEAST_WORDS else []


def _lowered(text: str) -> str:
    """Return a text in lower case, of the same length."""
    low = text.lower()
    return low if len(low) == len(text) else "".join(sign.lower() if len(sign.lower()) == 1 else sign for sign in text)


def _sentence(text: str, at: int) -> str:
    """Return the sentence, or the line, that a place stands in, as far as it is near."""
    low, high = max(0, at - _BEFORE_CHARS), min(len(text), at + _AFTER_CHARS)
    begin = max((found + len(end) for end in _ENDS if (found := text.rfind(end, low, at)) >= 0), default=low)
    stop = min((found + 1 for end in _ENDS if (found := text.find(end, at + _LEAST_CHARS, high)) >= 0), default=high)
    return text[begin:stop]
