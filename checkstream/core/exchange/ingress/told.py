"""Strings of one object or list, and of JSON that stands only in a text: a value may be cut over them.

What tools say is often JSON, as a value or as a text, and whoever reads it has all of it. So strings that stand side
by side are read as one, with nothing between them and with a space, as ends of messages are (see `borders`): only what
no string has by itself counts. A text need not be JSON as a whole: lines of it are read, and what stands in a sentence.

So are the parts of one message, whatever they are: the texts of a result, its value, resources and prompts, what an
error says. They are read in their order, and each text with a value's only string, which readers may see first. What
has no letters there is no part of an order or a secret: figures of one record go on with those of no other.
"""

from __future__ import annotations

import re  # noqa: TID251 - fixed tokens of JSON, each read once
from bisect import bisect_right
from collections.abc import Generator, Iterable, Sequence
from itertools import accumulate

from checkstream.core.exchange.ingress.borders import BETWEEN, EDGE_CHARS, Edge
from checkstream.core.exchange.ingress.known import Search
from checkstream.core.exchange.meter import Meter
from checkstream.core.match.patterns import PatternSet
from checkstream.core.terms import Delta, Span

_TOKENS = re.compile(r'"((?:[^"\\]|\\.)*+)"?+(\s{0,64}:)?|[\[\]{}]', re.DOTALL)
"""A string (its inside; whether it is a name), or where an object or list begins or ends. A string that nothing ends
goes to the end of the text, so that nothing is read twice."""
_INNER = re.compile(r'\\"((?:[^"\\]|\\[^"])*+)(?:\\")?+(\s{0,64}:)?')
"""The same of JSON that stands in a string of JSON."""
_MOST_TOKENS = 50_000
"""Of one text; strings behind them are read by themselves alone."""
_TOKENS_A_STEP, _TOKENS_WORK = 512, 250
_APART = "\n|\n"
_SOME = (2, 3)
"""Strings that are read apart from those around them, which could hide where a value begins ..."""
_SOME_CHARS = 48
"""... where each of them has no more, and no gap ..."""
_MOST_STRINGS = 256
"""... and there are no more of them: of long lists only the whole is read."""
_ROWS_A_STEP = 512
_EDGES_A_STEP, _EDGES_WORK = 256, 250
_MOST_BESIDE = 8
"""Texts that are read with the only string of a value."""
Row = list[Edge]


class Rows:
    """Collects what is read as one."""

    def __init__(self) -> None:
        """Begin with none."""
        self.found: list[Row] = []
        self._top: Row = []
        """What stands at the top of texts that are JSON goes on from one to the next."""

    def take(self, edges: Iterable[Edge], meter: Meter) -> Generator[None, None, None]:
        """Take strings that stand side by side, in steps."""
        row: Row = []
        for count, edge in enumerate(edges):
            row = self._put(row, edge)
            if count % _EDGES_A_STEP == 0:
                meter.spend(_EDGES_WORK)
                yield
        self._close(row)

    def text(self, place: int, text: str, meter: Meter) -> Generator[None, None, None]:
        """Take the strings of the JSON that stands in a text, in steps."""
        open_ = [self._top]
        if not _may_be_json(text):
            self._close(self._top)
            self._top = []
            return
        for count, token in enumerate(_TOKENS.finditer(text)):
            if count % _TOKENS_A_STEP == 0:
                meter.spend(_TOKENS_WORK)
                yield
            if count > _MOST_TOKENS:
                break
            if token[1] is None:
                self._nest(open_, token[0])
            elif token[1] and token[2] is None:
                open_[-1] = self._put(open_[-1], Edge(place, token.start(1), token[1]))
                yield from self._inside(place, token.start(1), token[1], meter)
        for row in open_[2:]:
            self._close(row)
        self._top = open_[min(1, len(open_) - 1)]

    def all(self, edges: Sequence[Edge], meter: Meter) -> Generator[None, None, None]:
        """Take all that a message says, part by part, in steps."""
        row: Row = []
        for count, edge in enumerate(edges):
            if _is_lettered(edge.text):
                row = self._put(row, edge)
            else:
                self._close(row)
                row = []
            if count % _EDGES_A_STEP == 0:
                meter.spend(_EDGES_WORK)
                yield
        self._close(row)

    def beside(self, texts: Sequence[Edge], strings: Sequence[Edge], meter: Meter) -> Generator[None, None, None]:
        """Take each of some texts with the one string of a value that stands beside them, in both orders, in steps.

        Of several strings, one would look like the end of what the text begins by chance.
        """
        if len(strings) != 1:
            return
        for text in texts[:_MOST_BESIDE]:
            for first, second in ((text, strings[0]), (strings[0], text)):
                self._close([_end_of(first), Edge(second.place, second.start, second.text[:EDGE_CHARS])])
            meter.spend(_EDGES_WORK)
            yield

    def _nest(self, open_: list[Row], mark: str) -> None:
        """Begin or end an object or list; the outermost goes on with what stands at the top."""
        if mark in ("{", "["):
            open_.append([] if len(open_) > 1 else open_[0])
        elif len(open_) > 2:
            self._close(open_.pop())
        elif len(open_) == 2:
            open_[0] = open_.pop()

    def end(self) -> list[Row]:
        """Return all that was taken."""
        self._close(self._top)
        self._top = []
        return self.found

    def _put(self, row: Row, edge: Edge) -> Row:
        """Add a string to a row, of a long one its ends; return the row that goes on."""
        if len(edge.text) <= EDGE_CHARS:
            row.append(edge)
            return row
        self._close([*row, Edge(edge.place, edge.start, edge.text[:EDGE_CHARS])])
        behind = len(edge.text) - EDGE_CHARS
        return [Edge(edge.place, edge.start + behind, edge.text[behind:])]

    def _close(self, row: Row) -> None:
        if len(row) > 1:
            self.found.append(row)

    def _inside(self, place: int, start: int, said: str, meter: Meter) -> Generator[None, None, None]:
        """Take the strings of the JSON that a string is."""
        row: Row = []
        for count, token in enumerate(_INNER.finditer(said) if '\\"' in said else ()):
            if token[2] is None and token[1]:
                row = self._put(row, Edge(place, start + token.start(1), token[1]))
            if count % _TOKENS_A_STEP == 0:
                meter.spend(_TOKENS_WORK)
                yield
        self._close(row)


def _some(rows: Sequence[Row], meter: Meter) -> Generator[None, None, list[Row]]:
    """Return each few neighbours of rows that may be parts of one value; ids and amounts side by side are no number."""
    found: list[Row] = []
    for row in rows:
        for at in range(len(row) if _SOME[0] < len(row) <= _MOST_STRINGS else 0):
            for size in _SOME:
                few = row[at : at + size]
                if len(few) == size < len(row) and all(map(_is_short, few)) and any(map(_is_worded, few)):
                    found.append(few)
            if at % _EDGES_A_STEP == 0:
                meter.spend(_EDGES_WORK)
                yield
    return found


def strings_in(place: int, text: str, meter: Meter) -> Generator[None, None, list[Edge]]:
    """Return, in steps, what a text says: the strings of the JSON that stands in it, or all of it."""
    found: list[Edge] = []
    for count, token in enumerate(_TOKENS.finditer(text) if _may_be_json(text) else ()):
        if count % _TOKENS_A_STEP == 0:
            meter.spend(_TOKENS_WORK)
            yield
        if count > _MOST_TOKENS:
            break
        if token[1] and token[2] is None:
            found.append(Edge(place, token.start(1), token[1]))
    return found or [Edge(place, 0, text)]


def _may_be_json(text: str) -> bool:
    return '"' in text and ("{" in text or "[" in text)


def _end_of(edge: Edge) -> Edge:
    start = max(len(edge.text) - EDGE_CHARS, 0)
    return Edge(edge.place, edge.start + start, edge.text[start:])


def _is_lettered(text: str) -> bool:
    """Tell whether a text, of a long one its ends, has letters."""
    return any(map(str.isalpha, text[:EDGE_CHARS])) or any(map(str.isalpha, text[-EDGE_CHARS:]))


def _is_short(edge: Edge) -> bool:
    return len(edge.text) <= _SOME_CHARS and " " not in edge.text


def _is_worded(edge: Edge) -> bool:
    return any(map(str.isalpha, edge.text))


def suspicious(rows: Sequence[Row], patterns: PatternSet, meter: Meter) -> Generator[None, None, list[Row]]:
    """Return, in steps, the rows in which something may stand over a border, and parts of them."""
    found: list[Row] = []
    for between in BETWEEN:
        found += yield from _searched(rows, between, patterns, meter)
    some = yield from _some(rows, meter)
    return found + (yield from _searched(some, "", patterns, meter))


def _searched(
    rows: Sequence[Row], between: str, patterns: PatternSet, meter: Meter
) -> Generator[None, None, list[Row]]:
    """Search rows for what stands over a border, many of them at once; what is said twice is searched once."""
    said: dict[str, list[Row]] = {}
    for count, row in enumerate(rows):
        said.setdefault(between.join([edge.text for edge in row]), []).append(row)
        if count % _EDGES_A_STEP == 0:
            meter.spend(_EDGES_WORK)
            yield
    found: list[Row] = []
    texts = list(said)
    for at in range(0, len(texts), _ROWS_A_STEP):
        some = texts[at : at + _ROWS_A_STEP]
        starts = [0, *accumulate(len(text) + len(_APART) for text in some)]
        search = Search(patterns)
        hits = [*(yield from meter.feeding(search, _APART.join(some))), *search.end()]
        meter.spend(search.take_work())
        crossed: dict[int, list[Span]] = {}
        while hits:  # freed here: thousands at once take long
            hit = hits.pop()
            number = bisect_right(starts, hit.span.start) - 1
            if hit.span.end <= starts[number] + len(some[number]):  # nobody reads two rows as one
                crossed.setdefault(number, []).append(hit.span.moved(-starts[number]))
            if len(hits) % _EDGES_A_STEP == 0:
                meter.spend(_EDGES_WORK)
                yield
        for number in sorted(crossed):
            for row in said[some[number]]:
                found += [row] if (yield from _crosses(row, len(between), crossed[number], meter)) else []
        yield
    return found


def _crosses(row: Row, between: int, spans: Sequence[Span], meter: Meter) -> Generator[None, None, bool]:
    """Tell, in steps, whether something stands in two strings of a row."""
    ends = list(accumulate([len(edge.text) + between for edge in row]))
    for at in range(0, len(spans), _EDGES_A_STEP):
        meter.spend(_EDGES_WORK)
        yield
        some = spans[at : at + _EDGES_A_STEP]
        if any(bisect_right(ends, span.start) != bisect_right(ends, span.end - 1) for span in some):
            return True
    return False


def edge_of(deltas: Sequence[Delta], place: int) -> Edge:
    """Return all of a text."""
    return Edge(place, 0, deltas[place].text)
