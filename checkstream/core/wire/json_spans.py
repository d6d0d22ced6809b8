"""Where values stand in a JSON text, so that one can be replaced and all else stays byte for byte.

Every value that is not on the way to a wanted path is skipped by the standard library's C scanner, so
finding one costs about as much as parsing the text once for each level of the path. A container is
listed once and remembered.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from json import decoder
from typing import NoReturn

import msgspec

from checkstream.errors import WireError

Path = tuple[str | int, ...]

NAME = -1
"""Last element of a path that stands for the name of the member before it, not for its value."""

# The C scanner of one JSON string; the type stubs leave it out.
_scan_string: Callable[[str, int], tuple[str, int]] = decoder.scanstring  # type: ignore[attr-defined]

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


class JsonText:
    """One JSON text and the places of its values.

    The text is known to be valid JSON when it was read before; what is not raises `WireError` all the same.
    """

    def __init__(self, text: str) -> None:
        """Keep `text`; nothing is parsed until it is asked for."""
        self.text = text
        self._listed: dict[int, dict[str | int, Member]] = {}

    def entries(self, path: Path) -> dict[str | int, Member]:
        """Return the entries of the container at `path` in their order; empty if it is no container.

        Raises:
            WireError: the text is not JSON, or an object on the way has two members of one name.
        """
        span = self.span(path)
        return {} if span is None else self._list(span[0])

    def span(self, path: Path) -> tuple[int, int] | None:
        """Return the range of the value at `path` (or of the name, when it ends in `NAME`), None if absent.

        Raises:
            WireError: as `entries`.
        """
        member = self._member(path[:-1] if path and path[-1] == NAME else path)
        if member is None:
            return None
        if path and path[-1] == NAME:
            return (member.name_start, member.name_end) if member.name_start >= 0 else None
        return member.start, member.end

    def cut(self, path: Path, doomed: frozenset[str | int]) -> list[Splice]:
        """Return the splices that take the entries `doomed` out of the container at `path`, commas included.

        Raises:
            WireError: as `entries`.
        """
        splices: list[Splice] = []
        kept_end = -1
        entries = list(self.entries(path).items())
        for at, (key, member) in enumerate(entries):
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
        # What is added at a place comes first, then what takes out most: splices inside that are skipped.
        for splice in sorted(splices, key=lambda splice: (splice.start, splice.end > splice.start, -splice.end)):
            if splice.start < at:  # inside an entry that an earlier splice took out
                continue
            out += (self.text[at : splice.start], splice.text)
            at = splice.end
        out.append(self.text[at:])
        return "".join(out)

    def _member(self, path: Path) -> Member | None:
        start = self._space(0)
        member: Member | None = Member(start, len(self.text.rstrip(_SPACE)))
        for key in path:
            if member is None:
                return None
            member = self._list(member.start).get(key)
        return member

    def _list(self, start: int) -> dict[str | int, Member]:
        found = self._listed.get(start)
        if found is None:
            opener = self.text[start : start + 1]
            try:
                found = self._object(start) if opener == "{" else self._array(start) if opener == "[" else {}
            except (ValueError, RecursionError, IndexError) as error:
                raise WireError("the event or body is not JSON that can be edited") from error
            self._listed[start] = found
        return found

    def _object(self, at: int) -> dict[str | int, Member]:
        text, found = self.text, dict[str | int, Member]()
        at = self._space(at + 1)
        if text[at] == "}":
            return found
        while True:
            if text[at] != '"':
                raise WireError("a member of a JSON object has no name; send valid JSON")
            name, name_end = _scan_string(text, at + 1)
            colon = self._space(name_end)
            if text[colon] != ":":
                raise WireError("a member of a JSON object has no value; send valid JSON")
            if name in found:
                raise WireError(f"a JSON object has two members `{name}`; send one")
            start = self._space(colon + 1)
            end = self._skip(start)
            found[name] = Member(start, end, at, name_end)
            at = self._space(end)
            if text[at] == "}":
                return found
            at = self._comma(at)

    def _array(self, at: int) -> dict[str | int, Member]:
        text, found = self.text, dict[str | int, Member]()
        at = self._space(at + 1)
        if text[at] == "]":
            return found
        while True:
            end = self._skip(at)
            found[len(found)] = Member(at, end)
            at = self._space(end)
            if text[at] == "]":
                return found
            at = self._comma(at)

    def _skip(self, at: int) -> int:
        """Return where the value that starts at `at` ends."""
        if self.text[at] == '"':
            return _scan_string(self.text, at + 1)[1]
        end: int = _SCANNER.raw_decode(self.text, at)[1]
        return end

    def _comma(self, at: int) -> int:
        if self.text[at] != ",":
            raise WireError("entries of a JSON container are not parted by commas; send valid JSON")
        return self._space(at + 1)

    def _space(self, at: int) -> int:
        """Return the first position from `at` that is not white space; the text's end if there is none."""
        text = self.text
        if text[at : at + 1] in _INK:
            return at
        size = len(text)
        while at < size and text[at] in _SPACE:
            at += 1
        return at
