"""Units of text -> the windows that a model reads: every unit in one, neighbours overlapping, the last one full.

Pure. Windows are made as units come, so that a long text is never held as a whole.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from checkstream.scoring.tokenizer import Placed, Unit


class Piece(msgspec.Struct, frozen=True, eq=False):
    """The units of one window."""

    units: Sequence[Placed]
    tokens: int
    """Ids of all units."""
    context: int
    """Ids at its start that an earlier window has, or that are context only."""
    turn: int | None
    """From this offset of the text on the next window sees more than this one; None: there is none."""


_PAUSE_UNITS = 32
"""After so many units without a window there is a pause."""


def pieces(
    units: Iterable[Placed], *, room: int, overlap: int, context: Sequence[Placed] = ()
) -> Iterator[Piece | None]:
    """Lay units out in windows.

    Args:
        units: what must be covered.
        room: ids of a window, at least 1.
        overlap: ids that a window shares with the one before it, at least; less than `room`.
        context: stands before the units, need not be covered; as much of it as fits is shown.

    Yields:
        Windows, each as full as what stands before its end allows; none if there is no unit with ids. None where many
        units were read and fill none yet.
    """
    held = deque(context)
    size = sum(len(unit.ids) for _, unit in held)
    new, capacity, idle = 0, room, 0
    for start, unit in (part for placed in units for part in _bounded(placed, room - overlap)):
        idle += 1
        if idle >= _PAUSE_UNITS:
            yield None
            idle = 0
        if not unit.ids:
            continue
        if new and new + len(unit.ids) > capacity:
            yield _piece(held, room, new, overlap // 2)
            new, capacity, idle = 0, room - overlap, 0
        held.append((start, unit))
        new += len(unit.ids)
        size += len(unit.ids)
        while size - len(held[0][1].ids) >= room:
            size -= len(held.popleft()[1].ids)
    if new:
        yield _piece(held, room, new, None)


def _piece(held: Sequence[Placed], room: int, new: int, reach: int | None) -> Piece:
    """Return the window that ends with the last unit; `reach`: so many ids before its end the next one knows better."""
    taken: list[Placed] = []
    tokens = 0
    for placed in reversed(held):
        if tokens + len(placed[1].ids) > room:
            break
        tokens += len(placed[1].ids)
        taken.append(placed)
    turn: int | None = None
    if reach is not None:
        behind = 0
        for start, unit in taken:
            turn = start
            behind += len(unit.ids)
            if behind >= reach:
                break
    return Piece(taken[::-1], tokens, tokens - new, turn)


def _bounded(placed: Placed, room: int) -> Iterator[Placed]:
    """Yield a unit in parts that fit a window; as a rule it does."""
    start, unit = placed
    if len(unit.ids) <= room:
        yield placed
        return
    for first in range(0, len(unit.ids), room):
        stop = first + room
        words = tuple((at - first, begin, end) for at, begin, end in unit.words if first <= at < stop)
        yield start, Unit(unit.ids[first:stop], words, unit.cases[first:stop])
