"""Events of blocks that come by turns, put in order: one block after the other, as each is to a client.

Clients of the Messages API join the events of one block, whatever came between them. So what was said in one block is
read together, and leaves so: an event of another waits until the block that is open is over.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.terms import Unit
from checkstream.core.wire.surface import Frame
from checkstream.errors import WireError

_MOST_BYTES = 262_144
"""Of events that wait."""


class Blocks:
    """The blocks of one answer, as far as they have come."""

    __slots__ = ("_bytes", "_open", "_waiting")

    def __init__(self) -> None:
        """Begin with none."""
        self._open: int | None = None
        self._waiting: list[Frame] = []
        self._bytes = 0

    def goes_on(self, block: int | None) -> bool:
        """Tell whether an event that is of this block, or of none, may be taken now."""
        return block is None or block == self._open

    def waits(self, frame: Frame, unit: Unit) -> bool:
        """Tell whether an event has to wait for others; it is kept until `following`.

        One of a block waits for the end of the block that is open; the end of the answer, which is that of every block,
        for all that wait.

        Raises:
            WireError: there are too many that wait.
        """
        if unit.block is None:
            if not self._waiting or not (unit.finished or unit.terminator or unit.failure):
                return False
            self._open = None
        elif self._open in (None, unit.block):
            self._open = None if unit.block in unit.over else unit.block
            return False
        self._bytes += len(frame.raw)
        if self._bytes > _MOST_BYTES:
            raise WireError("the blocks of a message come by turns for too long; check the upstream")
        self._waiting.append(frame)
        return True

    def following(self) -> Sequence[Frame]:
        """Return the events that come next: those that have waited, once no block is open."""
        if not self._waiting or self._open is not None:
            return ()
        waiting, self._waiting, self._bytes = self._waiting, [], 0
        return waiting
