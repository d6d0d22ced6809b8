"""When two names are the same: `Anna Schmidt's` and `ANNA  SCHMIDT`, `Anna-Maria` and `anna maria`.

A name is its words, in their order. A word is a run of letters, marks and digits in the plain form of Unicode (NFKC)
and without letter case; all else only stands between words, and what shows nothing is not there. Scripts that put no
white space between words, and Korean, which writes particles on to them, have a word for each character. A possessive
`'s` behind the name is no part of it.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Final

import re2

from checkstream.core.conversation import WORD_BYTES

_UNSPACED = re2.compile(r"([\p{Han}\p{Hiragana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}])")
_NO_WORD = re2.compile(r"[^\pL\pM\pN]+")
_UNSEEN = re2.compile(r"\p{Cf}+")
_POSSESSIVE: Final = ("'s", "\u2019s", "'S", "\u2019S")
APART: Final = "\n"
"""Stands between the words of two texts: no name has it."""
_PIECE: Final = 1024
"""Characters that are read in one step: NFKC makes up to 18 of one."""
_LONGEST: Final = 320
"""Of a word that is not cut."""
APART_DIGEST: Final = bytes(WORD_BYTES)
"""Stands between the digests of two texts."""


def name_key(text: str) -> str:
    """Return the words of a name with one space between; names with the same words are the same."""
    shown = text.strip()
    return words_of(shown[:-2] if shown.endswith(_POSSESSIVE) else shown)


def words_of(text: str) -> str:
    """Return the words of a text with one space between."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    if not folded.isascii():
        folded = unicodedata.normalize("NFKC", folded).encode("utf-8", "replace").decode()
        folded = _UNSPACED.sub(r" \1 ", _UNSEEN.sub("", folded))
    words: str = _NO_WORD.sub(" ", folded)
    return words.strip()


def pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces whose words are those of the text: none is cut but one longer than any name has."""
    at = 0
    while at < len(text):
        end = min(at + _PIECE, len(text))
        if end < len(text):
            end = next((place for place in range(end, end - _LONGEST, -1) if _is_sign(text[place])), end)
        yield text[at:end]
        at = end


def _is_sign(char: str) -> bool:
    """Tell whether a character begins what stands between words, whatever stands before and behind it."""
    return char.isascii() and not char.isalnum()


def told(words: Iterable[str]) -> str:
    """Return the words of some pieces as `tells` reads them; `APART` stands between two texts."""
    return f" {' '.join(filter(None, words))} "


def tells(told: str, key: str) -> bool:
    """Tell whether the words of a name (see `name_key`) stand in one of some texts, one after the other."""
    return bool(key) and f" {key} " in told


def word_digest(word: str, secret: bytes) -> bytes:
    """Return the keyed digest of a word."""
    return hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=WORD_BYTES, key=secret).digest()


def tells_digests(heard: bytes, key: str, secret: bytes) -> bool:
    """Tell whether the words of a name stand one after the other in one of some texts, of which digests are known."""
    if not heard or not key:
        return False
    asked = b"".join(word_digest(word, secret) for word in key.split())
    at = heard.find(asked)
    while at >= 0 and at % WORD_BYTES:
        at = heard.find(asked, at + 1)
    return at >= 0
