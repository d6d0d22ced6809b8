"""A worker's end of the channel: what it was given at the start, and what its parent asks of it."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import Awaitable
from typing import Protocol

import msgspec

from checkstream.errors import ConfigError, FaultyFile
from checkstream.listen.board import Board
from checkstream.processes import frames
from checkstream.processes.frames import Ask, Bye, In, Leaving, Ready, Told, Welcome
from checkstream.processes.memory import ParentStore

_ASK = msgspec.msgpack.Decoder(Ask)
_WELCOME = msgspec.msgpack.Decoder(Welcome)


class Inside(Protocol):
    """What a worker does for its parent."""

    def told_status(self) -> bytes:
        """Return what is in force, and how much runs."""

    async def told_metrics(self) -> bytes:
        """Return all that is counted."""

    async def told_entries(self, count: int) -> bytes:
        """Return the latest entries of the audit chain, as JSON."""

    async def told_policies(self) -> bytes:
        """Return the policies in force, with their sources."""

    async def prepare(self) -> In:
        """Load configuration and policies anew, and put nothing in force yet.

        Raises:
            FaultyFile: a file is wrong; what was in force stays.
        """

    async def enforce(self) -> In:
        """Put in force what was prepared."""

    async def forget(self) -> None:
        """Drop what was prepared."""

    async def adopt(self, slot: int) -> None:
        """Serve another slot's callers too."""

    def release(self, slot: int) -> None:
        """Take no new callers of another slot any more."""

    async def retire(self) -> None:
        """Take no new connections, and return when the last has ended."""


class Member:
    """One of several processes. Made before there is an event loop; then it belongs to one."""

    def __init__(self, end: socket.socket) -> None:
        """Hear what there is for this process. Blocks until the parent has said it.

        Raises:
            OSError: the parent is gone.
        """
        body, descriptors = frames.take_with(end)
        self._end = end
        self.welcome = _WELCOME.decode(body)
        self.store = ParentStore(socket.socket(fileno=descriptors[0]))
        self.board = Board(descriptors[1], self.welcome.page, self.welcome.counting)
        os.close(descriptors[1])
        listening = [socket.socket(fileno=each) for each in descriptors[2:]]
        each = len(listening) // self.welcome.slots
        self.sockets = [listening[at : at + each] for at in range(0, len(listening), each)]
        """Of each slot. This process listens on its own."""
        self.stop = asyncio.Event()
        self._writer: asyncio.StreamWriter | None = None
        self._inside: Inside | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def join(cls, descriptor: int) -> Member:
        """Take up the channel that the parent has left open under a number. Blocks.

        Raises:
            OSError: there is none, or the parent is gone.
        """
        return cls(socket.socket(fileno=descriptor))

    def secret_of(self, what: str) -> bytes:
        """Return a secret for one use, the same in all processes."""
        return frames.derived(self.welcome.secret, what)

    def now_ms(self) -> int:
        """Return how long ago the first of all processes began."""
        return int((time.monotonic() - self.welcome.began) * 1000)

    async def open(self, inside: Inside, ready: Ready) -> None:
        """Say that this process serves, and answer the parent from here on; `stop` is set when it is to end."""
        self._inside = inside
        reader, self._writer = await asyncio.open_connection(sock=self._end)
        self._writer.write(frames.encode(ready))
        self._begin(self._hear(reader, inside))

    def give_up_place(self) -> None:
        """Take no new connections and end behind the last, so that the parent puts another process in this place."""
        if self._writer is None or self._inside is None:
            self.stop.set()
            return
        self._writer.write(frames.encode(Leaving()))
        self._begin(self._retire(self._inside))

    async def _retire(self, inside: Inside) -> None:
        await inside.retire()
        self.stop.set()

    def _begin(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _hear(self, reader: asyncio.StreamReader, inside: Inside) -> None:
        while (body := await frames.read(reader)) is not None:
            ask = _ASK.decode(body)
            if ask.what == "drain":
                self.stop.set()
            self._begin(self._answer(ask, inside))
        self.stop.set()  # the parent is gone: whoever comes next finds the port free

    async def _answer(self, ask: Ask, inside: Inside) -> None:
        try:
            told = Told(ask.id, await _done(ask, inside))
        except FaultyFile as error:
            told = Told(
                ask.id, refused="configuration" if isinstance(error, ConfigError) else "policy", faults=error.faults
            )
        except Exception as error:  # noqa: BLE001 - the parent is told; this process goes on
            told = Told(ask.id, type(error).__name__.encode(), refused="failed")
        if self._writer is not None and not self._writer.is_closing():
            self._writer.write(frames.encode(told))
        if ask.what == "retire":
            self.stop.set()

    async def leave(self, metrics: bytes) -> None:
        """Say the last word."""
        if self._writer is None:
            return
        try:
            self._writer.write(frames.encode(Bye(metrics)))
            await self._writer.drain()
        except OSError:
            pass  # nobody is there to hear it
        for task in tuple(self._tasks):
            task.cancel()
        self._writer.close()


async def _done(ask: Ask, inside: Inside) -> bytes:
    """Do what is asked, and return what is to be told of it."""
    match ask.what:
        case "status":
            return inside.told_status()
        case "metrics":
            return await inside.told_metrics()
        case "audit":
            return await inside.told_entries(ask.number)
        case "policies":
            return await inside.told_policies()
        case "load" | "enforce":
            return msgspec.msgpack.encode(await (inside.prepare() if ask.what == "load" else inside.enforce()))
        case _:
            await _moved(ask, inside)
    return b""


async def _moved(ask: Ask, inside: Inside) -> None:
    """Do what nothing is to be told of."""
    match ask.what:
        case "forget":
            await inside.forget()
        case "adopt":
            await inside.adopt(ask.number)
        case "release":
            inside.release(ask.number)
        case "retire":
            await inside.retire()
