"""What a parent asks of a worker, over a real pair of sockets; the worker's side is played."""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import pytest

from checkstream.errors import NotReady
from checkstream.processes import frames
from checkstream.processes.child import Child
from checkstream.processes.frames import Ask, Ready, Told, Welcome

_ASK = msgspec.msgpack.Decoder(Ask)


class Played:
    """A process that does nothing, and its end of the channel."""

    def __init__(self, child: Child, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.child, self._reader, self.writer = child, reader, writer

    def say(self, message: msgspec.Struct) -> None:
        self.writer.write(frames.encode(message))

    async def hears(self) -> Ask:
        body = await asyncio.wait_for(frames.read(self._reader), 5)
        assert body is not None
        return _ASK.decode(body)


@asynccontextmanager
async def played() -> AsyncIterator[Played]:
    ours, theirs = socket.socketpair()
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "import time; time.sleep(60)")
    child = Child(Welcome(0, 1, True, b"s" * 32, 0.0, 0, "", b"b"), process, ours)
    reader, writer = await asyncio.open_connection(sock=theirs)
    try:
        yield Played(child, reader, writer)
    finally:
        writer.close()
        child.kill()
        await child.process.wait()


async def test_one_that_is_still_starting_when_all_are_to_retire_hears_of_it_when_it_can() -> None:
    async with played() as worker:
        retiring = asyncio.create_task(worker.child.retire())
        await asyncio.sleep(0)
        assert worker.child.stopping, "it takes nothing new from here on, as far as others look"
        hearing = asyncio.create_task(worker.child.hear())
        worker.say(Ready("digest", (), {}, ()))
        ask = await worker.hears()
        assert ask.what == "retire"
        worker.say(Told(ask.id))
        await asyncio.wait_for(retiring, 5)
        worker.writer.close()
        await asyncio.wait_for(hearing, 5)


async def test_time_that_a_worker_has_loaded_is_none_that_it_has_served() -> None:
    async with played() as worker:
        hearing = asyncio.create_task(worker.child.hear())
        await asyncio.sleep(0.05)
        assert worker.child.lived_s >= 0.05
        assert worker.child.served_s == 0.0
        worker.say(Ready("digest", (), {}, ()))
        assert await asyncio.wait_for(worker.child.wait_ready(), 5)
        assert worker.child.served_s < worker.child.lived_s
        assert not worker.child.silent
        worker.writer.close()
        await asyncio.wait_for(hearing, 5)
        assert worker.child.silent
        assert await worker.child.is_left(0.01), "it says nothing more, and runs"
        with pytest.raises(NotReady):
            await worker.child.ask("ping")
        worker.child.kill()
        assert not await worker.child.is_left(5.0)
