"""Work, counted: what a text has cost so far, in units of about a microsecond of a usual core.

It is counted and not measured, so that the same events cost the same on every machine and in every replay.
"""

from __future__ import annotations

from typing import Final

CANDIDATE: Final = 10
"""A candidate that a validator is asked about."""
QUESTION: Final = 1
"""A question to the engine, but for what it reads."""


class Work:
    """What one text has cost; mutable."""

    __slots__ = ("done",)

    def __init__(self) -> None:
        """Start with nothing done."""
        self.done = 0

    def take(self) -> int:
        """Return what was done since this was last asked."""
        done = self.done
        self.done = 0
        return done
