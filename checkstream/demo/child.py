"""Runs the demo's servers as processes of their own, and leaves none of them running."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson

import checkstream

_START_S = 60.0
_STOP_S = 10.0
_KEPT_LINES = 200
_MAX_LINE_BYTES = 1024 * 1024

Row = dict[str, Any]


class ChildFailed(RuntimeError):
    """A server of the demo did not start."""


class Child:
    """A running module of this package: `python -m MODULE ...`."""

    def __init__(self, module: str, process: asyncio.subprocess.Process) -> None:
        """Wrap a process that has been started."""
        self._module = module
        self._process = process
        self._lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._wanted: Callable[[Row], bool] = lambda _: False
        self._said: asyncio.Future[Row] = asyncio.get_running_loop().create_future()
        self._readers: list[asyncio.Task[None]] = []

    async def said(self, wanted: Callable[[Row], bool]) -> Row:
        """Wait for the first JSON line of its output that `wanted` accepts, and keep reading.

        Raises:
            ChildFailed: it ended, or said no such thing in time.
        """
        self._wanted = wanted
        loop = asyncio.get_running_loop()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                self._readers.append(loop.create_task(self._read(pipe)))
        ended = loop.create_task(self._process.wait())
        either: list[asyncio.Future[Any]] = [self._said, ended]
        await asyncio.wait(either, timeout=_START_S, return_when=asyncio.FIRST_COMPLETED)
        if self._said.done():
            ended.cancel()
            return self._said.result()
        how = f"ended with {ended.result()}" if ended.done() else f"did not say so within {_START_S:.0f} s"
        ended.cancel()
        await asyncio.wait(self._readers, timeout=1)
        raise ChildFailed(f"`python -m {self._module}` has not started: it {how}\n{self.output}".rstrip())

    async def _read(self, pipe: asyncio.StreamReader) -> None:
        with contextlib.suppress(ValueError):  # a line beyond all measure: nothing of it is needed
            async for line in pipe:
                self._lines.append(line.decode(errors="replace"))
                if not self._said.done():
                    with contextlib.suppress(orjson.JSONDecodeError):
                        row = orjson.loads(line)
                        if isinstance(row, dict) and self._wanted(row):
                            self._said.set_result(row)

    @property
    def pid(self) -> int:
        """Number of its process."""
        return self._process.pid

    @property
    def output(self) -> str:
        """The latest lines of its output."""
        return "".join(self._lines)

    def complaints(self) -> list[str]:
        """Return the latest lines of its output that are errors, and those that are no log lines."""
        found = []
        for line in self._lines:
            try:
                row = orjson.loads(line)
            except orjson.JSONDecodeError:
                row = None
            if not isinstance(row, dict) or row.get("level") in {"error", "critical"}:
                found.append(line.rstrip())
        return found[-5:]

    async def ended(self) -> int:
        """Wait until it has ended, and return its exit code."""
        return await self._process.wait()

    async def stop(self) -> int:
        """Ask it to end, see to it that it does, and return its exit code."""
        if self._process.returncode is None:
            self._signal(signal.SIGTERM)
            try:
                await asyncio.wait_for(self._process.wait(), _STOP_S)
            except TimeoutError:
                self._signal(signal.SIGKILL)
        code = await self._process.wait()
        for reader in self._readers:
            reader.cancel()
        await asyncio.gather(*self._readers, return_exceptions=True)
        return code

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)


@asynccontextmanager
async def child(module: str, arguments: Sequence[str]) -> AsyncIterator[Child]:
    """Start a module of this package; it is stopped when the block is left, however that comes."""
    process = await asyncio.create_subprocess_exec(
        *command(module, arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MAX_LINE_BYTES,
        env=environment(),
        start_new_session=True,  # Ctrl-C is for the demo alone, which then stops its servers in order
    )
    running = Child(module, process)
    try:
        yield running
    finally:
        await _whole(running.stop())


async def _whole(work: Coroutine[Any, Any, object]) -> None:
    """Do work to its end, even when cancelled on the way; the cancellation is raised afterwards."""
    doing = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not doing.done():
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def command(module: str, arguments: Sequence[str]) -> list[str]:
    """Return the command line that runs a module with this interpreter."""
    return [sys.executable, "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Return the environment in which a child finds this very package, installed or not."""
    package = str(Path(checkstream.__file__).resolve().parents[1])
    known = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": os.pathsep.join([package, known] if known else [package])}
