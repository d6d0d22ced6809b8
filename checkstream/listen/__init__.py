"""Sockets, callers, and the room that there is for them: what lies under every HTTP face of the process."""

from checkstream.listen.admission import Admission, Visit
from checkstream.listen.bodies import read_body, too_large
from checkstream.listen.callers import Callers, Identity, Who, who_of
from checkstream.listen.connections import Connection, Listener, Respond, Times, connection_of
from checkstream.listen.hosts import Hosts

__all__ = [
    "Admission",
    "Callers",
    "Connection",
    "Hosts",
    "Identity",
    "Listener",
    "Respond",
    "Times",
    "Visit",
    "Who",
    "connection_of",
    "read_body",
    "too_large",
    "who_of",
]
