"""Lists of JSON as readers put them together: entries joined to one text, numbers that are bytes."""

from __future__ import annotations

import codecs
from collections.abc import Generator, Sequence

from checkstream.core.steps import done

_LEAST_WORDS = 3
LEAST_NAMES = 4
"""Of members, that are words: fewer are what a programmer calls things."""
_MOST_WORDY_CHARS = 32
_MOST_TOLD_CHARS = 4096
MOST_WORDS = _MOST_TOLD_CHARS // 2
"""More, with what parts them, are longer than that."""
_MARKS = str.maketrans("", "", " ,.;:!?'\u2019-")
ANYWHERE = "*"
"""In a place: an entry of a list. Readers may join what its entries say."""
_LEAST_BYTES = 4
_BYTES_A_STEP = 8192
_CHARS_A_STEP = 8192
_UTF8 = codecs.getincrementaldecoder("utf-8")
_MOST_BYTE = 255
_FIGURES = "".join(map(chr, range(10)))
_AS_FIGURES = str.maketrans(_FIGURES, "0123456789")
_GROUPS = range(2, 6)
_GROUPED = range(12, 20)
"""Figures of a number that a list has in groups, of cards as they are printed: more or fewer are many numbers."""


def is_wordy(text: str) -> bool:
    """Tell whether a string is a word or a few: several of them may be a sentence that is told word by word."""
    return len(text) <= _MOST_WORDY_CHARS and text.translate(_MARKS).isalpha()


def told_by(words: Sequence[str]) -> str:
    """Return what wordy strings of one value say one behind the other; "" where that is no sentence, or too long."""
    if len(words) < 2:
        return ""
    told = " ".join(words)
    return told if len(told) <= _MOST_TOLD_CHARS and told.count(" ") + 1 >= _LEAST_WORDS else ""


def spelled_by(value: object) -> str | None:
    """Return the text that a list of numbers spells byte by byte, as log probabilities do; None for any other."""
    return done(spelling(value))


def spelling(value: object) -> Generator[None, None, str | None]:
    """Return what `spelled_by` returns, in steps."""
    if not isinstance(value, list) or len(value) < _LEAST_BYTES:
        return None
    reader, spelled = _UTF8("replace"), ""
    for at in range(0, len(value), _BYTES_A_STEP):
        try:
            some = bytes(value[at : at + _BYTES_A_STEP])
        except (TypeError, ValueError):
            return None
        spelled += reader.decode(some, final=len(value) <= at + _BYTES_A_STEP)
        if len(value) > at + _BYTES_A_STEP:
            yield
    return spelled


def telling(value: object) -> Generator[None, None, str | None]:
    """Return, in steps, what a list of numbers says as one text: figures of a number, their groups, or bytes.

    Groups are set apart by spaces, as they are printed. None for any other list, and for what is none.
    """
    if isinstance(value, list) and len(value) in _GROUPS:
        groups = [str(entry) for entry in value if type(entry) is int and entry > _MOST_BYTE]
        if len(groups) == len(value):
            return " ".join(groups) if sum(map(len, groups)) in _GROUPED else None
    spelled = yield from spelling(value)
    if not spelled:
        return spelled
    figures = ""
    for at in range(0, len(spelled), _CHARS_A_STEP):
        some = spelled[at : at + _CHARS_A_STEP]
        if some.strip(_FIGURES):
            return spelled
        figures += some.translate(_AS_FIGURES)
        if len(spelled) > at + _CHARS_A_STEP:
            yield
    return figures
