"""One worker, from its parent: the process, and what it is asked and tells."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

import checkstream
from checkstream.errors import CheckstreamError, ConfigError, FaultyFile, NotReady, PolicyError
from checkstream.processes import frames
from checkstream.processes.frames import Ask, Bye, FromWorker, Leaving, Ready, Told, Welcome, What
from checkstream.telemetry.totals import Figures, heard, lasting

_RETIRE_S = 4000.0
"""Longer than a worker waits for the end of its last answer."""
_FROM_WORKER = msgspec.msgpack.Decoder(FromWorker)


def command(arguments: Sequence[str], option: str, descriptor: int) -> list[str]:
    """Return the command line of this program with the same arguments, and one that names a descriptor."""
    return [*program(), *arguments, option, str(descriptor)]


def program() -> list[str]:
    """Return the command line of this program without arguments."""
    from_here = Path(checkstream.__file__).parents[1] == Path.cwd()
    safe = () if from_here and not sys.flags.safe_path else ("-P",)  # nothing of the working folder is run by chance
    return [sys.executable, *safe, "-m", "checkstream"]


class Child:
    """A worker. Made by `start`."""

    def __init__(self, welcome: Welcome, process: asyncio.subprocess.Process, end: socket.socket) -> None:
        """Take a process that has just been started, and our end of its channel."""
        self.slot = welcome.slot
        self.page = welcome.page
        self.began = time.monotonic()
        self.process = process
        self.hung = False
        """It was ended because it answered nothing."""
        self.stopping = False
        """It takes nothing new, or was asked to end."""
        self.moved = asyncio.Event()
        """It is gone, or takes nothing new."""
        self.figures: Figures = ()
        """What it has counted, as far as it has told."""
        self.ready: Ready | None = None
        self._ready_at: float | None = None
        self._end = end
        self._writer: asyncio.StreamWriter | None = None
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[Told]] = {}
        self._heard = asyncio.Event()
        """It is ready, or gone."""
        self._over = asyncio.Event()
        """It says nothing more."""

    @classmethod
    async def start(cls, arguments: Sequence[str], welcome: Welcome, descriptors: Sequence[int]) -> Child:
        """Start a process, and say what there is for it.

        Raises:
            OSError: the system lets nothing be started.
        """
        ours, theirs = socket.socketpair()
        try:
            frames.send_with(ours, welcome, descriptors)
            process = await asyncio.create_subprocess_exec(
                *command(arguments, "--as-worker", theirs.fileno()),
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
            )
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return cls(welcome, process, ours)

    @property
    def serves(self) -> bool:
        """Callers reach it."""
        return self.ready is not None and not self.stopping and self.process.returncode is None

    @property
    def silent(self) -> bool:
        """It says nothing more."""
        return self._over.is_set()

    @property
    def served_s(self) -> float:
        """How long it has served; 0 where it never has."""
        return 0.0 if self._ready_at is None else time.monotonic() - self._ready_at

    @property
    def lived_s(self) -> float:
        """How long it has run."""
        return time.monotonic() - self.began

    async def hear(self) -> None:
        """Listen to it until it is gone."""
        reader, self._writer = await asyncio.open_connection(sock=self._end)
        try:
            while (body := await frames.read(reader)) is not None:
                self._take(_FROM_WORKER.decode(body))
        finally:
            self._heard.set()
            self._over.set()
            self.moved.set()
            for waiting in self._open.values():
                if not waiting.done():
                    waiting.set_exception(NotReady(f"worker {self.slot} has ended"))
            self._writer.close()

    def _take(self, message: FromWorker) -> None:
        match message:
            case Ready():
                self.ready, self._ready_at = message, time.monotonic()
                self._heard.set()
            case Told():
                waiting = self._open.pop(message.id, None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(message)
            case Leaving():
                self.stopping = True
                self.moved.set()
            case Bye():
                self.figures = heard(message.metrics)

    async def wait_ready(self) -> bool:
        """Wait until it serves, or is gone; tell which."""
        await self._heard.wait()
        return self.ready is not None

    async def wait_ended(self) -> int:
        """Wait until the process has ended and its last word is heard; return its exit code."""
        code = await self.process.wait()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._over.wait(), 1.0)
        return code

    async def ask(self, what: What, number: int = 0, *, timeout_s: float = 10.0) -> bytes:
        """Ask, and return the answer.

        Raises:
            NotReady: it has ended, does not answer, or failed at it.
            ConfigError: the configuration is wrong.
            PolicyError: a policy is wrong.
        """
        if self._writer is None or self._over.is_set():
            raise NotReady(f"worker {self.slot} has ended")
        id_ = next(self._ids)
        waiting: asyncio.Future[Told] = asyncio.get_running_loop().create_future()
        self._open[id_] = waiting
        try:
            self._writer.write(frames.encode(Ask(id_, what, number)))
            told = await asyncio.wait_for(waiting, timeout_s)
        except (TimeoutError, OSError) as error:
            raise NotReady(f"worker {self.slot} does not answer") from error
        finally:
            self._open.pop(id_, None)
        if told.refused:
            raise _refusal(self.slot, told)
        return told.body

    async def count(self) -> None:
        """Find out what it has counted."""
        with contextlib.suppress(CheckstreamError):
            self.figures = heard(await self.ask("metrics"))

    @property
    def left_behind(self) -> Figures:
        """What is left of its figures when it has ended."""
        return lasting(self.figures)

    async def is_left(self, wait_s: float) -> bool:
        """Tell whether the process still runs after so long at most."""
        if self.process.returncode is None and wait_s:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), wait_s)
        return self.process.returncode is None

    async def retire(self) -> None:
        """Ask it to take nothing new and to end behind its last answer."""
        self.stopping = True
        await self.wait_ready()  # before that it may not hear
        with contextlib.suppress(NotReady):  # it has ended, which is what is asked
            await self.ask("retire", timeout_s=_RETIRE_S)

    async def drain(self) -> None:
        """Ask it to end; it lets what runs go on for a while. One that doesn't serve yet ends at once."""
        self.stopping = True
        if self.ready is None:
            with contextlib.suppress(ProcessLookupError):
                self.process.terminate()
            return
        with contextlib.suppress(NotReady):
            await self.ask("drain", timeout_s=1.0)

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self.process.kill()


def _refusal(slot: int, told: Told) -> CheckstreamError:
    if told.refused == "failed":
        return NotReady(f"worker {slot} could not do it ({told.body.decode('utf-8', 'replace')})")
    refusal: type[FaultyFile] = ConfigError if told.refused == "configuration" else PolicyError
    return refusal(told.faults)
