"""What the fields of one unit say one behind the other: a value may be cut over them, or over names of members.

Whoever reads an event or a body has all of its fields. So texts that stand side by side outside of the text channels
are read as one, as strings that tools say are (see `told`): those that members have, and their names. Only what no
field has by itself counts. A name and its own value are not put together: `{"twitter": "@example.com"}` is no address.

Numbers are told from amounts and counts by their names: two to five side by side in one object are read as the groups
of one number where they have as many figures as a card's, and members that are only lettered or numbered (`a`, `b`;
`part_1`, `part_2`). Of four counts of four figures each, one in thirty would be a card. Ids that look like chance are
joined to nothing: clients refer to them, and nobody puts them together.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import accumulate, groupby, pairwise

import msgspec

from checkstream.core.exchange.ingress.borders import BETWEEN, TELLING, Edge, crossing
from checkstream.core.exchange.ingress.told import Row, Rows, searched, suspicious
from checkstream.core.exchange.meter import Meter
from checkstream.core.match.patterns import PatternSet, compile_regex
from checkstream.core.terms import Extra, Finding, Span
from checkstream.core.wire.json_text.spans import NAME, Path

_EXTRAS = 256
"""That are looked at in one step."""
_GAP = " "
_GROUPS, _FIGURES = range(2, 6), range(15, 17)
"""Numbers of an object that may be one, and how many figures that has."""
_LEAST_GROUP = 256
_MOST_PLACES, _MOST_NUMBERS = 6, 256
_ROW, _SHARED = 512, 16
"""Texts that are read as one, and how many of those behind them are read with the last ones."""
_MOST_TEXTS, _MOST_CHARS, _MOST_QUIET = 64, 512, 1024
"""Of a row that is remembered, and of those."""
_PARTS = frozenset(
    {"", "block", "chunk", "d", "digits", "g", "group", "n", "num", "number", "p", "part", "piece", "seg", "segment"}
)
"""What parts of a number are named, before their own letter or number: `q1` to `q4` are of a year."""
_HANDLES = frozenset({"handle", "mention", "scope", "screen_name", "twitter", "user", "username"})
"""Members whose `@` begins a name, and goes on with no address."""
_ID = compile_regex(r"\A[A-Za-z0-9_:./+=-]*[A-Za-z_][A-Za-z0-9_:./+=-]*\z")
"""What looks like an id, a number alone excepted."""

Over = Mapping[int, Sequence[Finding]]
"""Number of an extra -> what stands over its borders, as it stands in its own text."""


class Fields:
    """Reads the fields of units as one; what one unit says is often what the one before has said."""

    __slots__ = ("_meter", "_patterns", "_quiet")

    def __init__(self, patterns: PatternSet, meter: Meter) -> None:
        """Begin with none.

        Args:
            patterns: What is searched for.
            meter: Counts the work.
        """
        self._patterns = patterns
        self._meter = meter
        self._quiet: set[str] = set()
        """Rows over whose borders nothing stands, as one text each."""

    def over(self, extras: Sequence[Extra]) -> Generator[None, None, Over]:
        """Return, in steps, what stands over the borders of what a unit says outside of its texts."""
        if len(extras) < 2 or not len(self._patterns):
            return {}
        rows, groups = yield from self._rows(extras)
        taken = Rows()
        for row in rows:
            for at in range(0, len(row), _ROW - _SHARED):
                yield from taken.take(row[at : at + _ROW], self._meter)
        told = (yield from suspicious(taken.end(), self._patterns, self._meter)) if rows else []
        found: dict[int, dict[Finding, None]] = {}
        for row in told:
            for between in BETWEEN:
                yield from self._put(row, between, found)
        for row in (yield from searched(groups, _GAP, self._patterns, self._meter)) if groups else ():
            yield from self._put(row, _GAP, found)
        if not found:
            self._quiet.update(key for key in map(_key, (*rows, *groups)) if key and len(self._quiet) < _MOST_QUIET)
        return {place: list(findings) for place, findings in found.items()}

    def _rows(self, extras: Sequence[Extra]) -> Generator[None, None, tuple[list[Row], list[Row]]]:
        """Return, in steps, texts that are read as one, and numbers."""
        texts: dict[tuple[int, bool], list[Edge]] = {}
        numbers: dict[tuple[int, Path], list[Edge]] = {}
        for count, extra in enumerate(extras):
            if count % _EXTRAS == _EXTRAS - 1:
                self._meter.spent += 2 * _EXTRAS
                yield
            if extra.part or extra.words or extra.word or not extra.text or _is_handle(extra):
                continue
            edge, name = Edge(count, 0, extra.text), extra.path[-1] == NAME
            if name or extra.joins:
                if not _is_id(extra):
                    texts.setdefault((extra.choice, name), []).append(edge)
            elif isinstance(extra.path[-1], str):
                numbers.setdefault((extra.choice, extra.path[:-1]), []).append(edge)
        rows = [row for row in texts.values() if len(row) > 1 and self._is_new(row)]
        groups = list[Row]()
        for count, row in enumerate(numbers.values()):
            if count % _EXTRAS == _EXTRAS - 1:
                self._meter.spent += 2 * _EXTRAS
                yield
            if 1 < len(row) <= _MOST_NUMBERS:
                groups += (run for run in _groups(row, extras) if self._is_new(run))
        return rows, groups

    def _is_new(self, row: Row) -> bool:
        """Tell whether something may stand over the borders of a row, as far as that is known."""
        key = _key(row)
        return not key or (key not in self._quiet and TELLING.search(key) is not None)

    def _put(self, row: Row, between: str, found: dict[int, dict[Finding, None]]) -> Generator[None, None, None]:
        """Add what stands over the borders of a row to what is found in each of its texts."""
        starts = [0, *accumulate([len(edge.text) + len(between) for edge in row])]
        text = between.join([edge.text for edge in row])
        for crossed in (yield from crossing(row, between, text, self._patterns, self._meter)):
            finding = crossed.finding
            for number in range(crossed.first, crossed.last + 1):
                at, edge = starts[number], row[number]
                low, high = max(finding.span.start - at, 0), min(finding.span.end - at, len(edge.text))
                if low < high:
                    span = Span(edge.start + low, edge.start + high)
                    found.setdefault(edge.place, {})[msgspec.structs.replace(finding, span=span)] = None


def _key(row: Row) -> str:
    """Return what a short row is remembered by; "" for a long one."""
    short = len(row) <= _MOST_TEXTS and sum(len(edge.text) for edge in row) <= _MOST_CHARS
    return "\0".join([edge.text for edge in row]) if short else ""


def _is_handle(extra: Extra) -> bool:
    """Tell whether a text is a name that begins with `@`."""
    return extra.text.startswith("@") and str(extra.path[-1]).lower() in _HANDLES


def _is_id(extra: Extra) -> bool:
    """Tell whether a text is an id that looks like chance."""
    named = extra.again != "read" or str(extra.path[-1]).endswith("id")
    return named and len(extra.text) <= _MOST_CHARS and _ID.search(extra.text) is not None


def _groups(row: Row, extras: Sequence[Extra]) -> Iterator[Row]:
    """Yield numbers of one object, side by side, that may be the groups of one number."""
    for is_group, run in groupby(row, lambda edge: _is_group(edge.text)):
        groups = list(run)
        if not is_group or len(groups) not in _GROUPS or sum(len(edge.text) for edge in groups) not in _FIGURES:
            continue
        if _are_numbered([str(extras[edge.place].path[-1]) for edge in groups]):
            yield groups


def _is_group(text: str) -> bool:
    return len(text) < _FIGURES.stop and text.isdecimal() and int(text) >= _LEAST_GROUP


def _are_numbered(names: Sequence[str]) -> bool:
    """Tell whether members have letters or numbers in a row for names: `a`, `b`; `part_1`, `part_2`."""
    first, last = min(names), max(names)
    stem = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    if first[:stem].strip("_- .").lower() not in _PARTS:
        return False
    ends = [name[stem:] for name in names]
    if all(end.isdecimal() and len(end) < _MOST_PLACES for end in ends):
        places = [int(end) for end in ends]
    elif all(len(end) == 1 for end in ends):
        places = [ord(end) for end in ends]
    else:
        return False
    return all(behind - place == 1 for place, behind in pairwise(places))
