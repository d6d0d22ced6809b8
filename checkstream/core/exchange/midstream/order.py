"""A queue whose items belong to choices: order holds within a choice, one choice may overtake another.

An item without choices speaks of all of them: it leaves when all before it have left, and nothing overtakes it.
The work for one item grows with its own choices, and not with how many wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")


class _Place(Generic[Item]):
    """Where an item stands."""

    __slots__ = ("choices", "item", "lines", "number")

    def __init__(self, number: int, item: Item, choices: Sequence[int]) -> None:
        self.number = number
        self.item = item
        self.choices = choices
        self.lines = 0
        """In so many lines of its choices something still stands before it."""

    def __lt__(self, other: _Place[Item]) -> bool:
        return self.number < other.number


class ChoiceQueue(Generic[Item]):
    """Items in the order in which they came, one line for each choice and one for items without choices."""

    __slots__ = ("_before", "_choice", "_common", "_leading", "_lines", "_next", "_refused", "_row", "_size")

    def __init__(self) -> None:
        """Start empty."""
        self._lines: dict[int, deque[_Place[Item]]] = {}
        self._common: deque[_Place[Item]] = deque()
        self._before: deque[int] = deque([0])
        """How many items with choices wait before the first of `_common`, between it and the second, and so on."""
        self._leading: list[_Place[Item]] = []
        """A heap of what has nothing before it in its lines."""
        self._refused: list[_Place[Item]] = []
        """What of that was not ready when it was asked about."""
        self._next = 0
        self._size = 0
        self._row: deque[Item] = deque()
        """All that waits, as long as it is of one choice: it needs no places ..."""
        self._choice = 0
        """... and of which."""

    def __len__(self) -> int:
        """Return how many items wait."""
        return self._size

    def put(self, item: Item, choices: Sequence[int]) -> None:
        """Add an item at the end of the lines of its choices, each of which is named once."""
        row = self._row
        if len(choices) == 1 and self._size == len(row) and (not row or choices[0] == self._choice):
            self._choice = choices[0]
            self._size += 1
            row.append(item)
            return
        if row:
            some = list(row)
            row.clear()
            self._size = 0
            for each in some:
                self._put(each, (self._choice,))
        self._put(item, choices)

    def _put(self, item: Item, choices: Sequence[int]) -> None:
        place = _Place(self._next, item, choices)
        self._next += 1
        self._size += 1
        if not choices:
            self._common.append(place)
            self._before.append(0)
            return
        self._before[-1] += 1
        for number in choices:
            line = self._lines.get(number)
            if line is None:
                line = self._lines[number] = deque()
            if line:
                place.lines += 1
            line.append(place)
        if not place.lines:
            heappush(self._leading, place)

    def begin(self) -> None:
        """Ask anew about what was not ready: something has been decided since."""
        if self._refused:
            self._leading += self._refused
            self._refused.clear()
            heapify(self._leading)

    def pop(self, ready: Callable[[Item], bool]) -> Item | None:
        """Take out the first item that is ready and has nothing before it in its lines; None when there is none.

        What is not ready is asked about once, until there is none or `begin` is called.
        """
        row = self._row
        if row:
            if not ready(row[0]):
                return None
            self._size -= 1
            return row.popleft()
        leading = self._leading
        barrier = self._common[0].number if self._common else self._next
        while leading and leading[0].number < barrier:
            place = heappop(leading)
            if ready(place.item):
                return self._take(place)
            self._refused.append(place)
        if self._common and not self._before[0] and ready(self._common[0].item):
            self._before.popleft()
            self._size -= 1
            return self._common.popleft().item
        self.begin()
        return None

    def _take(self, place: _Place[Item]) -> Item:
        for number in place.choices:
            line = self._lines[number]
            line.popleft()
            if line:
                head = line[0]
                head.lines -= 1
                if not head.lines:
                    heappush(self._leading, head)
        self._before[0] -= 1
        self._size -= 1
        return place.item

    @property
    def first(self) -> Item | None:
        """What has waited for longest; None: nothing waits."""
        if self._row:
            return self._row[0]
        lines = (*self._lines.values(), self._common)
        place = min((line[0] for line in lines if line), default=None)
        return None if place is None else place.item

    def only(self, choice: int) -> deque[Item] | None:
        """Return what waits, in order, if all of it is of one choice and came after nothing else; else None.

        It is the queue's own, and goes on to be what waits until something else comes.
        """
        return self._row if len(self._row) == self._size and (not self._row or self._choice == choice) else None

    def drop(self) -> Item:
        """Take out the first item of what is of one choice only."""
        self._size -= 1
        return self._row.popleft()

    def clear(self) -> None:
        """Drop all that waits."""
        self._row.clear()
        self._lines.clear()
        self._common.clear()
        self._before = deque([0])
        self._leading.clear()
        self._refused.clear()
        self._size = 0
