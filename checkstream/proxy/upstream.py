"""A model server: one pool of connections, its time-outs, the header rules both ways, and when to try again.

A request is sent again only while it was certainly not sent: the connection could not be made. Time-outs are
split by kind (connect, first byte, idle), and every failure ends as one `UpstreamError` with its kind.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import ClientResponse, hdrs
from multidict import CIMultiDict
from yarl import URL

from checkstream.config import Upstream
from checkstream.errors import UpstreamError

_READ_BYTES = 65_536
_PIECE_BYTES = 16_384
"""The most that is handed on at once, so that one stream's backlog is worked off in turns with the others'."""
_KEEP_S = 4.0
"""Shorter than servers' usual keep-alive time (uvicorn: 5 s), so that they seldom close what is about to be used."""
_BACKOFF_S = 0.05

HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Source: RFC 9110 7.6.1, RFC 2616 13.5.1."""
_NOT_FORWARDED = HOP_BY_HOP | {"host", "content-length", "content-encoding", "accept-encoding", "expect"}
_NOT_RETURNED = HOP_BY_HOP | {"content-length", "content-encoding", "content-type", "date", "server", "alt-svc"}
_REDIRECTS = frozenset({300, 301, 302, 303, 307, 308})
"""Never passed on: callers' clients would follow them past the guard, with the request and its keys."""
_AUTH = frozenset({"authorization", "x-api-key"})
_OWN_PREFIX = "x-checkstream-"


def request_headers(
    given: Iterable[tuple[str, str]], *, replaced: Mapping[str, str], key_header: str | None
) -> CIMultiDict[str]:
    """Return the headers that the upstream gets.

    Args:
        given: The caller's.
        replaced: The upstream's own, in place of the caller's of the same name.
        key_header: The header in which the caller's key for the proxy came; it goes no further.
    """
    headers: CIMultiDict[str] = CIMultiDict()
    pairs = list(given)
    own = {name.lower() for name in replaced}
    dropped = _NOT_FORWARDED | _named_by_connection(pairs) | own
    if own & _AUTH:
        dropped |= _AUTH
    if key_header is not None:
        dropped |= {key_header.lower()}
    for name, value in pairs:
        if name.lower() not in dropped and not name.lower().startswith(_OWN_PREFIX):
            headers.add(name, value)
    headers.update(replaced)
    headers[hdrs.ACCEPT_ENCODING] = "identity"  # the guard reads plain bytes
    return headers


def response_headers(given: Iterable[tuple[str, str]]) -> CIMultiDict[str]:
    """Return the upstream's headers that the caller gets; framing, encoding and content type are the proxy's own."""
    pairs = list(given)
    dropped = _NOT_RETURNED | _named_by_connection(pairs)
    headers: CIMultiDict[str] = CIMultiDict()
    for name, value in pairs:
        if name.lower() not in dropped and not name.lower().startswith(_OWN_PREFIX):
            headers.add(name, value)
    return headers


def _named_by_connection(pairs: Iterable[tuple[str, str]]) -> set[str]:
    """Return the headers that `Connection` says are for this hop only."""
    return {
        token.strip().lower() for name, value in pairs if name.lower() == "connection" for token in value.split(",")
    }


class Answer:
    """The upstream's answer: its head, and its body as it comes."""

    def __init__(self, response: ClientResponse, settings: Upstream) -> None:
        """Wrap a response whose head has arrived."""
        self._response = response
        self._settings = settings
        self._begun = False
        self.status = response.status
        self.headers = response_headers(response.headers.items())
        self.content_type = response.headers.get(hdrs.CONTENT_TYPE, "application/json")

    @property
    def streaming(self) -> bool:
        """The body is an event stream."""
        return self.content_type.partition(";")[0].strip().lower() == "text/event-stream"

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
            connection = self._response.connection
            if connection is not None and connection.protocol is not None:
                connection.protocol.read_timeout = self._settings.idle_ms / 1000
                connection.protocol.start_timeout()
        return data

    def _failure(self, error: Exception) -> UpstreamError:
        if isinstance(error, TimeoutError):
            if self._begun:
                return UpstreamError(f"silent for {self._settings.idle_ms} ms", kind="idle")
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
        self._session: aiohttp.ClientSession | None = None
        self.running = 0
        """Answers that are being read."""

    def same(self, settings: Upstream, headers: Mapping[str, str]) -> bool:
        """Return whether a client with these settings would be this one."""
        return self.settings == settings and self._headers == dict(headers)

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=_KEEP_S),
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
        return self._session

    @asynccontextmanager
    async def send(
        self,
        method: str,
        target: str,
        headers: Iterable[tuple[str, str]],
        body: bytes | None,
        *,
        key_header: str | None,
    ) -> AsyncIterator[Answer]:
        """Send a request and yield the answer once its head has come; leaving closes what is not read to the end.

        Args:
            method: HTTP method.
            target: Path and query, as the caller wrote them.
            headers: The caller's.
            body: None for none.
            key_header: The header in which the caller's key for the proxy came.

        Raises:
            UpstreamError: no answer's head came.
        """
        sent = request_headers(headers, replaced=self._headers, key_header=key_header)
        self.running += 1
        response = None
        try:
            response = await self._send(method, URL(self.settings.root + target, encoded=True), sent, body)
            if response.status in _REDIRECTS:
                raise UpstreamError("the upstream redirects elsewhere; set its final address as `url`", kind="protocol")
            if response.headers.get(hdrs.CONTENT_ENCODING, "identity").strip().lower() not in ("", "identity"):
                raise UpstreamError("the answer is compressed, though `identity` was asked for", kind="protocol")
            yield Answer(response, self.settings)
        finally:
            self.running -= 1
            if response is not None:
                response.close()

    async def _send(self, method: str, url: URL, headers: CIMultiDict[str], body: bytes | None) -> ClientResponse:
        attempt = 0
        while True:
            try:
                return await self._open().request(method, url, headers=headers, data=body, allow_redirects=False)
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
        """Close the pool."""
        if self._session is not None:
            await self._session.close()
            self._session = None
