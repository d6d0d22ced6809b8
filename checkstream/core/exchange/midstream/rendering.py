"""Long units of a stream, written in steps: no step of the event loop writes the whole of one, nor of a long text."""

from __future__ import annotations

from collections.abc import Generator

from checkstream.core.channel.holdback import Holdback
from checkstream.core.exchange.midstream.waiting import Part, Waiting
from checkstream.core.wire.json_text.strings import Quoted, quote

RENDERED_CHARS = 4096
"""Of an edited text, that are written in one step."""


class Rendering:
    """The edited texts of one unit, the next to leave; what is short is written when it leaves."""

    __slots__ = ("_cuts", "_pieces", "_steps", "waiting")

    def __init__(self) -> None:
        """Begin with no unit."""
        self.waiting: Waiting | None = None
        """The unit some of whose texts are written; it leaves before any other."""
        self._pieces: dict[int, list[tuple[str, str]]] = {}
        """Place of a text in the unit -> what has been written of it, each piece as text and as JSON."""
        self._cuts: dict[int, int | None] = {}
        """Place of a text -> where its channel ended then."""
        self._steps: Generator[None, None, list[bytes]] | None = None
        """What writes the unit, once its texts are written."""

    @property
    def is_writing(self) -> bool:
        """The unit itself is written, in steps."""
        return self._steps is not None

    def begin(self, waiting: Waiting, steps: Generator[None, None, list[bytes]]) -> None:
        """Write a unit in steps; it leaves before any other."""
        self.waiting, self._steps = waiting, steps

    def go_on(self) -> list[bytes] | None:
        """Do a step of writing the unit; return what leaves of it, None while some steps are left.

        Raises:
            WireError: it can't be edited as the policy wants.
        """
        if self._steps is None:
            raise AssertionError("what is gone on with was begun")
        try:
            next(self._steps)
        except StopIteration as end:
            left: list[bytes] = end.value
            return left
        return None

    def clear(self) -> None:
        """Forget the unit: it has left, or never will."""
        if self.waiting is not None:
            self.waiting = self._steps = None
            self._pieces.clear()
            self._cuts.clear()

    def is_done(self, waiting: Waiting) -> bool:
        """Write some more of the edited texts of a unit that are long; tell whether all of them are written."""
        for place, part in enumerate(waiting.parts):
            if part.judge is None or part.end - part.start <= RENDERED_CHARS:
                continue
            holdback = part.judge.holdback
            if holdback.changed(part.start, part.end):
                self.waiting = waiting
                pieces = self._pieces_of(place, holdback.cut)
                at = part.start + len(pieces) * RENDERED_CHARS
                if at < part.end:
                    piece = holdback.render(at, min(at + RENDERED_CHARS, part.end))
                    pieces.append((piece, quote(piece)))
                    return False
        return True

    def text(self, place: int, holdback: Holdback, part: Part) -> str:
        """Return the text that is sent for a part which was edited."""
        if place in self._pieces:
            return Quoted.of(self._pieces_of(place, holdback.cut))
        return holdback.render(part.start, part.end)

    def _pieces_of(self, place: int, cut: int | None) -> list[tuple[str, str]]:
        """Return what has been written of a text whose channel ends at `cut`; nothing counts if that has changed."""
        if place not in self._pieces or self._cuts[place] != cut:
            self._pieces[place], self._cuts[place] = [], cut
        return self._pieces[place]
