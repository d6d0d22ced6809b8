"""Runs commands of the package, each in a process of its own that takes what others leave.

INVARIANT: nothing that serves waits for it. A process runs at the lowest priority (niceness 19), for so long, with so
much memory, and says so much; so many run at a time, so many wait, and whoever comes then is told so.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import resource
import signal
import subprocess
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path

import msgspec

MOST_OUT = 8 << 20
"""Bytes that a command may say."""
_MEMORY = 4 << 30
"""Of addresses: models are mapped, and threads have stacks that they never touch. Those of the package take 0.6 GiB."""
_FILE = 1 << 30
"""Of each file that it writes."""
_PART = 1 << 16
_GONE_S = 5.0
"""What has left its group may hold its pipes open for longer; nobody waits for that."""
_SLACK_S = 10.0
"""Of a processor's time, beyond what the clock allows: some is used before a process has its bounds."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """What a command has said."""

    out: bytes = b""
    err: bytes = b""
    code: int = 0
    failure: str = ""
    """Why it has said nothing."""


class OwnProcesses:
    """Runs commands."""

    def __init__(self, program: Sequence[str], *, at_once: int, waiting: int) -> None:
        """Run at most so many at once; beside them so many wait.

        Args:
            program: Command line that starts checkstream, without arguments.
            at_once: From 1.
            waiting: From 0.
        """
        self._program = tuple(program)
        self._room = asyncio.Semaphore(at_once)
        self._most = at_once + waiting
        self._inside = 0
        self._running: set[asyncio.subprocess.Process] = set()

    async def run(
        self,
        words: Sequence[str | Path] | AbstractAsyncContextManager[Sequence[str | Path]],
        text: bytes = b"",
        *,
        most_s: float,
    ) -> Ran:
        """Run a command; whoever is cancelled meanwhile ends it.

        Args:
            words: What stands behind the program; or what makes ready for it when its turn has come, gives the words,
                and clears up after it.
            text: Its standard input.
            most_s: How long it may take, the time that it waits for its turn left out.
        """
        if self._inside >= self._most:
            return Ran(failure="another is being looked at; try again when it is done")
        self._inside += 1
        try:
            async with self._room, nullcontext(words) if isinstance(words, Sequence) else words as given:
                return await self._run([*self._program, *map(str, given)], text, most_s)
        finally:
            self._inside -= 1

    async def _run(self, command: Sequence[str], text: bytes, most_s: float) -> Ran:
        pipe = subprocess.PIPE
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        except OSError as error:
            return Ran(failure=f"the command can't be started: {error.strerror or error}")
        self._running.add(process)
        try:
            _bound(process.pid, most_s)
            async with asyncio.timeout(most_s):
                out, err = await _said(process, text)
                code = await process.wait()
        except TimeoutError:
            return Ran(failure=f"not done within {most_s:.0f} s; try less of it, or the command by itself")
        finally:
            self._running.discard(process)
            _end(process.pid)
            await _ended(process)
        if max(len(out), len(err)) > MOST_OUT:
            return Ran(failure="more was said than a page can show; use the command by itself")
        return Ran(out=out, err=err, code=code)

    async def close(self) -> None:
        """End what runs."""
        for process in self._running:
            _end(process.pid)


async def _ended(process: asyncio.subprocess.Process) -> None:
    """Wait until a process that was ended is gone. asyncio sees that only behind the end of what it has said."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_GONE_S):
            for stream in (process.stdout, process.stderr):
                while stream is not None and await stream.read(_PART):
                    pass
            await process.wait()


def _end(pid: int) -> None:
    """End a process, and whatever it has started, which would keep its pipes open."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _bound(pid: int, most_s: float) -> None:
    """Give a process its place behind all others, and its bounds; it ends by itself if nobody is there to end it."""
    cpu_s = math.ceil(most_s + _SLACK_S) * (os.cpu_count() or 1)
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 19)
    with contextlib.suppress(OSError, ValueError):
        resource.prlimit(pid, resource.RLIMIT_CPU, (cpu_s, cpu_s))
        resource.prlimit(pid, resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (_FILE, _FILE))


async def _said(process: asyncio.subprocess.Process, text: bytes) -> tuple[bytes, bytes]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        return b"", b""
    reading = asyncio.gather(*(_read(stream, process.pid) for stream in (process.stdout, process.stderr)))
    try:
        with contextlib.suppress(ConnectionError):  # it has read enough, and says why
            process.stdin.write(text)
            await process.stdin.drain()
        process.stdin.close()
        out, err = await reading
    finally:
        reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await reading
    return out, err


async def _read(stream: asyncio.StreamReader, pid: int) -> bytes:
    """Return what is said, and end whoever says too much."""
    found = bytearray()
    while part := await stream.read(_PART):
        if len(found) <= MOST_OUT:
            found += part
        else:
            _end(pid)
    return bytes(found)
