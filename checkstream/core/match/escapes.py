r"""The `unescaped` view: escapes of JSON, programs, Markdown, URLs and HTML decoded, however often they were escaped.

What only tells a terminal how to show text (colours, links, moves of its cursor) is left out, escaped or not. An escape
of a character that spells something out of sight (see `hidden`) says what that spells.

Source: RFC 8259, section 7 (`\n`, `\u0041`, surrogate pairs); ECMA-262, 12.9.4 and Python, 2.4.1 (`\x41`, `\u{41}`,
`\U00000041`, `\101`); CommonMark, 2.4 (`\@`); RFC 3986, section 2.1 (`%41`, UTF-8); WHATWG HTML 13.5 (the named
references listed here; decimal and hexadecimal ones). What was escaped again has its backslash doubled, `%25` for its
percent sign and `&amp;` for its ampersand: such heads are read as one. ECMA-48, 5.4 and 5.6 (`ESC [ 31 m`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.hidden import legible
from checkstream.core.match.normalise import Reading
from checkstream.core.match.syntax import parse
from checkstream.core.match.tree import companion

TRIGGERS: Final = r"[\\%&\x1b\x{9b}]"
"""Expression for the characters that open an escape."""
_TRIGGER: Final = compile_regex(TRIGGERS)
_SHORT: Final[Mapping[str, str]] = MappingProxyType(
    {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "\n": ""}
    | {sign: sign for sign in "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"}
)
"""What stands behind a backslash -> what both say; a line that goes on in the next says nothing."""
_SIGNS = """
commat @ period . lowbar _ hyphen - dash - num # dollar $ percnt % ast * midast * plus + equals = colon : semi ; quest ?
excl ! lpar ( rpar ) lsqb [ lbrack [ rsqb ] rbrack ] lcub { lbrace { rcub } rbrace } bsol \\ sol / vert | verbar |
grave ` comma , quot " apos ' lt < gt > amp & ndash \u2013 mdash \u2014 minus \u2212 middot \u00b7 bull \u2022
shy \u00ad zwj \u200d zwnj \u200c lrm \u200e rlm \u200f ZeroWidthSpace \u200b NoBreak \u2060
"""
_NAMED: Final[Mapping[str, str]] = MappingProxyType(
    dict(zip(_SIGNS.split()[::2], _SIGNS.split()[1::2], strict=True))
    | {"nbsp": " ", "ensp": " ", "emsp": " ", "thinsp": " ", "Tab": "\t", "NewLine": "\n"}
)
_LONGEST_NAME: Final = max(map(len, _NAMED))
_HEX: Final = frozenset("0123456789abcdefABCDEF")
_DIGITS: Final = frozenset("0123456789")
_OCTAL: Final = frozenset("01234567")
_MOST_AGAIN: Final = 8
"""Times that one head may be escaped again: doubled backslashes, `25`s behind a percent sign, `amp;`s."""
_MOST_DIGITS: Final = 24
"""Digits of a numeric reference, nearly all of them leading zeros."""

_ESC, _CSI = "\x1b", "\x9b"
_STRING_END: Final = r"(?:[\x07\x{9c}]|\x1b\\|\\{1,8}(?:a|007|x07|u0007|(?:e|033|x1[Bb]|u001[Bb])\\{1,8}))"
_SHOWS: Final = r"[0-?]{0,48}[ -/]{0,2}[@-~]"
_BEHIND: Final[Mapping[str, str]] = MappingProxyType(
    {_ESC: rf"\[{_SHOWS}|\][^\x07\x1b\x{{9c}}\\]{{0,256}}{_STRING_END}|[()][0-9A-Z]", _CSI: _SHOWS}
)
"""What stands behind a control that begins a sequence for a terminal."""
_SEQUENCES: Final = MappingProxyType({sign: compile_regex(source) for sign, source in _BEHIND.items()})
_BEGUN: Final = MappingProxyType(
    {sign: compile_regex(rf"(?:{companion(parse(source))})\z") for sign, source in _BEHIND.items()}
)

_NOTHING: Final = "\0"
"""Behind the end of a text: it goes on no escape."""

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
        if _TRIGGER.search(text) is None:
            return Reading(text, starts, ends, len(text))
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
            if says:
                first.append(starts[at])
                last.append(ends[at + length - 1])
            if length > 1:
                changed = ends[at + length - 1]
            at += length
        return Reading("".join(out), first, last, at, changed)


def unescaped(text: str) -> str:
    """Return what a whole text says without its escapes; one with halves of characters stays as it is."""
    escapes = "\\" in text or "%" in text or "&" in text
    if not escapes or any("\ud800" <= char <= "\udfff" for char in text):
        return text
    places = range(len(text))
    return Unescaped().read(text, places, places, ended=True).text


def _decode(text: str, at: int, *, ended: bool) -> _Decoded:
    """Decode the escape that starts at `at`; at the text's end an incomplete one is no escape."""
    decoded = _read(text, at)
    if decoded is None and ended:
        decoded = _read(f"{text[at:]}{_NOTHING}", 0) or (text[at], 1)
    return decoded


def _read(text: str, at: int) -> _Decoded:
    """Decode an escape, with the sequence for a terminal that it may begin."""
    decoded = _DECODERS[text[at]](text, at)
    if decoded is None or decoded[0] not in _BEHIND:
        return decoded if decoded is None else (legible(decoded[0]), decoded[1])
    control, length = decoded
    hit = _SEQUENCES[control].match(text, at + length)
    if hit is not None:
        return "", hit.end() - at
    return None if _BEGUN[control].match(text, at + length) is not None else decoded


def _itself(text: str, at: int) -> _Decoded:
    return text[at], 1


def _again(text: str, at: int, mark: str) -> int | None:
    """Return where the repeated `mark` ends that stands at `at`; None: the text ends first."""
    end = at
    while end - at < _MOST_AGAIN * len(mark) and text.startswith(mark, end):
        end += len(mark)
    return None if mark.startswith(text[end : end + len(mark)]) and len(text) - end < len(mark) else end


def _backslash(text: str, at: int) -> _Decoded:
    """Decode a backslash, or several: each time that text is escaped they double."""
    place = _again(text, at, "\\")
    if place is None or place == len(text):
        return None
    decoded = _behind_backslash(text, place)
    if decoded is None:
        return None
    says, length = decoded
    return says, place - at + length


def _behind_backslash(text: str, at: int) -> _Decoded:
    """Decode what stands behind a backslash; nothing of it where it is no escape."""
    kind = text[at]
    if kind in _SHORT:
        return _SHORT[kind], 1
    if kind in _DIGITS:
        return _octal(text, at)
    if kind == "e":
        return _escape(text, at)
    if kind not in {"u", "U", "x"}:
        return "\\", 0
    if kind != "U" and text[at + 1 : at + 2] in ("{", ""):
        return _braced(text, at)
    length = {"u": 4, "U": 8, "x": 2}[kind]
    code = _hex(text, at + 1, length)
    if code is None:
        return None
    if code < 0:
        return "\\", 0
    if 0xD800 <= code <= 0xDBFF:
        return _pair(text, at, code)
    return _char(code) or "\ufffd", 1 + length


def _escape(text: str, at: int) -> _Decoded:
    """Decode `e` where a sequence for a terminal begins with it, as shells write it."""
    if at + 1 == len(text):
        return None
    return (_ESC, 1) if text[at + 1] in "[]" else ("\\", 0)


def _octal(text: str, at: int) -> _Decoded:
    """Decode one to three octal digits with the value of an ASCII character; a digit alone is what it is."""
    digits = text[at : at + 3]
    if len(digits) == 3 and digits[0] in "01" and digits[1] in _OCTAL and digits[2] in _OCTAL:
        return chr(int(digits, 8)), 3
    if len(digits) < 3 and digits[0] in "01" and all(digit in _OCTAL for digit in digits):
        return None
    return digits[0], 1


def _braced(text: str, at: int) -> _Decoded:
    """Decode `u{41}`."""
    end = at + 2
    while end < len(text) and end - at < 10 and text[end] in _HEX:
        end += 1
    if end >= len(text):
        return None
    char = _char(int(text[at + 2 : end], 16)) if text[end] == "}" and end > at + 2 else None
    return ("\\", 0) if char is None else (char, end + 1 - at)


def _pair(text: str, at: int, high: int) -> _Decoded:
    """Decode a surrogate pair of which the first half has been read; `at`: where its `u` stands."""
    place = _again(text, at + 5, "\\")
    if place is None or (place > at + 5 and place == len(text)):
        return None
    if place == at + 5 or text[place] != "u":
        return "\ufffd", 5
    low = _hex(text, place + 1, 4)
    if low is None:
        return None
    if not 0xDC00 <= low <= 0xDFFF:
        return "\ufffd", 5
    return chr(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00)), place + 5 - at


def _hex(text: str, at: int, length: int) -> int | None:
    """Read `length` hex digits; -1: other characters stand there; None: the text ends first."""
    digits = text[at : at + length]
    if any(digit not in _HEX for digit in digits):
        return -1
    return int(digits, 16) if len(digits) == length else None


def _char(code: int) -> str | None:
    """Return the character, or None for what is none (surrogates, beyond Unicode)."""
    return chr(code) if 0 <= code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF else None


def _octet(text: str, at: int) -> tuple[int, int] | None:
    """Return the octet that stands percent-encoded at `at`, and its length; -1: none; None: the text ends first."""
    if at >= len(text):
        return None
    place = _again(text, at + 1, "25") if text[at] == "%" else at
    if place is None:
        return None
    if text[at] != "%":
        return -1, 1
    octet = _hex(text, place, 2)
    if octet is not None and octet < 0 and place > at + 1:
        place -= 2  # the last `25` is not a head but a percent sign
        octet = 0x25
    return None if octet is None else (octet, place + 2 - at)


def _percent(text: str, at: int) -> _Decoded:
    first = _octet(text, at)
    if first is None:
        return None
    lead, length = first
    if lead < 0:
        return "%", 1
    if lead < 0x80:
        return chr(lead), length
    count = 2 if 0xC2 <= lead <= 0xDF else 3 if 0xE0 <= lead <= 0xEF else 4 if 0xF0 <= lead <= 0xF4 else 0
    if not count:
        return "%", 1
    octets = [lead]
    for _ in range(1, count):
        following = _octet(text, at + length)
        if following is None:
            return None
        octet, size = following
        if not 0x80 <= octet <= 0xBF:
            return "%", 1
        octets.append(octet)
        length += size
    try:
        return bytes(octets).decode(), length
    except UnicodeDecodeError:  # overlong, or a surrogate
        return "%", 1


def _entity(text: str, at: int) -> _Decoded:
    place = _again(text, at + 1, "amp;")
    if place is None:
        return None
    if text[place : place + 1] == "#":
        decoded = _numeric_entity(text, place)
    else:
        end = place
        while end < len(text) and end - place <= _LONGEST_NAME and text[end].isascii() and text[end].isalpha():
            end += 1
        if end == len(text) and end - place <= _LONGEST_NAME:
            return None
        char = _NAMED.get(text[place:end]) if text[end : end + 1] == ";" else None
        decoded = None if char is None else (char, end + 1 - place)
        if char is None:
            decoded = "&", 0
    if decoded is None:
        return None
    says, length = decoded
    if not length and place == at + 1:
        return "&", 1
    return says, place - at + length


def _numeric_entity(text: str, at: int) -> _Decoded:
    """Decode `#64;` or `#x40;`; the semicolon may be missing where another character shows the end."""
    hexadecimal = text[at + 1 : at + 2] in {"x", "X"}
    place = at + (2 if hexadecimal else 1)
    start = place
    digits = _HEX if hexadecimal else _DIGITS
    while place < len(text) and place - start < _MOST_DIGITS and text[place] in digits:
        place += 1
    if place == len(text) and place - start < _MOST_DIGITS:
        return None
    if place == start:
        return "&", 0
    char = _char(int(text[start:place], 16 if hexadecimal else 10))
    if char is None:
        return "&", 0
    return char, place - at + (text[place : place + 1] == ";")


_DECODERS: Final[Mapping[str, Callable[[str, int], _Decoded]]] = MappingProxyType(
    {"\\": _backslash, "%": _percent, "&": _entity, _ESC: _itself, _CSI: _itself}
)
