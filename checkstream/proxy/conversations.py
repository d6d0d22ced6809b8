"""Asks what is known of conversations: nobody waits for it but the exchange that asks, and that not for long."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

from checkstream.core import commands as do
from checkstream.core import events as on
from checkstream.core.conversation import Conversation, Turn
from checkstream.errors import VaultFailed

_THREADS = 4
_MOST_OPEN = 256
"""Questions that wait for the store at a time; more are not asked."""

_COUNT_S = 5.0
"""How often conversations are counted, at most."""

_Result = TypeVar("_Result")


class Known(Protocol):
    """Who knows what conversations have come to. Its calls take as long as they take.

    Each raises `CheckstreamError` where what is known can't be read, or not be kept.
    """

    def recall(self, caller: str, key: str) -> Conversation | None:
        """Return what is known of a conversation of a caller; None: nothing."""

    def remember(self, caller: str, key: str, turn: Turn, on_top_of: Conversation | None = None) -> bool:
        """Put one more exchange on top of what is known; tell whether that was done."""

    def count(self) -> int:
        """Return how many conversations are known."""

    def close(self) -> None:
        """Let go of what it is kept in."""


class Memory:
    """What is known, asked from the event loop."""

    def __init__(self, known: Known, *, timeout_s: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        """Ask nothing yet.

        Args:
            known: Who knows it.
            timeout_s: How long a question may take; None: its calls take no time, and are made on the loop.
            clock: Seconds that only grow.
        """
        self._known = known
        self._timeout_s = timeout_s
        self._threads = None if timeout_s is None else ThreadPoolExecutor(_THREADS, "conversations")
        self._open = 0
        self._clock = clock
        self._counted_at = -_COUNT_S
        self._number = 0
        self._loses = False

    @property
    def at_once(self) -> bool:
        """Every question is answered without waiting."""
        return self._threads is None

    @property
    def number(self) -> int:
        """Conversations that are known; in a store that takes time, when they were last counted."""
        return self._known.count() if self._threads is None else self._number

    async def recall(self, caller: str, command: do.Recall) -> on.Recalled:
        """Return what is known of a conversation.

        Raises:
            CheckstreamError: it can't be read, or not in time.
        """
        return on.Recalled(await self._asked(lambda: self._recall(caller, command)))

    def _recall(self, caller: str, command: do.Recall) -> Conversation | None:
        if self._loses:  # what was last to be kept was not: until something is again, nothing is taken on trust
            if not self._known.remember(caller, command.key, Turn()):
                raise VaultFailed("too many keep something of one conversation at a time")
            self._loses = False
        return self._known.recall(caller, command.key)

    async def remember(self, caller: str, command: do.Remember) -> bool:
        """Keep what an exchange has come to; tell whether that was done.

        Raises:
            CheckstreamError: it can't be kept, or not in time.
        """
        done = False
        try:
            done = await self._asked(lambda: self._remember(caller, command))
        finally:
            self._loses = self._loses or not done
        return done

    def _remember(self, caller: str, command: do.Remember) -> bool:
        done = self._known.remember(caller, command.key, command.turn, command.before)
        now = self._clock()
        if now - self._counted_at >= _COUNT_S:
            self._counted_at, self._number = now, self._known.count()
        return done

    async def _asked(self, ask: Callable[[], _Result]) -> _Result:
        if self._threads is None:
            return ask()
        if self._open >= _MOST_OPEN:
            raise VaultFailed(f"{_MOST_OPEN} questions wait for the store of conversations")
        self._open += 1
        future = asyncio.get_running_loop().run_in_executor(self._threads, ask)
        future.add_done_callback(self._over)
        try:
            async with asyncio.timeout(self._timeout_s):
                return await asyncio.shield(future)  # what has begun is done, whoever has left
        except TimeoutError as error:
            raise VaultFailed(f"the store of conversations took longer than {self._timeout_s} s") from error

    def _over(self, future: asyncio.Future[_Result]) -> None:
        self._open -= 1
        if not future.cancelled():
            future.exception()  # whoever has asked has heard, or is gone

    def close(self) -> None:
        """Let go of the store. Blocks."""
        if self._threads is not None:
            self._threads.shutdown(cancel_futures=True)
        self._known.close()
