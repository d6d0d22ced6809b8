from __future__ import annotations

import socket
import sys

import pytest

from checkstream.config import Address
from checkstream.processes import sockets


def test_all_slots_share_one_port_and_nobody_listens_yet() -> None:
    group = sockets.bind(Address("127.0.0.1", 0), 3)
    try:
        places = {each.getsockname() for own in group for each in own}
        assert len(group) == 3
        assert len(places) == 1
        assert sockets.address_of(group, "127.0.0.1").port == places.pop()[1] != 0
        with pytest.raises(ConnectionRefusedError), socket.create_connection(group[0][0].getsockname(), timeout=5):
            pass
    finally:
        sockets.close(group)


def test_a_name_with_two_addresses_has_one_port() -> None:
    try:
        group = sockets.bind(Address("localhost", 0), 2)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    try:
        assert len({each.getsockname()[1] for own in group for each in own}) == 1
    finally:
        sockets.close(group)


def test_a_port_on_which_somebody_listens_is_not_shared_with_him() -> None:
    """SO_REUSEPORT would let us in beside any process of the same user that set it too."""
    with socket.socket() as other:
        if hasattr(socket, "SO_REUSEPORT"):
            other.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="in use"):
            sockets.bind(Address("127.0.0.1", other.getsockname()[1]), 2)


@pytest.mark.parametrize("spreads", [False, True] if sys.platform == "linux" else [False])
def test_what_waits_in_a_socket_outlives_every_copy_but_the_parents(
    spreads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sockets, "_SPREADS", spreads)  # each slot has a socket of its own, or all have one
    group = sockets.bind(Address("127.0.0.1", 0), 2)
    try:
        workers = [own[0].dup() for own in group]
        for worker in workers:
            worker.listen()
        callers = [socket.create_connection(group[0][0].getsockname(), timeout=5) for _ in range(16)]
        for worker in workers:
            worker.close()  # both have crashed
        taken = 0
        for own in group:  # others take over
            while True:
                try:
                    own[0].accept()[0].close()
                except BlockingIOError:
                    break
                taken += 1
        assert taken == len(callers)
        for caller in callers:
            caller.close()
    finally:
        sockets.close(group)
