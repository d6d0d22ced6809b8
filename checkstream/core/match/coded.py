r"""The `encoded` view, numbers of characters: texts whose characters are told by their codes, each searched by itself.

Eight codes or more of printable characters of ASCII, or white space, as programs write them: `chr(52)+chr(49)`,
`CHAR(52)||CHAR(49)`, `f"{chr(52)}{chr(49)}"`, `putchar(52);` line by line; decimal, of seven or eight binary digits, or
in hex behind a function's name. Rows of them alone count in binary digits or as `U+0034`: rows of decimals between 32
and 126 are ages, temperatures and scores. Rows of hex are read by `hexed`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from checkstream.core.match.hexed import Hexed
from checkstream.core.match.inner import Open
from checkstream.core.match.patterns import Regex, compile_regex
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion

_DECIMAL: Final = "(?:9|10|13|3[2-9]|[4-9][0-9]|1[01][0-9]|12[0-6])"
_BINARY: Final = "(?:0[Bb])?0?(?:01[01]{5}|1[01]{6}|000(?:1001|1010|1101))"
_PLAIN: Final = f"(?:{_DECIMAL}|{_BINARY})"
_PAIR: Final = "(?:[2-6][0-9A-Fa-f]|7[0-9A-Ea-e]|0[9AaDd])"
_POINT: Final = f"00{_PAIR}"
_CODE: Final = f"(?:{_PLAIN}|0[Xx](?:{_PAIR}|[9AaDd])|{_POINT})"
_SIGN: Final = r"[ \t,;+\[\]{}]"
"""Between the numbers of a row."""
_OTHER: Final = r"""[ \t,;+|.&()\[\]{}$:=<>~"'\\\-]"""
_LINE: Final = r"\r?\n[ \t]{0,16}"
_NAME: Final = (
    r"(?i:(?:string\.)?from(?:charcode|codepoint)|(?:n|uni|string\.|character\.)?cha?r[wb]?(?:\.tostring)?"
    r"|character\.tostring|convert\.tochar|rune|string|byte)[ \t$)\](]{1,3}"
)
_CALL: Final = rf"{_NAME}(?:{_NAME})?"
_CALLED: Final = rf"(?:{_OTHER}{{1,10}}(?:{_LINE}{_OTHER}{{0,4}})?|[)\]]{{0,3}};?{_LINE})"
"""Before a function's name that says of which number it is the character."""
_STATEMENT: Final = (
    rf"[)\]]{{0,3}}(?:;[ \t]{{0,2}}(?:{_LINE})?|[ \t]{{0,2}}{_LINE})[A-Za-z_][A-Za-z_.]{{0,15}} ?(?:[+.]?=|<<|\() ?\(?"
)
"""From one line of a program to the next: `;`, `putchar(`, `s += `."""
_APART: Final = rf"(?:{_SIGN}{{1,6}}(?:{_LINE}{_SIGN}{{0,2}})?|{_LINE}{_SIGN}{{0,2}})"
_POINTS: Final = rf"(?:{_APART}|\}}\\N\{{)[Uu]\+{_POINT}"
_NEXT_CODE: Final = rf"(?:{_APART}{_BINARY}|{_STATEMENT}{_PLAIN}|{_POINTS}|(?:{_CALLED}|{_STATEMENT}){_CALL}{_CODE})"
"""What parts a code from the next, and that."""
_LEAST_CODES: Final = 8
CODES: Final = rf"{_CODE}{_NEXT_CODE}{{{_LEAST_CODES - 1}}}"
"""Expression for what is taken for codes of characters."""
_RUN: Final = compile_regex(CODES)
_FIRST: Final = compile_regex(rf"{_CODE}(?:[^0-9A-Za-z]|\z)")
_NEXT: Final = compile_regex(rf"{_NEXT_CODE}(?:[^0-9A-Za-z]|\z)")
_MORE: Final = companion(parse(_NEXT_CODE))
_NEXT_BEGUN: Final = compile_regex(rf"(?:{_MORE})\z")
_CODE_BEGUN: Final = "[0-9]|1[012]|[01]{1,7}|0[Xx][02-7]?|0[Bb][01]{0,8}|00[02-7]"
_BEGUN: Final = compile_regex(rf"(?:{_CODE}{_NEXT_CODE}{{0,{_LEAST_CODES - 2}}}(?:{_MORE})|{_CODE_BEGUN})\z")
_POINT_DIGITS, _BINARY_DIGITS = 4, 7
"""That a code has as a code point, and at least where it is binary."""


def begun_from(text: str, start: int = 0) -> int:
    """Return where the codes begin, from `start` on, at a text's end that may become a run; else its length."""
    begun = _BEGUN.search(text, start)
    return len(text) if begun is None else begun.start()


class Coded(Hexed):
    """Reads the original text of one channel; mutable."""

    __slots__ = ("_begins",)

    RUN: ClassVar[Regex] = _RUN
    NEXT_BEGUN: ClassVar[Regex] = _NEXT_BEGUN

    def __init__(self, begin: Open, at: int) -> None:
        """Start at the original offset `at`, outside of any run."""
        super().__init__(begin, at)
        self._begins = False
        """The next code is a run's first."""

    def _begun_from(self, text: str, start: int) -> int:
        return begun_from(text, start)

    def _begin(self, place: int) -> None:
        super()._begin(place)
        self._begins = True

    def _said(self, text: str, place: int, *, ended: bool) -> Iterator[tuple[str, int, int]]:
        """See `Hexed`; a code at the text's end may go on with a digit."""
        while (hit := (_FIRST if self._begins else _NEXT).match(text, place)) is not None:
            place = hit.end() - (not text[hit.end() - 1].isalnum())
            if place == len(text) and not ended:
                return
            self._begins = False
            low = place
            while low > hit.start() and text[low - 1].isalnum():
                low -= 1
            yield _char(text[low:place]), low, place


def _char(code: str) -> str:
    """Return the character of a code."""
    folded = code.lower()
    if folded[:2] == "0x" or (len(code) == _POINT_DIGITS and folded[:2] == "00"):
        return chr(int(folded.removeprefix("0x"), 16))
    return chr(int(folded.removeprefix("0b"), 2) if len(code) >= _BINARY_DIGITS else int(code))
