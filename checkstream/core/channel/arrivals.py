"""When the text of a channel came, for what is told of decisions. Memory is bounded, whatever comes."""

from __future__ import annotations

from bisect import bisect_right
from typing import Protocol

_MOST = 512
"""Moments that are kept; of the older half every second is forgotten then, so that the newest stay exact."""


class Clock(Protocol):
    """Tells the time of the event that is being taken."""

    @property
    def now(self) -> float:
        """Seconds."""


class Standing:
    """A clock that always tells the same: of texts that are judged at once."""

    now = 0.0


class Arrivals:
    """Moments, and where the text began that came then."""

    __slots__ = ("_clock", "_moments", "_starts", "latest")

    def __init__(self, clock: Clock) -> None:
        """Nothing has come."""
        self._clock = clock
        self._starts: list[int] = []
        self._moments: list[float] = []
        self.latest = clock.now
        """When text came last; before any has, when the text began to be waited for."""

    def note(self, start: int) -> None:
        """Text comes now that begins at `start`."""
        now = self._clock.now
        if self._starts and now == self.latest:
            return
        self.latest = now
        self._starts.append(start)
        self._moments.append(now)
        if len(self._starts) > _MOST:
            del self._starts[1 : _MOST // 2 : 2]
            del self._moments[1 : _MOST // 2 : 2]

    @property
    def ages(self) -> tuple[tuple[int, float], ...]:
        """Where text began that came at once, and how long ago that was, seconds."""
        now = self._clock.now
        return tuple((start, max(now - at, 0.0)) for start, at in zip(self._starts, self._moments, strict=True))

    def since(self, position: int) -> float:
        """Return how long ago the character at a position came, seconds; of one long ago it may be told a little more.

        Of text that came before the first the moment of that counts.
        """
        if not self._starts:
            return max(self._clock.now - self.latest, 0.0)
        place = max(bisect_right(self._starts, position) - 1, 0)
        return max(self._clock.now - self._moments[place], 0.0)
