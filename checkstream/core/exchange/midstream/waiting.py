"""What waits to leave: a unit of the answer, and the stretches of channels that it carries."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from checkstream.core.channel.judge import Judge
from checkstream.core.terms import COMMON, Unit

CALL = frozenset({"tool_name", "tool_arguments"})
"""Channels of a tool call."""


class Part(msgspec.Struct, frozen=True):
    """The stretch of a channel that one delta of a unit carries; `judge` is None for text of a stopped choice."""

    judge: Judge | None
    start: int
    end: int


class Waiting(msgspec.Struct, frozen=True):
    """A unit and the channels' stretches that it carries."""

    unit: Unit
    parts: tuple[Part, ...]
    arrived: float
    """When it came, seconds."""
    called: bool = False
    """It belongs to a tool call, or stands behind one that goes on: it waits for that call to be whole."""


class Released(msgspec.Struct, frozen=True):
    """What one release sends."""

    data: bytes
    held_s: float
    """Longest time that a unit of it waited, seconds."""


def is_doubted(unit: Unit) -> bool:
    """Tell whether something is judged of what all events of an answer repeat."""
    for delta in unit.deltas:  # noqa: SIM110 - of every event
        if delta.channel.choice == COMMON:
            return True
    return False


def last_content(unit: Unit, number: int) -> int | None:
    """Return the place of the last content delta of a choice in a unit."""
    places: Iterable[int] = (
        place
        for place, delta in enumerate(unit.deltas)
        if delta.channel.choice == number and delta.channel.kind == "content"
    )
    return max(places, default=None)
