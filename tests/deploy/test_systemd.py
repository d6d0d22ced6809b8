"""The units, as systemd reads them; and what the program says to a service manager and takes from it."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from checkstream.config import load_config, load_control
from tests.deploy.conftest import POLICY
from tests.e2e.harness import ROOT, STOP_S, Llm, Process, RawCaller, config, http, until

UNITS = ROOT / "deploy" / "systemd"
FIRST = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(65, 1, 0, 0, 0)  # PR_SET_MDWE, where the kernel knows it: as MemoryDenyWriteExecute of the unit
os.dup2(int(sys.argv[1]), 3)
os.environ.update(LISTEN_FDS="1", LISTEN_FDNAMES="listen", LISTEN_PID=str(os.getpid()))
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""As systemd starts the service: the socket is descriptor 3, and the environment says whom it is for."""


class Heard:
    """The socket of a service manager, and what was said to it."""

    def __init__(self, folder: Path) -> None:
        self.place = str(folder / "notify")
        self.said: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(self.place)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while message := self._socket.recv(1000):
            self.said.put(message.decode())

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", self.place)
        self._thread.join(10)
        self._socket.close()

    def next(self, beginning: str) -> str:
        while True:
            said = self.said.get(timeout=30)
            if said.startswith(beginning):
                return said


@pytest.fixture
def heard(tmp_path: Path) -> Iterator[Heard]:
    with contextlib.closing(Heard(tmp_path)) as manager:
        yield manager


def _activated(folder: Path, listening: socket.socket, env: Mapping[str, str], workers: int) -> Process:
    serve = ("-m", "checkstream", "serve", "--config", str(folder / "checkstream.yaml"), "--workers", str(workers))
    descriptor = listening.fileno()
    return Process("-c", FIRST, str(descriptor), *serve, env=env, cwd=folder, pass_fds=(descriptor,))


def _settings(llm: Llm, folder: Path, listen: str) -> None:
    (folder / "policy.yaml").write_text(POLICY, "utf-8")
    settings = config(llm.url, folder, [str(folder / "policy.yaml")])
    settings["server"] = {"listen": listen, "admin": "127.0.0.1:0"}
    (folder / "checkstream.yaml").write_text(json.dumps(settings), "utf-8")


def test_who_connects_while_the_service_is_started_anew_waits_and_is_served(
    llm: Llm, tmp_path: Path, heard: Heard
) -> None:
    env = {"NOTIFY_SOCKET": heard.place, "WATCHDOG_USEC": "200000"}
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"127.0.0.1:{listening.getsockname()[1]}"
        _settings(llm, tmp_path, address)
        waiting: RawCaller | None = None
        for workers in (1, 2):
            service = _activated(tmp_path, listening, env, workers)
            try:
                assert heard.next("READY=1") == f"READY=1\nMAINPID={service.popen.pid}"
                if waiting is not None:
                    waiting.read_until(b"data: [DONE]")
                    waiting.socket.close()
                heard.next("WATCHDOG=1")
                heard.next("WATCHDOG=1")
                assert http("POST", f"http://{address}/v1/chat/completions", _asked(stream=False))[0] == 200
                main = service.popen.pid if workers == 1 else _another(service, heard, address)
                os.kill(main, signal.SIGTERM)
                heard.next("STOPPING=1")
                _all_ended(service)
            finally:
                code = service.stop()
            assert code == 0, service.text
            waiting = RawCaller(f"http://{address}", _asked(stream=True))  # nobody serves now, and it's not refused
        assert waiting is not None
        waiting.socket.close()


def _all_ended(service: Process) -> None:
    until(lambda: not service.left(), what="the end of all", timeout_s=STOP_S)


def _another(service: Process, heard: Heard, address: str) -> int:
    """Have the program take over from itself, and return which process is the main one then."""
    service.popen.send_signal(signal.SIGUSR2)
    main = int(heard.next("READY=1").partition("MAINPID=")[2])
    assert main != service.popen.pid
    assert service.popen.wait(STOP_S) == 0
    heard.next("WATCHDOG=1")
    heard.next("WATCHDOG=1")
    assert http("POST", f"http://{address}/v1/chat/completions", _asked(stream=False))[0] == 200
    return main


def _asked(*, stream: bool) -> dict[str, object]:
    return {"model": "clean", "messages": [{"role": "user", "content": "hello"}], "stream": stream}


def test_a_socket_at_another_address_than_the_configuration_says_is_refused(llm: Llm, tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        _settings(llm, tmp_path, "127.0.0.1:1")
        service = _activated(tmp_path, listening, {}, 1)
        assert service.popen.wait(30) == 2  # RestartPreventExitStatus of the unit
        service.kill()
        assert "give both the same address: who may call depends on it" in service.text


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="systemd is not installed")
def test_systemd_s_own_activation_begins_the_service_for_its_first_caller(llm: Llm, tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    _settings(llm, tmp_path, address)
    serve = ("-m", "checkstream", "serve", "--config", str(tmp_path / "checkstream.yaml"), "--log", "json")
    names = [f"--setenv={name}" for name in ("PYTHONPATH", "CHECKSTREAM_TEST")]
    activate = ["systemd-socket-activate", f"--listen={address}", "--fdname=listen", *names]
    service = Process(sys.executable, *serve, command=activate, cwd=tmp_path)
    try:
        caller: RawCaller = until(lambda: _connected(address), what="the socket")
        caller.read_until(b"data: [DONE]")
        caller.socket.close()
    finally:
        assert service.stop() == 0, service.text


def _connected(address: str) -> RawCaller | None:
    with contextlib.suppress(ConnectionRefusedError):
        return RawCaller(f"http://{address}", _asked(stream=True))
    return None


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """Copies of the units whose program is there, which systemd asks for."""
    for unit in UNITS.glob("checkstream*.[s]*"):
        (tmp_path / unit.name).write_text(
            unit.read_text("utf-8").replace("/opt/checkstream/bin/checkstream", "/bin/true")
        )
    return tmp_path


needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_units(units: Path) -> None:
    done = _analyze("verify", "--man=no", "--recursive-errors=no", *map(str, units.iterdir()))
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
@pytest.mark.parametrize("name", ["checkstream", "checkstream-worker", "checkstream-control", "checkstream-telemetry"])
def test_little_is_exposed_by_the_services(units: Path, name: str) -> None:
    done = _analyze("security", "--offline=true", "--threshold=16", str(units / f"{name}.service"))
    found = re.search(r"exposure level for \S+: ([\d.]+)", done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert found is not None
    assert float(found[1]) <= 1.6  # of 10, of which the network, which it is for, is 0.5


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": "cat"}
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True, check=False, env=env)


def test_the_units_and_the_sample_agree() -> None:
    sample = load_config(UNITS / "checkstream.yaml")
    service = (UNITS / "checkstream.service").read_text("utf-8")
    assert f"ListenStream={sample.server.listen}\n" in (UNITS / "checkstream.socket").read_text("utf-8")
    stop_s = re.search(r"^TimeoutStopSec=(\d+)$", service, re.MULTILINE)
    assert stop_s is not None
    assert int(stop_s[1]) >= sample.server.drain_ms / 1000 + 10
    assert sample.audit.dir.startswith("/var/lib/checkstream/")


def test_the_units_of_a_control_server_and_its_sample_agree() -> None:
    sample = load_control(UNITS / "control.yaml")
    service = (UNITS / "checkstream-control.service").read_text("utf-8")
    state = re.search(r"^StateDirectory=(\S+)$", service, re.MULTILINE)
    assert state is not None
    assert (sample.file or "").startswith(f"/var/lib/{state[1]}/")
    assert sample.audit.dir.startswith(f"/var/lib/{state[1]}/")
    assert sample.admin is not None


@pytest.mark.parametrize("name", ["checkstream-worker", "checkstream-control", "checkstream-telemetry"])
def test_commands_of_units_are_commands_of_the_program(name: str) -> None:
    service = (UNITS / f"{name}.service").read_text("utf-8")
    (given,) = re.findall(r"^ExecStart=/opt/checkstream/bin/checkstream (.*)$", service, re.MULTILINE)
    command = [sys.executable, "-m", "checkstream", *re.sub(r"/etc/\S+", "/nowhere.yaml", given).split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=30)
    assert done.returncode == 2  # RestartPreventExitStatus
    assert "/nowhere.yaml" in done.stderr
    assert "usage:" not in done.stderr
