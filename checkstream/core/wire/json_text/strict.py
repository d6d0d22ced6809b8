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
_NAME_BYTES: Final = 65_536
"""Of the name of a member: what looks names up takes each of them whole, in one step."""
_MOST_OCTETS: Final = 4
"""Of one character in UTF-8."""
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

# All of these read the bytes as they came: to have them as characters first would be one long step (G33).
_space = re.compile(rb"[ \t\r\n]{0,4096}").match
_plain = re.compile(rb'"([^"\\\x00-\x1f]{0,1024})"[ \t\r\n]{0,64}').match
_member = re.compile(rb'"([ !#-\[\]-~]{0,256})"[ \t\r\n]{0,64}:[ \t\r\n]{0,64}(?![ \t\r\n])').match
_scalar = re.compile(
    rb"(?:(-?(?:0|[1-9][0-9]{0,400})(\.[0-9]{1,400})?([eE][+-]?[0-9]{1,9})?)"
    rb"|(true|false|null)|(NaN|-?Infinity))(?![0-9A-Za-z_.+-])[ \t\r\n]{0,64}"
).match
_numbers = re.compile(rb"(?:-?(?:0|[1-9][0-9]{0,17})[ \t\r\n]{0,8},[ \t\r\n]{0,8}){4,512}").match
_fractions = re.compile(
    rb"(?:-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,32})?(?:[eE][+-]?[0-9]{1,2})?[ \t\r\n]{0,8},[ \t\r\n]{0,8}){4,512}"
).match
_too_long = re.compile(rb"-?[0-9.eE+-]{65}").match
_escaped = re.compile(
    rb'[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
    rb'|u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})[^"\\\x00-\x1f]*)*'
).match
_lone = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}").match
_SPACE: Final = frozenset((b" ", b"\t", b"\r", b"\n"))
_NUMERIC: Final = frozenset(bytes((each,)) for each in b"-0123456789")
_ARRAY: Final = decoder.JSONDecoder()
_WORDS: Final[Mapping[bytes, bool | None]] = {b"true": True, b"false": False, b"null": None}

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
    name_bytes: int = _NAME_BYTES
    """The most of the name of a member."""


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
            RequestInvalid: not UTF-8, not one JSON object, nested too deeply, more values than are taken, a name that
                is too long, duplicate names, or, as the dialect has it, case-variant names, numbers that don't fit 64
                bits, or half a pair of surrogates.
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
        self.folded: dict[str, str] = {}
        """Names as they are told apart where their letter case does not matter -> as they were written."""


class _Reading:
    """One text on its way to a value."""

    def __init__(self, what: str, dialect: Dialect, data: bytes) -> None:
        self._what = what
        self._dialect = dialect
        self._halves = 0
        self._data = data
        self._frames: list[_Frame] = []
        self._values = 0
        self._tokens = 0
        self._last: object = None
        """The string that was read last, or the whole value."""

    def run(self) -> Generator[None, None, object]:
        """Read the whole text."""
        try:
            at = yield from self._all()
            if at < len(self._data):
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
        data, frames = self._data, self._frames
        value: object
        at = yield from self._skip(0)
        while True:
            if self._spends(1):
                yield
            char = data[at : at + 1]
            if char == b'"':
                short = _plain(data, at)
                if short is not None and short[1].isascii():
                    self._count()
                    value, at = str(short[1], "ascii"), short.end()
                    at = at if data[at : at + 1] not in _SPACE else (yield from self._skip(at))
                else:
                    at = yield from self._string(at)
                    value = self._last
            elif char in (b"{", b"["):
                at = yield from self._skip(at + 1)
                frame = self._opened(char)
                if char == b"{" and data[at : at + 1] == b'"':
                    frames.append(frame)
                    at = yield from self._name(frame, at)
                    continue
                if char == b"[" and data[at : at + 1] != b"]":
                    frames.append(frame)
                    at = self._run_of_numbers(frame, at)
                    continue
                if char == b"{" and data[at : at + 1] != b"}":
                    raise self._not_json(at, "expecting property name enclosed in double quotes")
                value = frame.items if frame.members is None else frame.members
                at = yield from self._skip(at + 1)
            else:
                value, at = self._number_or_word(at)
                if data[at : at + 1] in _SPACE:
                    at = yield from self._skip(at)
            while True:  # the value is there: it goes into what it stands in, and so do containers that end with it
                if not frames:
                    self._last = value
                    return at
                frame = frames[-1]
                self._put(frame, value)
                char = data[at : at + 1]
                at += 1
                if data[at : at + 1] in _SPACE:
                    at = yield from self._skip(at)
                if char == b",":
                    if frame.members is not None:
                        at = yield from self._name(frame, at)
                    else:
                        at = self._run_of_numbers(frame, at)
                    break
                if char != (b"]" if frame.members is None else b"}"):
                    raise self._not_json(at - 1, "expecting ',' delimiter")
                value = frames.pop().items if frame.members is None else frames.pop().members

    def _spends(self, tokens: int) -> bool:
        """Note work; tell whether a step has done enough of it."""
        self._tokens += tokens
        if self._tokens < _TOKENS_A_STEP:
            return False
        self._tokens = 0
        return True

    def _opened(self, char: bytes) -> _Frame:
        self._count()
        if len(self._frames) >= MAX_DEPTH:
            raise RequestInvalid(f"{self._what} is nested too deeply; send a flatter one")
        return _Frame([], None) if char == b"[" else _Frame(None, {})

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
        found = _space(self._data, at)
        end = at if found is None else found.end()
        while end - at == 4096:
            if self._spends(end - at >> 6):
                yield
            at, found = end, _space(self._data, end)
            end = at if found is None else found.end()
        return end

    def _name(self, frame: _Frame, at: int) -> Generator[None, None, int]:
        """Read the name of a member, and what stands between it and its value."""
        data, members = self._data, frame.members
        self._tokens += 1
        whole = _member(data, at)
        if whole is not None:
            self._count()
            name, at = str(whole[1], "ascii"), whole.end()
        elif data[at : at + 1] == b'"':
            at = yield from self._string(at, self._dialect.name_bytes)
            name = str(self._last)
        else:
            raise self._not_json(at, "expecting property name enclosed in double quotes")
        folded = name if self._dialect.variants else name.casefold()
        if members is None or folded in (members if self._dialect.variants else frame.folded):
            both = f"`{shown(frame.folded.get(folded, name))}` and `{shown(name)}`"
            raise RequestInvalid(f"{self._what} has an object with both {both}; send one")
        if len(members or ()) >= _MOST_MEMBERS:
            raise RequestInvalid(f"{self._what} has an object of more than {_MOST_MEMBERS} members; send less")
        if not self._dialect.variants:
            frame.folded[folded] = name
        frame.name = name
        if whole is not None:
            return at
        if data[at : at + 1] != b":":
            raise self._not_json(at, "expecting ':' delimiter")
        return (yield from self._skip(at + 1))

    def _run_of_numbers(self, frame: _Frame, at: int) -> int:
        """Read some whole numbers of an array at once, such as token ids; return where the next value starts."""
        if frame.items is None or self._data[at : at + 1] not in _NUMERIC:
            return at
        run, found = _numbers(self._data, at), list[object]()
        if run is not None:
            found += map(int, str(run[0], "ascii").rpartition(",")[0].split(","))
        elif self._dialect.wide:
            run = _fractions(self._data, at)
            found += _ARRAY.decode(f"[{str(run[0], 'ascii').rpartition(',')[0]}]") if run is not None else ()
        if run is None:
            return at
        frame.items += found
        self._values += len(found)
        self._look_whether_many()
        self._tokens += _RUN_TOKENS
        return run.end()

    # --- single values

    def _number_or_word(self, at: int) -> tuple[object, int]:
        found = _scalar(self._data, at)
        if found is None:
            if _too_long(self._data, at) is not None:
                number = f"the number `{shown(str(self._data[at : at + 65], 'ascii'))}`"
                raise RequestInvalid(f"{self._what} has {number}, which is too large; send at most 64 bits")
            raise self._not_json(at, "expecting value")
        digits, fraction, exponent, word, constant = found.groups()
        if constant is not None:
            raise RequestInvalid(f"{self._what} has `{constant.decode()}`, which is not JSON; send a number or null")
        if word is not None:
            self._count()
            return _WORDS[word], found.end()
        self._count()
        if fraction is None and exponent is None:
            return self._integer(digits.decode()), found.end()
        return self._real(digits.decode()), found.end()

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

    def _string(self, at: int, most: int | None = None) -> Generator[None, None, int]:
        """Read the string that starts at `at`, into `_last`; return where the next token starts.

        `most`: it is a name, and has no more bytes than that.
        """
        self._count()
        short = _plain(self._data, at)
        if short is not None:
            self._last = self._decoded(at + 1, short.end(1))
            end = short.end()
            return (yield from self._skip(end)) if self._data[end : end + 1] in _SPACE else end
        end = yield from self._long(at + 1, most)
        return (yield from self._skip(end + 1))

    def _long(self, start: int, most: int | None) -> Generator[None, None, int]:
        """Read a string that is long, or has escapes, into `_last`, piece by piece; return where it ends."""
        data, found, size, at, escaped = self._data, "", 0, start, False
        while data[at : at + 1] != b'"':
            to = at if escaped else self._bare(start, at)
            escaped = to == at
            if escaped:
                piece, to = self._unescaped(at)
            else:
                piece = self._decoded(at, to)
            if self._spends((to - at) // (_ESCAPED_A_TOKEN if escaped else _BYTES_A_TOKEN) + 1):
                yield
            at = to
            size += len(piece if piece.isascii() else piece.encode("utf-8", "surrogatepass"))
            if most is not None and size > most:
                raise RequestInvalid(f"{self._what} has a member whose name has more than {most} bytes; send less")
            if size > _MOST_OTHER_BYTES and not (found.isascii() and piece.isascii()):
                limit = f"{_MOST_OTHER_BYTES} bytes; send less"
                raise RequestInvalid(f"`{place_of(self._path())}` is no ASCII and has more than {limit}")
            found += piece  # it grows in its place: to join the pieces would be one step, as long as the string
        self._last = found
        return at

    def _bare(self, start: int, at: int) -> int:
        """Return where a piece of a string ends in which no escape stands; `at`: one stands in it."""
        data, limit = self._data, min(at + _STRING_BYTES, len(self._data))
        end = data.find(b'"', at, limit)
        to = limit if end < 0 else end
        if data.find(b"\\", at, to) >= 0:
            return at
        wrong = data[at:to].translate(None, _NOT_CONTROL)
        if wrong:
            raise self._not_json(data.find(wrong[:1], at), "invalid control character at")
        if to == len(data):
            raise self._not_json(start - 1, "unterminated string starting at")
        return self._whole(to)

    def _unescaped(self, at: int) -> tuple[str, int]:
        """Return what a piece of a string says that may have escapes, and where it ends."""
        data, limit = self._data, at + _ESCAPED_BYTES
        found = _escaped(data, at, limit)
        to = at if found is None else found.end()
        if to == limit:
            to = self._whole(to)
        half = ""
        if to == at or (limit - to > _LONGEST_TOKEN and data[to : to + 1] != b'"'):
            half = self._half(to)
        piece: str = _scan_string(self._decoded(at, to) + '"', 0)[0]
        return piece + half, to + (len(_HALF) if half else 0)

    def _half(self, at: int) -> str:
        """Return the surrogate that stands alone at this place, where the dialect has such; else it is wrong there."""
        if _lone(self._data, at) is None or self._halves >= self._dialect.halves:
            raise self._wrong_string(at)
        self._halves += 1
        self._tokens += 1
        return chr(int(self._data[at + 2 : at + len(_HALF)], 16))

    def _wrong_string(self, at: int) -> RequestInvalid:
        """Return what is wrong with a string at this place."""
        if _lone(self._data, at) is not None:
            where = f" in `{place_of(self._path())}`" if self._frames else ""
            many = f"more than {self._dialect.halves} lone surrogates" if self._dialect.halves else "a lone surrogate"
            return RequestInvalid(f"{self._what} has {many}{where}; send whole characters")
        if at >= len(self._data):
            return self._not_json(at, "unterminated string")
        is_escape = self._data[at : at + 1] == b"\\"
        return self._not_json(at, "invalid \\escape" if is_escape else "invalid control character at")

    def _whole(self, at: int) -> int:
        """Return the first place from `at` on that parts no character; more octets than one has are none."""
        for to in range(at, min(at + _MOST_OCTETS, len(self._data))):
            if not 0x80 <= self._data[to] < 0xC0:
                return to
        return min(at + _MOST_OCTETS, len(self._data))

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
            self._decoded(at, self._whole(at + 1))  # not even UTF-8?
        return RequestInvalid(f"{self._what} is not JSON at byte `{at}`: {what}")


def place_of(path: Path) -> str:
    """Return a path as users write it: `messages[0].content`."""
    written = "".join(f"[{key}]" if isinstance(key, int) else f".{shown(key)}" for key in path if key != NAME)
    return written.removeprefix(".")


def shown(name: str) -> str:
    """Return user input fit for a message: short and printable."""
    cut = name if len(name) <= 64 else name[:64] + "..."
    return cut.encode("ascii", "backslashreplace").decode() if not cut.isprintable() else cut
