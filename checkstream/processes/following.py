"""Beside a proxy, a process that looks for newer bundles and ships the audit log: it costs streams nothing (G33)."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from checkstream.control.attestation import Running
from checkstream.control.bundles.look import Look
from checkstream.control.telemetry.shipper import Shipped
from checkstream.processes.child import program
from checkstream.processes.restarts import Restarts
from checkstream.telemetry.logs import Log
from checkstream.telemetry.metrics import Metrics

_MAX_LINE = 1 << 20
_END_S = 10.0
_TELL_S = 2.0
"""How old what is told of the proxy may be."""


Tell = Callable[[], Awaitable[Running | None]]
"""Returns what the proxy has in force, and what it has counted; None: nobody knows at the moment."""


async def follow(config_file: Path, log: Log, metrics: Metrics, tell: Tell | None) -> None:
    """Have a process look for newer bundles, and another when it ends, until cancelled.

    Args:
        config_file: Names the bundle.
        log: Hears of what is new.
        metrics: Count what each look came to, and each delivery.
        tell: What that process is told of this one, for a control server; None: nothing.
    """
    restarts, said = Restarts(), Said(log, metrics)
    while True:
        began = asyncio.get_running_loop().time()
        code = await _run(config_file, said, tell)
        metrics.bundle_looks.of("failed").inc()
        wait_s = restarts.after("crash", asyncio.get_running_loop().time() - began, 0.5)
        log.error("bundle.follower_ended", code=code, next_in_s=round(wait_s, 1))
        await asyncio.sleep(wait_s)


async def _run(config_file: Path, said: Said, tell: Tell | None) -> int | None:
    command = (*program(), "bundle", "follow", "--config", str(config_file), "--json", "--while-open")
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=_MAX_LINE, start_new_session=True
        )
    except OSError:
        return None
    telling = None if tell is None else asyncio.get_running_loop().create_task(_keep_told(process, tell, said.log))
    try:
        if process.stdout is not None:
            while line := await process.stdout.readline():
                with contextlib.suppress(msgspec.DecodeError):
                    if b'"shipping"' in line:
                        said.hear_shipped(msgspec.json.decode(line, type=Shipped))
                    else:
                        said.hear(msgspec.json.decode(line, type=Look))
        return await process.wait()
    except ValueError:  # a line without end
        return None
    finally:
        if telling is not None:
            telling.cancel()
        await _end(process)


async def _keep_told(process: asyncio.subprocess.Process, tell: Tell, log: Log, every_s: float = _TELL_S) -> None:
    """Tell a process again and again, a line each time, until it is gone; what can't be told is told later."""
    with contextlib.suppress(OSError):
        while process.stdin is not None:
            line, failed = b"", None
            try:
                if (running := await tell()) is not None:
                    line = msgspec.json.encode(running) + b"\n"
            except Exception as error:  # noqa: BLE001 - whatever it is, the control server hears that nothing is told
                failed = error
            if failed is not None:
                log.error("bundle.tell_failed", exc_info=failed)
            process.stdin.write(line)
            await process.stdin.drain()
            await asyncio.sleep(every_s)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process that may be in the midst of a look."""
    if process.returncode is not None:
        return
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
    try:
        await asyncio.wait_for(process.wait(), _END_S)
    except TimeoutError:
        process.kill()
        await process.wait()


class Said:
    """What has been said of looks and of deliveries: the same is not said again, but counted."""

    def __init__(self, log: Log, metrics: Metrics) -> None:
        """Nothing has been said."""
        self.log = log
        self._metrics = metrics
        self._last = ("", "", "")
        self._shipping = ("sent", "")

    def hear_shipped(self, shipped: Shipped) -> None:
        """Count what a delivery came to, and say it if that is news."""
        if shipped.shipping != "idle":
            self._metrics.telemetry_attempts.of(shipped.shipping).inc()
        self._metrics.telemetry_records.of("sent").inc(shipped.records)
        self._metrics.telemetry_records.of("skipped").inc(shipped.skipped)
        for outcome, count in (("sent", shipped.evidence), ("refused", shipped.evidence_refused)):
            if count:
                self._metrics.evidence.of(outcome).inc(count)
        self._metrics.telemetry_waiting.set(shipped.waiting)
        if shipped.skipped:
            self.log.error("telemetry.skipped", records=shipped.skipped, waiting_bytes=shipped.waiting)
        now = "sent" if shipped.shipping == "idle" else shipped.shipping, shipped.reason
        before, self._shipping = self._shipping, now
        if now == before:
            return
        if shipped.reason:
            tell = self.log.warning if shipped.shipping == "unreachable" else self.log.error
            tell(f"telemetry.{shipped.shipping}", reason=shipped.reason, waiting_bytes=shipped.waiting)
        else:
            self.log.info("telemetry.sent", waiting_bytes=shipped.waiting)

    def hear(self, look: Look) -> None:
        """Count what a look came to, and say it if that is news."""
        self._metrics.bundle_looks.of(look.outcome).inc()
        now = look.outcome, look.digest, look.reason
        before, self._last = self._last, now
        if now == before:
            return
        named = {"bundle": look.bundle, "version": look.version, "digest": look.digest[:12]}
        if look.outcome == "accepted":
            self.log.info("bundle.accepted", **named)
        elif look.outcome == "refused":
            self.log.error("bundle.refused", reason=look.reason, **named)
        elif look.outcome == "unreachable":
            self.log.warning("bundle.unreachable", bundle=look.bundle, reason=look.reason)
        elif before[0] in {"refused", "unreachable"}:
            self.log.info("bundle.current", **named)
