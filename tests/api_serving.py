"""Serves operations on a port of this machine, and asks them as any client would."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, BinaryIO

import aiohttp

from checkstream.api.face import Face
from checkstream.api.operation import Operation
from checkstream.config import Address
from checkstream.listen import Admission, Callers, Listener, Times
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics

KEY = {"authorization": "Bearer secret"}


@asynccontextmanager
async def serving(
    operations: Sequence[Operation],
    *,
    keys: dict[str, str] | None = None,
    streams: int = 8,
    body_bytes: int = 1 << 16,
    header_s: float = 5.0,
    metrics: Metrics | None = None,
    log: BinaryIO | None = None,
) -> AsyncIterator[tuple[str, Face]]:
    times = Times(header_s=header_s, write_s=5)
    face = Face(
        operations,
        callers=Callers({"ci": "secret"} if keys is None else keys or None),
        admission=Admission(streams=streams, held_bytes=1 << 20),
        times=times,
        body_bytes=body_bytes,
        metrics=metrics or Metrics(),
        log=open_log("json", log or io.BytesIO()),
        version="1.0",
    )
    listener = Listener(face.respond, times)
    await listener.open(Address("127.0.0.1", 0))
    try:
        yield f"http://{listener.address}", face
    finally:
        await listener.close()


async def ask(method: str, url: str, body: object = None, headers: dict[str, str] | None = None) -> tuple[int, Any]:
    """Return the status and the body of an answer, read as JSON."""
    data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    async with (
        aiohttp.ClientSession() as client,
        client.request(method, url, data=data, headers=KEY if headers is None else headers) as response,
    ):
        assert response.headers["server"] == "checkstream"
        return response.status, json.loads(await response.read())
