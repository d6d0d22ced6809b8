"""One connection to a model server: HTTP/1.1 as llhttp reads it, handed on in the turn in which the bytes come.

Who asks is told of the head, of the body's bytes and of the end by calls, not by a stream that a task reads: a token of
an answer costs one wake-up. What comes in one read is told as one piece.

What an upstream writes behind an answer, or before it is asked, would be read as the answer to the next request, which
is another caller's (G36): HTTP/1.1 has no mark of whose an answer is. So a connection is used again only if the bytes
that came are the answer's head and body and not one more, only one answer came, and nothing lies in the socket.
"""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from http import HTTPStatus
from typing import Literal, Protocol, cast

import httptools
import msgspec
from aiohttp import hdrs
from multidict import CIMultiDict

_HEAD_END = b"\r\n\r\n"
_LAST_CHUNK = b"\r\n0\r\n\r\n"
_TAIL = len(_LAST_CHUNK)
_LONGEST_HEAD = 65_536
"""Bytes of names and values of an answer's headers, and of what stands behind its body."""
_MOST_AROUND = 2 * _LONGEST_HEAD
_AROUND_A_BYTE = 16
"""Bytes of an answer that are not its body: so many, and so many more for each byte of the body, which may come in
chunks of one. More is a head, a chunk's length or a trailer that never ends, of which nobody is told."""
_NO_BODY = frozenset({204, 304})
_STATUSES = range(100, 600)
"""That HTTP has (RFC 9110 15)."""


class Head(msgspec.Struct, frozen=True):
    """What an answer begins with."""

    status: int
    headers: CIMultiDict[str]


class Taker(Protocol):
    """Who has asked. After `ended` or `broke` nothing follows."""

    def opened(self, head: Head) -> None:
        """Take the head."""

    def took(self, data: bytes) -> None:
        """Take bytes of the body, as the network cut them."""

    def ended(self) -> None:
        """Hear that the body has ended as HTTP says it should."""

    def broke(self, kind: Literal["idle", "reset", "protocol"], cause: Exception | None) -> None:
        """Hear that no more comes: it took too long, the connection broke off, or it is no HTTP."""


class Line(asyncio.BufferedProtocol):
    """One connection; a request at a time."""

    __slots__ = (
        "_answers", "_bare", "_body", "_body_bytes", "_bytes", "_complete", "_fault", "_free", "_head", "_head_bytes",
        "_headers", "_headers_bytes", "_heard", "_heard_at", "_loop", "_parser", "_paused", "_room", "_said_all",
        "_silence_s", "_status", "_stays", "_tail", "_taker", "_told_head", "_transport", "_until_close", "_watching",
    )  # fmt: skip

    def __init__(self, loop: asyncio.AbstractEventLoop, room: memoryview, free: Callable[[Line], None]) -> None:
        """Begin before anything was asked.

        Args:
            loop: Where it is read.
            room: What is read at once stands here until it has been handed on; all lines of a loop may share it.
            free: Takes the line back when it can be used again.
        """
        self._loop = loop
        self._room = room
        self._free: Callable[[Line], None] | None = free
        self._transport: asyncio.Transport | None = None
        self._taker: Taker | None = None
        self._parser: httptools.HttpResponseParser | None = None
        self._watching: asyncio.TimerHandle | None = None
        self._silence_s: float | None = None
        self._heard_at = 0.0
        self._paused = False
        self._bytes = 0
        self._begin()

    def _begin(self) -> None:
        """Forget what came of the last answer."""
        self._bare = self._complete = self._stays = False
        self._told_head = self._until_close = self._said_all = False
        self._fault: Exception | None = None
        self._head = bytearray()
        self._head_bytes = self._headers_bytes = self._body_bytes = self._answers = self._status = 0
        self._heard = False
        self._headers: CIMultiDict[str] = CIMultiDict()
        self._body: list[bytes] = []
        self._tail = b""

    # --- for who asks

    def ask(self, request: bytes, taker: Taker, *, bare: bool, silence_s: float) -> None:
        """Send a request.

        Args:
            request: Head and body.
            taker: Is told what comes.
            bare: The answer has no body, whatever its head says: it was asked for with `HEAD`.
            silence_s: How long nothing may come, until `silence` says otherwise.
        """
        if self._transport is None:  # it broke before anybody could ask
            taker.broke("reset", None)
            return
        self._begin()
        self._taker, self._bare, self._bytes = taker, bare, 0
        self._parser = httptools.HttpResponseParser(self)
        self._transport.write(request)
        self.silence(silence_s)

    def silence(self, most_s: float | None) -> None:
        """Take it for a failure from here on when nothing comes for so long; None: it may take for ever."""
        self._heard_at = self._loop.time()
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        self._silence_s = most_s
        if most_s is not None:
            self._watching = self._loop.call_later(most_s, self._look_whether_silent)

    def pause(self) -> None:
        """Read no more until `resume`."""
        if not self._paused and self._transport is not None:
            self._paused = True
            if not self._transport.is_closing():
                self._transport.pause_reading()

    def resume(self) -> None:
        """Read again."""
        if self._paused and self._transport is not None:
            self._paused = False
            self._heard_at = self._loop.time()
            if not self._transport.is_closing():
                self._transport.resume_reading()

    def drop(self) -> None:
        """Hang up; nobody is told anything more."""
        self._leave()
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()

    def can_be_used(self) -> bool:
        """Tell whether it lies there as it was left: neither bytes nor the upstream's end are in the socket."""
        raw = self._transport.get_extra_info("socket") if self._transport is not None else None
        if raw is None or self._transport is None or self._transport.is_closing():
            return False
        waiting = select.poll()  # not `select`, which knows no numbers above 1023
        waiting.register(raw.fileno(), select.POLLIN)
        return not waiting.poll(0)

    # --- what the loop tells

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Know what to write to."""
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002 - the protocol's signature
        """Say where the next bytes go: so no more is read at once than an exchange has room for."""
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        """Read bytes; hang up on an upstream that speaks unasked."""
        data = bytes(self._room[:nbytes])
        parser = self._parser
        if parser is None or self._taker is None:
            self.drop()
            return
        self._bytes += len(data)
        self._tail = data[-_TAIL:] if len(data) >= _TAIL else (self._tail + data)[-_TAIL:]
        if not self._head_bytes:
            self._find_head_end(data)
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self._fault = error
        if self._bytes - self._body_bytes > _MOST_AROUND + _AROUND_A_BYTE * self._body_bytes and not self._complete:
            self._fault = ValueError("more stands around the answer than in it")
        if self._heard:  # a head or a body that only trickles in its lengths or trailers is silence
            self._heard, self._heard_at = False, self._loop.time()
        self._tell()

    def _find_head_end(self, data: bytes) -> None:
        if len(self._head) < 2 * _LONGEST_HEAD:
            self._head += data
            at = self._head.find(_HEAD_END)
            if at >= 0:
                self._head_bytes = at + len(_HEAD_END)
                self._head = bytearray()

    def eof_received(self) -> None:
        """Hear that the upstream says no more."""
        self._said_all = True

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell who asked: the end of a body without a length is the connection's."""
        self._transport = None
        if self._told_head and self._until_close and self._said_all and exc is None:
            self._finish()
        else:
            self._break("reset", exc)
        self._leave()
        self._free = None

    # --- what the parser tells

    def on_message_begin(self) -> None:
        """Count answers: there should be one."""
        self._answers += 1

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; one behind the body counts, and is not kept."""
        self._headers_bytes += len(name) + len(value)
        if self._headers_bytes > _LONGEST_HEAD:
            raise ValueError("the head is longer than any server's")
        if not self._told_head and self._status < HTTPStatus.OK:
            self._headers.add(name.decode("ascii"), value.decode("utf-8", "surrogateescape"))

    def on_headers_complete(self) -> None:
        """Take a head; of those before the answer (RFC 9110 15.2) nothing is kept."""
        if self._complete or self._parser is None:
            return
        status = self._parser.get_status_code()
        if status not in _STATUSES:
            raise ValueError("the answer has a status that HTTP has not")
        self._heard = True
        if HTTPStatus.CONTINUE <= status < HTTPStatus.OK and status != HTTPStatus.SWITCHING_PROTOCOLS:
            self._headers = CIMultiDict()
            return
        self._status = status
        self._until_close = not (hdrs.CONTENT_LENGTH in self._headers or hdrs.TRANSFER_ENCODING in self._headers)
        self._complete = self._bare

    def on_body(self, data: bytes) -> None:
        """Keep bytes of the body until all that has come is read."""
        self._heard = True
        self._body_bytes += len(data)
        if not self._complete:
            self._body.append(data)

    def on_message_complete(self) -> None:
        """Note that the answer is whole."""
        if self._status and not self._complete and self._parser is not None:
            self._complete = True
            self._stays = self._parser.should_keep_alive()  # asked later, it has forgotten

    # --- what follows

    def _tell(self) -> None:
        """Tell who asked what the last bytes were; whoever is told may hang up."""
        if self._status and not self._told_head:
            self._told_head = True
            if self._taker is not None:
                self._taker.opened(Head(self._status, self._headers))
        if self._body:
            data = self._body[0] if len(self._body) == 1 else b"".join(self._body)
            self._body = []
            if self._taker is not None:
                self._taker.took(data)
        if self._complete:
            self._finish()
        elif self._fault is not None:
            self._break("reset" if self._told_head else "protocol", self._fault)

    def _finish(self) -> None:
        """Tell that the answer is whole; keep the connection if it is as if nothing had been."""
        taker, transport, free = self._taker, self._transport, self._free
        again = transport is not None and free is not None and self._ended_where_it_said()
        self._leave()
        if transport is not None and not again:
            self._transport = None
            transport.abort()
        if taker is not None:
            taker.ended()
        if again and free is not None:
            self.resume()
            free(self)

    def _ended_where_it_said(self) -> bool:
        if self._fault is not None or self._answers != 1 or not self._head_bytes or not self._stays:
            return False
        body = self._bytes - self._head_bytes
        if self._status in _NO_BODY:
            return body == 0
        if hdrs.TRANSFER_ENCODING in self._headers:
            # What comes behind the last chunk can't end so, or is an answer of its own. Trailers cost the connection.
            return self._tail == _LAST_CHUNK
        return str(body) == self._headers.get(hdrs.CONTENT_LENGTH, "").strip()

    def _look_whether_silent(self) -> None:
        self._watching = None
        if self._silence_s is None:
            return
        now = self._loop.time()
        left_s = self._silence_s - (0.0 if self._paused else now - self._heard_at)
        if left_s > 0:  # a timer that is moved with each read would cost more than the read
            self._watching = self._loop.call_later(left_s, self._look_whether_silent)
        else:
            self._break("idle", None)

    def _break(self, kind: Literal["idle", "reset", "protocol"], cause: Exception | None) -> None:
        taker = self._taker
        self.drop()
        if taker is not None:
            taker.broke(kind, cause)

    def _leave(self) -> None:
        """Forget who asked, and what reads for him: each knows the other."""
        self._taker = self._parser = None
        self._silence_s = None
        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
