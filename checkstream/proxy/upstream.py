"""A model server: its time-outs, what counts as an answer of it, and when to try again.

A request is sent again only while it was certainly not sent: the connection could not be made. Time-outs are
split by kind (connect, first byte, idle), and every failure ends as one `UpstreamError` with its kind.
"""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Literal, Protocol
from urllib.parse import urlsplit

from aiohttp import hdrs
from multidict import CIMultiDict

from checkstream.config import Upstream
from checkstream.errors import UpstreamError
from checkstream.proxy.headers import AUTH, BYTES, read_media, request_headers, response_headers
from checkstream.proxy.line import Head, Line
from checkstream.proxy.outgoing import Outgoing
from checkstream.proxy.pool import Pool

_MOST_WAITING = 65_536
"""Bytes that wait for who reads an answer before no more are read from its upstream."""
_BACKOFF_S = 0.05

_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
"""Never passed on: callers' clients would follow them past the guard, with the request and its keys."""
_NEVER_A_BODY = frozenset({hdrs.METH_GET, hdrs.METH_HEAD, hdrs.METH_OPTIONS, hdrs.METH_DELETE, hdrs.METH_TRACE})


def _require_readable(head: Head) -> None:
    """Look at an answer's head.

    Raises:
        UpstreamError: it is none that can be taken on.
    """
    lengths = head.headers.getall(hdrs.CONTENT_LENGTH, [])
    codings = head.headers.getall(hdrs.TRANSFER_ENCODING, [])
    if head.status in _REDIRECTS:
        reason = "the upstream redirects elsewhere; set its final address as `url`"
    elif head.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower() not in ("", "identity"):
        reason = "the answer is compressed, though `identity` was asked for"
    elif len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
        reason = "the answer says twice how long it is"  # a server in front of it could end it elsewhere
    elif codings and codings[0].strip().lower() != "chunked":
        reason = "the answer is coded in a way that can't be read"
    elif head.status < HTTPStatus.OK:
        reason = "the upstream wants to speak another protocol"
    else:
        return
    raise UpstreamError(reason, kind="protocol")


class Reader(Protocol):
    """Who reads an answer. After `ended` or `failed` nothing follows."""

    def opened(self, answer: Answer) -> None:
        """Take the answer, whose head has come."""

    def took(self, data: bytes) -> None:
        """Take bytes of its body, as the network cut them."""

    def ended(self) -> None:
        """Hear that it is whole."""

    def failed(self, error: UpstreamError) -> None:
        """Hear that no more of it comes."""


class Answer:
    """The upstream's answer: its head, and how it is read."""

    def __init__(self, head: Head, settings: Upstream) -> None:
        """Begin behind the head."""
        self._head = head
        self._settings = settings
        self.status = head.status
        self.headers = response_headers(head.headers.items(), names=settings.return_headers)

    def is_of(self, media: str) -> bool:
        """Tell whether the body is said to be of a type."""
        said = self._head.headers.get(hdrs.CONTENT_TYPE, "")
        return said.partition(";")[0].strip().lower() == media

    def headers_passed(self) -> CIMultiDict[str]:
        """Return the headers of an answer that goes out unguarded, with what its body is said to be."""
        headers = response_headers(self._head.headers.items(), names=self._settings.return_headers, passed=True)
        said = self._head.headers.getall(hdrs.CONTENT_TYPE, [])
        media = read_media(said[0]) if len(said) == 1 else None
        headers[hdrs.CONTENT_TYPE] = str(media) if media is not None else BYTES
        headers["x-content-type-options"] = "nosniff"
        return headers


class Asking:
    """One request that was sent, until its answer is over or nobody wants it any more."""

    def __init__(self, client: UpstreamClient, line: Line, reader: Reader, outgoing: Outgoing) -> None:
        """Send nothing yet."""
        self._client = client
        self._settings = client.settings
        self._line: Line | None = line
        self._reader: Reader | None = reader
        self._patient = outgoing.patient
        self._method = outgoing.method
        self._idle_ms: int | None = client.settings.first_byte_ms if outgoing.patient else client.settings.idle_ms
        self._begun = False
        client.running += 1

    def send(self, request: bytes) -> None:
        """Send it."""
        if self._line is not None:
            bare, most_s = self._method == hdrs.METH_HEAD, self._settings.first_byte_ms / 1000
            self._line.ask(request, self, bare=bare, silence_s=most_s)

    def pause(self) -> None:
        """Read no more until `resume`."""
        if self._line is not None:
            self._line.pause()

    def resume(self) -> None:
        """Read again."""
        if self._line is not None:
            self._line.resume()

    def leave(self) -> None:
        """Want no more of the answer: what is not read to its end is closed. Harmless behind its end."""
        line = self._line
        self._over()
        if line is not None:
            line.drop()

    def _over(self) -> Reader | None:
        reader, self._reader = self._reader, None
        if self._line is not None:
            self._client.running -= 1
        self._line = None
        return reader

    # --- what the line tells

    def opened(self, head: Head) -> None:
        """Take the head, if the answer can be taken on."""
        try:
            _require_readable(head)
        except UpstreamError as error:
            self._fail(error)
            return
        if self._patient and self._method == hdrs.METH_GET:
            self._idle_ms = None
            if self._line is not None:
                self._line.silence(None)
        if self._reader is not None:
            self._reader.opened(Answer(head, self._settings))

    def took(self, data: bytes) -> None:
        """Hand bytes on."""
        if not self._begun:
            self._begun = True
            if self._line is not None:
                self._line.silence(None if self._idle_ms is None else self._idle_ms / 1000)
        if self._reader is not None:
            self._reader.took(data)

    def ended(self) -> None:
        """Tell that the answer is whole."""
        reader = self._over()
        if reader is not None:
            reader.ended()

    def broke(self, kind: Literal["idle", "reset", "protocol"], cause: Exception | None) -> None:
        """Tell why no more comes."""
        if kind == "protocol":
            error = UpstreamError("the answer is not HTTP that can be read", kind="protocol")
        elif kind == "idle" and self._begun:
            error = UpstreamError(f"silent for {self._idle_ms} ms", kind="idle")
        elif kind == "idle":
            error = UpstreamError(f"no first byte within {self._settings.first_byte_ms} ms", kind="first_byte")
        else:
            error = UpstreamError("the connection broke off before the answer was over", kind="reset")
        error.__cause__ = None if cause is None else cause.with_traceback(None)
        self._fail(error)

    def _fail(self, error: UpstreamError) -> None:
        line = self._line
        reader = self._over()
        if line is not None:
            line.drop()
        if reader is not None:
            reader.failed(error)


class UpstreamClient:
    """One model server. Belongs to one event loop."""

    def __init__(self, name: str, settings: Upstream, headers: Mapping[str, str]) -> None:
        """Open no connection yet.

        Args:
            name: As configured.
            settings: Address and time-outs.
            headers: The upstream's own headers, secrets revealed.
        """
        self.name = name
        self.settings = settings
        self._headers = dict(headers)
        self.keyed = any(name.lower() in AUTH for name in headers)
        """It has a key of its own: callers' keys stay behind."""
        self._pool = Pool(settings.url)
        self._path = urlsplit(settings.root).path
        self.running = 0
        """Answers that are being read."""

    def same(self, settings: Upstream, headers: Mapping[str, str]) -> bool:
        """Return whether a client with these settings would be this one."""
        return self.settings == settings and self._headers == dict(headers)

    @property
    def idle(self) -> list[Line]:
        """Connections that nobody uses."""
        return self._pool.idle

    def request(self, outgoing: Outgoing, body: bytes | None) -> bytes:
        """Return a request as it is sent.

        Raises:
            UpstreamError: its path or a header is none that HTTP has.
        """
        sent = request_headers(
            outgoing.headers,
            replaced=self._headers,
            key_header=outgoing.key_header,
            content_type=outgoing.content_type,
        )
        if body is not None or outgoing.method not in _NEVER_A_BODY:
            sent[hdrs.CONTENT_LENGTH] = str(len(body or b""))
        sent.setdefault(hdrs.HOST, self._pool.authority)
        target = f"{self._path}{outgoing.target}"
        lines = [f"{outgoing.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in sent.items())]
        if " " in target or not all(map(_is_one_line, lines)):
            raise UpstreamError("the request has a line that can't be sent", kind="protocol")
        try:
            return "\r\n".join([*lines, "", ""]).encode() + (body or b"")
        except UnicodeEncodeError as error:
            raise UpstreamError("a header has bytes that are no text", kind="protocol") from error

    def take(self, party: str) -> Line | None:
        """Return a connection that lies there for a party; None: there is none."""
        return self._pool.take(party)

    def begin(self, line: Line, request: bytes, outgoing: Outgoing, reader: Reader) -> Asking:
        """Send a request on a connection; `reader` is told what comes of it."""
        asking = Asking(self, line, reader, outgoing)
        asking.send(request)
        return asking

    async def connect(self, party: str) -> Line:
        """Return a new connection.

        Raises:
            UpstreamError: there is none, and nothing was sent.
        """
        attempt = 0
        while True:
            try:
                async with asyncio.timeout(self.settings.connect_ms / 1000):
                    return await self._pool.connect(party)
            except (OSError, socket.gaierror, TimeoutError) as error:
                if attempt >= self.settings.retries:
                    raise UpstreamError(f"no connection to upstream `{self.name}`", kind="connect") from error
            await asyncio.sleep(_BACKOFF_S * 2**attempt)
            attempt += 1

    @asynccontextmanager
    async def send(self, outgoing: Outgoing, body: bytes | None) -> AsyncIterator[Pulled]:
        """Send a request and yield the answer once its head has come; leaving closes what is not read to the end.

        Raises:
            UpstreamError: no answer's head came, or one that two readers could take for two things.
        """
        pulled = Pulled()
        request = self.request(outgoing, body)
        line = self.take(outgoing.party) or await self.connect(outgoing.party)
        pulled.asking = self.begin(line, request, outgoing, pulled)
        try:
            await pulled.head()
            yield pulled
        finally:
            pulled.asking.leave()

    async def close(self) -> None:
        """Close all connections that nobody uses."""
        self._pool.close()


def _is_one_line(text: str) -> bool:
    return not any(sign in text for sign in "\r\n\0")


class Pulled:
    """An answer for who reads it piece by piece."""

    def __init__(self) -> None:
        """Begin with nothing read."""
        self.asking: Asking | None = None
        self._answer: Answer | None = None
        self._pieces: deque[bytes] = deque()
        self._waiting = 0
        self._over = False
        self._error: UpstreamError | None = None
        self._news = asyncio.Event()

    @property
    def answer(self) -> Answer:
        """The answer, once its head has come."""
        if self._answer is None:
            raise AssertionError("asked before the head has come")
        return self._answer

    async def head(self) -> None:
        """Wait for the head.

        Raises:
            UpstreamError: there is none that can be taken on.
        """
        while self._answer is None and self._error is None:
            await self._wait()
        if self._answer is None:
            raise self._failure()

    async def read(self) -> bytes:
        """Return the next bytes as the network cut them; `b""` at the end.

        Raises:
            UpstreamError: it fell silent or broke off.
        """
        while not self._pieces:
            if self._error is not None:
                raise self._failure()
            if self._over:
                return b""
            await self._wait()
        data = self._pieces.popleft()
        self._waiting -= len(data)
        if self._waiting <= _MOST_WAITING and self.asking is not None:
            self.asking.resume()
        return data

    def _failure(self) -> UpstreamError:
        """Return what is raised, anew each time: what was raised knows frames that know this."""
        if self._error is None:
            raise AssertionError("nothing has failed")
        error = UpstreamError(str(self._error), kind=self._error.kind)
        error.__cause__ = self._error.__cause__
        return error

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    def opened(self, answer: Answer) -> None:
        """Keep the head."""
        self._answer = answer
        self._news.set()

    def took(self, data: bytes) -> None:
        """Keep bytes until they are read."""
        self._pieces.append(data)
        self._waiting += len(data)
        if self._waiting > _MOST_WAITING and self.asking is not None:
            self.asking.pause()
        self._news.set()

    def ended(self) -> None:
        """Note the end."""
        self._over = True
        self._news.set()

    def failed(self, error: UpstreamError) -> None:
        """Note why no more comes."""
        self._error = error
        self._news.set()
