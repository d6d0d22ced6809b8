"""Says to a service manager that asks for it when a process serves, and which one is the first of its kind.

Source: sd_notify(3).
"""

from __future__ import annotations

import contextlib
import socket


def tell(place: str | None, said: str) -> None:
    """Say it to the socket at `place`, if there is one; whether anybody hears it makes no difference here."""
    if not place or not hasattr(socket, "AF_UNIX"):
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as one:
        one.setblocking(False)
        one.sendto(said.encode(), "\0" + place[1:] if place.startswith("@") else place)
