"""The elder's side of a hand-over: at SIGUSR2 this program is started anew on the same sockets, and this one ends.

Nothing changes until the heir serves. From then on the workers of this process take nothing new; it ends behind their
last answer, and says then what they have remembered and counted.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from checkstream.listen.binding import cause
from checkstream.processes.memory import Shared
from checkstream.processes.succession import Estate, Heir, start_heir
from checkstream.processes.whole import Whole
from checkstream.telemetry.logs import Log
from checkstream.telemetry.totals import encoded

START_S = 600.0
"""The longest that a process may take until it serves: large models on a busy machine."""
_GONE = "upgrade.failed"

Estated = Callable[[], tuple[Estate, Sequence[int]]]
"""Returns what an heir gets, and the descriptors with it."""


class HandOver:
    """Hands over once; until then as often tries to as it is asked."""

    def __init__(
        self,
        arguments: Sequence[str],
        estate: Estated,
        *,
        whole: Whole,
        shared: Shared,
        log: Log,
        reloading: asyncio.Lock,
        retire: Callable[[], Awaitable[None]],
        begin: Callable[[Coroutine[Any, Any, Any]], asyncio.Task[Any]],
    ) -> None:
        """Wait to be asked.

        Args:
            arguments: Of the command line: the heir is started with the same.
            estate: What it gets.
            whole: All workers.
            shared: What they remember.
            log: Hears of it.
            reloading: Held while an heir starts: what it reads is what is in force here.
            retire: Has all workers take nothing new, and returns when the last of them has ended.
            begin: Starts a task that is cancelled with this process.
        """
        self._arguments = arguments
        self._estate = estate
        self._whole = whole
        self._shared = shared
        self._log = log
        self._reloading = reloading
        self._retire = retire
        self._begin = begin

    async def serve(self, asked: asyncio.Event) -> None:
        """Return when all has been handed over."""
        while True:
            await asked.wait()
            asked.clear()
            if self._whole.elder is not None:
                self._log.warning("upgrade.refused", reason="the process before this one has not ended yet")
                continue
            async with self._reloading:
                heir = await self._next()
            if heir is not None:
                break
            asked.clear()  # who was impatient meanwhile has asked for the one that failed
        await self._retire()
        await heir.leave_all()
        self._log.info("upgrade.done")

    async def _next(self) -> Heir | None:
        """Start this program anew, and return it once it serves; None: it doesn't, and nothing has changed."""
        estate, descriptors = self._estate()
        try:
            heir = start_heir(estate, descriptors, self._arguments, self._shared, self._counted)
        except OSError as error:
            self._log.error(_GONE, reason=cause(error), advice="what served goes on")
            return None
        self._log.info("upgrade.begun", pid=heir.process.pid)
        self._begin(heir.serve())
        waits = [self._begin(each.wait()) for each in (heir.took, heir.gone)]
        try:
            await asyncio.wait(waits, timeout=START_S, return_when=asyncio.FIRST_COMPLETED)
        finally:  # where this process is told to end meanwhile, nobody is to be left on its sockets
            for each in waits:
                each.cancel()
            if not heir.took.is_set():
                with contextlib.suppress(ProcessLookupError):
                    heir.process.kill()
        if heir.took.is_set():
            return heir
        code = await asyncio.to_thread(heir.process.wait)
        self._log.error(_GONE, code=code, advice="what served goes on; what is wrong stands above")
        return None

    async def _counted(self) -> bytes:
        return encoded(await self._whole.counted())
