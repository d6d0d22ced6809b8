"""Binds addresses, and says why one can't be bound."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import Any

from checkstream.config import Address
from checkstream.errors import Fault


def cause(error: OSError) -> str:
    """Return in the system's words why an address can't be used; empty where it says nothing of use."""
    named = isinstance(error, socket.gaierror)  # its numbers are not those of the system
    text = str(error.strerror or "") if named else os.strerror(error.errno) if error.errno else ""
    return text[:1].lower() + text[1:]


def not_bound(name: str, address: str, error: OSError) -> Fault:
    """Return the fault of the configuration whose listener `name` has an address that can't be bound."""
    advice = f"stop what listens there, or give another address (`--{name}`, or `server.{name}` of the file)"
    return Fault(
        file="configuration",
        reason=f"can't listen on `{address}` (`{name}`): {cause(error) or error}",
        advice=advice if error.errno == errno.EADDRINUSE else f"give another address (`--{name}`)",
    )


def bound(address: Address) -> list[socket.socket]:
    """Return a socket for each address that a name stands for, bound and not listening, all with one port. Blocks.

    Raises:
        OSError: the address can't be bound.
    """
    with contextlib.ExitStack() as undo:
        found: list[socket.socket] = []
        port = address.port
        for family, place in places(address):
            found.append(undo.enter_context(socket_at(family, (place[0], port, *place[2:]), shared=False)))
            port = found[0].getsockname()[1]  # the system may have chosen it
        undo.pop_all()
    return found


def places(address: Address) -> list[tuple[int, tuple[Any, ...]]]:
    """Return the addresses that a name stands for, each with its family.

    Raises:
        OSError: it stands for none.
    """
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return list(dict.fromkeys((int(family), place) for family, _, _, _, place in found))


def socket_at(family: int, place: tuple[Any, ...], *, shared: bool) -> socket.socket:
    """Return a socket that is bound to a place; shared: others may bind it, too.

    Raises:
        OSError: it can't be bound.
    """
    one = socket.socket(family, socket.SOCK_STREAM)
    try:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        one.setblocking(False)
        one.bind(place)
    except BaseException:
        one.close()
        raise
    return one
