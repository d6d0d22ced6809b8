"""The inbox of one exchange: what has happened to it and has not been taken yet, in one order."""

from __future__ import annotations

import asyncio
from collections import deque

from checkstream.core.events import AnyEvent


class Inbox:
    """Takes events from whoever has some, and keeps them for the one task that takes them out."""

    def __init__(self) -> None:
        """Start empty."""
        self._events: deque[AnyEvent] = deque()
        self._wake = asyncio.Event()

    def __len__(self) -> int:
        """Return how many events wait."""
        return len(self._events)

    def put(self, event: AnyEvent) -> None:
        """Add an event behind the others."""
        self._events.append(event)
        self._wake.set()

    def take(self) -> AnyEvent:
        """Take the oldest event out; there has to be one."""
        return self._events.popleft()

    def drop(self, kinds: tuple[type[AnyEvent], ...]) -> list[AnyEvent]:
        """Take all events of these kinds out."""
        dropped = [event for event in self._events if isinstance(event, kinds)]
        self._events = deque(event for event in self._events if not isinstance(event, kinds))
        return dropped

    async def wait(self) -> None:
        """Return when there may be an event."""
        if not self._events:
            await self._wake.wait()
        self._wake.clear()
