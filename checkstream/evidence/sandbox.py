"""Reads documents in processes of their own, which may take only so much memory and time.

A document can be made to unpack without end, to loop a parser, or to crash it. Then its process is killed, that
document is told to be unreadable, and the next one gets a new process. A process can write no file.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Sequence
from types import TracebackType
from typing import Self

import msgspec

from checkstream.errors import DocumentUnreadable, EvidenceError
from checkstream.evidence.kinds import Kind

MEMORY_BYTES = 2 << 30
DEADLINE_S = 60.0
_LENGTH_BYTES = 4
_MAX_ANSWER_BYTES = 256 << 20
_CHILD = (sys.executable, "-P", "-m", "checkstream.evidence.sandbox_child")
"""`-P`: what stands in the folder that somebody works in is not imported."""


class Asked(msgspec.Struct, frozen=True):
    """A document to be read."""

    data: bytes
    kind: Kind
    media_type: str


class Answered(msgspec.Struct, frozen=True):
    """Its text, or why there is none."""

    text: str = ""
    error: str = ""


class Sandbox:
    """Some processes that read documents, started when they are needed. Use as an async context manager."""

    def __init__(self, processes: int = 1, deadline_s: float = DEADLINE_S, *, command: Sequence[str] = _CHILD) -> None:
        """Read at most so many documents at once, each for so long."""
        self._deadline_s = deadline_s
        self._command = command
        self._idle: asyncio.Queue[asyncio.subprocess.Process | None] = asyncio.Queue()
        for _ in range(processes):
            self._idle.put_nowait(None)

    async def __aenter__(self) -> Self:
        """Start nothing yet."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the processes."""
        while not self._idle.empty():
            await _end(self._idle.get_nowait())

    async def extract(self, data: bytes, kind: Kind, media_type: str = "") -> str:
        """Return the text of a document, as `extraction.extract` does.

        Raises:
            DocumentUnreadable: it can't be read within the bounds.
            EvidenceError: no process can be started.
        """
        child = await self._idle.get()
        whole = False
        try:
            if child is None or child.returncode is not None:
                child = await self._start()
            answer = await asyncio.wait_for(_ask(child, Asked(data, kind, media_type)), self._deadline_s)
            whole = True
        except TimeoutError as error:
            raise DocumentUnreadable(f"it could not be read within {self._deadline_s:g} s; split it") from error
        except (asyncio.IncompleteReadError, ConnectionError, msgspec.DecodeError) as error:
            raise DocumentUnreadable("reading it took more memory than is given, or crashed; split it") from error
        finally:
            if not whole:
                await _end(child)
                child = None
            self._idle.put_nowait(child)
        if answer.error:
            raise DocumentUnreadable(answer.error)
        return answer.text

    async def _start(self) -> asyncio.subprocess.Process:
        try:
            return await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError as error:
            raise EvidenceError(f"no process can be started to read documents: {error.strerror or error}") from error


async def _ask(child: asyncio.subprocess.Process, asked: Asked) -> Answered:
    if child.stdin is None or child.stdout is None:
        raise ConnectionError
    body = msgspec.msgpack.encode(asked)
    child.stdin.write(len(body).to_bytes(_LENGTH_BYTES) + body)
    await child.stdin.drain()
    size = int.from_bytes(await child.stdout.readexactly(_LENGTH_BYTES))
    if size > _MAX_ANSWER_BYTES:
        raise ConnectionError
    return msgspec.msgpack.decode(await child.stdout.readexactly(size), type=Answered)


async def _end(child: asyncio.subprocess.Process | None) -> None:
    if child is None:
        return
    with contextlib.suppress(ProcessLookupError):
        child.kill()
    await child.wait()
