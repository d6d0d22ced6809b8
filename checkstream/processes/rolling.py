"""Loading anew in all workers: one at a time loads and checks, and only when all have, all put it in force.

While one worker compiles, the others serve; and what one of them refuses comes in force in none. A worker that can't
put in force what the others have serves no new callers any more.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from checkstream.config.files import Signature, signature
from checkstream.errors import CheckstreamError, ConfigError, Fault, FaultyFile, NotReady
from checkstream.processes.child import Child
from checkstream.processes.frames import In, Ready
from checkstream.telemetry.logs import Log

POLL_S = 1.0
_LOAD_S = 300.0
_ENFORCE_S = 30.0
_TRIES = 3
_IN = msgspec.msgpack.Decoder(In)


class Rolling:
    """What is in force in all workers, and how it becomes something else."""

    def __init__(
        self,
        serving: Callable[[], Sequence[Child]],
        give_up: Callable[[Child], None],
        config_file: Path | None,
        log: Log,
    ) -> None:
        """Know nothing yet.

        Args:
            serving: Returns the workers that callers reach.
            give_up: Puts another worker in the place of one.
            config_file: Watched for changes, if there is one.
            log: Hears of what has failed.
        """
        self._serving = serving
        self._give_up = give_up
        self._config_file = config_file
        self._log = log
        self.lock = asyncio.Lock()
        """Held while what is in force changes, or must not."""
        self.reload: Callable[[], Awaitable[None]] = self.load
        """Loads, and shows what came of it."""
        self._digest = ""
        self._files: tuple[str, ...] = ()
        self._signature: Signature = ()

    async def is_stale(self, ready: Ready) -> bool:
        """Tell whether a worker that begins to serve has read other files than the others; the first says which."""
        if self._digest:
            return ready.digest != self._digest
        self._digest, self._files = ready.digest, ready.files
        self._signature = await self._look()
        return False

    async def load(self) -> None:
        """Load configuration and policies anew, in all workers or in none.

        Raises:
            FaultyFile: a file is wrong; what was in force stays.
            NotReady: a worker has ended meanwhile, or takes too long; what was in force stays.
        """
        async with self.lock:
            found = await self._look()
            self._signature = found  # a bad file is reported once, not every second
            try:
                enforced, failed = await load_anew(self._serving())
            except NotReady:
                self._signature = ()  # the files may be good, and are read again
                raise
            for child in failed:
                self._log.error("reload.not_enforced", slot=child.slot, pid=child.process.pid)
                self._give_up(child)
            self._digest = enforced.digest
            if enforced.files != self._files:
                self._files = enforced.files
                self._signature = await self._look()

    async def load_or_say(self) -> None:
        """Load anew; what is wrong is told."""
        try:
            await self.reload()
        except FaultyFile:
            pass  # the worker that found it has said so, and the admin listener shows it
        except CheckstreamError as error:
            self._log.error("reload.failed", detail=str(error))
        except Exception as error:  # noqa: BLE001 - what is in force goes on, and so does looking
            self._log.error("reload.failed", exc_info=error)

    async def _look(self) -> Signature:
        files = [Path(file) for file in self._files]
        watched = files if self._config_file is None else [self._config_file, *files]
        return await asyncio.to_thread(signature, watched)

    async def is_news(self) -> bool:
        """Tell whether files are other than those that were read last, or could not be read in time."""
        return await self._look() != self._signature

    async def watch(self, hup: asyncio.Event) -> None:
        """Load anew when asked or when a file has changed; look once a second."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(hup.wait(), POLL_S)
            if self.lock.locked() and not hup.is_set():
                continue  # a change that is being loaded is no news
            if hup.is_set() or await self.is_news():
                hup.clear()
                await self.load_or_say()


async def load_anew(children: Sequence[Child]) -> tuple[In, list[Child]]:
    """Put configuration and policies as they are now in force in all workers, or in none.

    Returns:
        What is in force, and the workers that run and have something else in force all the same.

    Raises:
        FaultyFile: a file is wrong, or they change all the time; what was in force stays.
        NotReady: a worker has ended meanwhile; what was in force stays.
    """
    if not children:
        raise NotReady("no worker serves that could load anything")
    for _ in range(_TRIES):
        found = await _prepared(children)
        if len({each.digest for each in found}) == 1:
            enforced = await asyncio.gather(*map(_enforced, children))
            done = [each is not None and each.digest == found[0].digest for each in enforced]
            if not any(done):
                raise NotReady("no worker is left to load anything")
            # A worker that has ended meanwhile begins with what the files say.
            failed = [child for child, did in zip(children, done, strict=True) if not did and child.serves]
            return found[0], failed
        await _forget(children)
    reason = "the configuration or its policies change while they are loaded"
    raise ConfigError((Fault(file="configuration", reason=reason, advice="load them when they are written"),))


async def _enforced(child: Child) -> In | None:
    """Have a worker put in force what it has prepared; None: it doesn't say that it has."""
    try:
        return _IN.decode(await child.ask("enforce", timeout_s=_ENFORCE_S))
    except CheckstreamError:
        return None


async def _prepared(children: Sequence[Child]) -> list[In]:
    """Have each worker load what the files say.

    Raises:
        FaultyFile: as `load_anew`; nothing is left of it.
        NotReady: as `load_anew`; nothing is left of it.
    """
    found: list[In] = []
    try:
        for child in children:
            found.append(_IN.decode(await child.ask("load", timeout_s=_LOAD_S)))  # noqa: PERF401 - one at a time
    except (FaultyFile, NotReady):
        await _forget(children)
        raise
    return found


async def _forget(children: Sequence[Child]) -> None:
    for child in children:
        with contextlib.suppress(NotReady):
            await child.ask("forget")
