"""What becomes of a worker's place when its process has ended. Pure."""

from __future__ import annotations

from typing import Literal

_FIRST_S = 0.2
_LONGEST_S = 30.0
_SOUND_S = 60.0
"""A process that has lived so long was sound: what it died of is news."""

Cause = Literal["crash", "hang", "start"]
"""Why a process has ended: by itself; it answered nothing any more; before it served."""


class Restarts:
    """Counts how often the process in one place has ended in a row, and says when the next begins."""

    def __init__(self) -> None:
        """Begin with none."""
        self.count = 0
        """How often one has ended unasked."""
        self._in_a_row = 0

    def after(self, cause: Cause, lived_s: float, draw: float) -> float:
        """Return the seconds until the next begins.

        The first time it is at once; then the time doubles, with a random part, so that processes that fail together
        don't start together.

        Args:
            cause: Why the process has ended.
            lived_s: How long it has served.
            draw: Random, 0..1.
        """
        self.count += 1
        if lived_s >= _SOUND_S:
            self._in_a_row = 0
        self._in_a_row += 1
        if self._in_a_row == 1 and cause != "start":
            return 0.0
        whole = min(_LONGEST_S, _FIRST_S * 2.0 ** min(self._in_a_row - 1, 32))
        return whole * (0.5 + 0.5 * draw)
