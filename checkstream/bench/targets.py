"""What stands between callers and model: nothing, nginx, `checkstream serve`, or what somebody names."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from checkstream.bench.caller import Place
from checkstream.demo.child import child
from checkstream.errors import BenchError

_PATH = "/v1/chat/completions"
_PAGE = os.sysconf("SC_PAGE_SIZE")
_NGINX = """
daemon off; worker_processes 1; pid nginx.pid; error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off; client_body_temp_path body; proxy_temp_path proxy; fastcgi_temp_path fcgi;
  uwsgi_temp_path uwsgi; scgi_temp_path scgi;
  upstream model {{ server 127.0.0.1:{model}; keepalive 512; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://model; proxy_http_version 1.1; proxy_set_header connection "";
      proxy_buffering off; proxy_read_timeout 600s;
    }}
  }}
}}
"""


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One of them, running."""

    name: str
    place: Place
    pids: tuple[int, ...] = ()
    """Its processes, where they are on this machine; their children count too."""
    own_model: bool = True
    """What stands behind it is the bench's model."""

    def cpu_s(self) -> float | None:
        """Return the CPU time of its processes; None where nobody tells."""
        if not self.pids:
            return None
        return sum(map(_cpu_s, _family(self.pids)))

    def rss_bytes(self) -> int | None:
        """Return the memory of its processes that is in use; None where nobody tells."""
        if not self.pids:
            return None
        return sum(int(fields[21]) for fields in map(_stat, _family(self.pids)) if fields) * _PAGE


def _cpu_s(pid: int) -> float:
    """Return the CPU time of a process and its threads, by its own clock: /proc has it in hundredths of a second."""
    try:
        return time.clock_gettime((~pid << 3) | 2)
    except OSError:  # it has ended
        return 0.0


def _stat(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:  # it has ended
        return []


def _family(pids: Iterable[int]) -> list[int]:
    found: list[int] = []
    for pid in pids:
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                found += _family(map(int, task.read_text().split()))
            except OSError:
                continue
    return found


@contextmanager
def _pinned(cores: Collection[int]) -> Iterator[None]:
    """Have what is started inside run on these cores; on none: wherever it likes."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


@asynccontextmanager
async def guarded(
    model_port: int, policies: Sequence[str], cores: Collection[int], workers: int = 1
) -> AsyncIterator[Target]:
    """Run `checkstream serve` as it is shipped.

    Args:
        model_port: Where the model listens.
        policies: That are shipped too, or have absolute paths.
        cores: To run on; none: wherever it likes.
        workers: Processes that serve.

    Raises:
        BenchError: it doesn't start.
    """
    with TemporaryDirectory() as folder:
        file = Path(folder) / "checkstream.yaml"
        route = {
            "name": "bench",
            "match": {"path": _PATH},
            "upstream": "model",
            "policies": list(policies),
        }
        config = {
            "server": {
                "listen": "127.0.0.1:0",
                "admin": "127.0.0.1:0",
                "limits": {"streams": 4000},
                "workers": workers,
            },
            "upstreams": {"model": {"url": f"http://127.0.0.1:{model_port}"}},
            "routes": [route],
        }
        file.write_text(json.dumps(config), "utf-8")
        with _pinned(cores):
            starting = child("checkstream", ["serve", "--config", str(file), "--log", "json"])
            running = await starting.__aenter__()
        try:
            said = await running.said(lambda row: row.get("event") == "listening")
            port = int(str(said["listen"]).rpartition(":")[2])
            name = "checkstream" if workers == 1 else f"checkstream x{workers}"
            yield Target(name=name, place=_local(port), pids=(running.pid,))
        finally:
            await starting.__aexit__(None, None, None)


@asynccontextmanager
async def nginx(model_port: int, cores: Collection[int]) -> AsyncIterator[Target | None]:
    """Run nginx, which sends on what comes as it comes; None: it isn't installed."""
    program = shutil.which("nginx")
    if program is None:
        yield None
        return
    with TemporaryDirectory() as name:
        port = await _free_port()
        config = Path(name) / "nginx.conf"
        config.write_text(_NGINX.format(model=model_port, port=port), "utf-8")
        with _pinned(cores):
            process = await asyncio.create_subprocess_exec(
                program, "-p", name, "-c", str(config), "-e", "stderr", stderr=asyncio.subprocess.DEVNULL
            )
        try:
            await _listening(port, process)
            yield Target(name="nginx", place=_local(port), pids=(process.pid,))
        finally:
            process.terminate()
            await process.wait()


def _local(port: int) -> Place:
    return Place(host="127.0.0.1", port=port, path=_PATH)


def direct(model_port: int) -> Target:
    """Return the model itself."""
    return Target(name="direct", place=_local(model_port))


async def _free_port() -> int:
    server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0)
    port: int = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return port


async def _listening(port: int, process: asyncio.subprocess.Process) -> None:
    for _ in range(100):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            if process.returncode is not None:
                break
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise BenchError("nginx does not start")
