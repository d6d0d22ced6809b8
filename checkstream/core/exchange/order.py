"""A queue whose items belong to choices: order holds within a choice, one choice may overtake another.

An item without choices speaks of all of them: it leaves when all before it have left, and nothing overtakes it.
The work for one item does not grow with how many wait.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Item = TypeVar("Item")

_Place = tuple[int, Item, Sequence[int]]


class ChoiceQueue(Generic[Item]):
    """Items in the order in which they came, one line for each choice and one for items without choices."""

    __slots__ = ("_common", "_lines", "_next", "_size")

    def __init__(self) -> None:
        """Start empty."""
        self._lines: dict[int, deque[_Place[Item]]] = {}
        self._common: deque[_Place[Item]] = deque()
        self._next = 0
        self._size = 0

    def __len__(self) -> int:
        """Return how many items wait."""
        return self._size

    def put(self, item: Item, choices: Sequence[int]) -> None:
        """Add an item at the end of the lines of its choices."""
        place = (self._next, item, choices)
        self._next += 1
        self._size += 1
        if not choices:
            self._common.append(place)
        for number in choices:
            self._lines.setdefault(number, deque()).append(place)

    def pop(self, ready: Callable[[Item], bool]) -> Item | None:
        """Take out the first item that is ready and has nothing before it in its lines; None when there is none."""
        if not self._size:
            return None
        barrier = self._common[0] if self._common else None
        first: _Place[Item] | None = None
        waiting = False
        for line in self._lines.values():
            if not line:
                continue
            head = line[0]
            if barrier is not None and head[0] > barrier[0]:
                continue
            waiting = True
            if (first is None or head[0] < first[0]) and self._leads(head) and ready(head[1]):
                first = head
        if first is None:
            if barrier is None or waiting or not ready(barrier[1]):
                return None
            self._common.popleft()
            self._size -= 1
            return barrier[1]
        for number in first[2]:
            self._lines[number].popleft()
        self._size -= 1
        return first[1]

    def _leads(self, place: _Place[Item]) -> bool:
        return len(place[2]) == 1 or all(self._lines[number][0] is place for number in place[2])

    def clear(self) -> None:
        """Drop all that waits."""
        self._lines.clear()
        self._common.clear()
        self._size = 0
