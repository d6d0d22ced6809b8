"""A process of the proxy as one of several: what it does for their parent (`processes/`)."""

from __future__ import annotations

import asyncio
import hashlib
from typing import TYPE_CHECKING

import msgspec

from checkstream.app.console import policies_of
from checkstream.app.force import InForce
from checkstream.processes.frames import In, Ready

if TYPE_CHECKING:
    from checkstream.app.app import App

_RETIRES_S = 3600.0
"""How long a process that takes nothing new waits for answers that run."""


def digest_of(force: InForce) -> str:
    """Return what is the same in all processes that have the same in force."""
    chosen = None if force.candidate is None else force.candidate.chosen
    said = (force.loaded.digest, force.loaded.hashes, force.titles, chosen)
    return hashlib.sha256(msgspec.json.encode(said)).hexdigest()


def _in(force: InForce) -> In:
    return In(digest_of(force), tuple(map(str, force.loaded.files)))


def ready(force: InForce, introduction: dict[str, object]) -> Ready:
    """Return the first word of a process that serves."""
    there = _in(force)
    return Ready(there.digest, there.files, introduction, force.warnings)


class OneOfMany:
    """Carries out what the parent asks. Implements `processes.member.Inside`."""

    def __init__(self, app: App) -> None:
        """Do it with `app`."""
        self._app = app
        self._prepared: InForce | None = None
        self._preparing = asyncio.Lock()

    def told_status(self) -> bytes:
        """Return what is in force, and how much runs."""
        return msgspec.msgpack.encode(self._app.status())

    async def told_metrics(self) -> bytes:
        """Return all that is counted."""
        return await self._app.figures()

    async def told_entries(self, count: int) -> bytes:
        """Return the latest entries of the audit chain, as JSON."""
        return msgspec.json.encode(await self._app.entries(count))

    async def told_policies(self) -> bytes:
        """Return the policies in force, with their sources."""
        force = self._app.force
        return await asyncio.to_thread(lambda: msgspec.msgpack.encode(policies_of(force)))

    async def prepare(self) -> In:
        """Load configuration and policies anew, and put nothing in force yet.

        Raises:
            FaultyFile: a file is wrong; what was in force stays.
        """
        async with self._preparing:
            await self._drop()
            self._prepared = await self._app.prepare()
            return _in(self._prepared)

    async def enforce(self) -> In:
        """Put in force what was prepared."""
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            await self._app.enforce(prepared)
        return _in(self._app.force)

    async def forget(self) -> None:
        """Drop what was prepared, or is being prepared: whoever wanted it has not waited for it."""
        async with self._preparing:
            await self._drop()

    async def _drop(self) -> None:
        prepared, self._prepared = self._prepared, None
        if prepared is not None:
            await self._app.forget(prepared)

    async def adopt(self, slot: int) -> None:
        """Serve another slot's callers too."""
        await self._app.listener.listen_on(slot + 1, self._app.member.sockets[slot])

    def release(self, slot: int) -> None:
        """Take no new callers of another slot any more."""
        self._app.listener.leave(slot + 1)

    async def retire(self) -> None:
        """Take no new connections, and return when the last has ended."""
        await self._app.listener.retire(_RETIRES_S)
