"""A model server and its caller, who say and read a token at a time: none is said before the proxy has read the last.

Sockets that block, in the thread that drives them, so nothing of them runs in the proxy or in a loop of a test. A calm
word leaves when the next begins; so whoever has said a token waits until the one before it has come, and each is a read
of its own however busy the machine is. What is held for longer costs a wait and changes nothing.
"""

from __future__ import annotations

import asyncio
import select
import socket
import time
from collections.abc import Callable
from itertools import cycle, islice
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from bench.load import chunk
from bench.policies import with_classifiers
from bench.scenario import DONE, FIRST, LAST, event, request
from checkstream.app import App
from checkstream.config import Config, default_config
from tests.e2e.harness import START_S

T = TypeVar("T")
PATH = "/v1/chat/completions"
_WAIT_S = 2.0
"""For a word that should have left: far longer than any machine takes, and no failure if a policy holds it."""
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
_TEXT = "the keeper walks home along the shore and thinks about the quiet evening sea while waves wash warm stones"


def calm(count: int) -> list[str]:
    """Return so many tokens of calm English, each a word."""
    return [f" {word}" for word in islice(cycle(_TEXT.split()), count)]


class Stream:
    """One stream through a proxy, both of its ends."""

    def __init__(self) -> None:
        """Listen as a model server."""
        self._server = socket.create_server(("127.0.0.1", 0))
        self._server.settimeout(START_S)
        self.port: int = self._server.getsockname()[1]
        self._caller = self._model = socket.socket()
        self._said = 0
        self._received = b""
        self.events = 0
        """That have come to the caller."""

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close all sockets."""
        for each in (self._caller, self._model, self._server):
            each.close()

    def begin(self, proxy_url: str) -> None:
        """Ask the proxy for a stream, and answer the request that it makes of that."""
        host, _, port = proxy_url.removeprefix("http://").partition(":")
        self._caller.close()
        self._caller = socket.create_connection((host, int(port)), timeout=START_S)
        body = request("m", "How does a lighthouse work?")
        head = f"POST {PATH} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}"
        self._caller.sendall(f"{head}\r\n\r\n".encode() + body)
        asked = b""
        while not asked:  # at its start the proxy only looks whether it can connect
            self._model.close()
            self._model, _ = self._server.accept()
            self._model.settimeout(START_S)
            asked = self._model.recv(1 << 16)
        self._model.sendall(_HEAD)
        self._send(FIRST)

    def say(self, texts: list[str], *, held: int = 1, rest_s: float = 0.0) -> None:
        """Say tokens, each when those before it have come but for `held`, and so long after that."""
        for text in texts:
            self._send(event({"content": text}))
            self._read(self._said - held, _WAIT_S)
            time.sleep(rest_s)

    def finish(self) -> None:
        """End the answer, and read all of it."""
        self._send(LAST)
        self._send(DONE)
        self._model.sendall(b"0\r\n\r\n")
        self._read(self._said, START_S)

    def _send(self, data: bytes) -> None:
        self._model.sendall(chunk(data))
        self._said += 1

    def _read(self, events: int, seconds: float) -> None:
        """Read until so many events have come, for so long."""
        end = time.monotonic() + seconds
        while self.events < events and select.select([self._caller], [], [], max(end - time.monotonic(), 0.0))[0]:
            data = self._caller.recv(1 << 16)
            assert data, f"the stream broke off after {self.events} events: {self._received[-2000:]!r}"
            self._received += data
            self.events = self._received.count(b"\n\n")


def patterns(folder: Path) -> str:
    """Write the default policies without what classifiers decide, and return the file."""
    file = folder / "patterns.yaml"
    file.write_text(with_classifiers(), "utf-8")
    return str(file)


def beside_a_proxy(
    policy: str, drive: Callable[[Stream, str], T], new_loop: Callable[[], asyncio.AbstractEventLoop]
) -> T:
    """Serve in this thread, and drive a stream in another one.

    Args:
        policy: Of the proxy, which keeps what it keeps below the working directory.
        drive: Is given a stream and the proxy's address; what it returns is returned.
        new_loop: Makes the proxy's loop.
    """

    async def serve(stream: Stream) -> T:
        def read() -> Config:
            url = f"http://127.0.0.1:{stream.port}"
            return default_config(url, policies=[policy], listen="127.0.0.1:0", admin="127.0.0.1:0")

        async with App(read) as app:
            return await asyncio.to_thread(drive, stream, f"http://{app.listener.address}")

    with Stream() as stream, asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(serve(stream))
