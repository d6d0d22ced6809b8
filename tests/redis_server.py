"""A real Redis server of a test's own: every write is on disk before it is answered, and it can be killed."""

from __future__ import annotations

import os
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


class RedisServer:
    """Runs `redis-server` on a socket in a folder of its own. Use as a context manager."""

    def __init__(self) -> None:
        self._folder = memory_folder()
        self._process: subprocess.Popen[str] | None = None
        self.url = f"unix://{self._folder.name}/s"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._folder.cleanup()

    def start(self) -> None:
        """Start it, with what it has on disk; return when it answers."""
        folder = Path(self._folder.name)
        settings = {
            "port": "0",
            "unixsocket": str(folder / "s"),
            "dir": str(folder),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always",
        }
        arguments = [word for name, value in settings.items() for word in (f"--{name}", value)]
        self._process = subprocess.Popen(["redis-server", *arguments], stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if "ready to accept connections" in line.lower():
                return
        raise AssertionError("redis-server did not start")

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
