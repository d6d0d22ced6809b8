from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.config import Server
from checkstream.errors import ConfigError
from checkstream.processes.manager import FACES, Manager, passed_names, take_sockets

PID = 4711


async def test_a_manager_hears_that_we_serve_live_and_end_and_nothing_once_another_serves(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listening:
        listening.bind(str(tmp_path / "notify"))
        listening.setblocking(False)
        env = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "20000", "WATCHDOG_PID": str(PID)}
        manager = Manager.of(env, PID)
        async with manager.watched():
            heard = [await asyncio.get_running_loop().sock_recv(listening, 100) for _ in range(3)]
            manager.say_ready()
            while (said := await asyncio.get_running_loop().sock_recv(listening, 100)) == b"WATCHDOG=1":
                pass
            assert said == f"READY=1\nMAINPID={os.getpid()}".encode()
            manager.hand_on()
            manager.say_stopping()
        assert heard == [b"WATCHDOG=1"] * 3
        await asyncio.sleep(0)
        rest = []
        while True:
            try:
                rest.append(listening.recv(100))
            except BlockingIOError:
                break
        assert b"STOPPING=1" not in rest


def _beats(env: dict[str, str], *, heir: bool = False) -> float | None:
    return Manager.of(env, PID, heir=heir)._watchdog_s


def test_only_the_process_that_is_watched_and_its_heir_say_that_they_live() -> None:
    env = {"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(PID)}
    assert _beats(env) == 30
    assert _beats({"WATCHDOG_USEC": "30000000"}) == 30
    assert _beats(env | {"WATCHDOG_PID": "1"}) is None
    assert _beats(env | {"WATCHDOG_PID": "1"}, heir=True) == 30
    assert _beats({}) is None


@pytest.mark.parametrize("usec", ["-1", "0", "1e6", "٣", "9" * 40, " 5"])
def test_a_time_that_is_none_is_told(usec: str) -> None:
    with pytest.raises(ConfigError, match="WATCHDOG_USEC"):
        Manager.of({"WATCHDOG_USEC": usec}, PID)


@given(count=st.text(max_size=6), names=st.text(max_size=40), pid=st.sampled_from(["", str(PID), "1"]))
def test_whatever_stands_in_the_environment_only_named_faces_are_taken_or_it_is_told(
    count: str, names: str, pid: str
) -> None:
    env = {"LISTEN_FDS": count, "LISTEN_FDNAMES": names, "LISTEN_PID": pid}
    try:
        found = passed_names(env, PID)
    except ConfigError as error:
        told = str(error)
    else:
        told = "it is fine; go on"
        assert set(found) <= set(FACES)
        assert not found or (pid == str(PID) and len(found) == int(count))
    assert "; " in told, "it says what to do"


def test_names_are_those_of_the_sockets_in_their_order() -> None:
    env = {"LISTEN_FDS": "3", "LISTEN_FDNAMES": "listen:admin:listen", "LISTEN_PID": str(PID)}
    assert passed_names(env, PID) == ("listen", "admin", "listen")
    assert passed_names(env, PID + 1) == ()


@pytest.fixture
def third(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment with one socket, whose number is that of the next descriptor that is opened."""
    free = os.dup(0)
    os.close(free)
    monkeypatch.setattr("checkstream.processes.manager._FIRST", free)
    return {"LISTEN_FDS": "1", "LISTEN_FDNAMES": "listen", "LISTEN_PID": str(PID)}


def test_a_socket_of_both_families_is_taken_where_all_addresses_are_configured(third: dict[str, str]) -> None:
    try:
        one = socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=socket.has_dualstack_ipv6())
    except OSError:
        pytest.skip("this machine has no IPv6")
    with one:
        taken = take_sockets(third, PID, Server(listen="[::]:0", behind_gateway=True))["listen"]
        assert taken[0].getsockname() == one.getsockname()
        taken[0].detach()


def _tcp(kind: int = socket.SOCK_STREAM) -> socket.socket:
    one = socket.socket(socket.AF_INET, kind)
    one.bind(("127.0.0.1", 0))
    return one


def test_a_socket_is_taken_where_the_configuration_says_the_same_address(third: dict[str, str]) -> None:
    with _tcp() as one:
        one.listen()
        port = one.getsockname()[1]
        for text in (f"127.0.0.1:{port}", "127.0.0.1:0", f"localhost:{port}"):
            taken = take_sockets(third, PID, Server(listen=text))["listen"]
            assert [each.getsockname() for each in taken] == [one.getsockname()]
            assert not taken[0].get_inheritable()
            assert not taken[0].getblocking()
            taken[0].detach()  # it is the descriptor of `one`


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("127.0.0.1:1", "is bound to `127.0.0.1:"),
        ("127.0.0.2:0", "give both the same address"),
        ("nobody.invalid:0", "can't be looked up"),
    ],
)
def test_a_socket_that_is_bound_elsewhere_is_never_served(third: dict[str, str], text: str, reason: str) -> None:
    one = _tcp()
    one.listen()
    try:
        with pytest.raises(ConfigError, match=reason):
            take_sockets(third, PID, Server(listen=text, behind_gateway=True))
    finally:
        one.detach()  # who refuses it has closed it


@pytest.mark.parametrize("kind", ["datagrams", "silent", "unix", "file"])
def test_what_is_no_listening_socket_of_tcp_is_told(third: dict[str, str], kind: str, tmp_path: Path) -> None:
    if kind == "file":
        descriptor = os.open(tmp_path / "file", os.O_CREAT)
        with pytest.raises(ConfigError, match="is no socket"):
            take_sockets(third, PID, Server())
        os.close(descriptor)
        return
    if kind == "unix":
        one = socket.socket(socket.AF_UNIX)
    else:
        one = _tcp(socket.SOCK_STREAM if kind == "silent" else socket.SOCK_DGRAM)
    try:
        with pytest.raises(ConfigError, match="does not listen" if kind == "silent" else "not of TCP"):
            take_sockets(third, PID, Server())
    finally:
        one.detach()
