"""What is said where an address can't be listened on."""

from __future__ import annotations

import errno
import os
import socket

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
