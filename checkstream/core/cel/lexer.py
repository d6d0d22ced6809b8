"""Cut the text of an expression into tokens."""

from __future__ import annotations

import math
from typing import Final, Literal

import msgspec

from checkstream.core.cel.values import INT_MAX, UINT_MAX, Uint, Value
from checkstream.errors import ExpressionError

Kind = Literal["literal", "name", "quoted", "mark", "end"]

RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "for",
        "function",
        "if",
        "import",
        "let",
        "loop",
        "package",
        "namespace",
        "return",
        "var",
        "void",
        "while",
    ]
)
"""Words that may name a field or a function of a value, never a variable."""
_KEYWORDS: Final[dict[str, Value]] = {"true": True, "false": False, "null": None}
_MARKS: Final = ("&&", "||", "==", "!=", "<=", ">=", *"()[]{}.,?:+-*/%!<>")
_SPACE: Final = " \t\n\f\r"
_DIGITS: Final = frozenset("0123456789")
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_NAME_START: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_")
_NAME: Final = _NAME_START | _DIGITS
_QUOTED: Final = _NAME | frozenset(".-/ ")
_SIMPLE_ESCAPES: Final = dict(zip("abfnrtv\\?\"'`", "\a\b\f\n\r\t\v\\?\"'`", strict=True))
_CODE_ESCAPES: Final = {"x": 2, "X": 2, "u": 4, "U": 8}
_MAX_DIGITS: Final = 20
"""Digits of the greatest uint; longer numbers are out of range whatever they are."""


class Token(msgspec.Struct, frozen=True):
    """One token: what it is, as it is written, and where."""

    kind: Kind
    text: str
    position: int
    value: Value = None
    """What a literal stands for. That of a whole number without `u` may be 2**63, which only a minus makes an int."""


def tokens(text: str) -> list[Token]:
    """Return all tokens of `text`, the last one of kind `end`.

    Raises:
        ExpressionError: a character, number, string or escape that the language doesn't have.
    """
    surrogate = next((place for place, char in enumerate(text) if "\ud800" <= char <= "\udfff"), None)
    if surrogate is not None:
        raise ExpressionError("a lone surrogate is not a character", surrogate, "remove it")
    found: list[Token] = []
    place = _after_space(text, 0)
    while place < len(text):
        token, place = _token(text, place)
        found.append(token)
        place = _after_space(text, place)
    found.append(Token("end", "", len(text)))
    return found


def _after_space(text: str, place: int) -> int:
    while place < len(text):
        if text[place] in _SPACE:
            place += 1
        elif text.startswith("//", place):
            end = text.find("\n", place)
            place = len(text) if end < 0 else end
        else:
            break
    return place


def _token(text: str, place: int) -> tuple[Token, int]:
    """Read the token at `place`; return it and where it ends.

    Raises:
        ExpressionError: see `tokens`.
    """
    char = text[place]
    quote = _quote_after_prefix(text, place)
    if quote is not None:
        return _string(text, place, quote)
    if char in _NAME_START:
        end = _run(text, place, _NAME)
        word = text[place:end]
        if word in _KEYWORDS:
            return Token("literal", word, place, _KEYWORDS[word]), end
        return Token("mark" if word == "in" else "name", word, place), end
    if char in _DIGITS or (char == "." and text[place + 1 : place + 2] in _DIGITS):
        return _number(text, place)
    if char == "`":
        end = _run(text, place + 1, _QUOTED)
        if text[end : end + 1] != "`" or end == place + 1:
            raise ExpressionError(
                "a quoted name is not closed", place, "it has ASCII letters, digits and `_.-/ ` between back quotes"
            )
        return Token("quoted", text[place + 1 : end], place), end + 1
    for mark in _MARKS:
        if text.startswith(mark, place):
            return Token("mark", mark, place), place + len(mark)
    advice = {"=": "compare with `==`", "&": "write `&&`", "|": "write `||`"}.get(char, "remove it")
    shown = char if char.isprintable() else f"U+{ord(char):04X}"
    raise ExpressionError(f"`{shown}` means nothing here", place, advice)


def _run(text: str, place: int, chars: frozenset[str]) -> int:
    while place < len(text) and text[place] in chars:
        place += 1
    return place


def _number(text: str, start: int) -> tuple[Token, int]:
    """Read an int, uint or double.

    Raises:
        ExpressionError: it is out of range, or letters follow it.
    """
    hexadecimal = text[start : start + 2] in {"0x", "0X"} and text[start + 2 : start + 3] in _HEX
    if hexadecimal:
        place = _run(text, start + 2, _HEX)
    else:
        place = _run(text, start, _DIGITS)
        fraction = text[place : place + 1] == "." and text[place + 1 : place + 2] in _DIGITS
        if fraction:
            place = _run(text, place + 1, _DIGITS)
        exponent = _exponent(text, place)
        if fraction or exponent > place:
            return Token("literal", text[start:exponent], start, _double(text, start, exponent)), _ended(text, exponent)
    digits = text[start + 2 : place] if hexadecimal else text[start:place]
    significant = digits.lstrip("0")[: _MAX_DIGITS + 1]
    number = int(significant or "0", 16 if hexadecimal else 10)
    if text[place : place + 1] in {"u", "U"}:
        if number > UINT_MAX:
            raise ExpressionError("a number passes the range of uint", start, f"the greatest is {UINT_MAX}u")
        return Token("literal", text[start : place + 1], start, Uint(number)), _ended(text, place + 1)
    if number > INT_MAX + 1:
        raise ExpressionError("a number passes the range of int", start, f"the greatest is {INT_MAX}")
    return Token("literal", text[start:place], start, number), _ended(text, place)


def _exponent(text: str, place: int) -> int:
    if text[place : place + 1] not in {"e", "E"}:
        return place
    sign = place + 1 + (text[place + 1 : place + 2] in {"+", "-"})
    end = _run(text, sign, _DIGITS)
    return end if end > sign else place


def _double(text: str, start: int, end: int) -> float:
    """Return the number written from `start` to `end`.

    Raises:
        ExpressionError: no double is that large.
    """
    number = float(text[start:end])
    if math.isinf(number):
        raise ExpressionError("a number passes the range of double", start, "the greatest is about 1.8e308")
    return number


def _ended(text: str, place: int) -> int:
    """Return `place`, where a number ends.

    Raises:
        ExpressionError: a letter or digit follows it.
    """
    if text[place : place + 1] in _NAME and text[place : place + 1]:
        raise ExpressionError("a number runs into a name", place, "put a space or an operator between them")
    return place


def _quote_after_prefix(text: str, place: int) -> int | None:
    """Return where the opening quote of a string that begins at `place` stands, or None."""
    for prefix in ("", "r", "b", "br"):
        end = place + len(prefix)
        if text[place:end].lower() == prefix and text[end : end + 1] in {'"', "'"}:
            return end
    return None


def _string(text: str, start: int, quote: int) -> tuple[Token, int]:
    """Read a string or bytes.

    Raises:
        ExpressionError: it is not closed, or has an escape that isn't one.
    """
    prefix = text[start:quote].lower()
    closing = text[quote]
    if text.startswith(closing * 3, quote):
        closing *= 3
    binary, raw = "b" in prefix, "r" in prefix
    parts: list[bytes] = []
    place = quote + len(closing)
    while not text.startswith(closing, place):
        char = text[place : place + 1]
        if not char or (len(closing) == 1 and char in "\r\n"):
            raise ExpressionError("a string is not closed", start, f"end it with `{closing}`")
        if char == "\\" and not raw:
            part, place = _escape(text, place, binary=binary)
        else:
            part, place = char.encode(), place + 1
        parts.append(part)
    end = place + len(closing)
    joined = b"".join(parts)
    return Token("literal", text[start:end], start, joined if binary else joined.decode()), end


def _escape(text: str, place: int, *, binary: bool) -> tuple[bytes, int]:
    """Read the escape at `place`; return its bytes and where it ends.

    Raises:
        ExpressionError: it isn't one.
    """
    kind = text[place + 1 : place + 2]
    if kind in _SIMPLE_ESCAPES:
        return _SIMPLE_ESCAPES[kind].encode(), place + 2
    if kind in _CODE_ESCAPES and not (binary and kind in "uU"):
        start, length, base, digits = place + 2, _CODE_ESCAPES[kind], 16, _HEX
    else:
        start, length, base, digits = place + 1, 3, 8, frozenset("01234567")
    end = start + length
    written = text[start:end]
    if len(written) == length and digits.issuperset(written):
        code = int(written, base)
        if binary and code <= 0xFF:
            return bytes((code,)), end
        if not binary and code <= (0o377 if base == 8 else 0x10FFFF) and not 0xD800 <= code <= 0xDFFF:
            return chr(code).encode(), end
    shown = "".join(char if char.isprintable() else " " for char in text[place : max(end, place + 2)])
    raise ExpressionError(f"`{shown}` is no escape", place, "write a backslash as `\\\\`, or begin the string with `r`")
