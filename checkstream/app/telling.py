"""Has a collector of OpenTelemetry told of exchanges and metrics, where one is configured."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Callable
from typing import Self

import checkstream
from checkstream.config import OtlpSettings, reveal
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Metrics
from checkstream.telemetry.otlp import Otlp, OtlpTarget
from checkstream.telemetry.totals import figures
from checkstream.telemetry.traces import Tracer


class Telling:
    """What is told, and how often. Use `open`."""

    def __init__(self, settings: OtlpSettings, otlp: Otlp, metrics: Metrics) -> None:
        """Tell `otlp` as `settings` ask; nothing yet."""
        self._every_s = settings.metrics_s
        self._otlp = otlp
        self._metrics = metrics
        self._task: asyncio.Task[None] | None = None
        self.tracer = Tracer(settings.sample, otlp.put, draw=os.urandom, clock=time.time_ns)

    @classmethod
    async def open(cls, settings: OtlpSettings, metrics: Metrics, log: Log) -> Self:
        """Connect when there is something to tell.

        Raises:
            ConfigError: a secret can't be read, or what sends is not installed.
        """

        def opened() -> Otlp:
            headers = {name: reveal(secret) for name, secret in settings.headers.items()}
            target = OtlpTarget(endpoint=settings.endpoint, headers=headers, resource=_resource(settings.service))
            return Otlp(target, metrics, lambda away: _say(log, settings.endpoint, away=away))

        return cls(settings, await asyncio.to_thread(opened), metrics)

    def begin(self, observe: Callable[[], None]) -> None:
        """Tell metrics from now on; `observe` sets the gauges to what they are."""
        if self._every_s:
            self._task = asyncio.get_running_loop().create_task(self._tell(observe))

    async def _tell(self, observe: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self._tell_once(observe)

    async def _tell_once(self, observe: Callable[[], None]) -> None:
        observe()
        self._otlp.put_metrics(await asyncio.to_thread(figures, self._metrics))

    async def close(self) -> None:
        """Tell what is left, for a moment."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await asyncio.to_thread(self._otlp.close)


def _resource(service: str) -> dict[str, str]:
    """Return what is told of this process: several of a node count by themselves."""
    return {
        "service.name": service,
        "service.version": checkstream.__version__,
        "service.instance.id": f"{socket.gethostname()}-{os.getpid()}",
    }


def _say(log: Log, endpoint: str, *, away: bool) -> None:
    if away:
        log.warning("otlp.away", endpoint=endpoint, advice="start the collector, or correct `telemetry.otlp`")
    else:
        log.info("otlp.back", endpoint=endpoint)
