"""Takes connections and their handshakes of TLS; HTTP has them when it stands.

Who connects and says nothing, or nonsense, has a place of its address among those that ask nothing, and a deadline.

INVARIANT: no step of a handshake runs on the event loop. The server's signature alone takes milliseconds, and whoever
can connect may ask for thousands of them. They are made in threads, few at once, for each address in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, TypeVar, cast

from checkstream.listen.callers import network_of
from checkstream.listen.room import Room
from checkstream.listen.tls import ServerTls
from checkstream.listen.turns import Turns

_LEAVE_S = 1.0
"""How long a farewell of TLS may take: who has left hears none."""
_AT_ONCE = 64
"""Connections that are taken before others have their turn."""
_RETRY_S = 1.0
"""How long nothing is taken when there are no more files to be open."""
_STEPS = 2
"""Steps of handshakes that run at once: more would take the cores of those who are being answered."""
_READ_BYTES = 1 << 14
_T = TypeVar("_T")


class _Session:
    """TLS of one connection, which reads and writes in memory. Stands in for an `ssl.SSLObject` behind its handshake.

    The loop's own TLS has a memory of its own, so once it takes over, what it has read is passed on, and back.
    """

    def __init__(self, context: ssl.SSLContext) -> None:
        self._read, self._written = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._read, self._written, server_side=True)
        self._incoming, self._outgoing = self._read, self._written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tls, name)

    def step(self, heard: bytes) -> bool:
        """Go on with the handshake; tell whether it is done. Blocks, for milliseconds.

        Raises:
            ssl.SSLError: it has failed.
        """
        self._read.write(heard)
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def said(self) -> bytes:
        """Return what is to be sent by now."""
        return self._written.read()

    def joined(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO) -> ssl.SSLObject:
        """Return what reads and writes there from now on."""
        self._incoming, self._outgoing = incoming, outgoing
        return cast("ssl.SSLObject", self)

    # --- as an `ssl.SSLObject`

    def do_handshake(self) -> None:
        """Do nothing: it is done."""

    def read(self, size: int = 1024, buffer: Any = None) -> Any:
        """Return what has come, or how much of it is in `buffer`."""
        return self._passing(lambda: self._tls.read(size, buffer))

    def write(self, data: bytes) -> int:
        """Return how much of it was taken."""
        return self._passing(lambda: self._tls.write(data))

    def unwrap(self) -> None:
        """Say farewell, and hear it."""
        self._passing(self._tls.unwrap)

    def pending(self) -> int:
        """Return how much can be read, or may be after more has come."""
        return self._tls.pending() + self._read.pending

    def _passing(self, act: Callable[[], _T]) -> _T:
        if self._incoming.pending:
            self._read.write(self._incoming.read())
        try:
            return act()
        finally:
            if self._written.pending:
                self._outgoing.write(self._written.read())


_SHAKEN: ContextVar[_Session] = ContextVar("_SHAKEN")
"""Of the connection that a task hands over to the loop."""


class _Shaken(ssl.SSLContext):
    """Gives the loop's TLS the session whose handshake is done, in place of a new one."""

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *_: Any, **__: Any) -> ssl.SSLObject:
        """Return the session of the task that hands over."""
        return _SHAKEN.get().joined(incoming, outgoing)


class Handshakes:
    """What takes the connections of one listening socket; used like an `asyncio.Server`."""

    def __init__(
        self,
        listening: socket.socket,
        tls: ServerTls,
        http: Callable[[], asyncio.Protocol],
        *,
        waiting: Room,
        seconds: float,
        running: set[asyncio.Task[None]],
    ) -> None:
        """Take connections from now on.

        Args:
            listening: Listens and doesn't block; is closed with this.
            tls: How.
            http: Makes what speaks inside.
            waiting: Room for connections on which nothing is asked, shared by addresses.
            seconds: How long a handshake may take.
            running: Has the handshakes that run, which go on when this is closed.
        """
        self._listening, self._tls, self._http = listening, tls, http
        self._waiting, self._seconds, self._running = waiting, seconds, running
        self._loop = asyncio.get_running_loop()
        self._turns = Turns(_STEPS)
        self._shaken = _Shaken(ssl.PROTOCOL_TLS_SERVER)
        self._retry: asyncio.TimerHandle | None = None
        self._begin()

    @property
    def sockets(self) -> Sequence[socket.socket]:
        """What it listens on."""
        return (self._listening,)

    def close(self) -> None:
        """Take no more."""
        if self._retry is not None:
            self._retry.cancel()
        self._loop.remove_reader(self._listening)
        self._listening.close()

    def _begin(self) -> None:
        self._retry = None
        self._loop.add_reader(self._listening, self._take)

    def _take(self) -> None:
        self._tls.look_soon()
        for _ in range(_AT_ONCE):
            try:
                connection, peer = self._listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError:  # no files, or no memory, are left: those who wait are taken later
                self._loop.remove_reader(self._listening)
                self._retry = self._loop.call_later(_RETRY_S, self._begin)
                return
            address = network_of(peer[0])
            if not self._waiting.fits(address):
                connection.close()
                continue
            self._waiting.add(address)
            task = self._loop.create_task(self._shake(connection, address))
            self._running.add(task)
            task.add_done_callback(self._running.discard)

    async def _shake(self, connection: socket.socket, address: str) -> None:
        try:
            connection.setblocking(False)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.timeout(self._seconds):
                _SHAKEN.set(await self._session(connection, address))
            await self._loop.connect_accepted_socket(
                self._http,
                connection,
                ssl=self._shaken,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=_LEAVE_S,
            )
        except OSError:  # no TLS, none that goes with ours, no certificate, too slow, or gone
            connection.close()
        except asyncio.CancelledError:
            connection.close()
            raise
        finally:
            self._waiting.give(address)

    async def _session(self, connection: socket.socket, address: str) -> _Session:
        """Return the session of a connection, with its handshake done.

        Raises:
            OSError: it has failed.
        """
        session, done = _Session(self._tls.context), False
        while not done:
            heard = await self._loop.sock_recv(connection, _READ_BYTES)
            if not heard:
                raise ConnectionResetError("gone before the handshake was done")
            try:
                async with self._turns.taken(address):
                    done = await self._loop.run_in_executor(None, session.step, heard)
            except ssl.SSLError:
                with contextlib.suppress(OSError):
                    connection.send(session.said())  # why, if it can be told at once
                raise
            if said := session.said():
                await self._loop.sock_sendall(connection, said)
        return session
