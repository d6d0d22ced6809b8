"""How a text that has been decided is passed on to the judges of rules that never hold any."""

from __future__ import annotations

from checkstream.core.steps import Pace
from checkstream.core.terms import Span

_FOLLOW_CHARS = 256
"""They hold nothing, so they read the text in pieces of this size: a scan costs per piece, not per character."""


class Following:
    """How far a text has been passed on, and what reading it has cost those that follow."""

    __slots__ = ("_at", "_pace", "_work", "behind")

    def __init__(self, at: int) -> None:
        """Begin at a place of the text."""
        self._at = at
        self._pace = Pace(_FOLLOW_CHARS // 4)
        self._work = 0
        self.behind = False
        """The last time, more could have been passed on than one piece."""

    @property
    def due(self) -> int:
        """Once the text before this is sure to be released, some is to be passed on."""
        return self._at + _FOLLOW_CHARS

    def piece(self, end: int, *, settled: bool, bounded: bool) -> Span | None:
        """Return what is to be passed on now; None: too little has come.

        Args:
            end: Where the text ends that is sure to be released.
            settled: No more will come.
            bounded: One piece only; else all there is.
        """
        self.behind = False
        if end - self._at < _FOLLOW_CHARS and not settled:
            return None
        if bounded and end - self._at > self._pace.chars:
            end, self.behind = self._at + self._pace.chars, True
        piece = Span(self._at, max(self._at, end))
        self._at = piece.end
        return piece

    def took(self, chars: int, work: int) -> None:
        """Note what reading a piece of so many characters has cost (see `match.work`)."""
        self._work += work
        self._pace.took(chars, work)

    def take_work(self) -> int:
        """Return what reading has cost since this was last asked."""
        work, self._work = self._work, 0
        return work
