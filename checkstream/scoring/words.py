"""Text -> the plain words that a lexicon knows: light undoing of the usual disguises, in one pass. Pure.

Case, compatibility forms, accents, zero-width characters, look-alike letters of other alphabets, leetspeak,
letters spaced out and letters repeated are undone; a disguise is undone only where it yields a known word, so
that plain text reads as it stands. This is a scorer's own rough reading: it keeps no offsets, so nothing here
can be used to redact.
"""

from __future__ import annotations

import string
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import chain, groupby
from types import MappingProxyType

SPACED_LETTERS = 4
"""So many single letters in a row are read as a word that was spaced out."""

_MAX_SPACED_WORD = 16

_EDGES = ".,;:!?\"'()[]{}<>*_~`#-/\\|=+&%^\u2013\u2014\u2018\u2019\u201c\u201d\u201e\u00ab\u00bb\u2026\u00bf\u00a1"

# Tables over ASCII are tuples: `str.translate` indexes them, which costs no exception for a sign that stays.
_ASCII = tuple(map(chr, range(128)))
_SIGNS = dict(zip("0134578@$!|+", "oieastbasiit", strict=True))
_LEET = tuple(None if sign in "*._-'`~^" else _SIGNS.get(sign, sign) for sign in _ASCII)
_LEET_L = tuple("l" if sign in "1!|" else read for sign, read in zip(_ASCII, _LEET, strict=True))
_PIECES = tuple(sign if sign.isalnum() else " " for sign in _ASCII)
_APOSTROPHES = ("'", "\u2019", "`", "\u00b4")

# Look-alikes of Latin letters that the compatibility forms don't unify: the common ones of Unicode TR39.
_LOOKALIKES = MappingProxyType(
    str.maketrans(
        "\u0430\u0432\u0435\u0437\u043a\u043c\u043d\u043e\u0440\u0441\u0442\u0443\u0445\u0455\u0456\u0458\u0501\u051b\u051d\u04bb\u04cf"
        "\u03b1\u03b2\u03b5\u03b7\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03c9\u03f2\u0131\u0261\u0251",
        "abe3kmhopctyxsijdqwhlabenikvoptuxwciga",
    )
)


def _invisible() -> Mapping[int, None]:
    """Return a table that deletes format characters and combining marks (where scripts keep them)."""
    codes = chain(range(0x3100), range(0xA000, 0xB000), range(0xFB00, 0x10000), range(0xE0000, 0xE0200))
    return MappingProxyType({code: None for code in codes if unicodedata.category(chr(code)) in {"Cf", "Mn", "Me"}})


_INVISIBLE = _invisible()


def folded(text: str) -> str:
    """Return the text in lower case, without accents, compatibility forms and invisible characters."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFC", decomposed.translate(_INVISIBLE))


def words(text: str, known: frozenset[str]) -> list[str]:
    """Split folded text into words without punctuation, with disguised known words put right.

    Args:
        text: the output of `folded`.
        known: words worth recognising.

    Returns:
        The words in order; letters and digits only.
    """
    stretched = any(letter * 3 in text for letter in string.ascii_lowercase)
    found: list[str] = []
    for token in text.split():
        word = token if token.isalpha() else token.strip(_EDGES)
        if word in known:
            found.append(word)
        elif stretched and (squeezed := _squeezed(word, known)):
            found.append(squeezed)
        elif word.isalpha() and word.isascii():
            found.append(word)
        elif word:
            found.extend(_undisguised(word, known))
    if sum(1 for word in found if len(word) == 1) >= SPACED_LETTERS:
        return _unspaced(found, known)
    return found


def _undisguised(word: str, known: frozenset[str]) -> Sequence[str]:
    """Return the known word behind a disguise, else the word's plain pieces."""
    for apostrophe in _APOSTROPHES:
        if apostrophe in word:
            word = word.replace(apostrophe, "")
    if known_word := _reading(word, known):
        return (known_word,)
    if word.isalnum():
        return (word,)
    split = word.translate(_PIECES) if word.isascii() else "".join(sign if sign.isalnum() else " " for sign in word)
    return [piece if piece.isalpha() else _reading(piece, known) or piece for piece in split.split()]


def _reading(word: str, known: frozenset[str]) -> str | None:
    """Return the known word that this is, as it stands or in leetspeak or in another alphabet's letters."""
    if word in known:
        return word
    if not word.isascii():
        word = word.translate(_LOOKALIKES)
        if word in known:
            return word
    if word.isalpha():
        return None
    for table in (_LEET, _LEET_L):
        reading = word.translate(table)
        if reading in known and not word.isdigit():
            return reading
    return None


def _squeezed(word: str, known: frozenset[str]) -> str | None:
    """Return the known word that this is with its runs of three and more equal letters cut short."""
    if len(word) - len(set(word)) < 2 or not any(letter * 3 in word for letter in set(word)):
        return None
    runs = [(letter, sum(1 for _ in run)) for letter, run in groupby(word)]
    for times in (1, 2):
        reading = _reading("".join(letter * (count if count < 3 else times) for letter, count in runs), known)
        if reading:
            return reading
    return None


def _unspaced(found: Sequence[str], known: frozenset[str]) -> list[str]:
    """Join runs of single letters into the known words that they spell, longest first."""
    result: list[str] = []
    for single, run in groupby(found, key=lambda word: len(word) == 1):
        letters = list(run)
        if not single or len(letters) < SPACED_LETTERS:
            result.extend(letters)
            continue
        spelled = "".join(letters)
        start = 0
        while start < len(spelled):
            ends = range(min(len(spelled), start + _MAX_SPACED_WORD), start + 1, -1)
            end = next((end for end in ends if spelled[start:end] in known), start + 1)
            result.append(spelled[start:end])
            start = end
    return result
