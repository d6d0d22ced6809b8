"""Connections to a model server: kept for the next request only if the last answer ended where it said it would.

What an upstream writes behind an answer, or before it is asked, would be read as the answer to the next request, which
is another caller's (G36): HTTP/1.1 has no mark of whose an answer is. So a connection is used again only if the bytes
that came are the answer's head and body and not one more, only one answer came, and nothing lies in the socket.
"""

from __future__ import annotations

import asyncio
import functools
import select
from collections.abc import Callable
from http import HTTPStatus

from aiohttp import StreamReader, TCPConnector, hdrs
from aiohttp.client_proto import ResponseHandler
from aiohttp.http_parser import RawResponseMessage

_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_TAIL = len(_LAST_CHUNK)
_LONGEST_HEAD = 262_144
_NO_BODY = frozenset({204, 304})


class Line(ResponseHandler):
    """One connection: HTTP as aiohttp reads it, and an account of its bytes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin before anything was asked."""
        super().__init__(loop)
        self._asked = False
        self._bare = False
        self._head = bytearray()
        self._head_bytes = 0
        self._bytes = 0
        self._last = b""
        self._answers: list[tuple[RawResponseMessage, StreamReader]] = []

    def set_response_params(self, *, skip_payload: bool = False, **more: object) -> None:
        """Take what comes from here on as the answer to what is asked now."""
        self._asked, self._bare = True, skip_payload
        self._head.clear()
        self._head_bytes = self._bytes = 0
        self._last = b""
        self._answers.clear()
        super().set_response_params(skip_payload=skip_payload, **more)  # type: ignore[arg-type]

    def data_received(self, data: bytes) -> None:
        """Count bytes before they are read; hang up on an upstream that speaks unasked."""
        if data and (not self._asked or self._is_over):
            self._bytes += len(data)
            self.force_close()
            if self.transport is not None:
                self.transport.abort()
            return
        self._bytes += len(data)
        self._last = (self._last + data[-_TAIL:])[-_TAIL:]
        if not self._head_bytes and len(self._head) < _LONGEST_HEAD:
            self._head += data
            self._head_bytes = self._head.find(_HEAD_END) + len(_HEAD_END)
            if self._head_bytes < len(_HEAD_END):
                self._head_bytes = 0
            else:
                self._head.clear()
        super().data_received(data)

    def feed_data(self, data: tuple[RawResponseMessage, StreamReader], size: int = 0) -> None:
        """Take a head, and the body behind it."""
        self._answers.append(data)
        super().feed_data(data, size)

    @property
    def _is_over(self) -> bool:
        """The answer has come whole."""
        if not self._answers:
            return False
        message, body = self._answers[-1]
        return message.code >= HTTPStatus.OK and body.is_eof()

    @property
    def should_close(self) -> bool:
        """Whether it can't be used again; asked when an answer has ended."""
        return super().should_close or not self._ended_where_it_said()

    def is_connected(self) -> bool:
        """Whether it can be used; asked again before it is."""
        if not super().is_connected():
            return False
        return not self._asked or not self._is_over or (not self.should_close and not self._is_readable())

    def _ended_where_it_said(self) -> bool:
        if len(self._answers) != 1 or not self._head_bytes:
            return not self._answers and not self._bytes  # as long as nothing has come, nothing is wrong
        message, _ = self._answers[0]
        body = self._bytes - self._head_bytes
        if self._bare or message.code in _NO_BODY:
            return body == 0
        if message.chunked:
            # What comes behind the last chunk can't end so, or is an answer of its own. Trailers cost the connection.
            return self._last == _LAST_CHUNK
        return str(body) == message.headers.get(hdrs.CONTENT_LENGTH, "").strip()

    def _is_readable(self) -> bool:
        """Tell whether bytes, or the upstream's end, lie in the socket and the loop has not come to them."""
        raw = self.transport.get_extra_info("socket") if self.transport is not None else None
        if raw is None:
            return True
        waiting = select.poll()  # not `select`, which knows no numbers above 1023
        waiting.register(raw.fileno(), select.POLLIN)
        return bool(waiting.poll(0))


class Pool(TCPConnector):
    """Connections by server."""

    def __init__(self, *, keepalive_s: float) -> None:
        """Keep a connection that nobody uses for `keepalive_s` seconds."""
        super().__init__(limit=0, keepalive_timeout=keepalive_s)
        make: Callable[..., ResponseHandler] = Line
        self._factory = functools.partial(make, loop=self._loop)
