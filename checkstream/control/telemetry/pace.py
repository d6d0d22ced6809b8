"""How much is sent at once, and when again. Pure."""

from __future__ import annotations

_FIRST_S, _LONGEST_S = 1.0, 60.0
_LEAST_BYTES = 16_384
_LONGEST_ASKED_S = 600.0


class Pace:
    """What follows from how sending went."""

    def __init__(self, *, idle_s: float, most_bytes: int) -> None:
        """Send each `idle_s`, up to `most_bytes` at once."""
        self._idle_s = idle_s
        self._most = most_bytes
        self._failed = 0
        self.bytes = most_bytes
        """That may be sent at once now."""

    def went(self, *, more: bool) -> float:
        """It was taken; return the seconds until the next, which is at once where there is more."""
        self._failed = 0
        self.bytes = min(self.bytes * 2, self._most)
        return 0.0 if more else self._idle_s

    def failed(self, draw: float, asked_s: float | None = None) -> float:
        """It was not; return the seconds until it is tried again.

        Between half and the whole of a time that doubles, so that nodes that failed together part; no less than the
        receiver has asked for.

        Args:
            draw: Random, 0..1.
            asked_s: What the receiver asks for; None: nothing.
        """
        wait_s = min(_LONGEST_S, _FIRST_S * 2.0 ** min(self._failed, 16)) * (0.5 + 0.5 * draw)
        self._failed += 1
        return max(wait_s, min(asked_s or 0.0, _LONGEST_ASKED_S))

    def too_large(self, draw: float) -> float:
        """It was more than the receiver takes; return the seconds until half of it is tried."""
        if self.bytes <= _LEAST_BYTES:
            return self.failed(draw)
        self.bytes = max(self.bytes // 2, _LEAST_BYTES)
        return 0.0
