"""Names that stand one behind the other: a list of people, a line each, is one run to what finds surrogates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkstream.core.match.surrogates import surrogate_key, words_in
from checkstream.core.pseudonyms.register import Register

_MOST_WORDS = 3
"""Of the name of one person."""

Part = tuple[int, int, str]
"""Where it begins and ends in a run, and the key of the surrogate."""


def parts_of(run: str, key: str, register: Register) -> Sequence[Part]:
    """Return the surrogates that a run of names, known by a key, is made of, where it is none itself.

    Somebody who is named in full is told by that. What is left, as `Vance, Derek` without its comma, counts where all
    the words behind each other are somebody's: beside one that is nobody's a word is a part of a stranger's name.
    """
    words = words_in(run, key)
    found, loose = list[Part](), list[Part]()
    at = 0
    while at < len(words):
        full = next(_beginning(run, words[at : at + _MOST_WORDS], register), None)
        start, end = words[at]
        if full is None:
            loose.append((start, end, surrogate_key(run[start:end])))
            at += 1
            continue
        part, count = full
        found += _known(loose, register)
        found.append(part)
        loose.clear()
        at += count
    return [*found, *_known(loose, register)]


def _beginning(run: str, words: Sequence[tuple[int, int]], register: Register) -> Iterator[tuple[Part, int]]:
    """Yield who is named in full by the first of some words, and by how many, the longest first."""
    for count in range(len(words), 1, -1):
        start, end = words[0][0], words[count - 1][1]
        key = surrogate_key(" ".join(run[low:high] for low, high in words[:count]))
        if register.is_given(key):
            yield (start, end, key), count


def _known(loose: Sequence[Part], register: Register) -> Sequence[Part]:
    return loose[:] if all(register.is_given(key) for _, _, key in loose) else ()
