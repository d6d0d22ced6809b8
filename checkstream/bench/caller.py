"""A caller: asks once, notes what comes and when, and reads as fast as its scenario says."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Mapping
from typing import cast
from urllib.parse import urlsplit

import httptools
import msgspec

from checkstream.bench import wire
from checkstream.bench.told import Told

_LONGEST_S = 120.0
"""Behind which an answer without an end is given up."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where callers ask."""

    host: str
    port: int
    path: str
    tls: bool = False
    headers: Mapping[str, str] = {}
    """Of each request, such as `authorization`."""
    model: str = "bench"

    @classmethod
    def at(cls, url: str, headers: Mapping[str, str], model: str) -> Place:
        """Return the place of chat completions of a server, by its base URL, with `/v1` or without.

        Raises:
            ValueError: it is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"`{url}` is not the URL of a server; write `http://host:port`")
        tls = parts.scheme == "https"
        path = f"{parts.path.rstrip('/').removesuffix('/v1')}/v1/chat/completions"
        port = parts.port or (443 if tls else 80)
        return cls(host=parts.hostname, port=port, path=path, tls=tls, headers=headers, model=model)


async def ask(place: Place, told: Told, prompt: str, *, stream: bool, reads_bytes_per_s: int | None) -> None:
    """Ask, and wait for the end."""
    body = wire.request(place.model, prompt, stream=stream)
    sent = {
        "host": f"{place.host}:{place.port}",
        "content-type": "application/json",
        "content-length": str(len(body)),
        **place.headers,
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
    data = f"POST {place.path} HTTP/1.1\r\n{head}\r\n".encode() + body
    loop = asyncio.get_running_loop()
    tls = ssl.create_default_context() if place.tls else None
    told.asked_s = time.perf_counter()
    caller = _Caller(told, data, stream=stream, reads_bytes_per_s=reads_bytes_per_s)
    try:
        async with asyncio.timeout(_LONGEST_S):
            await loop.create_connection(lambda: caller, place.host, place.port, ssl=tls)
            await caller.done
    except (OSError, TimeoutError):
        told.failed = True
    finally:
        caller.close()


class _Caller(asyncio.Protocol):
    def __init__(self, told: Told, data: bytes, *, stream: bool, reads_bytes_per_s: int | None) -> None:
        self._told = told
        self._data = data
        self._stream = stream
        self._reads_bytes_per_s = reads_bytes_per_s
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self._resuming: asyncio.TimerHandle | None = None
        self.done: asyncio.Future[None] = self._loop.create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - the protocol's signature
        self._transport = None
        self._end()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, msgspec.MsgspecError):
            self._told.failed = True
            self._end()
        if self._reads_bytes_per_s is not None and self._transport is not None:
            self._transport.pause_reading()
            self._resuming = self._loop.call_later(len(data) / self._reads_bytes_per_s, self._resume)

    def _resume(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def close(self) -> None:
        if self._resuming is not None:
            self._resuming.cancel()
        if self._transport is not None:
            self._transport.abort()

    def _end(self) -> None:
        if not self.done.done():
            self.done.set_result(None)

    # --- what the parser tells

    def on_body(self, data: bytes) -> None:
        self._told.status = self._parser.get_status_code()
        if self._told.status != 200 or not self._stream:
            self._rest += data
            return
        *lines, self._rest = (self._rest + data).split(b"\n")
        at_s = time.perf_counter()
        for line in lines:
            if line.startswith(b"data: {"):
                self._hear(msgspec.json.decode(line[6:], type=wire.Said), at_s)

    def on_message_complete(self) -> None:
        told = self._told
        told.status, told.ended = self._parser.get_status_code(), True
        if told.status == 200 and not self._stream:
            self._hear(msgspec.json.decode(self._rest, type=wire.Said), time.perf_counter())
        self._end()

    def _hear(self, said: wire.Said, at_s: float) -> None:
        told = self._told
        told.failed = told.failed or bool(bytes(said.error))
        for choice in said.choices:
            told.finish = choice.finish_reason or told.finish
            for part in (choice.delta, choice.message):
                piece = part.content or "".join(call.function.arguments for call in part.tool_calls or ())
                if piece:
                    told.hear(piece, at_s)
        if told.leaves_behind is not None and told.heard and told.heard[-1][0] >= told.leaves_behind:
            told.left = True
            self.close()
