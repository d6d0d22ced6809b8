"""What a service manager (systemd) and this program tell each other: that it serves, ends, still lives; and sockets.

A socket that the manager has opened outlives this program, so what connects while it is started anew waits, and a port
below 1024 needs no rights here. Sources: sd_notify(3), sd_watchdog_enabled(3), sd_listen_fds(3).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping, Sequence

from checkstream.config import Server, parse_address
from checkstream.errors import ConfigError, Fault
from checkstream.listen.binding import places
from checkstream.processes.notify import tell

FACES = ("listen", "admin")
"""Names of sockets that are taken; each is a setting of `server`, too."""
_FIRST = 3
"""The first descriptor that is passed."""
_MOST = 64
_ADVICE = "write `FileDescriptorName=listen` (or `admin`) in the socket unit"

Passed = Mapping[str, Sequence[socket.socket]]
"""Sockets by the face that they are for."""


class Manager:
    """The service manager above this process; says nothing where there is none."""

    def __init__(self, place: str | None = None, watchdog_s: float | None = None) -> None:
        """Know where it listens and within which time it wants to hear of us, if it does."""
        self._place = place
        self._watchdog_s = watchdog_s

    @classmethod
    def of(cls, environ: Mapping[str, str], pid: int, *, heir: bool = False) -> Manager:
        """Read what it has told process `pid`; an heir is in the place of the process that it has told it.

        Raises:
            ConfigError: what it has told can't be read.
        """
        usec = environ.get("WATCHDOG_USEC", "")
        if not usec or not (heir or environ.get("WATCHDOG_PID", str(pid)) == str(pid)):
            return cls(environ.get("NOTIFY_SOCKET"))
        if not usec.isascii() or not usec.isdecimal() or not 0 < len(usec) < 16 or not int(usec):
            raise _faulty(f"WATCHDOG_USEC is `{usec}`", "give a whole number of microseconds, or unset it")
        return cls(environ.get("NOTIFY_SOCKET"), int(usec) / 1e6)

    def say_ready(self) -> None:
        """Say that this process serves, and is the main one."""
        tell(self._place, f"READY=1\nMAINPID={os.getpid()}")

    def say_stopping(self) -> None:
        """Say that this process is about to end, behind its last answers."""
        tell(self._place, "STOPPING=1")

    def hand_on(self) -> None:
        """Say nothing from here on: another process serves, and nothing of this one is to pass for a sign of it."""
        self._place = None

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """Say twice in the manager's time that the event loop turns, as long as it does."""
        beating = None
        if self._watchdog_s is not None:
            beating = asyncio.get_running_loop().create_task(self._beat(self._watchdog_s / 2))
        try:
            yield
        finally:
            if beating is not None:
                beating.cancel()

    async def _beat(self, every_s: float) -> None:
        while True:
            tell(self._place, "WATCHDOG=1")
            await asyncio.sleep(every_s)


def passed_names(environ: Mapping[str, str], pid: int) -> tuple[str, ...]:
    """Return what the descriptors from 3 on are for that were passed to process `pid`; none where none were.

    Raises:
        ConfigError: what stands in the environment can't be read, or names what is no face.
    """
    count = environ.get("LISTEN_FDS", "")
    if not count or environ.get("LISTEN_PID") != str(pid):
        return ()
    if not count.isascii() or not count.isdecimal() or len(count) > 4 or int(count) > _MOST:
        raise _faulty(f"LISTEN_FDS is `{count}`", f"pass {_MOST} sockets at most")
    names = tuple(environ.get("LISTEN_FDNAMES", "").split(":")) if int(count) else ()
    if len(names) != int(count):
        raise _faulty(f"{count} sockets were passed under {len(names)} names", _ADVICE)
    for name in names:
        if name not in FACES:
            raise _faulty(f"a socket was passed as `{name}`, which is no listener", _ADVICE)
    return names


def take_sockets(environ: Mapping[str, str], pid: int, server: Server) -> Passed:
    """Take the sockets that were passed, each only if it is what the configuration says.

    Who may call is decided by the address that is configured, so another one is never served.

    Raises:
        ConfigError: a socket is none to listen on, or is bound elsewhere.
    """
    taken: dict[str, list[socket.socket]] = {}
    with contextlib.ExitStack() as undo:
        for descriptor, name in enumerate(passed_names(environ, pid), _FIRST):
            try:
                one = undo.enter_context(socket.socket(fileno=descriptor))
            except OSError as error:
                raise _faulty(f"what was passed as `{name}` is no socket", "pass one of a socket unit") from error
            _require(one, name, server)
            one.set_inheritable(False)
            one.setblocking(False)
            taken.setdefault(name, []).append(one)
        undo.pop_all()
    return taken


def _require(one: socket.socket, name: str, server: Server) -> None:
    """Require a socket to be the listener `name` of the configuration.

    Raises:
        ConfigError: it isn't.
    """
    if one.family not in {socket.AF_INET, socket.AF_INET6} or one.type != socket.SOCK_STREAM:
        raise _faulty(f"the socket `{name}` is not of TCP", "write `ListenStream=ADDRESS:PORT` in the socket unit")
    if not one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        raise _faulty(f"the socket `{name}` does not listen", "write `Accept=no` in the socket unit")
    host, port = one.getsockname()[:2]
    text = server.listen if name == "listen" else server.admin
    address = parse_address(text)
    try:
        hosts = {place[0] for _, place in places(address)}
    except OSError as error:
        raise _faulty(f"`server.{name}` is `{text}`, which can't be looked up", "write its address") from error
    if host not in hosts or address.port not in {0, port}:
        at = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        advice = "give both the same address: who may call depends on it"
        raise _faulty(f"the socket `{name}` is bound to `{at}`, and `server.{name}` is `{text}`", advice)


def _faulty(reason: str, advice: str) -> ConfigError:
    return ConfigError((Fault(file="service manager", reason=reason, advice=advice),))
