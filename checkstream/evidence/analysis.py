"""Text -> the terms of a keyword index. Pure, and the same for every store: each engine only counts them.

Letters are folded (case, accents, compatibility forms), words are runs of letters and digits. Scripts that put no
spaces are cut into overlapping pairs of letters, as most of their words are that long; a phrase then shares most
of its pairs with a text that holds it.

Source: Lucene, `CJKBigramFilter` (the pairs).
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from itertools import groupby

from checkstream.scoring.words import folded

VERSION = 1
"""Changes when the terms of a text change: an index of another version is built anew."""
MAX_TERM_CHARS = 64
"""Longer runs are cut: keys, hashes and encoded data are found by how they begin."""
MAX_QUERY_TERMS = 64
"""A claim is a sentence; of a longer text the first words are asked for."""

_ASCII = tuple(chr(code).lower() if chr(code).isalnum() else " " for code in range(128))
_UNSPACED = (
    (0x0E00, 0x0F00),  # Thai, Lao
    (0x1000, 0x10A0),  # Myanmar
    (0x1780, 0x1800),  # Khmer
    (0x3040, 0x3100),  # Hiragana, Katakana
    (0x3400, 0x4DC0),
    (0x4E00, 0xA000),  # Han
    (0xF900, 0xFB00),
    (0x20000, 0x40000),
)
_FIRST = tuple(first for first, _ in _UNSPACED)


def terms(text: str) -> list[str]:
    """Return the terms of `text`, in order and as often as they stand there."""
    if text.isascii():
        return [word[:MAX_TERM_CHARS] for word in text.translate(_ASCII).split()]
    found: list[str] = []
    for word in "".join(sign if _in_word(sign) else " " for sign in folded(text)).split():
        if word.isascii():
            found.append(word[:MAX_TERM_CHARS])
            continue
        for unspaced, signs in groupby(word, _is_unspaced):
            run = "".join(signs)
            if unspaced and len(run) > 1:
                found += (run[at : at + 2] for at in range(len(run) - 1))
            else:
                found.append(run[:MAX_TERM_CHARS])
    return found


def query_terms(text: str) -> list[str]:
    """Return the different terms of what is searched for, in order of their first place, the first 64 of them."""
    return list(dict.fromkeys(terms(text[: MAX_QUERY_TERMS * 4 * MAX_TERM_CHARS])))[:MAX_QUERY_TERMS]


def _in_word(sign: str) -> bool:
    return sign.isalnum() or (not sign.isascii() and unicodedata.category(sign) == "Mc")


def _is_unspaced(sign: str) -> bool:
    code = ord(sign)
    at = bisect_right(_FIRST, code) - 1
    return at >= 0 and code < _UNSPACED[at][1]
