"""Turns at something of which little is done at once. Whoever asks often waits behind itself, not others behind it."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Lets so many do something at once; parties that wait are served in turn.

    INVARIANT: between two turns of one party each other party that waits has one.
    """

    def __init__(self, at_once: int) -> None:
        """Start with nobody."""
        self._free = at_once
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def taken(self, party: str) -> AsyncIterator[None]:
        """Wait for a turn of a party, and have it meanwhile."""
        if self._free:
            self._free -= 1
        else:
            await self._turn(party)
        try:
            yield
        finally:
            self._pass_on()

    async def _turn(self, party: str) -> None:
        turn = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had come just before
                self._pass_on()
            raise

    def _pass_on(self) -> None:
        while self._waiting:
            party, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[party] = turns  # behind all others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
