"""Takes connections and their handshakes of TLS; HTTP has them when it stands.

Who connects and says nothing, or nonsense, has a place of its address among those that ask nothing, and a deadline.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Sequence

from checkstream.listen.callers import network_of
from checkstream.listen.room import Room
from checkstream.listen.tls import ServerTls

_LEAVE_S = 1.0
"""How long a farewell of TLS may take: who has left hears none."""
_AT_ONCE = 64
"""Connections that are taken before others have their turn."""
_RETRY_S = 1.0
"""How long nothing is taken when there are no more files to be open."""


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
            await self._loop.connect_accepted_socket(
                self._http,
                connection,
                ssl=self._tls.context,
                ssl_handshake_timeout=self._seconds,
                ssl_shutdown_timeout=_LEAVE_S,
            )
        except OSError:  # no TLS, none that goes with ours, no certificate, too slow, or gone
            connection.close()
        finally:
            self._waiting.give(address)
