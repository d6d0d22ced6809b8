"""The timers of one exchange, each of which has a name: what runs out is told as an event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from checkstream.core import commands as do
from checkstream.core import events as on


class Timers:
    """Those that run."""

    def __init__(self, post: Callable[[on.AnyEvent], None]) -> None:
        """Begin with none.

        Args:
            post: Takes the events.
        """
        self._loop = asyncio.get_running_loop()
        self._post = post
        self._running: dict[str, asyncio.TimerHandle] = {}

    def arm(self, command: do.ArmTimer) -> None:
        """Start a timer, anew if it runs."""
        self.disarm(command.timer)
        self._running[command.timer] = self._loop.call_later(
            command.after_ms / 1000, self._post, on.TimerFired(command.timer)
        )

    def disarm(self, timer: str) -> None:
        """Stop a timer, if it runs."""
        handle = self._running.pop(timer, None)
        if handle is not None:
            handle.cancel()

    def end(self) -> None:
        """Stop all."""
        for timer in list(self._running):
            self.disarm(timer)
