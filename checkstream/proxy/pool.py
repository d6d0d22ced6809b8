"""Connections to one model server: made when they are needed, kept for a while for the party whose they were."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import itertools
import socket
import ssl
from urllib.parse import urlsplit

from aiohappyeyeballs import start_connection

from checkstream.listen.admission import PIECE_BYTES
from checkstream.proxy.line import Line

_KEEP_S = 4.0
"""Shorter than servers' usual keep-alive time (uvicorn: 5 s), so that they seldom close what is about to be used."""
_MOST_PARTIES = 256
"""Whose connections are kept at a time: there may be any number of addresses."""
_KNOWN_S = 10.0
"""How long an address that was looked up is used."""
_NEXT_S = 0.25
"""How long an address has to answer before the next one is tried beside it (RFC 8305 5)."""
_Address = tuple[int, int, int, str, tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]]


@functools.cache
def tls() -> ssl.SSLContext:
    """Return what servers have to prove: made once, since it reads the certificates of all authorities."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class Pool:
    """Belongs to one event loop."""

    def __init__(self, url: str) -> None:
        """Open no connection yet.

        Args:
            url: Of the server; only scheme, host and port count.
        """
        parts = urlsplit(url)
        self._tls = tls() if parts.scheme == "https" else None
        self._host = parts.hostname or ""
        self._port = parts.port or (443 if self._tls is not None else 80)
        usual = parts.port is None or parts.port == (443 if self._tls is not None else 80)
        host = f"[{self._host}]" if ":" in self._host else self._host
        self.authority = host if usual else f"{host}:{self._port}"
        """What requests call the server."""
        self._idle: dict[str, dict[Line, asyncio.TimerHandle]] = {}
        self._addresses: list[_Address] = []
        self._known_until = 0.0
        self._turn = itertools.count()
        self._closed = False
        self._room = memoryview(bytearray(PIECE_BYTES))

    def take(self, party: str) -> Line | None:
        """Return a connection that lies there for a party, the one that was used last; None: there is none."""
        lines = self._idle.get(party)
        while lines:
            line, expiring = lines.popitem()
            expiring.cancel()
            if not lines:
                del self._idle[party]
            if line.can_be_used():
                return line
            line.drop()
        return None

    async def connect(self, party: str) -> Line:
        """Return a new connection.

        Raises:
            OSError: there can be none; `ssl.SSLError` is one.
        """
        loop = asyncio.get_running_loop()
        addresses = await self._look_up(loop)
        try:
            connected = await start_connection(addresses, happy_eyeballs_delay=_NEXT_S, interleave=1, loop=loop)
        except OSError:
            self._addresses = []
            raise
        try:
            connected.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            _, line = await loop.create_connection(
                lambda: Line(loop, self._room, lambda each: self._keep(each, party)),
                sock=connected,
                ssl=self._tls,
                server_hostname=self._host.rstrip(".") if self._tls is not None else None,
            )
        except BaseException:
            connected.close()
            raise
        return line

    async def _look_up(self, loop: asyncio.AbstractEventLoop) -> list[_Address]:
        """Return the server's addresses, another one first each time: of several all have their share."""
        if not self._addresses or loop.time() >= self._known_until:
            self._addresses = list(await loop.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM))
            self._known_until = loop.time() + _KNOWN_S
        at = next(self._turn) % len(self._addresses)
        return self._addresses[at:] + self._addresses[:at]

    def _keep(self, line: Line, party: str) -> None:
        if self._closed:
            line.drop()
            return
        if party not in self._idle and len(self._idle) >= _MOST_PARTIES:
            for each, expiring in self._idle.pop(next(iter(self._idle))).items():
                expiring.cancel()
                each.drop()
        expiring = asyncio.get_running_loop().call_later(_KEEP_S, self._expire, line, party)
        lines = self._idle.pop(party, {})
        lines[line] = expiring
        self._idle[party] = lines  # behind all others: whoever has used theirs for the longest time goes first

    def _expire(self, line: Line, party: str) -> None:
        lines = self._idle.get(party, {})
        with contextlib.suppress(KeyError):
            del lines[line]
        if not lines:
            self._idle.pop(party, None)
        line.drop()

    @property
    def idle(self) -> list[Line]:
        """Those that nobody uses."""
        return [line for lines in self._idle.values() for line in lines]

    def close(self) -> None:
        """Close those that nobody uses; the others when their answers end."""
        self._closed = True
        idle, self._idle = self._idle, {}
        for lines in idle.values():
            for line, expiring in lines.items():
                expiring.cancel()
                line.drop()
