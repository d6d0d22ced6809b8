"""Sockets: what lies under every HTTP face of the process.

A `Connection` is aiohttp's HTTP/1.1 protocol with what a guard needs besides: who handles its request hears at once
that the caller has left (FIN or RST, in every state), headers have a deadline, and a caller who stops reading is cut
off after a time. Nothing here knows routes, surfaces or policies.

INVARIANT: nothing here waits for a caller without a deadline.
"""

from __future__ import annotations

import asyncio
import contextlib
import resource
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import cast

import msgspec
from aiohttp import StreamReader, hdrs
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import HttpVersion11, RawRequestMessage
from aiohttp.http_exceptions import ContentEncodingError, HttpProcessingError
from aiohttp.web import BaseRequest, RequestHandler, RequestPayloadError, Response, Server, StreamResponse

from checkstream.config import Address
from checkstream.errors import HostForeign, OriginForeign
from checkstream.listen import binding
from checkstream.listen.callers import network_of
from checkstream.listen.handshake import Handshakes
from checkstream.listen.hosts import Hosts
from checkstream.listen.room import Room
from checkstream.listen.tls import ServerTls

Respond = Callable[[BaseRequest], Awaitable[StreamResponse]]
Refused = Callable[[int, str], Mapping[str, str]]
"""Hears the status and the kind of a refusal that no responder has given; returns headers of it."""
_IDLE_S = 75.0
"""A connection that asks nothing is closed after this time; longer than the usual client's pool keeps it."""
_FEWEST_SOCKETS, _MOST_FILES, _OTHER_FILES = 64, 131_072, 128
_BACKLOG = 1024
_LOOK_S = 0.1
_WRITE_BUFFER_BYTES = 65_536
"""Bytes that may wait for a caller to read before the upstream is no longer read."""


class Times(msgspec.Struct, frozen=True, kw_only=True):
    """Deadlines of a listener, in seconds."""

    header_s: float
    write_s: float


class Connection(RequestHandler):
    """One caller's connection."""

    __slots__ = (
        "_address", "_busy", "_gone", "_header_timer", "_left", "_refused", "_sockets", "_times", "_writable",
        "_write_timer",
    )  # fmt: skip

    def __init__(
        self, server: Server, *, loop: asyncio.AbstractEventLoop, times: Times, sockets: Room, refused: Refused
    ) -> None:
        """Wait for the first request.

        Args:
            server: Who answers.
            loop: Where.
            times: Deadlines.
            sockets: Room for connections on which nothing is asked, shared by addresses.
            refused: Hears of requests that can't be read.
        """
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=_IDLE_S,
            access_log=None,  # type: ignore[arg-type]  # None switches it off; logs are telemetry's
            max_line_size=16_384,
            max_field_size=32_768,
            lingering_time=2.0,
        )
        self._times = times
        self._sockets = sockets
        self._refused = refused
        self._address: str | None = None  # as long as a place is taken for it
        self._busy = False
        self._left = False
        self._gone: Callable[[], None] | None = None
        self._writable: Callable[[], None] | None = None
        self._header_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    @property
    def left(self) -> bool:
        """The caller has closed its side, or the connection is lost."""
        return self._left

    def watch(self, gone: Callable[[], None], writable: Callable[[], None]) -> None:
        """Call `gone` once when the caller leaves, `writable` whenever it reads again after it had fallen behind."""
        self._gone, self._writable = gone, writable
        if self._left:
            self._tell_gone()

    def unwatch(self) -> None:
        """Call nobody any more."""
        self._gone = self._writable = None

    def begin(self) -> None:
        """A request's headers have come whole."""
        self._busy = True
        self._stop_header_timer()
        self._give_place()

    def finish(self) -> None:
        """The request has been answered."""
        self._busy = False
        self.unwatch()
        if self.transport is not None and not self._takes_place():
            self.close()  # once the answer has been written

    def log_exception(self, *args: object, **kw: object) -> None:
        """Log what went wrong, unless it is a caller's broken HTTP: nobody outside may fill the log with errors."""
        if isinstance(kw.get("exc_info"), HttpProcessingError | RequestPayloadError):
            self.log_debug(*args, **kw)
        else:
            super().log_exception(*args, **kw)

    def handle_error(
        self,
        request: BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> StreamResponse:
        """Answer what no responder has seen or could answer, without the HTTP library's words and name."""
        super().handle_error(request, status, exc, message)  # logs; raises if an answer has begun
        if isinstance(exc, HttpProcessingError):  # of a head that nobody could read the library takes HTTP/1.0
            request._version = HttpVersion11  # noqa: SLF001 - there is no other way to say it
        kind, words = "internal_error", "something inside failed; the operator's log says what"
        if isinstance(exc, ContentEncodingError):
            status, kind = 415, "invalid_request_error"
            words = "the request body has an encoding that can't be read; send it plain, or with gzip or deflate"
        elif status < 500:
            kind, words = "invalid_request_error", "this is not HTTP/1.1 that can be read; check the request's head"
        return _refusal(status, kind, words, self._refused(status, kind))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin the header deadline; let the kernel give up on a caller that vanished."""
        super().connection_made(transport)
        cast("asyncio.Transport", transport).set_write_buffer_limits(high=_WRITE_BUFFER_BYTES)
        raw = transport.get_extra_info("socket")
        if raw is not None and hasattr(socket, "TCP_USER_TIMEOUT"):
            with contextlib.suppress(OSError):
                raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, int(self._times.write_s * 1000))
        self._start_header_timer()
        if not self._takes_place():
            self._abort()

    def _takes_place(self) -> bool:
        """Take a place among those that ask nothing; tell whether there was one for this address."""
        peer = self.transport.get_extra_info("peername") if self.transport is not None else None
        address = network_of(peer[0]) if isinstance(peer, tuple) else ""
        if not self._sockets.fits(address):
            return False
        self._sockets.add(address)
        self._address = address
        return True

    def _give_place(self) -> None:
        address, self._address = self._address, None
        if address is not None:
            self._sockets.give(address)

    def data_received(self, data: bytes) -> None:
        """Take bytes; headers that have begun must end in time."""
        if data and not self._busy and self._header_timer is None:
            self._start_header_timer()
        super().data_received(data)

    def eof_received(self) -> None:
        """Take the caller's FIN as its leaving: nobody waits for an answer on a connection it has closed."""
        super().eof_received()
        self._tell_gone()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forget timers; tell who watches."""
        self._give_place()
        self._stop_header_timer()
        self._stop_write_timer()
        super().connection_lost(exc)
        self._tell_gone()

    def pause_writing(self) -> None:
        """Begin the write deadline: the caller has fallen behind."""
        super().pause_writing()
        self._write_timer = self._loop.call_later(self._times.write_s, self._abort)

    def resume_writing(self) -> None:
        """End the write deadline."""
        self._stop_write_timer()
        super().resume_writing()
        if self._writable is not None:
            self._writable()

    def _tell_gone(self) -> None:
        self._left = True
        gone, self._gone = self._gone, None
        if gone is not None:
            gone()

    def _abort(self) -> None:
        """Drop the connection with what waits in its buffer."""
        self._write_timer = None
        if self.transport is not None:
            self.transport.abort()

    def _start_header_timer(self) -> None:
        self._header_timer = self._loop.call_later(self._times.header_s, self._headers_late)

    def _headers_late(self) -> None:
        self._header_timer = None
        if not self._busy:
            self.force_close()

    def _stop_header_timer(self) -> None:
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None


def _most_sockets() -> int:
    """Return for how many idle connections there are files to be open: half, as a running exchange needs two."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(_FEWEST_SOCKETS, min(_MOST_FILES, most if most > 0 else _MOST_FILES) // 2 - _OTHER_FILES)


def _refusal(status: int, kind: str, words: str, headers: Mapping[str, str]) -> Response:
    """Return the answer to what no responder has seen; what is left of the request is not read."""
    told = words.encode("utf-8", "replace").decode()  # what was quoted may be no text
    error = {"type": kind, "code": kind, "message": told, "param": None}
    response = Response(
        status=status,
        body=msgspec.json.encode({"error": error}),
        content_type="application/json",
        headers={**headers, hdrs.SERVER: "checkstream"},
    )
    response.force_close()
    return response


def _unheard(_status: int, _kind: str) -> Mapping[str, str]:
    """Tell nobody."""
    return {}


def connection_of(request: BaseRequest) -> Connection:
    """Return the connection that a request of a `Listener` came on."""
    return cast("Connection", request.protocol)


class _LastRequest(BaseRequest):
    """A request behind whose answer its connection is closed, as the answer's head says."""

    @property
    def keep_alive(self) -> bool:
        """Nothing more is asked on this connection."""
        return False


class _HttpServer(Server):
    """aiohttp's server with our connections."""

    def __init__(self, respond: Respond, times: Times, sockets: Room, refused: Refused) -> None:
        super().__init__(respond, request_factory=self._request)
        self._refused = refused
        self._times = times
        self._sockets = sockets
        self.retiring = False

    def _request(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: RequestHandler,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> BaseRequest:
        made = _LastRequest if self.retiring else BaseRequest
        return made(message, payload, protocol, writer, task, self._loop)

    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, times=self._times, sockets=self._sockets, refused=self._refused)


class Listener:
    """One HTTP face on one address."""

    def __init__(
        self,
        respond: Respond,
        times: Times,
        hosts: Hosts | None = None,
        *,
        sockets: int | None = None,
        refused: Refused = _unheard,
        tls: ServerTls | None = None,
    ) -> None:
        """Answer requests with `respond`, once opened.

        Args:
            respond: Answers.
            times: Deadlines.
            hosts: Whose requests are taken where only this machine can ask; None: everybody's, since each has a key.
            sockets: Connections that may be open and ask nothing, of which each address has a share; None: what the
                system lets the process have.
            refused: Hears of what `respond` never hears of.
            tls: Stands around the connections, with its files read; None: they are in the clear.
        """
        self._tls = tls
        self._shaking: set[asyncio.Task[None]] = set()
        self._respond = respond
        self._times = times
        self._hosts = hosts
        self._refused = refused
        self._waiting = Room(_most_sockets() if sockets is None else sockets)
        self._http: _HttpServer | None = None
        self._servers: dict[int, list[asyncio.Server | Handshakes]] = {}
        """Of each set of sockets what takes connections from it; 0: its own."""
        self.address = Address("", 0)
        """Where it listens; the real port after `open`."""

    async def open(self, address: Address, sockets: Sequence[socket.socket] = ()) -> None:
        """Listen.

        Args:
            address: Where.
            sockets: Are bound there already; they stay whole whatever becomes of this listener.

        Raises:
            OSError: the address can't be bound.
        """
        self._http = _HttpServer(self._answer, self._times, self._waiting, self._refused)
        if sockets:
            await self.listen_on(0, sockets)
            port = sockets[0].getsockname()[1]
        else:
            with contextlib.ExitStack() as bound:
                own = [bound.enter_context(each) for each in await asyncio.to_thread(binding.bound, address)]
                await self.listen_on(0, own)
                port = own[0].getsockname()[1]
        self.address = Address(address.host, port)

    async def listen_on(self, which: int, sockets: Sequence[socket.socket]) -> None:
        """Take connections from these sockets too, under a number; `open` comes before.

        Raises:
            OSError: they can't be listened on.
        """
        if self._http is None or which in self._servers:
            return
        self._servers[which] = [await self._taking(self._http, each.dup()) for each in sockets]

    async def _taking(self, http: _HttpServer, listening: socket.socket) -> asyncio.Server | Handshakes:
        """Return what takes connections from a socket."""
        if self._tls is None:
            return await asyncio.get_running_loop().create_server(http, sock=listening, backlog=_BACKLOG)
        listening.setblocking(False)
        listening.listen(_BACKLOG)
        waiting, seconds = self._waiting, self._times.header_s
        return Handshakes(listening, self._tls, http, waiting=waiting, seconds=seconds, running=self._shaking)

    def leave(self, which: int) -> None:
        """Take no more connections from the sockets of a number; those that came go on."""
        for server in self._servers.pop(which, ()):
            server.close()

    @property
    def sockets(self) -> tuple[int, ...]:
        """The descriptors of what it listens on."""
        return tuple(each.fileno() for server in self._servers.get(0, ()) for each in server.sockets)

    async def _answer(self, request: BaseRequest) -> StreamResponse:
        connection = connection_of(request)
        connection.begin()
        try:
            if self._hosts is not None and self.address.loopback:
                self._hosts.require(request)
            return await self._respond(request)
        except (HostForeign, OriginForeign) as error:
            status, kind = (421, "host_not_allowed") if isinstance(error, HostForeign) else (403, "origin_not_allowed")
            return _refusal(status, kind, str(error), self._refused(status, kind))
        finally:
            connection.finish()

    def stop_accepting(self) -> None:
        """Close the listening sockets and idle connections; running requests go on."""
        for which in tuple(self._servers):
            self.leave(which)
        if self._http is not None:
            self._http.pre_shutdown()

    async def retire(self, seconds: float) -> None:
        """Take no more connections, and return when those that are there have ended, or after this time.

        Nobody is cut off: what is asked on an open connection is answered, and the answer says that it is the last.
        """
        for which in tuple(self._servers):
            self.leave(which)
        if self._http is None:
            return
        self._http.retiring = True
        clock = asyncio.get_running_loop().time
        end = clock() + seconds
        while (self._http.connections or self._shaking) and clock() < end:  # noqa: ASYNC110 - there is no event
            await asyncio.sleep(_LOOK_S)

    async def close(self) -> None:
        """Close everything, within a second."""
        self.stop_accepting()
        for task in self._shaking:
            task.cancel()
        if self._http is not None:
            await self._http.shutdown(1.0)
