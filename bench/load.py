"""Both ends of the proxy: a model server that replays prepared bytes, and callers that count what reaches them.

Raw protocols on one uvloop loop, pinned to another core than the proxy: an HTTP library on either end would cost more
than the proxy and be measured in its place. They know only the messages that they send each other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, cast

from bench.pacer import Pacer
from bench.scenario import DONE, FIRST, LAST

_BLOCK = 32
"""Events of one write at full speed, so that the proxy and not the load is the bottleneck."""
_TICK_S = 0.001
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return one HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


class _Stream(asyncio.Protocol):
    """One connection from the proxy (or straight from a caller)."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._received = bytearray()
        self._transport: asyncio.Transport | None = None
        self.number = 0
        self.open = False
        self.writable = True
        self.place = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=65_536)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head = self._received.find(b"\r\n\r\n")
        if head < 0:
            return
        length = 0
        for line in bytes(self._received[:head]).lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        if len(self._received) >= head + 4 + length:
            self._received.clear()
            self._model.begin(self)

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def pause_writing(self) -> None:
        self.writable = False

    def resume_writing(self) -> None:
        self.writable = True
        self._model.resumed(self)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self.open = False
        self._transport = None
        self._model.lost(self)


class Model:
    """The server: every request gets the same answer, over and over until `finish`."""

    def __init__(self, said: list[bytes], per_s: float | None) -> None:
        """Say `said` (events) in each stream, at `per_s` events a second or as fast as they are read."""
        self._events = [chunk(data) for data in said]
        self._blocks = [
            (b"".join(self._events[at : at + _BLOCK]), len(self._events[at : at + _BLOCK]))
            for at in range(0, len(self._events), _BLOCK)
        ]
        self._pacer = None if per_s is None else Pacer(per_s)
        self._period_s = 0.0 if per_s is None else 1 / per_s
        self._streams: dict[int, _Stream] = {}
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._next = 1
        self.sent = 0
        """Events written, of all streams, their first ones, last ones and terminators included."""
        self.late_s: list[float] = []
        """How late the load generator itself was with each event."""

    async def open(self) -> int:
        """Listen, and return the port."""
        self._server = await self._loop.create_server(lambda: _Stream(self), "127.0.0.1", 0)
        if self._pacer is not None:
            self._tick()
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    def begin(self, stream: _Stream) -> None:
        """Answer a request: the head, the first event and the first word at once, the rest by the schedule."""
        stream.number, self._next = self._next, self._next + 1
        stream.open, stream.place = True, 1
        self._streams[stream.number] = stream
        stream.write(_HEAD + chunk(FIRST) + self._events[0])
        self.sent += 2
        if self._pacer is None:
            stream.place = 0
            self._loop.call_soon(self._fill, stream)
        else:
            self._pacer.add(stream.number, time.perf_counter() + self._period_s)

    def resumed(self, stream: _Stream) -> None:
        """Go on after the reader has caught up."""
        if stream.open and self._pacer is None:
            self._loop.call_soon(self._fill, stream)

    def lost(self, stream: _Stream) -> None:
        """Forget a stream whose connection is gone."""
        self._streams.pop(stream.number, None)
        if self._pacer is not None:
            self._pacer.remove(stream.number)

    def finish(self) -> None:
        """End every stream that runs, as a model does."""
        for stream in list(self._streams.values()):
            stream.open = False
            self.lost(stream)
            stream.write(chunk(LAST) + chunk(DONE) + _END)
            self.sent += 2

    async def close(self) -> None:
        """Stop."""
        if self._ticker is not None:
            self._ticker.cancel()
        if self._server is not None:
            self._server.close()

    def _fill(self, stream: _Stream) -> None:
        if not (stream.open and stream.writable):
            return
        data, count = self._blocks[stream.place % len(self._blocks)]
        stream.place += 1
        self.sent += count
        stream.write(data)
        if stream.writable:
            self._loop.call_soon(self._fill, stream)

    def _tick(self) -> None:
        if self._pacer is None:
            raise AssertionError("only a paced model ticks")
        now = time.perf_counter()
        for due in self._pacer.due(now):
            stream = self._streams[due.stream]
            stream.write(self._events[stream.place % len(self._events)])
            stream.place += 1
            self.sent += 1
            self.late_s.append(now - due.at_s)
        self._ticker = self._loop.call_later(_TICK_S, self._tick)


class Caller(asyncio.Protocol):
    """One caller with one stream."""

    def __init__(self, counted: Callable[[int], None], path: str, body: bytes) -> None:
        """Send `body` to `path` once connected; tell `counted` of events as they come."""
        self._counted = counted
        self._path = path
        self._body = body
        self._tail = b""
        loop = asyncio.get_running_loop()
        self._heard: dict[int, asyncio.Future[float]] = {1: loop.create_future(), 2: loop.create_future()}
        self.ended: asyncio.Future[None] = loop.create_future()
        self.events = 0
        self.asked_s = 0.0
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask."""
        self._transport = cast("asyncio.Transport", transport)
        head = f"POST {self._path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(self._body)}\r\n"
        self.asked_s = time.perf_counter()
        self._transport.write(f"{head}content-type: application/json\r\n\r\n".encode() + self._body)

    def data_received(self, data: bytes) -> None:
        """Count events: no blank line stands in one, and HTTP's own lines end in CR LF."""
        seen = self._tail + data
        count = seen.count(b"\n\n")
        # An end that was counted must not be counted again with the next bytes.
        self._tail = seen[-16:].rpartition(b"\n\n")[2] if count else seen[-16:]
        self.events += count
        self._counted(count)
        for number, future in self._heard.items():
            if self.events >= number and not future.done():
                future.set_result(time.perf_counter() - self.asked_s)
        if b"\r\n0\r\n\r\n" in seen[-16:] and not self.ended.done():
            self.ended.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what still waits: the proxy must not have closed."""
        waiting: list[asyncio.Future[Any]] = [*self._heard.values(), self.ended]
        for future in waiting:
            if not future.done():
                future.set_exception(ConnectionError(f"the stream broke off after {self.events} events: {exc}"))

    async def heard_s(self, number: int) -> float:
        """Return how long after the request the first (1) or the second (2) event came."""
        return await asyncio.wait_for(asyncio.shield(self._heard[number]), 30)

    def close(self) -> None:
        """Close the connection."""
        waiting: list[asyncio.Future[Any]] = [*self._heard.values(), self.ended]
        for future in waiting:
            future.cancel()
        if self._transport is not None:
            self._transport.close()
