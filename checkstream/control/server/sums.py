"""Sums of what fleets have counted, so that a look at a rollout costs what has come since the last one, not its age."""

from __future__ import annotations

from checkstream.control.server import tables
from checkstream.control.server.database import Session
from checkstream.control.server.tables import SLOT_MS
from checkstream.control.server.tally import Tally, summed

_OVER_MS = 10 * SLOT_MS
"""A minute that is as old gets no counts any more, even from a server on the same store whose clock is behind."""

_Key = tuple[str, str, int]
"""Fleet, digest of the bundle, and since when."""


class Sums:
    """Keeps the sum of the minutes that are over, for each of what was asked in the last round."""

    def __init__(self) -> None:
        """Know nothing."""
        self._known: dict[_Key, tuple[int, Tally]] = {}
        self._asked: dict[_Key, tuple[int, Tally]] = {}

    def rates(self, session: Session, fleet: str, digest: str, since_ms: int, now_ms: int) -> Tally:
        """Return what `tables.rates` does; part of a transaction."""
        key = fleet, digest, since_ms
        upto, over = self._known.get(key, (since_ms - since_ms % SLOT_MS, Tally()))
        end = now_ms - now_ms % SLOT_MS - _OVER_MS
        if end > upto:
            over = summed((over, tables.rates(session, fleet, digest, upto, end)))
            upto = end
        self._asked[key] = upto, over
        return summed((over, tables.rates(session, fleet, digest, upto)))

    def round_over(self) -> None:
        """Let go of what was not asked since the last time."""
        self._known, self._asked = self._asked, {}
