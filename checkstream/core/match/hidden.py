"""The `hidden` view: the text that characters spell which show nothing, each of them one letter of it.

Tag characters (U+E0000 to U+E007F) are ASCII out of sight; variation selectors number the octets from 0 to 255, and in
ordinary use at most one follows a sign. A model reads what they spell, a person doesn't. What stands between two of
them, up to `GAP_CHARS`, doesn't part their text. Sources: Unicode 16, 23.9 and 23.4.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from types import MappingProxyType
from typing import Final

from checkstream.core.match.encoded import Encoded
from checkstream.core.match.engine import compile_regex
from checkstream.core.match.hexed import Hexed
from checkstream.core.match.inner import Open
from checkstream.core.match.lane import NEVER, Found, Lane
from checkstream.core.match.patterns import Table
from checkstream.core.match.turned import Turned
from checkstream.core.match.work import Work

Outs = Mapping[str, list[Found]]
"""View -> what is found in it."""
GAP_CHARS: Final = 64
_SHOWN: Final = range(0x20, 0x7F)
_SPELLS: Final[Mapping[int, str]] = MappingProxyType(
    {0xE0000 + code: chr(code) for code in _SHOWN} | {0xE0100 + code - 16: chr(code) for code in _SHOWN}
)
"""Code point -> what it says; the selectors of one octet less than 16 say nothing that can be read."""
CARRIERS: Final = r"[\x{e0020}-\x{e007e}\x{e0110}-\x{e016e}]"
"""Expression for the characters that say something."""
_CARRIER: Final = compile_regex(CARRIERS)
_LEGIBLE_CHARS: Final = 8192
"""Of a long text, at a time."""


def legible(text: str) -> str:
    """Return a text in which what it spells out of sight stands in sight, each character in its own place."""
    if text.isascii() or _CARRIER.search(text) is None:
        return text
    return text.translate(_SPELLS)


def made_legible(text: str) -> Generator[None, None, str]:
    """Return, in steps, what `legible` makes of a text."""
    if text.isascii():
        return text
    pieces = []
    for at in range(0, len(text), _LEGIBLE_CHARS):
        pieces.append(legible(text[at : at + _LEGIBLE_CHARS]))
        yield
    return "".join(pieces)


class Carried:
    """Reads the original text of one channel; mutable."""

    __slots__ = ("_lane", "_seen", "_table", "_work", "at")

    def __init__(self, table: Table, at: int, work: Work) -> None:
        """Start at the original offset `at`, with nothing hidden in reach before it; its work goes to `work`."""
        self._work = work
        self.at = at
        """Original offset of the first character that has not been read."""
        self._table = table
        self._lane: Lane | None = None
        self._seen = at
        """Where the last character ends that says something."""

    @property
    def idle(self) -> bool:
        """Whether no hidden text is being read."""
        return self._lane is None

    def decide(self, out: list[Found]) -> int:
        """Decide what can be decided; return the original offset before which all is."""
        lane = self._lane
        if lane is None:
            return self.at
        while True:
            live = min(lane.live(lane.read_to, lane.table), lane.phrases_live(lane.read_to))
            if not lane.decide(live, out):
                return min(self.at, live)

    def read(self, text: str, out: list[Found], *, ended: bool) -> None:
        """Read on; `text` is the original from `at` to what has been received."""
        origin, place = self.at, 0
        while (hit := _CARRIER.search(text, place)) is not None:
            place = hit.end()
            start = origin + place - 1
            if start - self._seen > GAP_CHARS:
                self._finish(out)
            if self._lane is None:
                self._lane = Lane(self._table, start, self._work)
                self._lane.starts = []
            self._lane.append(_SPELLS[ord(text[place - 1])], [start], [start + 1], start + 1)
            self._seen = start + 1
        self.at = origin + len(text)
        if ended or self.at - self._seen > GAP_CHARS:
            self._finish(out)
        elif self._lane is not None:
            self._lane.read_to = self.at

    def due(self, out: list[Found] | None) -> tuple[bool, int]:
        """See `Lane.due`."""
        lane = self._lane
        if lane is None:
            return False, NEVER
        capped, soonest = lane.due(lane.read_to, lane.table, out, derived=True)
        more, place = lane.phrases_due(lane.read_to, out)
        return capped or more, min(soonest, place)

    def _finish(self, out: list[Found]) -> None:
        """End the text that is being read, deciding all of it."""
        if self._lane is not None:
            self._lane.decide(self._lane.read_to, out)
        self._lane = None


class Embedded:
    """What stands in a text as text of its own, encoded or hidden: read together."""

    __slots__ = ("_base64", "_hex", "_hidden", "_turned")

    def __init__(self, begin: Open | None, hidden: Table, at: int, hex_at: int, work: Work) -> None:
        """Start at the original offsets `at` and, for hex, `hex_at`, outside of any; its work goes to `work`.

        `begin` opens an encoded text; None: none is looked for.
        """
        self._base64 = None if begin is None else Encoded(begin, at)
        self._hex = None if begin is None else Hexed(begin, hex_at)
        self._turned = None if begin is None else Turned(begin, at)
        self._hidden = Carried(hidden, at, work)

    @property
    def ats(self) -> tuple[int, int]:
        """Original offsets of the first characters that have not been read, that for hex last."""
        at = self._hidden.at
        if self._base64 is None or self._hex is None or self._turned is None:
            return at, at
        return min(at, self._base64.at, self._turned.at), self._hex.at

    @property
    def idle(self) -> bool:
        """Whether nothing is being read."""
        return self._hidden.idle and all(each.idle for each in self._readers())

    def decide(self, out: Outs) -> int:
        """Decide what can be decided; return the original offset before which all is."""
        live = self._hidden.decide(out["hidden"])
        return min([live, *(each.live for each in self._readers())])

    def read(self, text: str, at: int, out: Outs, *, ended: bool) -> None:
        """Read on; `text` is the original from `at`, the least of `ats`, to what has been received."""
        for each in self._readers():
            each.read(text[each.at - at :], out["encoded"], ended=ended)
        self._hidden.read(text[self._hidden.at - at :], out["hidden"], ended=ended)

    def _readers(self) -> tuple[Encoded | Hexed | Turned, ...]:
        """Return what reads inner texts."""
        if self._base64 is None or self._hex is None or self._turned is None:
            return ()
        return self._base64, self._hex, self._turned

    def due(self, out: Outs | None) -> tuple[bool, int]:
        """See `Lane.due`; inner texts see to themselves."""
        return self._hidden.due(None if out is None else out["hidden"])


def outs() -> Outs:
    """Return where to put what is found, by view."""
    return {"encoded": [], "hidden": []}
