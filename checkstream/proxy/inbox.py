"""The inbox of one exchange: what has happened to it and has not been taken yet, in one order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from checkstream.core.events import AnyEvent


class Inbox:
    """Takes events from whoever has some, and tells who waits for one in the same turn of the loop."""

    def __init__(self) -> None:
        """Start empty."""
        self._events: deque[AnyEvent] = deque()
        self._listener: Callable[[], None] | None = None

    def __len__(self) -> int:
        """Return how many events wait."""
        return len(self._events)

    def put(self, event: AnyEvent) -> None:
        """Add an event behind the others."""
        self._events.append(event)
        listener = self._listener
        if listener is not None:
            self._listener = None
            listener()

    def take(self) -> AnyEvent:
        """Take the oldest event out; there has to be one."""
        return self._events.popleft()

    def drop(self, kinds: tuple[type[AnyEvent], ...]) -> list[AnyEvent]:
        """Take all events of these kinds out."""
        dropped = [event for event in self._events if isinstance(event, kinds)]
        if dropped:
            self._events = deque(event for event in self._events if not isinstance(event, kinds))
        return dropped

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Have the next event, and no further one, told by a call; None: tell nobody."""
        self._listener = listener
