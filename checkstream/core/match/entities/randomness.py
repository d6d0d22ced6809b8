"""Does a text look like a secret that a machine made, or like a word, a code reference or a stand-in?"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from math import log2

_STAND_INS = (
    "your", "changeme", "change_me", "change-me", "placeholder", "example", "sample", "redacted", "dummy", "insert",
    "replace", "xxxx", "****", "....", "____", "<", "${", "{{", "%(", "$(", "todo", "hidden", "masked", "removed",
    "enter",
)  # fmt: skip


def entropy_bits(text: str) -> float:
    """Return the Shannon entropy of `text`, in bits a character. Source: Shannon 1948, section 6."""
    size = len(text)
    return -sum(count / size * log2(count / size) for count in Counter(text).values()) if size else 0.0


def char_classes(text: str) -> int:
    """Count which of lower case, upper case, digit and sign occur in `text`."""
    return (
        any(char.islower() for char in text)
        + any(char.isupper() for char in text)
        + any(char.isdigit() for char in text)
        + any(not char.isalnum() for char in text)
    )


_PUBLISHED = frozenset({"wjalrxutnfemi/k7mdeng/bpxrficyexamplekey"})
"""Examples of a vendor's own documentation that look made, in lower case."""
_MADE_CHARS = 10
"""Fewest characters of a piece that is taken for made by a machine."""


def _classes(piece: str) -> str:
    """Return a piece with each character as its kind; a capital that begins a word counts as one of it."""
    kinds = "".join("0" if char.isdigit() else "A" if char.isupper() else "a" for char in piece)
    return kinds.replace("Aa", "_a")


def _looks_made(piece: str) -> bool:
    """Say whether letters and digits are mixed as no name mixes them (`51HxYz`, and not `getPassword1`)."""
    if len(piece) < _MADE_CHARS or not any(char.isdigit() for char in piece):
        return False
    kinds = _classes(piece)
    words = 1 + sum(a != b and a + b != "_a" for a, b in pairwise(kinds))
    inside = kinds.strip("0")
    return len(piece) <= 3 * words or "0" in inside


def _made_beside(folded: str, text: str) -> bool:
    """Say whether something that looks made stands beside the words for a stand-in."""
    rest = text
    for word in _STAND_INS:
        place = folded.find(word)
        while place >= 0:
            rest = rest[:place] + " " * len(word) + rest[place + len(word) :]
            place = folded.find(word, place + len(word))
    pieces = "".join(char if char.isalnum() else " " for char in rest).split()
    return any(map(_looks_made, pieces))


def is_stand_in(text: str) -> bool:
    """Say whether `text` only holds a secret's place (`<your-key>`, `${VAR}`, `xxxx`, `changeme`).

    The whole of it must: a secret that has such a word inside is a secret.
    """
    folded = text.casefold()
    return (
        (any(word in folded for word in _STAND_INS) and (folded in _PUBLISHED or not _made_beside(folded, text)))
        or len(set(folded)) <= 3
        or (folded[:1] in "$%{[" and folded[-1:] in "}])%" + folded[-1:] * folded[1:].replace("_", "").isalpha())
    )


def is_random(text: str, *, bits: float = 3.0, need_digit: bool = True) -> bool:
    """Say whether `text` mixes kinds of characters with at least `bits` of entropy a character and is no stand-in."""
    if need_digit and not any(char.isdigit() for char in text):
        return False
    return char_classes(text) >= 2 and entropy_bits(text) >= bits and not is_stand_in(text)
