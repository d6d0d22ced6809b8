r"""The `unescaped` view: JSON and string escapes, percent-encoding and HTML entities, decoded once.

Source: RFC 8259, section 7 (`\n`, `\u0041`, surrogate pairs); RFC 3986, section 2.1 (`%41`, UTF-8);
WHATWG HTML 13.5 (the named references listed here; decimal and hexadecimal ones).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from checkstream.core.match.normalise import Reading
from checkstream.core.match.patterns import compile_regex

TRIGGERS: Final = r"[\\%&]"
"""Expression for the characters that open an escape."""
_TRIGGER: Final = compile_regex(TRIGGERS)
_SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {
        '"': '"', "\\": "\\", "/": "/", "'": "'",
        "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t",
    }
)  # fmt: skip
_NAMED: Final[Mapping[str, str]] = MappingProxyType(
    {
        "amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'", "nbsp": " ", "commat": "@", "period": ".",
        "num": "#", "dollar": "$", "percnt": "%", "lowbar": "_", "hyphen": "-", "colon": ":", "sol": "/",
        "excl": "!", "plus": "+", "equals": "=", "Tab": "\t", "NewLine": "\n",
    }
)  # fmt: skip
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_DIGITS: Final = frozenset("0123456789")

_Decoded = tuple[str, int] | None
"""What an escape says and how many characters it takes (an escape that is none: itself, 1); None: more is needed."""


class Unescaped:
    """Escapes decoded; all other text as it is."""

    __slots__ = ()

    @property
    def neutral(self) -> bool:
        """An escape is read whole."""
        return True

    def read(self, text: str, starts: Sequence[int], ends: Sequence[int], *, ended: bool) -> Reading:
        """Read up to the first escape that is not complete."""
        out: list[str] = []
        first: list[int] = []
        last: list[int] = []
        at, size, changed = 0, len(text), -1
        while at < size:
            hit = _TRIGGER.search(text, at)
            place = size if hit is None else hit.start()
            if place > at:
                out.append(text[at:place])
                first += starts[at:place]
                last += ends[at:place]
                at = place
                continue
            decoded = _decode(text, at, ended=ended)
            if decoded is None:
                break
            says, length = decoded
            out.append(says)
            first.append(starts[at])
            last.append(ends[at + length - 1])
            if length > 1:
                changed = ends[at + length - 1]
            at += length
        return Reading("".join(out), first, last, at, changed)


def _decode(text: str, at: int, *, ended: bool) -> _Decoded:
    """Decode the escape that starts at `at`; at the text's end an incomplete one is no escape."""
    match text[at]:
        case "\\":
            decoded = _backslash(text, at)
        case "%":
            decoded = _percent(text, at)
        case _:
            decoded = _entity(text, at)
    if decoded is None and ended:
        return text[at], 1
    return decoded


def _backslash(text: str, at: int) -> _Decoded:
    kind = text[at + 1 : at + 2]
    if not kind:
        return None
    if kind in _SHORT:
        return _SHORT[kind], 2
    if kind not in {"u", "x"}:
        return "\\", 1
    length = 4 if kind == "u" else 2
    code = _hex(text, at + 2, length)
    if code is None:
        return None
    if code < 0:
        return "\\", 1
    if 0xD800 <= code <= 0xDBFF:
        return _pair(text, at, code)
    return _char(code) or "\ufffd", 2 + length


def _pair(text: str, at: int, high: int) -> _Decoded:
    """Decode a surrogate pair of which the first half has been read."""
    lead = text[at + 6 : at + 8]
    if not "\\u".startswith(lead):
        return "\ufffd", 6
    if len(lead) < 2:
        return None
    low = _hex(text, at + 8, 4)
    if low is None:
        return None
    if not 0xDC00 <= low <= 0xDFFF:
        return "\ufffd", 6
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), 12


def _hex(text: str, at: int, length: int) -> int | None:
    """Read `length` hex digits; -1: other characters stand there; None: the text ends first."""
    digits = text[at : at + length]
    if any(digit not in _HEX for digit in digits):
        return -1
    return int(digits, 16) if len(digits) == length else None


def _char(code: int) -> str | None:
    """Return the character, or None for what is none (surrogates, beyond Unicode)."""
    return chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else None


def _percent(text: str, at: int) -> _Decoded:
    lead = _hex(text, at + 1, 2)
    if lead is None:
        return None
    if lead < 0:
        return "%", 1
    if lead < 0x80:
        return chr(lead), 3
    count = 2 if 0xC2 <= lead <= 0xDF else 3 if 0xE0 <= lead <= 0xEF else 4 if 0xF0 <= lead <= 0xF4 else 0
    if not count:
        return "%", 1
    octets = [lead]
    for number in range(1, count):
        place = at + 3 * number
        if place >= len(text):
            return None
        octet = _hex(text, place + 1, 2) if text[place] == "%" else -1
        if octet is None:
            return None
        if not 0x80 <= octet <= 0xBF:
            return "%", 1
        octets.append(octet)
    try:
        return bytes(octets).decode(), 3 * count
    except UnicodeDecodeError:  # overlong, or a surrogate
        return "%", 1


def _entity(text: str, at: int) -> _Decoded:
    if text[at + 1 : at + 2] == "#":
        return _numeric_entity(text, at)
    for name, char in _NAMED.items():
        whole = f"{name};"
        part = text[at + 1 : at + 1 + len(whole)]
        if part == whole:
            return char, len(whole) + 1
        if at + 1 + len(part) == len(text) and whole.startswith(part):
            return None
    return "&", 1


def _numeric_entity(text: str, at: int) -> _Decoded:
    """Decode `&#64;` or `&#x40;`; the semicolon may be missing where another character shows the end."""
    hexadecimal = text[at + 2 : at + 3] in {"x", "X"}
    place = at + (3 if hexadecimal else 2)
    start, most = place, 9
    digits = _HEX if hexadecimal else _DIGITS
    while place < len(text) and place - start < most and text[place] in digits:
        place += 1
    if place - start == most:
        return "&", 1
    if place == len(text):
        return None
    if place == start:
        return "&", 1
    char = _char(int(text[start:place], 16 if hexadecimal else 10))
    if char is None:
        return "&", 1
    return char, place - at + (text[place] == ";")
