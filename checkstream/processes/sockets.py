"""The listening sockets of all slots: the parent keeps them, so that what waits in one outlives the worker behind it.

On Linux each slot has a socket of its own (SO_REUSEPORT), between which the kernel shares connections out. Elsewhere
that option balances nothing, so all slots have one.
"""

from __future__ import annotations

import contextlib
import socket
import sys
from collections.abc import Sequence

from checkstream.config import Address
from checkstream.listen.binding import places, socket_at

Group = list[list[socket.socket]]
"""Of each slot its sockets: one for each address that the name stands for, in the same order."""

_SPREADS = sys.platform == "linux" and hasattr(socket, "SO_REUSEPORT")


def bind(address: Address, slots: int) -> Group:
    """Return sockets for all slots, bound and not listening: who has none to serve yet refuses, and lets nobody wait.

    Raises:
        OSError: the address can't be bound, or is another's: who shares a port must be one of us.
    """
    group: Group = [[] for _ in range(slots)]
    port = address.port
    with contextlib.ExitStack() as undo:
        undo.callback(close, group)
        for family, place in places(address):
            placed = (place[0], port, *place[2:])
            if _SPREADS and port:
                socket_at(family, placed, shared=False).close()  # fails where somebody listens there
            first: socket.socket | None = None
            for sockets in group:
                if first is not None and not _SPREADS:
                    sockets.append(first.dup())
                    continue
                one = socket_at(family, placed, shared=_SPREADS)
                sockets.append(one)
                first = first or one
                port = one.getsockname()[1]  # the system may have chosen it
                placed = (place[0], port, *place[2:])
        undo.pop_all()
    return group


def widen(group: Group, slots: int) -> None:
    """Add sockets for more slots beside those that are there.

    Raises:
        OSError: they can't be bound.
    """
    while len(group) < slots:
        more = [
            socket_at(one.family, one.getsockname(), shared=True) if _SPREADS and _is_shared(one) else one.dup()
            for one in group[0]
        ]
        group.append(more)


def close(group: Sequence[Sequence[socket.socket]]) -> None:
    """Close them all here; those of other processes stay."""
    for sockets in group:
        for each in sockets:
            each.close()


def address_of(group: Group, host: str) -> Address:
    """Return where a group is bound."""
    return Address(host, group[0][0].getsockname()[1])


def _is_shared(one: socket.socket) -> bool:
    return bool(one.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))
