"""Blocks that come by turns, put in order: one after the other, as each is to a client.

Clients of the Messages API join the events of one block, whatever came between them. A call leaves when it is over, so
what comes for other blocks meanwhile loses nothing by waiting until then, and each is read together. A text waits for
one of its kind that is not over, which may still go on. Texts wait for no thoughts, and calls for neither: servers like
llama.cpp say only at the end of the answer that these are over. One of them that goes on behind another would be read
apart from what clients join it to.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.terms import Unit
from checkstream.core.wire.surface import Frame
from checkstream.errors import WireError

_MOST_BYTES = 2_097_152
"""Of events that wait."""
_CALLS = frozenset({"tool_name", "tool_arguments"})


class Blocks:
    """The blocks of one answer, as far as they have come.

    INVARIANT: an event waits once at most, so what comes in any order is read twice at most (G10).
    """

    __slots__ = ("_begun", "_ends", "_kinds", "_latest", "_open", "_texts", "_waiting", "held")

    def __init__(self) -> None:
        """Begin with none."""
        self._open: int | None = None
        """The call that is not over."""
        self._texts: dict[str, int] = {}
        """Kind of texts -> the block of that kind that is not over."""
        self._kinds: dict[int, str] = {}
        """Block -> the kind of its text."""
        self._latest: int | None = None
        """The block that was spoken of last, if it is not over."""
        self._begun: set[int] = set()
        self._waiting: dict[int, list[Frame]] = {}
        """Events of blocks, in the order in which these began to wait."""
        self._ends: list[Frame] = []
        """The end of the answer, which comes behind all that wait."""
        self.held = 0
        """Bytes of events that wait."""

    def goes_on(self, block: int | None) -> bool:
        """Tell whether an event that is like others, of this block or of none, may be taken now."""
        return block is None or (block == self._latest and self._open in (None, block))

    def waits(self, frame: Frame, unit: Unit, *, waited: bool) -> bool:
        """Tell whether an event has to wait for others; it is kept until `following`.

        One of another block waits for the end of the call that is open, one of a text for that of another text of its
        kind, and one of a block that has not begun for all that wait; the end of the answer, which is that of every
        block, for all that wait, too.

        Args:
            frame: The event.
            unit: What it says.
            waited: It is one of those that `following` has returned.

        Raises:
            WireError: there are too many that wait, or a text goes on behind another.
        """
        block = unit.block
        if block is None:
            if waited or not self._waiting or not (unit.finished or unit.terminator or unit.failure):
                return False
            self._ends.append(frame)
            return True
        if unit.deltas and block not in self._kinds:
            kind = unit.deltas[0].channel.kind
            self._kinds[block] = "" if kind in _CALLS or kind == "extra" else kind
        if waited or self._may_be_taken(block):
            self._take(unit, block)
            return False
        self.held += len(frame.raw)
        if self.held > _MOST_BYTES:
            raise WireError("the blocks of a message come by turns for too long; check the upstream")
        self._waiting.setdefault(block, []).append(frame)
        return True

    def _may_be_taken(self, block: int) -> bool:
        if self._open not in (None, block) or block in self._waiting:
            return False
        return block in self._begun or not (self._waiting or self._is_behind_text(block))

    def _is_behind_text(self, block: int) -> bool:
        """Tell whether a text is not over that is of the kind of a block's."""
        return self._texts.get(self._kinds.get(block, ""), block) != block

    def following(self) -> Sequence[Frame]:
        """Return the events that come next: those of the next block, once none is open; at the end all of them."""
        if self._ends:
            following = [*(frame for frames in self._waiting.values() for frame in frames), *self._ends]
            self._waiting, self._ends, self.held = {}, [], 0
            return following
        if not self._waiting or self._open is not None or self._is_behind_text(next(iter(self._waiting))):
            return ()
        following = self._waiting.pop(next(iter(self._waiting)))
        self.held -= sum(len(frame.raw) for frame in following)
        return following

    def _take(self, unit: Unit, block: int) -> None:
        """Take an event of a block: others wait for it if it is of a call, and texts of its kind if it is of a text."""
        call = block == self._open or any(delta.channel.kind in _CALLS for delta in unit.deltas)
        kind, over = self._kinds.get(block, ""), block in unit.over
        if over and self._texts.get(kind) == block:
            del self._texts[kind]
        if not call and block in self._begun and block != self._latest:
            if unit.extras or any(delta.text for delta in unit.deltas):
                raise WireError("a block goes on after another one has begun; check the upstream")
            return  # that it is over
        self._begun.add(block)
        self._latest = None if over else block
        self._open = self._latest if call else None
        if kind and not over:
            self._texts[kind] = block
