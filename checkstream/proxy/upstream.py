"""A model server: its time-outs, what counts as an answer of it, and when to try again.

A request is sent again only while it was certainly not sent: the connection could not be made. Time-outs are
split by kind (connect, first byte, idle), and every failure ends as one `UpstreamError` with its kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus

import aiohttp
from aiohttp import ClientResponse, hdrs
from multidict import CIMultiDict
from yarl import URL

from checkstream.config import Upstream
from checkstream.errors import UpstreamError
from checkstream.proxy.headers import AUTH, BYTES, read_media, request_headers, response_headers
from checkstream.proxy.pool import Pool

_READ_BYTES = 65_536
_PIECE_BYTES = 16_384
"""The most that is handed on at once, so that one stream's backlog is worked off in turns with the others'."""
_KEEP_S = 4.0
"""Shorter than servers' usual keep-alive time (uvicorn: 5 s), so that they seldom close what is about to be used."""
_BACKOFF_S = 0.05

_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
"""Never passed on: callers' clients would follow them past the guard, with the request and its keys."""


def _require_readable(response: ClientResponse) -> None:
    """Look at an answer's head.

    Raises:
        UpstreamError: it is none that can be taken on.
    """
    lengths = response.headers.getall(hdrs.CONTENT_LENGTH, [])
    codings = response.headers.getall(hdrs.TRANSFER_ENCODING, [])
    if response.status in _REDIRECTS:
        reason = "the upstream redirects elsewhere; set its final address as `url`"
    elif response.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower() not in ("", "identity"):
        reason = "the answer is compressed, though `identity` was asked for"
    elif len(lengths) > 1 or len(codings) > 1 or (lengths and codings):
        reason = "the answer says twice how long it is"  # a server in front of it could end it elsewhere
    elif response.status < HTTPStatus.OK:
        reason = "the upstream wants to speak another protocol"
    else:
        return
    raise UpstreamError(reason, kind="protocol")


class Answer:
    """The upstream's answer: its head, and its body as it comes."""

    def __init__(self, response: ClientResponse, settings: Upstream, *, patient: bool = False) -> None:
        """Wrap a response whose head has arrived; of a `patient` one silence is no failure."""
        self._response = response
        self._settings = settings
        self._begun = False
        self._idle_ms: int | None = settings.first_byte_ms if patient else settings.idle_ms
        if patient and response.method == hdrs.METH_GET:
            self._idle_ms = None
            self._wait()
        self.status = response.status
        self.headers = response_headers(response.headers.items(), names=settings.return_headers)

    def is_of(self, media: str) -> bool:
        """Tell whether the body is said to be of a type."""
        said = self._response.headers.get(hdrs.CONTENT_TYPE, "")
        return said.partition(";")[0].strip().lower() == media

    def headers_passed(self) -> CIMultiDict[str]:
        """Return the headers of an answer that goes out unguarded, with what its body is said to be."""
        headers = response_headers(self._response.headers.items(), names=self._settings.return_headers, passed=True)
        said = self._response.headers.getall(hdrs.CONTENT_TYPE, [])
        media = read_media(said[0]) if len(said) == 1 else None
        headers[hdrs.CONTENT_TYPE] = str(media) if media is not None else BYTES
        headers["x-content-type-options"] = "nosniff"
        return headers

    async def read(self) -> bytes:
        """Return the next bytes as the network cut them, in pieces of bounded size; `b""` at the end.

        Raises:
            UpstreamError: it fell silent or broke off.
        """
        try:
            data = await self._response.content.read(_PIECE_BYTES)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            _drop_frames(error)
            raise self._failure(error) from error
        if data and not self._begun:
            self._begun = True
            self._wait()
        return data

    def _wait(self) -> None:
        """Take silence for a failure from here on as often as the answer's next bytes may be late."""
        connection = self._response.connection
        if connection is not None and connection.protocol is not None:
            connection.protocol.read_timeout = None if self._idle_ms is None else self._idle_ms / 1000
            connection.protocol.start_timeout()

    def _failure(self, error: Exception) -> UpstreamError:
        if isinstance(error, TimeoutError):
            if self._begun:
                return UpstreamError(f"silent for {self._idle_ms} ms", kind="idle")
            return UpstreamError(f"no first byte within {self._settings.first_byte_ms} ms", kind="first_byte")
        return UpstreamError("the connection broke off inside the answer", kind="reset")


def _drop_frames(error: BaseException) -> None:
    """Forget where an error and its causes came from: the stream keeps them, and the frames keep the stream.

    Only a full collection would free the answer then.
    """
    known: dict[int, BaseException] = {}
    found: list[BaseException | None] = [error]
    while found:
        each = found.pop()
        if each is not None and id(each) not in known:
            known[id(each)] = each.with_traceback(None)
            found += (each.__cause__, each.__context__)


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
        self._sessions: dict[str | None, aiohttp.ClientSession] = {}
        self.running = 0
        """Answers that are being read."""

    def same(self, settings: Upstream, headers: Mapping[str, str]) -> bool:
        """Return whether a client with these settings would be this one."""
        return self.settings == settings and self._headers == dict(headers)

    def _open(self, caller: str | None) -> aiohttp.ClientSession:
        """Return a caller's own connections: what comes too late to be told from an answer is at most its own."""
        if caller not in self._sessions:
            self._sessions[caller] = aiohttp.ClientSession(
                connector=Pool(keepalive_s=_KEEP_S),
                timeout=aiohttp.ClientTimeout(
                    total=None,
                    connect=self.settings.connect_ms / 1000,
                    sock_read=self.settings.first_byte_ms / 1000,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                read_bufsize=_READ_BYTES,
                skip_auto_headers=("User-Agent", "Accept", "Content-Type"),
                max_line_size=16_384,
                max_field_size=32_768,
            )
        return self._sessions[caller]

    @asynccontextmanager
    async def send(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        *,
        key_header: str | None,
        content_type: str | None,
        caller: str | None = None,
        patient: bool = False,
    ) -> AsyncIterator[Answer]:
        """Send a request and yield the answer once its head has come; leaving closes what is not read to the end.

        Args:
            method: HTTP method.
            target: Path and query, as the caller wrote them.
            headers: The caller's.
            body: None for none.
            key_header: The header in which the caller's key for the proxy came.
            content_type: What the body is; None: nothing is said.
            caller: Who asks; a connection serves one caller alone. Those without names are one.
            patient: Its answer may be silent for as long as one may take to begin, what was got with `GET` for ever.

        Raises:
            UpstreamError: no answer's head came, or one that two readers could take for two things.
        """
        sent = request_headers(headers, replaced=self._headers, key_header=key_header, content_type=content_type)
        self.running += 1
        response = None
        try:
            session = self._open(caller)
            response = await self._send(session, method, URL(self.settings.root + target, encoded=True), sent, body)
            _require_readable(response)
            yield Answer(response, self.settings, patient=patient)
        finally:
            self.running -= 1
            if response is not None:
                response.close()

    async def _send(
        self, session: aiohttp.ClientSession, method: str, url: URL, headers: CIMultiDict[str], body: bytes | None
    ) -> ClientResponse:
        attempt = 0
        while True:
            try:
                return await session.request(method, url, headers=headers, data=body, allow_redirects=False)
            except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError) as error:
                # Nothing was sent: there was no connection to send it on.
                if attempt >= self.settings.retries:
                    raise UpstreamError(f"no connection to upstream `{self.name}`", kind="connect") from error
                await asyncio.sleep(_BACKOFF_S * 2**attempt)
                attempt += 1
            except TimeoutError as error:
                detail = f"no first byte within {self.settings.first_byte_ms} ms"
                raise UpstreamError(detail, kind="first_byte") from error
            except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, ConnectionError) as error:
                raise UpstreamError("the connection broke off before the answer", kind="reset") from error
            except (aiohttp.ClientError, ValueError) as error:
                raise UpstreamError("the answer is not HTTP that can be read", kind="protocol") from error

    async def close(self) -> None:
        """Close all connections."""
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            await session.close()
