"""The guard, as the shell sees it: events in, commands out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from checkstream.core import commands as do
from checkstream.core import events as on


class Machine(Protocol):
    """A guard, or what stands before one and writes down what it is told."""

    def receive(self, event: on.AnyEvent, now: float) -> list[do.AnyCommand]:
        """Take what has happened; return what is to be done."""


def last_commands(machine: Machine, clock: Callable[[], float]) -> list[do.AnyCommand]:
    """Return all that a guard still wants done for a caller who has gone, without letting others have turns."""
    commands = machine.receive(on.DownstreamClosed(), clock())
    while commands and isinstance(commands[-1], do.Yield):
        commands += machine.receive(on.Resumed(), clock())
    return commands
