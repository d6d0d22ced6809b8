"""Where values stand in a JSON text, so that one can be replaced and all else stays byte for byte.

Every value that is not on the way to a wanted path is skipped by the standard library's C scanner. A container is
listed as far as it was asked about, once, and a container on the way is not skipped: so finding a value costs about as
much as parsing the text up to its end.
"""

from __future__ import annotations

import json
import re  # noqa: TID251 - tokens of JSON, in which each character says what comes: there is nothing to try again
from collections.abc import Callable, Container, Generator, Iterator
from heapq import merge
from json import decoder
from typing import NoReturn

import msgspec

from checkstream.core.steps import done, dropping
from checkstream.errors import WireError

Path = tuple[str | int, ...]

NAME = -1
"""Last element of a path that stands for the name of the member before it, not for its value."""

# The C scanner of one JSON string; the type stubs leave it out.
_scan_string: Callable[[str, int], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]

# Some of what stands within a container, up to a bracket or a string that is long or has escapes.
_easy = re.compile(r'[^"\[\]{}]{0,4096}(?:"[^"\\]{0,256}"[^"\[\]{}]{0,256}){0,64}').match
# Some of what stands within a string.
_said = re.compile(r'(?:[^"\\]{1,4096}|\\.){0,512}', re.DOTALL).match

_COPIED_A_STEP = 1_048_576
_ENTRIES_A_STEP = 256
_CALLS_A_STEP = 256
_CHARS_A_CALL = 512
_STRINGS_A_STEP = 32
_SPACE = " \t\n\r"
_BEFORE_VALUE = frozenset(_SPACE + ":")
_INK = frozenset('{}[]",:')


def _refuse(constant: str) -> NoReturn:
    raise WireError(f"`{constant}` is not JSON; send a number or null")


_SCANNER = json.JSONDecoder(parse_constant=_refuse, parse_int=str, parse_float=str)


def value_start(text: str, name_end: int) -> int:
    """Return where the value of the member starts whose name ends at `name_end`, in a text that is valid JSON."""
    at = name_end
    while text[at : at + 1] in _BEFORE_VALUE:
        at += 1
    return at


def string_end(text: str, start: int, value: str) -> int | None:
    """Return where the JSON string that starts at `start` ends, None if there is none or it is not `value`."""
    found = string_at(text, start)
    return found[1] if found is not None and found[0] == value else None


def string_at(text: str, start: int) -> tuple[str, int] | None:
    """Return what the JSON string that starts at `start` says, and where it ends; None if there is none."""
    if not text.startswith('"', start):
        return None
    try:
        return _scan_string(text, start + 1)
    except ValueError:
        return None


class Member(msgspec.Struct, frozen=True):
    """One entry of an object or array: half-open ranges of characters in the text."""

    start: int
    end: int
    name_start: int = -1
    """Where the member's name starts; -1 in arrays."""
    name_end: int = -1

    @property
    def first(self) -> int:
        """Where the entry starts, its name included."""
        return self.start if self.name_start < 0 else self.name_start


class Splice(msgspec.Struct, frozen=True, order=True):
    """Put `text` in the place of the characters `start..end`."""

    start: int
    end: int
    text: str


class _Listing:
    """What is known of the entries of one container."""

    __slots__ = ("at", "begun", "closing", "done", "members")

    def __init__(self, opening: str, at: int) -> None:
        self.members: dict[str | int, Member] = {}
        self.closing = {"{": "}", "[": "]"}.get(opening, "")
        self.at = at
        """Behind what has been listed."""
        self.begun: tuple[str | int, int, int, int] | None = None
        """Key, start of the value and place of the name of an entry whose end is not known yet."""
        self.done = not self.closing


class JsonText:
    """One JSON text and the places of its values.

    The text is known to be valid JSON when it was read before; what is not raises `WireError` all the same.
    """

    def __init__(self, text: str, data: bytes | None = None) -> None:
        """Keep `text`; nothing is parsed until it is asked for.

        Args:
            text: The JSON.
            data: See `of_bytes`.
        """
        self.text = text
        self._data = data
        self._listed: dict[int, _Listing] = {}
        self._starts: dict[Path, int] = {}
        """Where containers start that were asked about."""
        self._passed = (-1, -1)
        """The value that was passed last, in steps."""

    @classmethod
    def of_bytes(cls, data: bytes) -> JsonText:
        """Return JSON in UTF-8 whose places are counted in bytes: to decode it all would take long where it is long."""
        return cls(data.decode("latin-1"), data)

    def listing(self, wanted: Container[Path] | None = None) -> Iterator[None]:
        """List containers, in steps, so that whatever is asked for later is known.

        Args:
            wanted: Paths of those that are listed, besides the outermost; the others are only passed. None: all.

        Raises:
            WireError: the text is not JSON, or an object has two members of one name.
        """
        open_: list[tuple[_Listing, Path]] = [(self._listing(self._space(0)), ())]
        count = 0
        try:
            while open_:
                listing, path = open_[-1]
                self._pass_value(listing)
                if listing.done or not self._begin_entry(listing) or listing.begun is None:
                    open_.pop()
                    continue
                key, start, name_start, name_end = listing.begun
                opening = self.text[start]
                if opening in "{[" and (wanted is None or (*path, key) in wanted):
                    open_.append((self._listing(start), (*path, key)))
                elif opening in '{["' and wanted is not None:
                    self._passed = start, (yield from self._passing(start))
                count += 1 + (name_end - name_start) // _CHARS_A_CALL
                if count >= _ENTRIES_A_STEP:
                    count = 0
                    yield
        except (ValueError, IndexError) as error:
            raise WireError("the event or body is not JSON that can be edited") from error

    def entries(self, path: Path) -> dict[str | int, Member]:
        """Return the entries of the container at `path` in their order; empty if it is no container.

        Raises:
            WireError: the text is not JSON, or the object has two members of one name.
        """
        start = self._start(path)
        return {} if start is None else self._all(start)

    def span(self, path: Path) -> tuple[int, int] | None:
        """Return the range of the value at `path` (or of the name, when it ends in `NAME`), None if absent.

        Raises:
            WireError: the text is not JSON up to the end of the value.
        """
        named = bool(path) and path[-1] == NAME
        way = path[:-1] if named else path
        if not way:
            return self._space(0), len(self.text.rstrip(_SPACE))
        start = self._start(way[:-1])
        if start is None:
            return None
        listing = self._listing(start)
        if self._find(listing, way[-1]) is None:
            return None
        member = self._end(listing, way[-1])
        if not named:
            return member.start, member.end
        return (member.name_start, member.name_end) if member.name_start >= 0 else None

    def cut(self, path: Path, doomed: frozenset[str | int]) -> list[Splice]:
        """Return the splices that take the entries `doomed` out of the container at `path`, commas included.

        Raises:
            WireError: as `entries`.
        """
        return done(self.cutting(path, doomed))

    def cutting(self, path: Path, doomed: frozenset[str | int]) -> Generator[None, None, list[Splice]]:
        """Return, in steps, what `cut` returns.

        Raises:
            WireError: as `entries`.
        """
        splices: list[Splice] = []
        kept_end = -1
        entries = list(self.entries(path).items())
        for at, (key, member) in enumerate(entries):
            if at % _ENTRIES_A_STEP == _ENTRIES_A_STEP - 1:
                yield
            if key not in doomed:
                kept_end = member.end
            elif kept_end >= 0:
                splices.append(Splice(entries[at - 1][1].end, member.end, ""))
            else:
                following = entries[at + 1][1].first if at + 1 < len(entries) else member.end
                splices.append(Splice(member.first, following, ""))
        return splices

    def apply(self, splices: list[Splice]) -> str:
        """Return the text with the splices carried out: in any order, those of one place in the order given.

        One may lie inside an entry that another takes out; else they don't overlap.
        """
        out: list[str] = []
        at = 0
        for splice in _in_order(splices):
            if splice.start < at:  # inside an entry that an earlier splice took out
                continue
            out += (self.text[at : splice.start], splice.text)
            at = splice.end
        out.append(self.text[at:])
        return "".join(out)

    def applying(self, splices: list[Splice]) -> Generator[None, None, bytes]:
        """Return what `apply` returns in UTF-8, in steps; of JSON given as bytes (`of_bytes`), for the last time."""
        if self._data is None:
            raise AssertionError("this text was not given as bytes")
        out, at = bytearray(), 0
        runs: list[list[Splice]] = []
        for begun in range(0, len(splices), _ENTRIES_A_STEP):
            runs.append(_in_order(splices[begun : begun + _ENTRIES_A_STEP]))
            yield
        for count, splice in enumerate(merge(*runs, key=_order), 1):
            if splice.start < at:
                continue
            yield from self._copying(out, at, splice.start)
            out += splice.text.encode()
            at = splice.end
            if count % _ENTRIES_A_STEP == 0:
                yield
        yield from self._copying(out, at, len(self._data))
        if len(out) > _COPIED_A_STEP:
            yield  # the last copy is one call, which takes 3 ms of 16 MB
        data = bytes(out)
        if len(out) > _COPIED_A_STEP:
            yield
        yield from dropping(runs)
        yield from self._forgetting()
        return data

    def _copying(self, out: bytearray, start: int, end: int) -> Iterator[None]:
        """Put a part of the data behind what there is, in steps, since a part can be nearly all of it."""
        data = memoryview(self._data or b"")
        for at in range(start, end, _COPIED_A_STEP):
            out += data[at : min(at + _COPIED_A_STEP, end)]
            if end - at > _COPIED_A_STEP:
                yield

    def _forgetting(self) -> Iterator[None]:
        """Forget, in steps, the places that are known: there may be tens of thousands."""
        count = 0
        while self._listed:
            members = self._listed.popitem()[1].members
            yield from dropping(members)
            count += 1
            if count % _ENTRIES_A_STEP == 0:
                yield
        yield from dropping(self._starts)

    def _start(self, path: Path) -> int | None:
        """Return where the value at `path` starts."""
        start = self._starts.get(path)
        if start is None and path:
            above = self._start(path[:-1])
            start = None if above is None else self._find(self._listing(above), path[-1])
        elif start is None:
            start = self._space(0)
        if start is not None:
            self._starts[path] = start
        return start

    def _listing(self, start: int) -> _Listing:
        listing = self._listed.get(start)
        if listing is None:
            listing = self._listed[start] = _Listing(self.text[start : start + 1], self._space(start + 1))
        return listing

    def _all(self, start: int) -> dict[str | int, Member]:
        listing = self._listing(start)
        self._find(listing, None)
        return listing.members

    def _find(self, listing: _Listing, key: str | int | None) -> int | None:
        """Return where the value of an entry starts; with None for a key, list all entries."""
        member = listing.members.get(key) if key is not None else None
        if member is not None:
            return member.start
        if listing.begun is not None and listing.begun[0] == key:
            return listing.begun[1]
        try:
            while not listing.done:
                self._pass_value(listing)
                if self._begin_entry(listing) and listing.begun is not None and listing.begun[0] == key:
                    return listing.begun[1]
        except (ValueError, RecursionError, IndexError) as error:
            raise WireError("the event or body is not JSON that can be edited") from error
        return None

    def _end(self, listing: _Listing, key: str | int) -> Member:
        """Return an entry that has been found, with its end."""
        if key not in listing.members:
            try:
                self._pass_value(listing)
            except (ValueError, RecursionError, IndexError) as error:
                raise WireError("the event or body is not JSON that can be edited") from error
        return listing.members[key]

    def _pass_value(self, listing: _Listing) -> None:
        """Skip the value that was begun last, and note its entry."""
        if listing.begun is not None:
            key, start, name_start, name_end = listing.begun
            end = self._skip(start)
            listing.members[key] = Member(start, end, name_start, name_end)
            listing.begun, listing.at = None, self._space(end)

    def _begin_entry(self, listing: _Listing) -> bool:
        """Begin the next entry; return whether there is one."""
        text, at = self.text, listing.at
        if text[at] == listing.closing:
            listing.done = True
            return False
        if listing.members:
            if text[at] != ",":
                raise WireError("entries of a JSON container are not parted by commas; send valid JSON")
            at = self._space(at + 1)
        if listing.closing == "]":
            listing.begun = len(listing.members), at, -1, -1
            return True
        if text[at] != '"':
            raise WireError("a member of a JSON object has no name; send valid JSON")
        name, name_end = _scan_string(text, at + 1)
        if self._data is not None and not name.isascii():
            name = _scan_string(self._data[at:name_end].decode(), 1)[0]
        colon = self._space(name_end)
        if text[colon] != ":":
            raise WireError("a member of a JSON object has no value; send valid JSON")
        if name in listing.members:
            raise WireError(f"a JSON object has two members `{name}`; send one")
        listing.begun = name, self._space(colon + 1), at, name_end
        return True

    def _skip(self, at: int) -> int:
        """Return where the value that starts at `at` ends."""
        listed = self._listed.get(at)
        if listed is not None and listed.done:
            return listed.at + 1
        if at == self._passed[0]:
            return self._passed[1]
        if self.text[at] == '"':
            return self._pass_string(at)
        return _SCANNER.raw_decode(self.text, at)[1]

    def _pass_string(self, at: int) -> int:
        text = self.text
        end = text.index('"', at + 1)
        return end + 1 if text.find("\\", at, end) < 0 else _scan_string(text, at + 1)[1]

    def _passing(self, at: int) -> Generator[None, None, int]:
        """Return where a string or a container ends, in steps of many short calls."""
        text, depth, work = self.text, 0, 0
        while True:
            begun = at
            char = text[at]
            if char == '"':
                at = yield from self._passing_string(at)
            elif char in "[{":
                depth, at = depth + 1, at + 1
            elif char in "]}":
                depth, at = depth - 1, at + 1
            if not depth:
                return at
            easy = _easy(text, at)
            at = at if easy is None else easy.end()
            work += 1 + (at - begun) // _CHARS_A_CALL
            if work >= _CALLS_A_STEP:
                work = 0
                yield

    def _passing_string(self, at: int) -> Generator[None, None, int]:
        text = self.text
        end, calls = text.index('"', at + 1), 0
        if text.find("\\", at, end) < 0:
            return end + 1
        at += 1
        while text[at] != '"':
            said = _said(text, at)
            if said is None or said.end() == at:
                raise IndexError
            at = said.end()
            calls += 1
            if calls % _STRINGS_A_STEP == 0:
                yield
        return at + 1

    def _space(self, at: int) -> int:
        """Return the first position from `at` that is not white space; the text's end if there is none."""
        text = self.text
        if text[at : at + 1] in _INK:
            return at
        size = len(text)
        while at < size and text[at] in _SPACE:
            at += 1
        return at


def _in_order(splices: list[Splice]) -> list[Splice]:
    """Sort splices: what is added at a place comes first, then what takes out most, so that those inside come later."""
    return sorted(splices, key=_order)


def _order(splice: Splice) -> tuple[int, bool, int]:
    return splice.start, splice.end > splice.start, -splice.end
