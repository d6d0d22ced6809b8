"""Beside a proxy, a process that looks for newer bundles: whatever a bundle is, it costs streams nothing (G33)."""

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
from checkstream.processes.child import program
from checkstream.processes.restarts import Restarts
from checkstream.telemetry.logs import Log

_MAX_LINE = 1 << 20
_END_S = 10.0
_TELL_S = 2.0
"""How old what is told of the proxy may be."""


Tell = Callable[[], Awaitable[Running]]
"""Returns what the proxy has in force, and what it has counted."""


async def follow(config_file: Path, log: Log, count: Callable[[str], None], tell: Tell | None) -> None:
    """Have a process look for newer bundles, and another when it ends, until cancelled.

    Args:
        config_file: Names the bundle.
        log: Hears of what is new.
        count: Hears what each look came to.
        tell: What that process is told of this one, for a control server; None: nothing.
    """
    restarts, said = Restarts(), Said(log)
    while True:
        began = asyncio.get_running_loop().time()
        code = await _run(config_file, said, count, tell)
        count("failed")
        wait_s = restarts.after("crash", asyncio.get_running_loop().time() - began, 0.5)
        log.error("bundle.follower_ended", code=code, next_in_s=round(wait_s, 1))
        await asyncio.sleep(wait_s)


async def _run(config_file: Path, said: Said, count: Callable[[str], None], tell: Tell | None) -> int | None:
    command = (*program(), "bundle", "follow", "--config", str(config_file), "--json", "--while-open")
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, limit=_MAX_LINE, start_new_session=True
        )
    except OSError:
        return None
    telling = None if tell is None else asyncio.get_running_loop().create_task(_keep_told(process, tell))
    try:
        if process.stdout is not None:
            while line := await process.stdout.readline():
                with contextlib.suppress(msgspec.DecodeError):
                    look = msgspec.json.decode(line, type=Look)
                    count(look.outcome)
                    said.hear(look)
        return await process.wait()
    except ValueError:  # a line without end
        return None
    finally:
        if telling is not None:
            telling.cancel()
        await _end(process)


async def _keep_told(process: asyncio.subprocess.Process, tell: Tell) -> None:
    """Tell a process again and again, a line each time, until it is gone."""
    with contextlib.suppress(OSError):
        while process.stdin is not None:
            process.stdin.write(msgspec.json.encode(await tell()) + b"\n")
            await process.stdin.drain()
            await asyncio.sleep(_TELL_S)


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
    """What has been said of looks: the same is not said again."""

    def __init__(self, log: Log) -> None:
        """Nothing has been said."""
        self._log = log
        self._last = ("", "", "")

    def hear(self, look: Look) -> None:
        """Say what a look came to, if that is news."""
        now = look.outcome, look.digest, look.reason
        before, self._last = self._last, now
        if now == before:
            return
        named = {"bundle": look.bundle, "version": look.version, "digest": look.digest[:12]}
        if look.outcome == "accepted":
            self._log.info("bundle.accepted", **named)
        elif look.outcome == "refused":
            self._log.error("bundle.refused", reason=look.reason, **named)
        elif look.outcome == "unreachable":
            self._log.warning("bundle.unreachable", bundle=look.bundle, reason=look.reason)
        elif before[0] in {"refused", "unreachable"}:
            self._log.info("bundle.current", **named)
