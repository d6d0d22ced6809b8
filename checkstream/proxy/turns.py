"""Turns of exchanges that have much to do: one each time round the event loop, and callers in their order.

What is done in one turn is bounded by the guard. So between two steps of any other stream there is at most one turn of
somebody's, however many long texts are being read, and a caller who sends a hundred of them waits behind himself.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque


class Turns:
    """Grants turns on one event loop."""

    def __init__(self) -> None:
        """Begin with nobody waiting."""
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()
        self._granting = False

    async def next(self, caller: str) -> None:
        """Wait for the next turn of `caller`."""
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        if not self._granting:
            self._granting = True
            loop.call_soon(self._grant)
        await turn

    def _grant(self) -> None:
        """Grant one turn; the next is granted when the loop has been round."""
        self._granting = False
        while self._waiting:
            caller, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns  # behind the others
            if not turn.done():
                turn.set_result(None)
                break
        if self._waiting:
            self._granting = True
            asyncio.get_running_loop().call_soon(self._grant)
