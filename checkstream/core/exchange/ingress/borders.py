"""Where a text of a prompt ends and the next of its kind begins: a value may be cut over messages.

Who said half of a number in one message and the rest in the next has said it, and the model reads both. So ends and
beginnings of texts of one kind that follow one another are read as one, with nothing between them and with a space.
Only what stands over a border counts, and of which no text by itself has such a thing there.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Generator, Sequence
from itertools import accumulate

import msgspec

from checkstream.core.channel.replacements import Replacement
from checkstream.core.exchange.ingress.joined import Joined
from checkstream.core.exchange.ingress.known import Search
from checkstream.core.exchange.meter import FEED_WORK, Meter
from checkstream.core.exchange.quiet import LEAST_CHARS, Quiet
from checkstream.core.match.engine import compile_regex
from checkstream.core.match.patterns import PatternSet
from checkstream.core.terms import Delta, Finding

EDGE_CHARS = 64
"""Of a text's end, and of its beginning: as much as numbers of people and accounts have, however they are set."""
_SHORT_CHARS = 40
"""What has no more may be the midst of a value that begins before it and ends behind it."""
_APART = "\n|\n"
"""Stands between what is not read as one."""
BETWEEN = ("", " ")
_KIND = "border:"
_TELLING = compile_regex(r"[\pN@\x{fe6b}\x{ff20}]")
"""Stands in nearly all that is condemned wherever it stands: numbers, keys, addresses. Where there is none nothing is
searched, since each word of a long history would cost twice."""
_ROW_WORK = 20
_LOOKED_UP_WORK = 2
_STEP_CHARS = 16
_EDGES_A_STEP, _EDGES_WORK = 256, 100
_MESSAGES_A_STEP = 256
_CROSSINGS_A_STEP, _CROSSINGS_WORK = 64, 200
_EDITS_A_STEP = 64


class Edge(msgspec.Struct, frozen=True):
    """A text, or an end of one."""

    place: int
    """Of the text in the request."""
    start: int
    """Where it begins in that text."""
    text: str


def edges(deltas: Sequence[Delta], messages: Sequence[Sequence[int]]) -> Generator[None, None, list[list[Edge]]]:
    """Return, in steps, what is read as one: ends and beginnings of texts that follow one another, short ones whole.

    Args:
        deltas: The texts of the request.
        messages: Places of the texts of each message of one kind, in order.
    """
    rows: list[list[Edge]] = []
    row: list[Edge] = []
    for count, message in enumerate(messages, 1):
        if count % _MESSAGES_A_STEP == 0:
            yield
        first, last = deltas[message[0]].text, deltas[message[-1]].text
        if len(message) == 1 and _is_midst(first):
            row.append(Edge(message[0], 0, first))
            continue
        rows.append([*row, Edge(message[0], 0, first[:EDGE_CHARS])])
        start = max(len(last) - EDGE_CHARS, 0)
        row = [Edge(message[-1], start, last[start:])]
    return [each for each in (*rows, row) if len(each) > 1]


def _is_midst(text: str) -> bool:
    """Tell whether a value may begin before a text and end behind it."""
    return len(text) <= _SHORT_CHARS or (len(text) <= 2 * EDGE_CHARS and not any(map(str.isspace, text)))


class Borders(Joined):
    """Such rows in which something stands over a border, as one text."""

    def __init__(self) -> None:
        """Begin with none."""
        super().__init__(reads=False)
        self.seams: list[int] = []
        """Where a text ends and the next begins."""
        self._said: list[str] = []
        self._end = 0
        self._edges: list[tuple[int, Edge]] = []
        """With the place in `text` at which each begins; of one place there may be several."""

    @property
    def memory(self) -> Sequence[object]:
        """Lists of what it is made of."""
        return *super().memory, self._edges, self._said, self.seams

    def take(self, row: Sequence[Edge], between: str) -> Generator[None, None, None]:
        """Take a row, in steps."""
        for number, edge in enumerate(row):
            if number % _EDGES_A_STEP == _EDGES_A_STEP - 1:
                yield
            at = self._end
            self._edges.append((at, edge))
            self._parts.append((edge.place, at, at + len(edge.text)))
            last = number == len(row) - 1
            self._said += (edge.text, _APART if last else between)
            self._end += len(edge.text) + len(self._said[-1])
            if not last:
                self.seams.append(at + len(edge.text))

    def close(self) -> None:
        """Put together what has been taken."""
        self.text = "".join(self._said)

    def edits(self, found: dict[int, list[Replacement]]) -> Generator[None, None, None]:
        """Add to `found`, by place, what becomes of each text, in steps; no text becomes empty: servers refuse that."""
        for count, item in enumerate(self.judge.holdback.replacements, 1):
            number = max(bisect_right(self._edges, item.start, key=lambda each: each[0]) - 1, 0)
            while number < len(self._edges) and self._edges[number][0] < item.end:
                at, edge = self._edges[number]
                number += 1
                low, high = max(item.start - at, 0), min(item.end - at, len(edge.text))
                if low < high:
                    edit = Replacement(edge.start + low, edge.start + high, item.text, alias=item.alias)
                    found.setdefault(edge.place, []).append(edit)
            if count % _EDITS_A_STEP == 0:
                yield


def looking(
    rows: Sequence[Sequence[Edge]],
    kind: str,
    patterns: PatternSet,
    meter: Meter,
    quiet: Quiet | None,
    *,
    known: bool = False,
) -> Generator[None, None, Borders]:
    """Return, in steps, the rows in which something stands over a border.

    Args:
        rows: What is read as one.
        kind: Of which channel.
        patterns: What is searched for.
        meter: Counts the work.
        quiet: What was found in texts before.
        known: Something may stand over a border of each, whatever it is.
    """
    borders = Borders()
    for row in rows:
        for between in BETWEEN:
            text = between.join([edge.text for edge in row])
            if not known and _TELLING.search(text) is None:
                break
            name = ""
            if quiet is not None and len(text) >= LEAST_CHARS:  # what stands over a border depends on where it is
                name = f"{_KIND}{','.join([str(len(edge.text)) for edge in row])}:{between}{kind}"
            if quiet is not None and name and quiet.found(name, text) is not None:
                meter.spend(_LOOKED_UP_WORK)
                yield
                continue
            crossed = yield from _crossed(row, between, text, patterns, meter)
            for count, (first, last) in enumerate(crossed, 1):
                yield from meter.stepping(borders.take(row[first : last + 1], between), _EDGES_WORK)
                if count % _CROSSINGS_A_STEP == 0:
                    meter.spend(_CROSSINGS_WORK)
                    yield
            if not crossed and quiet is not None and name:
                quiet.keep(name, text)
            meter.spend(_ROW_WORK)
            yield
    borders.close()
    return borders


def _crossed(
    row: Sequence[Edge], between: str, text: str, patterns: PatternSet, meter: Meter
) -> Generator[None, None, list[tuple[int, int]]]:
    """Return the first and last texts of a row over whose borders something stands that none has by itself there."""
    search = Search(patterns)
    last = len(text) - len(row[-1].text)
    found = yield from meter.feeding(search, text[:last])
    for at in range(last, len(text), _STEP_CHARS):
        if search.live >= last:
            break  # nothing can go over to the last any more
        found += search.feed(text[at : at + _STEP_CHARS])
    else:
        found += search.end()
    meter.spend(search.take_work())
    starts = [0, *accumulate([len(edge.text) + len(between) for edge in row])][:-1]
    crossed: dict[tuple[int, int], None] = {}
    alone: dict[int, list[Finding]] = {}
    found.reverse()
    while found:  # freed here: thousands at once take long
        if len(found) % _EDGES_A_STEP == 0:
            meter.spend(_EDGES_WORK)
            yield
        finding = found.pop()
        first, last = bisect_right(starts, finding.span.start) - 1, bisect_left(starts, finding.span.end) - 1
        if first == last or (first, last) in crossed:
            continue
        for number in range(first, last + 1):
            if number not in alone:
                own = Search(patterns)
                alone[number] = (yield from meter.feeding(own, row[number].text)) + own.end()
                meter.spend(own.take_work() + FEED_WORK)
                yield
            if any(
                each.signal == finding.signal
                and each.span.start + starts[number] < finding.span.end
                and finding.span.start < each.span.end + starts[number]
                for each in alone[number]
            ):
                break
        else:
            crossed[first, last] = None
    return list(crossed)
