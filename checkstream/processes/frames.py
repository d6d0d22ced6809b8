"""What parent and workers say to each other: structs in MessagePack, each behind its length, over a pair of sockets."""

from __future__ import annotations

import asyncio
import hmac
import os
import socket
import struct
from collections.abc import Sequence
from typing import Literal

import msgspec

from checkstream.errors import Fault

_LENGTH = struct.Struct(">I")
_MOST_BYTES = 64 * 1024 * 1024
"""Of one frame; both ends are ours, so a longer one is a bug."""
MOST_DESCRIPTORS = 253
"""That one message may carry: as many as the system takes."""

What = Literal[
    "ping", "status", "metrics", "audit", "policies", "load", "enforce", "forget", "adopt", "release", "retire", "drain"
]  # fmt: skip
"""What a parent asks of a worker."""


class Welcome(msgspec.Struct, frozen=True, array_like=True):
    """The first that a worker hears.

    Its descriptors: the store's socket, the board's memory, then the listening sockets of all slots.
    """

    slot: int
    """Its own listening sockets are those of this slot."""
    slots: int
    first: bool
    """It tells of the start for all: what the others would only say again."""
    secret: bytes
    """Of all processes of this parent: what one has sealed the others can open."""
    began: float
    """When the first of them began, in seconds of the machine's monotonic clock."""
    page: int
    """Its own on the board."""
    graphs: str
    """Folder of these processes, where graphs are kept for all of them; empty: each has its own."""
    board: bytes = b""
    """The secret of what is counted on the board, where it is that of all machines; empty: it follows from `secret`.

    A parent of a version that knew no other machines says none.
    """

    @property
    def counting(self) -> bytes:
        """The secret of what is counted on the board."""
        return self.board or derived(self.secret, "board")


class Ask(msgspec.Struct, frozen=True, array_like=True):
    """The parent wants something."""

    id: int
    what: What
    number: int = 0
    """`audit`: how many entries; `adopt`, `release`: which slot."""


class Ready(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker serves."""

    digest: str
    """Of all that is in force there."""
    files: tuple[str, ...]
    """Whose change is to be loaded."""
    introduction: dict[str, object]
    warnings: tuple[str, ...]


class Told(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker's answer."""

    id: int
    body: bytes = b""
    refused: Literal["", "configuration", "policy", "failed"] = ""
    faults: tuple[Fault, ...] = ()


class Leaving(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker was asked by somebody else to end: it takes no new connections, and ends behind the last."""


class Bye(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A worker has served its last."""

    metrics: bytes


class In(msgspec.Struct, frozen=True):
    """What is in force in a worker, or could be: the answer to `load` and `enforce`."""

    digest: str
    files: tuple[str, ...]


FromWorker = Ready | Told | Leaving | Bye
_ENCODER = msgspec.msgpack.Encoder()


def derived(secret: bytes, what: str) -> bytes:
    """Return a secret for one use."""
    return hmac.digest(secret, what.encode(), "sha256")


def encode(message: msgspec.Struct) -> bytes:
    """Return a message as a frame."""
    body = _ENCODER.encode(message)
    return _LENGTH.pack(len(body)) + body


async def read(stream: asyncio.StreamReader) -> bytes | None:
    """Return what the next frame holds; None: the other end is gone."""
    try:
        (size,) = _LENGTH.unpack(await stream.readexactly(_LENGTH.size))
        return await stream.readexactly(size) if size <= _MOST_BYTES else None
    except (asyncio.IncompleteReadError, OSError):
        return None


def cut(got: bytearray) -> bytes | None:
    """Take the first frame off what has come, and return what it holds; None: it has not come whole."""
    if len(got) < _LENGTH.size:
        return None
    (size,) = _LENGTH.unpack_from(got)
    end = _LENGTH.size + size
    if len(got) < end:
        return None
    body = bytes(got[_LENGTH.size : end])
    del got[:end]
    return body


def _exactly(sock: socket.socket, size: int) -> bytes:
    got = bytearray()
    while len(got) < size:
        piece = sock.recv(size - len(got))
        if not piece:
            raise ConnectionResetError("the other end is gone")
        got += piece
    return bytes(got)


def send_with(sock: socket.socket, message: msgspec.Struct, descriptors: Sequence[int]) -> None:
    """Send a message and, beside it, descriptors. Blocks; nothing else may be on its way.

    Raises:
        OSError: the other end is gone, or these are more than the system takes.
    """
    frame = encode(message)
    count = socket.send_fds(sock, [frame], descriptors)
    sock.sendall(frame[count:])


def take_with(sock: socket.socket) -> tuple[bytes, list[int]]:
    """Return what a message holds and the descriptors beside it, which children don't inherit. Blocks.

    Raises:
        OSError: the other end is gone.
    """
    head, descriptors, _, _ = socket.recv_fds(sock, _LENGTH.size, MOST_DESCRIPTORS)
    for each in descriptors:
        os.set_inheritable(each, False)
    (size,) = _LENGTH.unpack(head + _exactly(sock, _LENGTH.size - len(head)))
    return _exactly(sock, size), descriptors
