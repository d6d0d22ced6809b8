r"""The shape in which text and phrases are compared: case folded, white space between words as one space.

Characters map one to one; letter case is folded as `(?i)` does it (simple case folding, in this Python's Unicode).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from typing import Final

GAP_CHARS: Final = 8
"""Most white-space characters between two words of a phrase."""
_SPACES: Final = frozenset("\t\n\v\f\r ")
_CUT: Final = "\ud800"
"""In place of a gap that is too wide: a lone surrogate, which stands in no text and no phrase."""
_MOST_FOLDED: Final = 1 << 14
"""Characters whose shape is remembered."""


def is_word(char: str) -> bool:
    """Whether a character (or "") belongs to a word: alphanumeric, a mark, or the underscore."""
    return char.isalnum() or char == "_" or (char > "\x7f" and unicodedata.category(char).startswith("M"))


def _folded(char: str) -> str:
    """Return a character in simple case folding (UAX 44, `Simple_Case_Folding`)."""
    folded = char.casefold()
    if len(folded) > 1:
        folded = char.lower()
    return folded if len(folded) == 1 else char


def _shape_of(char: str) -> str:
    white = char in _SPACES or (char > "\x7f" and unicodedata.category(char).startswith("Z"))
    return " " if white else _folded(char)


def _letter_of(char: str) -> str:
    return _folded(char) if is_word(char) else " "


class _Mapping(dict[int, str]):
    """For `str.translate`: code point -> its character in another form, worked out when first met."""

    def __init__(self, form: Callable[[str], str]) -> None:
        super().__init__()
        self._form = form

    def __missing__(self, code: int) -> str:
        form = self._form(chr(code))
        if len(self) < _MOST_FOLDED:
            self[code] = form
        return form


SHAPES: Final = _Mapping(_shape_of)
"""For `str.translate`: to the shape, but that each white-space character is a space."""
LETTERS: Final = _Mapping(_letter_of)
"""For `str.translate`: to the shape, but that all that belongs to no word is a space."""
ASCII_SHAPES: Final = "".join(map(_shape_of, map(chr, range(128)))).encode().ljust(256)
ASCII_LETTERS: Final = "".join(map(_letter_of, map(chr, range(128)))).encode().ljust(256)
"""The same two for `bytes.translate` of ASCII, which is many times as fast."""


def lettered(text: str) -> str:
    """Return a text with letter case folded, and a space for each character that belongs to no word."""
    return text.encode().translate(ASCII_LETTERS).decode() if text.isascii() else text.translate(LETTERS)


def folded(text: str) -> str:
    """Return a text with letter case folded, and a space for each white-space character."""
    return text.encode().translate(ASCII_SHAPES).decode() if text.isascii() else text.translate(SHAPES)


def shaped(text: str) -> tuple[str, Sequence[int]]:
    """Return the shape of a text, and where each of its characters ends in it; empty: each where it stands."""
    shape = folded(text)
    if "  " not in shape:
        return shape, ()
    out: list[str] = []
    ends: list[int] = []
    gap = 0
    for end, char in enumerate(shape, 1):
        gap = gap + 1 if char == " " else 0
        if gap > GAP_CHARS:
            out[-1] = _CUT
            break
        if gap > 1:
            ends[-1] = end
        else:
            out.append(char)
            ends.append(end)
    return "".join(out), ends
