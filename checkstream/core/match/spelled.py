r"""Sentences in the dress of a name: `ignore_all_previous_instructions`, `Ignore-All-...`, `ignoreAllPrevious...`.

A model reads the words of a name; phrases and classifiers look for words with gaps between them. So names of several
words are spelled out, with a space where one word ends and the next begins.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from checkstream.core.match.engine import compile_regex

LEAST_WORDS: Final = 3
"""Of a name that is spelled out where names are expected, and ..."""
LEAST_WORDS_IN_TEXT, _LEAST_LETTERS_IN_TEXT = 4, 16
"""... in the midst of a text, which has many names of things in it."""
_MOST_CHARS: Final = 512
"""Of a name; of what is longer the next so many are one more."""
_BETWEEN: Final = "_.+-"
_NAME: Final = compile_regex(rf"[A-Za-z](?:[a-z]*(?:[{_BETWEEN}]{{1,2}}[A-Za-z]|[A-Z])){{{LEAST_WORDS - 1},}}[A-Za-z]*")
NAMES_CHARS: Final = 2048
"""Of a text that is looked at in one step."""
_GAPS: Final = str.maketrans(dict.fromkeys(_BETWEEN, " "))


def names(text: str, least: int) -> Iterator[tuple[int, int, str] | None]:
    """Yield where names of `least` words or more stand in a text, and how they are spelled; None after each step."""
    at = 0
    while at < len(text):
        piece = text[at : at + NAMES_CHARS + _MOST_CHARS]
        after = at + NAMES_CHARS
        for hit in _NAME.finditer(piece):
            low, high = hit.start(), min(hit.end(), hit.start() + _MOST_CHARS)
            if low >= NAMES_CHARS:
                break
            said = _spelled(piece[low:high])
            after = max(after, at + high)
            if _worth(said, least):
                yield at + low, at + high, said
        yield None
        at = after


def _worth(said: str, least: int) -> bool:
    words = sum(len(word) > 1 for word in said.split())
    return words >= least and (least <= LEAST_WORDS or len(said) - said.count(" ") >= _LEAST_LETTERS_IN_TEXT)


def _spelled(name: str) -> str:
    """Return the words of a name with spaces between them."""
    out: list[str] = []
    before = " "
    plain = name.translate(_GAPS)
    for sign, behind in zip(plain, f"{plain[1:]} ", strict=True):
        if sign.isupper() and (before.islower() or (behind.islower() and before != " ")):
            out.append(" ")
        out.append(sign)
        before = sign
    return " ".join("".join(out).split())
