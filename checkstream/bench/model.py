"""The model: answers each request with the text that is told for it, piece by piece when each is due."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Callable
from typing import cast

import httptools
import msgspec

from checkstream.bench import wire
from checkstream.bench.scenario import Scenario
from checkstream.bench.told import Told

_TICK_S = 0.001
_BLOCK = 32
"""Events of one write at full speed, so that the proxy and not the load is the bottleneck."""
_NOT_FOUND = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class Model:
    """A server of a scripted model. Belongs to one event loop."""

    def __init__(self, told_of: Callable[[str], Told | None]) -> None:
        """Say what `told_of` returns for a prompt."""
        self._told_of = told_of
        self._loop = asyncio.get_running_loop()
        self._server: asyncio.Server | None = None
        self._ticker: asyncio.TimerHandle | None = None
        self._due: list[tuple[float, int, _Stream]] = []
        self._count = 0
        self.scenario: Scenario | None = None
        self.late_s: list[float] = []
        """How late it was itself with each piece, by its schedule."""

    async def open(self, port: int = 0) -> int:
        """Listen, and return the port.

        Raises:
            OSError: it can't.
        """
        self._server = await self._loop.create_server(lambda: _Stream(self), "127.0.0.1", port)
        self._tick()
        found: int = self._server.sockets[0].getsockname()[1]
        return found

    async def close(self) -> None:
        """Stop."""
        if self._ticker is not None:
            self._ticker.cancel()
        if self._server is not None:
            self._server.close()

    def find(self, prompt: str) -> Told | None:
        """Return what is to be said."""
        return self._told_of(prompt)

    def plan(self, stream: _Stream, at_s: float) -> None:
        """Have a stream go on at a time."""
        self._count += 1  # streams have no order of their own
        heapq.heappush(self._due, (at_s, self._count, stream))

    def _tick(self) -> None:
        while self._due and self._due[0][0] <= time.perf_counter():
            at_s, _, stream = heapq.heappop(self._due)
            stream.go_on(at_s)
        self._ticker = self._loop.call_later(_TICK_S, self._tick)


class _Stream(asyncio.Protocol):
    """One connection to it."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._parser = httptools.HttpRequestParser(self)
        self._transport: asyncio.Transport | None = None
        self._body = bytearray()
        self._told: Told | None = None
        self._events: list[bytes] = []
        self._began_s = self._period_s = 0.0
        self._writable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(high=65_536)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._transport = self._told = None

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError:
            if self._transport is not None:
                self._transport.close()

    def pause_writing(self) -> None:
        self._writable = False

    def resume_writing(self) -> None:
        self._writable = True
        if self._told is not None and not self._period_s:
            self._fill()

    # --- what the parser tells

    def on_message_begin(self) -> None:
        self._body.clear()

    def on_body(self, data: bytes) -> None:
        self._body += data

    def on_message_complete(self) -> None:
        try:
            asked = msgspec.json.decode(self._body, type=wire.Asked)
        except msgspec.MsgspecError:
            asked = None
        told = None if asked is None else self._model.find(asked.messages[-1].content)
        scenario = self._model.scenario
        if self._transport is None:
            return
        if told is None or scenario is None:
            self._transport.write(_NOT_FOUND)
        elif scenario.form == "whole":
            told.wrote_s = [time.perf_counter()] * len(told.text)
            self._transport.write(wire.whole("".join(told.text)))
        else:
            self._begin(told, scenario)

    # --- the answer

    def _begin(self, told: Told, scenario: Scenario) -> None:
        make = wire.text_event if scenario.form == "stream" else wire.call_event
        self._told, self._events = told, [make(piece) for piece in told.text]
        first = wire.FIRST if scenario.form == "stream" else wire.FIRST_OF_CALL
        self._write(wire.STREAM_HEAD + wire.chunk(first))
        self._began_s = time.perf_counter()
        self._period_s = 0.0 if scenario.per_s is None else 1 / scenario.per_s
        if self._period_s:
            self._model.plan(self, self._began_s)
        else:
            self._fill()

    def go_on(self, due_s: float) -> None:
        """Write the next piece, which was due then."""
        told = self._told
        if told is None:
            return
        now = time.perf_counter()
        self._model.late_s.append(now - due_s)
        told.wrote_s.append(now)
        at = len(told.wrote_s)
        self._write(wire.chunk(self._events[at - 1]))
        if at == len(self._events):
            self._finish()
        else:
            # From the start, not from the last piece: rounding must not add up to drift.
            self._model.plan(self, self._began_s + at * self._period_s)

    def _fill(self) -> None:
        while self._told is not None and self._writable:
            at = len(self._told.wrote_s)
            block = self._events[at : at + _BLOCK]
            self._told.wrote_s += [time.perf_counter()] * len(block)
            self._write(b"".join(map(wire.chunk, block)))
            if at + len(block) == len(self._events):
                self._finish()

    def _finish(self) -> None:
        form = self._model.scenario.form if self._model.scenario is not None else "stream"
        last = wire.event({}, "tool_calls" if form == "call" else "stop")
        self._told = None
        self._write(wire.chunk(last) + wire.chunk(wire.DONE) + wire.END)

    def _write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
