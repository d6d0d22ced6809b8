"""JSON read strictly: what two parsers could take for two different things is refused (G31).

That of callers, and, with what servers are allowed besides, whole answers. It is read in steps, each of which takes
about a millisecond at most, whatever it is made of: one call of a JSON library over ten megabytes would hold every
other stream for as long as it takes (G33). So how deep it is nested and how many values it has is bounded, too.

Source: RFC 8259 (JSON), RFC 8785 section 3.1 (I-JSON's numbers and names).
"""

from __future__ import annotations

import re  # noqa: TID251 - tokens of JSON, in which each character says what comes: there is nothing to try again
from collections.abc import Callable, Generator, Mapping
from json import decoder
from typing import Final

import msgspec

from checkstream.core.steps import done, dropping
from checkstream.core.wire.json_text.spans import NAME, Path
from checkstream.errors import RequestInvalid

MAX_DEPTH: Final = 128
MAX_VALUES: Final = 50_000
"""Of one text: strings, names, containers, words and single numbers ..."""
_NUMBERS_A_VALUE: Final = 8
"""... of which so many in a row, such as the ids of tokens, count for one."""
_TOKENS_A_STEP: Final = 512
_RUN_TOKENS: Final = 64
"""What a run of numbers counts for in a step ..."""
_BYTES_A_TOKEN: Final = 512
"""... a string without escapes ..."""
_ESCAPED_A_TOKEN: Final = 64
"""... and one with."""
_STRING_BYTES: Final = _BYTES_A_TOKEN * _TOKENS_A_STEP
_ESCAPED_BYTES: Final = _ESCAPED_A_TOKEN * _TOKENS_A_STEP
_MOST_OTHER_BYTES: Final = 2_097_152
"""Of one string that is not all ASCII: files are, and what people write is shorter."""
_LONGEST_TOKEN: Final = 12
"""Bytes of an escape in a string, a pair of surrogates at most."""
_HALF: Final = "\\ud800"
"""How long half a pair of surrogates is."""
_MOST_MEMBERS: Final = 65_536
"""Of one object: to make room for more than that takes long."""
_MAX_DIGITS: Final = 19  # of a 64-bit number
_NOT_CONTROL: Final = bytes(range(32, 256))

# The C scanner of one JSON string; the type stubs leave it out.
_scan_string: Callable[[str, int], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]

# All of these read bytes as characters (latin-1), which is one copy of the body, however it is encoded.
_space = re.compile(r"[ \t\r\n]{0,4096}").match
_plain = re.compile(r'"([^"\\\x00-\x1f]{0,1024})"[ \t\r\n]{0,64}').match
_member = re.compile(r'"([ !#-\[\]-~]{0,256})"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}(?![ \t\r\n])').match
_scalar = re.compile(
    r"(?:(-?(?:0|[1-9][0-9]{0,400})(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?)"
    r"|(true|false|null)|(NaN|-?Infinity))(?![0-9A-Za-z_.+-])[ \t\r\n]{0,64}"
).match
_numbers = re.compile(r"(?:-?(?:0|[1-9][0-9]{0,17})[ \t\r\n]{0,8},[ \t\r\n]{0,8}){4,512}").match
_fractions = re.compile(
    r"(?:-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,32})?(?:[eE][+-]?[0-9]{1,2})?[ \t\r\n]{0,8},[ \t\r\n]{0,8}){4,512}"
).match
_too_long = re.compile(r"-?[0-9.eE+-]{65}").match
_escaped = re.compile(
    r'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    r'|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})[^"\\\x00-\x1f]*)*'
).match
_lone = re.compile(r"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").match
_SPACE: Final = frozenset(" \t\r\n")
_NUMERIC: Final = frozenset("-0123456789")
_ARRAY: Final = decoder.JSONDecoder()
_WORDS: Final[Mapping[str, bool | None]] = {"true": True, "false": False, "null": None}

Reading = Generator[None, None, dict[str, object]]


class Dialect(msgspec.Struct, frozen=True):
    """What a kind of JSON text may be made of."""

    values: int
    """The most of them."""
    halves: int
    """Surrogates in escapes that stand alone: so many are read as they are."""
    variants: bool
    """Names of one object may differ in letter case alone."""
    wide: bool
    """Numbers may need more than 64 bits."""


CALLERS: Final = Dialect(values=MAX_VALUES, halves=0, variants=False, wide=False)


class StrictJson:
    """Reads one kind of JSON text; its faults name it."""

    def __init__(self, what: str, dialect: Dialect = CALLERS) -> None:
        """Read what messages call `what`, such as `the body`."""
        self._what = what
        self._dialect = dialect

    def read(self, text: str) -> dict[str, object]:
        """Return the object that `text` is; see `reading`.

        Raises:
            RequestInvalid: as `reading`.
        """
        try:
            data = text.encode()
        except UnicodeEncodeError as error:
            raise RequestInvalid(f"{self._what} has a lone surrogate; send whole characters") from error
        return done(self.reading(data))

    def reading(self, data: bytes) -> Reading:
        """Return the object that `data` is, in steps.

        Raises:
            RequestInvalid: not UTF-8, not one JSON object, nested too deeply, more values than are taken, duplicate
                names, or, as the dialect has it, case-variant names, numbers that don't fit 64 bits, or half a pair of
                surrogates.
        """
        value = yield from self.reading_value(data)
        if not isinstance(value, dict):
            raise RequestInvalid(f"{self._what} is not a JSON object; send one")
        return value

    def reading_value(self, data: bytes) -> Generator[None, None, object]:
        """Return the value that `data` is, whether or not it is an object, in steps.

        Raises:
            RequestInvalid: as `reading`.
        """
        return _Reading(self._what, self._dialect, data).run()


class _Frame:
    """A container that is being read."""

    __slots__ = ("folded", "items", "members", "name")

    def __init__(self, items: list[object] | None, members: dict[str, object] | None) -> None:
        self.items = items
        self.members = members
        self.name = ""
        """Of the member whose value is read."""
        self.folded: set[str] = set()


class _Reading:
    """One text on its way to a value."""

    def __init__(self, what: str, dialect: Dialect, data: bytes) -> None:
        self._what = what
        self._dialect = dialect
        self._halves = 0
        self._data = data
        self._text = data.decode("latin-1")
        self._frames: list[_Frame] = []
        self._values = 0
        self._tokens = 0
        self._last: object = None
        """The string that was read last, or the whole value."""

    def run(self) -> Generator[None, None, object]:
        """Read the whole text."""
        if self._spends(len(self._data) // (8 * _BYTES_A_TOKEN)):  # it has been copied
            yield
        try:
            at = yield from self._all()
            if at < len(self._text):
                raise self._not_json(at, "extra data")
        except (UnicodeDecodeError, RequestInvalid) as error:
            for frame in self._frames:
                yield from dropping([frame.folded, frame.items if frame.members is None else frame.members])
            yield from dropping(self._last)
            if isinstance(error, RequestInvalid):
                raise
            raise RequestInvalid(f"{self._what} is not UTF-8 at byte `{error.start}`; send UTF-8") from error
        return self._last

    def _all(self) -> Generator[None, None, int]:  # noqa: C901, PLR0912, PLR0915 - a call for each value costs as much
        """Read one value, from the first byte on, with the white space around it; return where it ends."""
        text, frames = self._text, self._frames
        at = yield from self._skip(0)
        while True:
            if self._spends(1):
                yield
            char = text[at : at + 1]
            if char == '"':
                short = _plain(text, at)
                if short is not None and short[1].isascii():
                    self._count()
                    value, at = short[1], short.end()
                    at = at if text[at : at + 1] not in _SPACE else (yield from self._skip(at))
                else:
                    at = yield from self._string(at)
                    value = self._last
            elif char in ("{", "["):
                at = yield from self._skip(at + 1)
                frame = self._opened(char)
                if char == "{" and text[at : at + 1] == '"':
                    frames.append(frame)
                    at = yield from self._name(frame, at)
                    continue
                if char == "[" and text[at : at + 1] != "]":
                    frames.append(frame)
                    at = self._run_of_numbers(frame, at)
                    continue
                if char == "{" and text[at : at + 1] != "}":
                    raise self._not_json(at, "expecting property name enclosed in double quotes")
                value = frame.items if frame.members is None else frame.members
                at = yield from self._skip(at + 1)
            else:
                value, at = self._number_or_word(at)
                if text[at : at + 1] in _SPACE:
                    at = yield from self._skip(at)
            while True:  # the value is there: it goes into what it stands in, and so do containers that end with it
                if not frames:
                    self._last = value
                    return at
                frame = frames[-1]
                self._put(frame, value)
                char = text[at : at + 1]
                at += 1
                if text[at : at + 1] in _SPACE:
                    at = yield from self._skip(at)
                if char == ",":
                    if frame.members is not None:
                        at = yield from self._name(frame, at)
                    else:
                        at = self._run_of_numbers(frame, at)
                    break
                if char != ("]" if frame.members is None else "}"):
                    raise self._not_json(at - 1, "expecting ',' delimiter")
                value = frames.pop().items if frame.members is None else frames.pop().members

    def _spends(self, tokens: int) -> bool:
        """Note work; tell whether a step has done enough of it."""
        self._tokens += tokens
        if self._tokens < _TOKENS_A_STEP:
            return False
        self._tokens = 0
        return True

    def _opened(self, char: str) -> _Frame:
        self._count()
        if len(self._frames) >= MAX_DEPTH:
            raise RequestInvalid(f"{self._what} is nested too deeply; send a flatter one")
        return _Frame([], None) if char == "[" else _Frame(None, {})

    def _put(self, frame: _Frame, value: object) -> None:
        if frame.items is not None:
            frame.items.append(value)
        elif frame.members is not None:
            frame.members[frame.name] = value

    def _count(self) -> None:
        self._values += _NUMBERS_A_VALUE
        self._look_whether_many()

    def _look_whether_many(self) -> None:
        if self._values > self._dialect.values * _NUMBERS_A_VALUE:
            raise RequestInvalid(f"{self._what} has more than {self._dialect.values} values; send less")

    def _skip(self, at: int) -> Generator[None, None, int]:
        """Return the first place from `at` on that is no white space."""
        found = _space(self._text, at)
        end = at if found is None else found.end()
        while end - at == 4096:
            if self._spends(end - at >> 6):
                yield
            at, found = end, _space(self._text, end)
            end = at if found is None else found.end()
        return end

    def _name(self, frame: _Frame, at: int) -> Generator[None, None, int]:
        """Read the name of a member, and what stands between it and its value."""
        text, members = self._text, frame.members
        self._tokens += 1
        whole = _member(text, at)
        if whole is not None:
            self._count()
            name, at = whole[1], whole.end()
        elif text[at : at + 1] == '"':
            at = yield from self._string(at)
            name = str(self._last)
        else:
            raise self._not_json(at, "expecting property name enclosed in double quotes")
        folded = name if self._dialect.variants else name.casefold()
        if members is None or folded in (members if self._dialect.variants else frame.folded):
            first = next((each for each in members or () if each.casefold() == name.casefold()), name)
            both = f"`{shown(first)}` and `{shown(name)}`"
            raise RequestInvalid(f"{self._what} has an object with both {both}; send one")
        if len(members or ()) >= _MOST_MEMBERS:
            raise RequestInvalid(f"{self._what} has an object of more than {_MOST_MEMBERS} members; send less")
        if not self._dialect.variants:
            frame.folded.add(folded)
        frame.name = name
        if whole is not None:
            return at
        if text[at : at + 1] != ":":
            raise self._not_json(at, "expecting ':' delimiter")
        return (yield from self._skip(at + 1))

    def _run_of_numbers(self, frame: _Frame, at: int) -> int:
        """Read some whole numbers of an array at once, such as token ids; return where the next value starts."""
        if frame.items is None or self._text[at : at + 1] not in _NUMERIC:
            return at
        run, found = _numbers(self._text, at), list[object]()
        if run is not None:
            found += map(int, run[0].rpartition(",")[0].split(","))
        elif self._dialect.wide:
            run = _fractions(self._text, at)
            found += _ARRAY.decode(f"[{run[0].rpartition(',')[0]}]") if run is not None else ()
        if run is None:
            return at
        frame.items += found
        self._values += len(found)
        self._look_whether_many()
        self._tokens += _RUN_TOKENS
        return run.end()

    # --- single values

    def _number_or_word(self, at: int) -> tuple[object, int]:
        found = _scalar(self._text, at)
        if found is None:
            if _too_long(self._text, at) is not None:
                number = f"the number `{shown(self._text[at : at + 65])}`"
                raise RequestInvalid(f"{self._what} has {number}, which is too large; send at most 64 bits")
            raise self._not_json(at, "expecting value")
        digits, fraction, exponent, word, constant = found.groups()
        if constant is not None:
            raise RequestInvalid(f"{self._what} has `{constant}`, which is not JSON; send a number or null")
        if word is not None:
            self._count()
            return _WORDS[word], found.end()
        self._count()
        if fraction is None and exponent is None:
            return self._integer(digits), found.end()
        return self._real(digits), found.end()

    def _integer(self, digits: str) -> int:
        if not self._dialect.wide and len(digits.removeprefix("-")) > _MAX_DIGITS:
            number = f"the number `{shown(digits)}`"
            raise RequestInvalid(f"{self._what} has {number}, which is too large; send at most 64 bits")
        return int(digits)

    def _real(self, digits: str) -> float:
        value = float(digits)
        if not self._dialect.wide and value in (float("inf"), float("-inf")):
            number = f"the number `{shown(digits)}`"
            raise RequestInvalid(f"{self._what} has {number}, which is too large; send a finite one")
        return value

    # --- strings

    def _string(self, at: int) -> Generator[None, None, int]:
        """Read the string that starts at `at`, into `_last`; return where the next token starts."""
        self._count()
        short = _plain(self._text, at)
        if short is not None:
            found: str = short[1]
            self._last = found if found.isascii() else self._decoded(at + 1, at + 1 + len(found))
            end = short.end()
            return (yield from self._skip(end)) if self._text[end : end + 1] in _SPACE else end
        start = at + 1
        end = self._text.find('"', start)
        if end < 0:
            raise self._not_json(at, "unterminated string starting at")
        if self._spends((end - start) // (8 * _BYTES_A_TOKEN)):
            yield
        if self._data.find(b"\\", start, end) < 0:
            self._last = yield from self._long(start, end)
        else:
            self._last, end = yield from self._with_escapes(start)
        return (yield from self._skip(end + 1))

    def _long(self, start: int, end: int) -> Generator[None, None, str]:
        """Return a string without escapes."""
        for at in range(start, end, _STRING_BYTES):
            if self._spends((min(at + _STRING_BYTES, end) - at) // _BYTES_A_TOKEN + 1):
                yield
            wrong = self._data[at : min(at + _STRING_BYTES, end)].translate(None, _NOT_CONTROL)
            if wrong:
                raise self._not_json(self._data.find(wrong[:1], at), "invalid control character at")
        found = self._text[start:end]
        if self._spends((end - start) // (8 * _BYTES_A_TOKEN)):
            yield
        if found.isascii():
            return found
        if end - start > _MOST_OTHER_BYTES:
            most = f"{_MOST_OTHER_BYTES} bytes; send less"
            raise RequestInvalid(f"`{place_of(self._path())}` is no ASCII and has more than {most}")
        parts: list[str] = []
        at = start
        while at < end:
            to = self._whole(min(at + _STRING_BYTES, end), end)
            if self._spends(2 * (to - at) // _BYTES_A_TOKEN):
                yield
            parts.append(self._decoded(at, to))
            at = to
        return "".join(parts)

    def _with_escapes(self, start: int) -> Generator[None, None, tuple[str, int]]:
        """Return a string that has escapes, and where it ends."""
        text, parts, at = self._text, list[str](), start
        while text[at : at + 1] != '"':
            limit = at + _ESCAPED_BYTES
            found = _escaped(text, at, limit)
            to = at if found is None else found.end()
            if to == limit:
                to = self._whole(to, len(text))
            half = ""
            if to == at or (limit - to > _LONGEST_TOKEN and text[to : to + 1] != '"'):
                half = self._half(to)
            parts.append(_scan_string(self._decoded(at, to) + '"', 0)[0] + half)
            to += len(_HALF) if half else 0
            if self._spends((to - at) // _ESCAPED_A_TOKEN + 1):
                yield
            at = to
        return "".join(parts), at

    def _half(self, at: int) -> str:
        """Return the surrogate that stands alone at this place, where the dialect has such; else it is wrong there."""
        if _lone(self._text, at) is None or self._halves >= self._dialect.halves:
            raise self._wrong_string(at)
        self._halves += 1
        self._tokens += 1
        return chr(int(self._text[at + 2 : at + len(_HALF)], 16))

    def _wrong_string(self, at: int) -> RequestInvalid:
        """Return what is wrong with a string at this place."""
        if _lone(self._text, at) is not None:
            where = f" in `{place_of(self._path())}`" if self._frames else ""
            many = f"more than {self._dialect.halves} lone surrogates" if self._dialect.halves else "a lone surrogate"
            return RequestInvalid(f"{self._what} has {many}{where}; send whole characters")
        if at >= len(self._text):
            return self._not_json(at, "unterminated string")
        return self._not_json(at, "invalid \\escape" if self._text[at] == "\\" else "invalid control character at")

    def _whole(self, at: int, end: int) -> int:
        """Return the first place from `at` on that parts no character."""
        while at < end and 0x80 <= self._data[at] < 0xC0:
            at += 1
        return at

    def _decoded(self, start: int, end: int) -> str:
        try:
            return self._data[start:end].decode()
        except UnicodeDecodeError as error:
            raise UnicodeDecodeError(
                error.encoding, b"", start + error.start, start + error.end, error.reason
            ) from error

    # --- what is wrong

    def _path(self) -> Path:
        return tuple(len(frame.items) if frame.items is not None else frame.name for frame in self._frames)

    def _not_json(self, at: int, what: str) -> RequestInvalid:
        if at < len(self._data) and self._data[at] >= 0x80:
            self._decoded(at, min(self._whole(at + 1, len(self._data)), at + 4))  # not even UTF-8?
        return RequestInvalid(f"{self._what} is not JSON at byte `{at}`: {what}")


def place_of(path: Path) -> str:
    """Return a path as users write it: `messages[0].content`."""
    written = "".join(f"[{key}]" if isinstance(key, int) else f".{shown(key)}" for key in path if key != NAME)
    return written.removeprefix(".")


def shown(name: str) -> str:
    """Return user input fit for a message: short and printable."""
    cut = name if len(name) <= 64 else name[:64] + "..."
    return cut.encode("ascii", "backslashreplace").decode() if not cut.isprintable() else cut
