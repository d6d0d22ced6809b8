"""What the admin listener of several processes shows: all of them as one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

import checkstream
from checkstream.console.facts import Policies
from checkstream.console.totals import NAMES
from checkstream.errors import CheckstreamError, FaultyFile, NotReady
from checkstream.processes.child import Child
from checkstream.processes.restarts import Restarts
from checkstream.processes.succession import Elder
from checkstream.proxy.health import ReloadStatus, Status, WorkerStatus
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.totals import Figures, figures, lasting, rendered, summed

_ASK_S = 2.0
_STATUS = msgspec.msgpack.Decoder(Status)
_POLICIES = msgspec.msgpack.Decoder(Policies)
_COUNTED = frozenset(name.removesuffix("_total") for name in NAMES)
"""Families go by their names without the ends that counters have."""


class Whole:
    """Shows the workers of a parent as one. Implements `proxy.health.Inside` and `console.Facts`."""

    def __init__(self, reload: Callable[[], Any]) -> None:
        """Show no workers yet.

        Args:
            reload: Loads anew in all of them.
        """
        self.children: list[Child] = []
        """Those that run, whatever they do."""
        self.restarts: dict[int, Restarts] = {}
        self.own = Metrics()
        """What the parent itself counts."""
        self.last_reload: ReloadStatus | None = None
        self.draining = False
        self._reload = reload
        self._began = time.monotonic()
        self._left: Figures = ()
        """What ended workers have counted."""
        self._buried: Figures = ()
        """The same, but for what a parent before this one has left."""
        self.elder: Elder | None = None
        """The parent before this one, as long as its workers count."""

    def bury(self, child: Child) -> None:
        """Keep what a worker that has ended has counted."""
        if child in self.children:
            self.children.remove(child)
            self._left = summed((self._left, child.left_behind))
            self._buried = summed((self._buried, child.left_behind))

    async def _told(self) -> list[tuple[Child, Status | None]]:
        """Return what each worker says of itself; None: it says nothing."""

        async def one(child: Child) -> Status | None:
            try:
                return _STATUS.decode(await child.ask("status", timeout_s=_ASK_S))
            except CheckstreamError:
                return None

        children = list(self.children)
        return list(zip(children, await asyncio.gather(*map(one, children)), strict=True))

    async def shown(self) -> Status:
        """Return what is in force, and how much runs in all workers."""
        told = await self._told()
        serving = [status for child, status in told if status is not None and child.serves]
        not_ready = ["draining"] if self.draining else []
        if not any(status.ready for status in serving):
            not_ready += sorted({reason for status in serving for reason in status.not_ready}) or ["no worker serves"]
        every = [status for _, status in told if status is not None]
        first = serving[0] if serving else next(iter(every), _NOTHING)
        return msgspec.structs.replace(
            first,
            uptime_s=round(time.monotonic() - self._began, 3),
            ready=not not_ready,
            not_ready=tuple(not_ready),
            streams=sum(status.streams for status in every),
            held_bytes=sum(status.held_bytes for status in every),
            audit_chain=", ".join(status.audit_chain for status in every),
            reload=self.last_reload,
            workers=tuple(self._worker(child, status) for child, status in told),
        )

    def _worker(self, child: Child, status: Status | None) -> WorkerStatus:
        return WorkerStatus(
            slot=child.slot,
            pid=child.process.pid,
            state="serving" if child.serves else "retiring" if child.stopping else "starting",
            uptime_s=round(child.lived_s, 3),
            streams=0 if status is None else status.streams,
            generation=0 if status is None else status.generation,
            restarts=self.restarts[child.slot].count if child.slot in self.restarts else 0,
        )

    def inherit(self, elder: Elder) -> None:
        """Keep what a parent that is gone has counted."""
        self.elder, self._left = None, summed((self._left, lasting(elder.figures)))

    async def metrics(self) -> bytes:
        """Return what all workers have counted, in the Prometheus text format."""
        return rendered(await self.counted())

    async def counted(self) -> Figures:
        """Return what all workers have counted, those of a parent before this one too."""
        elder = self.elder
        await asyncio.gather(*(child.count() for child in self.children), *(() if elder is None else (elder.count(),)))
        return self.known()

    def known(self) -> Figures:
        """Return the same as far as they have told it already: workers are asked every few seconds."""
        self.own.workers.set(0)
        before = () if self.elder is None else self.elder.figures
        return summed((*(child.figures for child in self.children), self._left, before, figures(self.own)))

    @property
    def listen(self) -> str:
        """Where callers connect; empty: nobody serves yet."""
        told = next((child.ready.introduction for child in self.children if child.ready is not None), {})
        return str(told.get("listen", ""))

    async def totals(self) -> Figures:
        """Return what all workers have counted when they told it last, as far as the console looks at it.

        Not what the parent before this one had counted: the console takes what is new for what has just happened.
        """
        every = (*(child.figures for child in self.children), self._buried)
        return summed(tuple(each for each in figures if each.name in _COUNTED) for figures in every)

    async def policies(self) -> Policies:
        """Return the policies in force, as a worker that serves tells them.

        Raises:
            NotReady: none does.
        """
        for child in self.children:
            if child.serves:
                return await asyncio.to_thread(_POLICIES.decode, await child.ask("policies"))
        raise NotReady("no worker serves, so nobody knows which policies are in force; look again in a moment")

    async def entries(self, count: int) -> Sequence[object]:
        """Return the latest entries of the workers' audit chains, oldest first."""
        found: list[dict[str, Any]] = []
        for child in self.children:
            try:
                found += msgspec.json.decode(await child.ask("audit", count, timeout_s=_ASK_S))
            except CheckstreamError:
                continue
        return sorted(found, key=lambda entry: str(entry["at"]))[-count:]

    async def reload(self) -> None:
        """Load configuration and policies anew, in all workers or in none.

        Raises:
            FaultyFile: a file is wrong; what was in force stays.
            NotReady: a worker has ended meanwhile; what was in force stays.
        """
        try:
            await self._reload()
        except FaultyFile as error:
            self.last_reload = ReloadStatus.now(tuple(fault.render() for fault in error.faults))
            raise
        self.last_reload = ReloadStatus.now()


_NOTHING = Status(
    version=checkstream.__version__,
    uptime_s=0.0,
    ready=False,
    not_ready=(),
    streams=0,
    held_bytes=0,
    generation=0,
    routes=(),
    models=(),
    unheard=(),
    reload=None,
    bundle="",
    audit_chain="",
    warnings=(),
)
"""Of no worker at all."""
