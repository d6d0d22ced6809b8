"""Numbers of an answer that nobody knows, as text: one by one, and many of them in one list as one text.

What servers list by the thousand (ids of tokens, embeddings, which experts were asked) is no thousand texts: each of
its numbers stands in one text once, parted from the others.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence

from checkstream.core.steps import Steps, dropping
from checkstream.core.wire.json_text.lists import spelling, telling

_MANY = 16
"""Numbers of a list, and of lists in it, that are one text; fewer are one each."""
_MANY_ROWS = 256
_A_STEP = 1024
_ROWS_A_STEP = 65_536
_LINES_A_SET = 4096
_BETWEEN = "\n|\n"
"""Stands between numbers: nothing is found over it."""
_MOST_EXACT, _MOST_BITS = 2**53, 2**64
"""Numbers between them are what machines count and draw in 64 bits, and no reader keeps in a fraction's 53."""


def number(value: float) -> str:
    """Return a number as programs print it, whatever way it was spelled."""
    return str(value) if isinstance(value, int) or not value.is_integer() else str(int(value))


def is_drawn(value: float) -> bool:
    """Tell whether a number needs the 64 bits that machines count and draw in."""
    return isinstance(value, int) and _MOST_EXACT < abs(value) < _MOST_BITS


class Lists:
    """Reads lists of numbers, each number at most twice."""

    __slots__ = ("_mixed", "settled")

    def __init__(self) -> None:
        """Begin with none; of no more than one JSON value, whose lists are asked about in document order."""
        self._mixed: set[int] = set()
        """Lists, by identity, in which something else stands, too: the last one that was found so, and those in it that
        lead to what it is. All others in it are asked about anew, and none that was found so before comes again."""
        self.settled = False
        """The latest was made of numbers, but is no text: neither is a list in it in which lists stand."""

    def text(
        self, value: list[object], *, drawn: bool, trees: bool, flat: bool = False
    ) -> Generator[None, None, str | None]:
        """Return what a list says that is made of many numbers, each said once; in steps. None: any other list.

        Args:
            value: The list.
            drawn: Numbers of 64 bits that machines draw say nothing here.
            trees: A list of very many such lists is one text, too, with what each of them spells byte by byte.
            flat: It stands in one that has settled that: it is no text where lists stand in it.
        """
        found, rows = list[float](), list[list[object]]()
        self.settled = flat
        if not (yield from self.is_figures(value, found, rows, flat=flat)):
            return None
        if len(found) < _MANY or (rows and not (trees and len(rows) > _MANY_ROWS)):
            yield from _emptying(rows)
            self.settled = True
            return None
        lines = _Lines(len(found) + len(rows))
        for at in range(0, len(found), _A_STEP):
            some = found[at : at + _A_STEP]
            lines.add(map(number, (each for each in some if not (drawn and is_drawn(each)))))
            yield
        for count, row in enumerate(rows, 1):
            spelled = yield from spelling(row)
            if spelled is not None:
                lines.add((spelled,))
            if count % _A_STEP == 0:
                yield
        whole = None if rows else (yield from telling(value))
        told = yield from _joined(lines.ordered, whole)
        yield from dropping([lines.known, lines.ordered])
        yield from dropping(found)
        yield from _emptying(rows)
        return told

    def is_figures(
        self,
        value: list[object],
        found: list[float] | None = None,
        rows: list[list[object]] | None = None,
        *,
        flat: bool = False,
    ) -> Generator[None, None, bool]:
        """Tell whether a list is made of numbers alone, or of lists of them; in steps.

        Args:
            value: The list.
            found: Takes the numbers.
            rows: Takes the lists in it.
            flat: There may be none in it.
        """
        if id(value) in self._mixed or not value or not _may_be_number(value[0]):
            return False
        open_: list[tuple[list[object], Iterator[object]]] = [(value, iter(value))]
        looked = 0
        while open_:
            for inner in open_[-1][1]:
                looked += 1
                if looked % _A_STEP == 0:
                    yield
                if isinstance(inner, int | float) and not isinstance(inner, bool):
                    if found is not None:
                        found.append(inner)
                elif isinstance(inner, list) and not flat:
                    open_.append((inner, iter(inner)))
                    if rows is not None:
                        rows.append(inner)
                    break
                else:
                    self._mixed = self._mixed if flat else {id(each) for each, _ in open_}
                    return False
            else:
                open_.pop()
        return True


class _Lines:
    """Lines that differ, in the order in which they came first.

    Which there are is known in many small sets: to make room in one that is large takes as long as it is (G33).
    """

    __slots__ = ("known", "ordered")

    def __init__(self, most: int) -> None:
        """Begin with none; there will be so many at most."""
        self.known: list[set[str]] = [set() for _ in range(most // _LINES_A_SET + 1)]
        self.ordered: list[str] = []

    def add(self, lines: Iterable[str]) -> None:
        """Add those that are not there yet; a few at a time."""
        for line in dict.fromkeys(lines):
            known = self.known[hash(line) % len(self.known)]
            if line not in known:
                known.add(line)
                self.ordered.append(line)


def _emptying(rows: list[list[object]]) -> Steps:
    """Forget many lists, in steps, that others still know."""
    while rows:
        del rows[-_ROWS_A_STEP:]
        if rows:
            yield


def _may_be_number(value: object) -> bool:
    return isinstance(value, int | float | list) and not isinstance(value, bool)


def _joined(lines: Sequence[str], whole: str | None) -> Generator[None, None, str]:
    """Return many lines as one text, in steps, and behind them what the list says as a whole."""
    told = ""
    for at in range(0, len(lines), _A_STEP):
        told += (_BETWEEN if told else "") + _BETWEEN.join(lines[at : at + _A_STEP])  # it grows in its place
        yield
    if whole is None:
        return told
    return told + (_BETWEEN if lines else "") + whole
