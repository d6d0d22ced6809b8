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

    __slots__ = ("_before", "_common", "_leading", "_lines", "_next", "_refused", "_size")

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

    def __len__(self) -> int:
        """Return how many items wait."""
        return self._size

    def put(self, item: Item, choices: Sequence[int]) -> None:
        """Add an item at the end of the lines of its choices, each of which is named once."""
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

    def only(self, choice: int) -> Sequence[Item] | None:
        """Return what waits, in order, if all of it is of one choice; else None."""
        line = self._lines.get(choice, ())
        return None if self._common or len(line) != self._size else [place.item for place in line]

    def take(self, choice: int, count: int) -> None:
        """Take out the first items of a choice, where nothing waits but what is of it."""
        line = self._lines[choice]
        for _ in range(count):
            line.popleft()
        self._before[0] -= count
        self._size -= count
        self._refused.clear()
        self._leading.clear()
        if line:
            line[0].lines = 0
            self._leading.append(line[0])

    def clear(self) -> None:
        """Drop all that waits."""
        self._lines.clear()
        self._common.clear()
        self._before = deque([0])
        self._leading.clear()
        self._refused.clear()
        self._size = 0
