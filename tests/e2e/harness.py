"""Runs the scripted LLM and `checkstream serve` as the processes that they are, for tests from outside.

Both bind port 0 and say where they listen; their output is kept and shown when a test fails. Nothing may be
left behind: a process that doesn't end, or a child of it that outlives it, fails the test.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
START_S = 30.0
"""The longest that a process may take until it listens, on a busy machine."""
STOP_S = 20.0


def until(read: Callable[[], T | None], *, what: str, timeout_s: float = 10.0) -> T:
    """Return the first value of `read` that is not None, False or an empty list, or fail saying what did not come."""
    end = time.monotonic() + timeout_s
    while True:
        value = read()
        if value is not None and value is not False and value != []:
            return value
        assert time.monotonic() < end, f"{what}: not within {timeout_s} s"
        time.sleep(0.005)


def http(
    method: str, url: str, body: object = None, *, headers: Mapping[str, str] | None = None, timeout_s: float = 20.0
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of one request; a body that is not bytes goes as JSON."""
    data = body if body is None or isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
    request = urllib.request.Request(url, data=data, method=method, headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(request, timeout=timeout_s) as response:
            return response.status, {k.lower(): v for k, v in response.headers.items()}, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, {k.lower(): v for k, v in error.headers.items()}, error.read()


class Process:
    """A program that runs until it is stopped; its output lines are kept."""

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        command: Sequence[str] = (sys.executable,),
        pass_fds: Sequence[int] = (),
    ) -> None:
        """Start it with this interpreter, or by what stands in its place, in a session of its own."""
        self.output: list[str] = []
        self._mark = uuid.uuid4().hex
        self._fresh: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.popen = subprocess.Popen(
            [*command, *arguments],
            pass_fds=pass_fds,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=cwd or ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT), "CHECKSTREAM_TEST": self._mark, **(env or {})},
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.popen.stdout is not None
        for line in self.popen.stdout:
            self.output.append(line)
            self._fresh.put(line)
        self._fresh.put(None)

    def said(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for the JSON line that `wanted` accepts."""
        end = time.monotonic() + START_S
        while True:
            try:
                line = self._fresh.get(timeout=max(end - time.monotonic(), 0.01))
            except queue.Empty:
                self.kill()
                raise AssertionError(f"no start within {START_S} s:\n{self.text}") from None
            if line is None:
                raise AssertionError(f"ended with {self.popen.wait()} instead of starting:\n{self.text}")
            with contextlib.suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict) and wanted(row):
                    return row

    @property
    def text(self) -> str:
        """All output so far."""
        return "".join(self.output)

    def logs(self, event: str) -> list[dict[str, Any]]:
        """Return the JSON log lines of one event."""
        rows = []
        for line in list(self.output):
            with contextlib.suppress(ValueError):
                row = json.loads(line)
                if isinstance(row, dict) and row.get("event") == event:
                    rows.append(row)
        return rows

    def kill(self) -> None:
        """End it as a power cut would."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.popen.pid, signal.SIGKILL)
        self._ended()

    def stop(self) -> int:
        """Ask it to end, and return its exit code; one that does not end, or leaves children, is a failure."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGTERM)
        try:
            code = self.popen.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"did not end within {STOP_S} s of SIGTERM:\n{self.text}") from None
        left = self.left()
        self.kill()
        assert not left, f"left {left} behind:\n{self.text}"
        return code

    def left(self) -> list[str]:
        """Return the command lines of the processes that it has started, directly or not, and that still run."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
                if f"CHECKSTREAM_TEST={self._mark}".encode() in (folder / "environ").read_bytes():
                    found.append((folder / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def _ended(self) -> None:
        self.popen.wait(STOP_S)
        self._reader.join(STOP_S)
        assert self.popen.stdout is not None
        self.popen.stdout.close()


class Llm(Process):
    """The scripted LLM."""

    def __init__(self) -> None:
        """Start it with the scenarios of the package; tests put in their own."""
        super().__init__("-m", "checkstream.demo.llm")
        self.url: str = self.said(lambda row: row.get("event") == "listening")["url"]

    def put(self, name: str, script: Mapping[str, Any]) -> str:
        """Put in a scenario and return its name, which is the model to ask for."""
        status, _, body = http("PUT", f"{self.url}/_scripted/scenarios/{name}", dict(script))
        assert status == 204, body.decode()
        return name

    def requests(self, scenario: str) -> list[dict[str, Any]]:
        """Return what was received for a scenario, oldest first."""
        return self._rows("requests", scenario)

    def connections(self, scenario: str) -> list[dict[str, Any]]:
        """Return what became of the answers of a scenario, oldest first."""
        return self._rows("connections", scenario)

    def _rows(self, kind: str, scenario: str) -> list[dict[str, Any]]:
        status, _, body = http("GET", f"{self.url}/_scripted/{kind}?scenario={scenario}")
        assert status == 200
        rows: list[dict[str, Any]] = json.loads(body)
        return rows

    def ended(self, scenario: str) -> dict[str, Any]:
        """Wait until the latest answer of a scenario has ended, and return what became of it."""

        def read() -> dict[str, Any] | None:
            rows = self.connections(scenario)
            return rows[-1] if rows and rows[-1]["ended_ms"] is not None else None

        return until(read, what=f"the end of the upstream's connection of `{scenario}`")

    def opened(self, scenario: str) -> dict[str, Any]:
        """Wait until a request for a scenario has arrived."""
        return until(lambda: next(iter(self.connections(scenario)), None), what=f"a request for `{scenario}`")


def config(
    llm_url: str,
    folder: Path,
    policies: list[str],
    *,
    upstream: Mapping[str, Any] | None = None,
    chat_only: bool = False,
    places: Sequence[Mapping[str, Any]] | None = None,
    **route: Any,
) -> dict[str, Any]:
    """Return a configuration with both guarded surfaces (or `chat_only`, or other places) before the scripted LLM."""
    shared = {"upstream": "llm", "policies": policies, **route}
    guarded = places or (_PLACES[:1] if chat_only else _PLACES)
    routes = [{**place, **({"upstream": "llm"} if place.get("pass") else shared)} for place in guarded]
    return {
        "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0"},
        "upstreams": {"llm": {"url": llm_url, **(upstream or {})}},
        "routes": [*routes, *([] if places else [_MODELS])],
        "audit": {"dir": str(folder / "audit")},
    }


_PLACES: Sequence[Mapping[str, Any]] = (
    {"name": "chat", "match": {"path": "/v1/chat/completions"}},
    {"name": "completions", "match": {"path": "/v1/completions"}},
)
_MODELS = {"name": "models", "match": {"path": "/v1/models", "method": "GET"}, "upstream": "llm", "pass": True}


class Proxy(Process):
    """`checkstream serve --config FILE`."""

    def __init__(self, settings: Mapping[str, Any], folder: Path) -> None:
        """Write the configuration into `folder`, start, and wait until it listens and is ready."""
        file = folder / "checkstream.yaml"
        file.write_text(json.dumps(dict(settings), ensure_ascii=False), "utf-8")  # JSON is YAML, too
        self._serve(folder, "--config", str(file))
        self.audit_dir = folder / "audit"

    @classmethod
    def with_faulty_models(cls, settings: Mapping[str, Any], folder: Path, fault: str) -> Proxy:
        """Start the whole process with classifiers that do what `fault` says; see `faulty_serve`."""
        file = folder / "checkstream.yaml"
        file.write_text(json.dumps(dict(settings), ensure_ascii=False), "utf-8")
        proxy = cls.__new__(cls)
        proxy._start(folder, "-m", "tests.e2e.faulty_serve", fault, str(file))
        proxy.audit_dir = folder / "audit"
        return proxy

    @classmethod
    def of_upstream(cls, url: str, folder: Path) -> Proxy:
        """Start with nothing but the upstream's address, in `folder`."""
        proxy = cls.__new__(cls)
        proxy._serve(folder, "--upstream", url, "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0")
        proxy.audit_dir = folder / "var" / "audit"
        return proxy

    def _serve(self, folder: Path, *arguments: str) -> None:
        self._start(folder, "-m", "checkstream", "serve", *arguments)

    def _start(self, folder: Path, *command: str) -> None:
        self.folder = folder
        super().__init__(*command, cwd=folder)
        row = self.said(lambda row: row.get("event") == "listening")
        self.url = f"http://{row['listen']}"
        self.admin_url = f"http://{row['admin']}"
        until(lambda: http("GET", f"{self.admin_url}/readyz")[0] == 200, what="/readyz", timeout_s=START_S)

    def records(self) -> list[dict[str, Any]]:
        """Return the entries of the audit log, oldest first, once no more come: they are written behind the answers."""
        before: list[dict[str, Any]] | None = None
        while (rows := self._entries()) != before:
            before = rows
            time.sleep(0.3)
        return rows

    def _entries(self) -> list[dict[str, Any]]:
        command = [sys.executable, "-m", "checkstream", "audit", "show", str(self.audit_dir), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=30, cwd=ROOT)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def record(self, stream: str) -> dict[str, Any]:
        """Wait for the entry of one stream."""

        def read() -> dict[str, Any] | None:
            rows = [row for row in self.records() if row["body"].get("stream") == stream]
            assert len(rows) <= 1, f"stream `{stream}` was recorded {len(rows)} times"
            return rows[0] if rows else None

        return until(read, what=f"the audit entry of `{stream}`")


class Control(Process):
    """The control server as the process that it is."""

    def __init__(self, folder: Path, file: Path) -> None:
        super().__init__("-m", "checkstream", "control", "serve", "--config", str(file), cwd=folder)
        self.url = f"http://{self.said(lambda row: row.get('event') == 'listening')['listen']}"


class Open(msgspec.Struct, frozen=True, order=True):
    """What the process holds open, without its pool of connections to the upstream."""

    descriptors: int
    callers: int

    @classmethod
    def of(cls, proxy: Proxy, llm: Llm) -> Open:
        """Look at the process from outside."""
        links = []
        for link in Path(f"/proc/{proxy.popen.pid}/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # closed meanwhile
                links.append(str(link.readlink()))
        inodes = {link[8:-1] for link in links if link.startswith("socket:[")}
        rows = [line.split() for line in Path(f"/proc/{proxy.popen.pid}/net/tcp").read_text().splitlines()[1:]]
        own = [row for row in rows if row[9] in inodes]
        pool = [row for row in own if row[2].endswith(f":{_port_of(llm.url):04X}")]
        callers = [row for row in own if row[1].endswith(f":{_port_of(proxy.url):04X}") and row[3] != "0A"]
        return cls(len(links) - len(pool), len(callers))


def _port_of(url: str) -> int:
    return int(url.rpartition(":")[2])


def verify_audit(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run `checkstream audit verify`."""
    command = [sys.executable, "-m", "checkstream", "audit", "verify", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60, cwd=ROOT)


class RawCaller:
    """A caller that is only a socket, to leave when and how a test wants."""

    def __init__(self, url: str, body: Mapping[str, Any], *, path: str = "/v1/chat/completions") -> None:
        """Connect and send one request."""
        host, port = url.removeprefix("http://").split(":")
        data = json.dumps(dict(body)).encode()
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        head = f"POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {len(data)}"
        self.socket.sendall(f"{head}\r\n\r\n".encode() + data)
        self.received = b""

    def read_until(self, mark: bytes) -> None:
        """Read until `mark` has come."""
        while mark not in self.received:
            piece = self.socket.recv(65536)
            assert piece, f"ended before {mark!r}: {self.received!r}"
            self.received += piece

    def leave(self, *, reset: bool = False) -> float:
        """Close (FIN, or RST) and return when, on the monotonic clock in milliseconds."""
        if reset:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        now_ms = time.monotonic() * 1000
        self.socket.close()
        return now_ms


@contextlib.contextmanager
def running(process: T) -> Iterator[T]:
    """Stop a process at the end, and fail if it does not end well."""
    assert isinstance(process, Process)
    try:
        yield process
    except BaseException:
        sys.stdout.write(process.text)
        process.kill()
        raise
    assert process.stop() == 0, process.text
