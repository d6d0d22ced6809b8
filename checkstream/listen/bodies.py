"""Reads the body of a request, in time and in the room that there is."""

from __future__ import annotations

import asyncio

from aiohttp import hdrs
from aiohttp.web import BaseRequest, RequestPayloadError

from checkstream.errors import BodyTooLarge, BodyTooSlow
from checkstream.listen.admission import Visit
from checkstream.listen.connections import Times

_MIN_BODY_BYTES_PER_S = 16_384
"""A body slower than this on the whole is given up."""


def too_large(limit: int, setting: str = "") -> str:
    """Return what is said of a body with more than `limit` bytes, with the operator's setting where there is one."""
    return f"the request body has more than {limit} bytes{f', the limit (`{setting}`)' if setting else ''}; send less"


async def read_body(request: BaseRequest, limit: int, times: Times, visit: Visit, setting: str = "") -> bytes:
    """Return a request's whole body.

    Room for it is taken before it is read; meanwhile it waits with its sender. A refusal names the `setting`.

    Raises:
        BodyTooLarge: it has more than `limit` bytes (a compressed one: after decompression).
        Overloaded: there is no room for it, or for more like it of this caller, and there was none for a while.
        BodyTooSlow: it stopped coming, or comes too slowly.
        ConnectionError: the caller has left.
        RequestPayloadError: it is not what its headers say, or the caller has left.
    """
    if (request.content_length or 0) > limit:
        raise BodyTooLarge(too_large(limit, setting))
    if request.headers.get(hdrs.EXPECT, "").lower() == "100-continue" and request.transport is not None:
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    await visit.upload(request.content_length or 0)
    loop = asyncio.get_running_loop()
    start = loop.time()
    body = bytearray()
    try:
        while True:
            deadline = start + times.header_s + len(body) / _MIN_BODY_BYTES_PER_S
            async with asyncio.timeout_at(min(deadline, loop.time() + times.header_s)):
                data = await request.content.readany()
            if not data:
                return bytes(body)
            body += data
            if len(body) > limit:
                raise BodyTooLarge(too_large(limit, setting))
            if len(body) > visit.uploaded:
                begun = loop.time()
                await visit.upload(len(body) - visit.uploaded)
                start += loop.time() - begun
    except TimeoutError:
        raise BodyTooSlow("the request body did not arrive in time; send it faster") from None
    except (ConnectionError, RequestPayloadError) as error:
        # The stream keeps its error, and that would keep these frames, with the body so far and the stream: only a
        # collection would free them, while nobody counts them any more.
        error.__traceback__ = None
        raise type(error)(*error.args) from None
