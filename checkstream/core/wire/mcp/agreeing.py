"""A result that says its value once more, as JSON in a text: both say the same after an edit, too."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping

from checkstream.core.steps import dropping
from checkstream.core.wire.json_text import splices
from checkstream.core.wire.json_text.objects import reading_object
from checkstream.core.wire.json_text.spans import Path, Splice
from checkstream.core.wire.json_text.splices import ways
from checkstream.core.wire.json_text.strings import quote
from checkstream.errors import WireError

_BLOCKS_A_STEP = 64
_VALUES_A_STEP = 1024
_PIECES_A_STEP = 2048
_ENCODER = json.JSONEncoder(ensure_ascii=False, indent=2)

Known = dict[int, tuple[object, object]]
"""Key of an object or list, which what is equal to it shares -> it, and what an edit has made of it."""


def agreeing(members: Mapping[str, object], data: bytes) -> Generator[None, None, bytes]:
    """Return, in steps, a message in which the texts that say its value once more say it as it was edited.

    Args:
        members: Of the message, as it came.
        data: The message, edited.
    """
    result = members.get("result")
    said = (yield from _saying(result.get("content"))) if isinstance(result, dict) else {}
    if not said or not isinstance(result, dict):
        return data
    after = yield from reading_object(data)
    edited, known = after.get("result"), Known()
    if isinstance(edited, dict):
        yield from _keying(result.get("structuredContent"), edited.get("structuredContent"), known)
    alike = yield from _alike(said, known)
    written = (yield from _putting(data, alike)) if alike else data
    for spent in (said, known, alike, after):
        yield from dropping(spent, _VALUES_A_STEP)
    return written


def _saying(blocks: object) -> Generator[None, None, dict[int, object]]:
    """Return, in steps, the objects and lists that blocks of a result are the JSON of, by the place of each."""
    found: dict[int, object] = {}
    for i, block in enumerate(blocks if isinstance(blocks, list) else ()):
        if i % _BLOCKS_A_STEP == 0:
            yield
        text = block.get("text") if isinstance(block, dict) else None
        value = (yield from _said(text)) if isinstance(text, str) else None
        if value is not None:
            found[i] = value
    return found


def _alike(said: dict[int, object], known: Known) -> Generator[None, None, dict[int, object]]:
    """Return, in steps, what an edit has made of what each block says, where the value has that, too."""
    found: dict[int, object] = {}
    for count, (place, value) in enumerate(said.items()):
        if count % _BLOCKS_A_STEP == 0:
            yield
        old, new = known.get((yield from _keying(value, value, {})), (None, None))
        if old == value and new is not None:
            found[place] = new
    return found


def _putting(data: bytes, values: dict[int, object]) -> Generator[None, None, bytes]:
    """Return, in steps, a message in which some blocks say these values."""
    paths: list[Path] = [("result", "content", place, "text") for place in values]
    document = yield from splices.places(data, ways(paths))
    found: list[Splice] = []
    for count, (path, value) in enumerate(zip(paths, values.values(), strict=True)):
        if count % _BLOCKS_A_STEP == 0:
            yield
        span = document.span(path)
        if span is not None:
            found.append(Splice(*span, quote((yield from _written(value)))))
    return (yield from document.applying(found))


def _said(text: str) -> Generator[None, None, object | None]:
    """Return, in steps, the object or list that a text is the JSON of."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return (yield from reading_object(b'{"v":%b}' % text.encode()))["v"]
    except (UnicodeEncodeError, WireError, KeyError):
        return None


def _written(value: object) -> Generator[None, None, str]:
    """Return a value as JSON, in steps, as servers write it for readers."""
    pieces = list[str]()
    for piece in _ENCODER.iterencode(value):
        pieces.append(piece)
        if len(pieces) % _PIECES_A_STEP == 0:
            yield
    return "".join(pieces)


class _Open:
    """An object or list whose entries are looked at."""

    __slots__ = ("entries", "key", "name", "new", "old")

    def __init__(self, old: object, new: object) -> None:
        self.old = old
        self.new = new if type(new) is type(old) else None
        self.key = 0
        self.name: object = None
        """Of the entry that is looked at."""
        self.entries = _entries(old, self.new)

    def add(self, key: int) -> None:
        """Take the key of the entry: members of an object stand in any order."""
        self.key = self.key + hash((self.name, key)) if isinstance(self.old, dict) else hash((self.key, key))


def _entries(old: object, new: object) -> Iterator[tuple[object, object, object]]:
    """Return names, values and what the values are after an edit, which changes no list's length."""
    if isinstance(old, dict):
        found = new.values() if isinstance(new, dict) else old.values()
        return zip(old, old.values(), found, strict=False)
    entries = old if isinstance(old, list) else []
    found_ = new if isinstance(new, list) else entries
    return zip(entries, entries, found_, strict=False)


def _keying(old: object, new: object, known: Known) -> Generator[None, None, int]:
    """Note, in steps, the objects and lists of a value, each with what an edit has made of it; return its key."""
    open_, count = [_Open([old], [new])], 0
    while True:
        at = open_[-1]
        entry = next(at.entries, None)
        if entry is None:
            open_.pop()
            if not open_:
                return at.key
            if at.new is not None:
                known.setdefault(hash((0, at.key)), (at.old, at.new))
            open_[-1].add(at.key)
            continue
        count += 1
        if count % _VALUES_A_STEP == 0:
            yield
        at.name, found, twin = entry
        if isinstance(found, dict | list):
            open_.append(_Open(found, twin))
        else:
            at.add(hash(found))
