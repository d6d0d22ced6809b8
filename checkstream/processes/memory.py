"""What all workers remember as one, in the memory of their parent: sealed blobs, asked for over a pair of sockets.

It ends with the parent. What is to outlive it is configured: a file of SQLite, or Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
from collections.abc import Awaitable, Callable

import msgspec

from checkstream.errors import NotReady, VaultFailed
from checkstream.processes import frames
from checkstream.proxy.spent import Spent
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.store import Blob, Share

_PATIENCE_S = 5.0
"""How long a worker waits for its parent, which has little to do."""


class Get(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """What is kept under a key?"""

    id: int
    key: bytes


class Put(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Keep this, as `Store.put` does."""

    id: int
    key: bytes
    sealed: bytes
    seen: int
    ttl_ms: int
    share: Share | None


class Count(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """How many blobs of shares are there?"""

    id: int


class Spend(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """Was this token spent before? It is from now on."""

    id: int
    nonce: bytes
    expires_ms: int
    now_ms: int


Question = Get | Put | Count | Spend


class Answer(msgspec.Struct, frozen=True, array_like=True):
    """Of any question."""

    id: int
    blob: Blob | None = None
    number: int = 0
    """`Put`, `Spend`: 1 if it was done; `Count`: how many."""
    full: bool = False
    """`Spend`: no more can be remembered."""


_QUESTION = msgspec.msgpack.Decoder(Question)
_ANSWER = msgspec.msgpack.Decoder(Answer)


class Shared:
    """What the parent remembers for its workers. Used on its loop."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.blobs = MemoryStore()
        self.spent = Spent()

    def answer(self, question: Question) -> Answer:
        """Carry out what a worker asks."""
        match question:
            case Get(id, key):
                return Answer(id, self.blobs.get(key))
            case Put(id, key, sealed, seen, ttl_ms, share):
                kept = self.blobs.put(key, sealed, seen=seen, ttl_ms=ttl_ms, share=share)
                return Answer(id, number=int(kept))
            case Count(id):
                return Answer(id, number=self.blobs.count())
            case Spend(id, nonce, expires_ms, now_ms):
                try:
                    return Answer(id, number=int(self.spent.spend(nonce, expires_ms, now_ms)))
                except NotReady:
                    return Answer(id, full=True)


async def serve(end: socket.socket, answer: Callable[[Question], Awaitable[Answer]]) -> None:
    """Answer a worker's questions, one by one, until it is gone.

    Args:
        end: The parent's, which is closed at the end.
        answer: Carries one out.
    """
    reader, writer = await asyncio.open_connection(sock=end)
    try:
        while (body := await frames.read(reader)) is not None:
            writer.write(frames.encode(await answer(_QUESTION.decode(body))))
            await writer.drain()
    except OSError:
        pass  # it is gone
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


class ParentStore:
    """The store of the parent, from a worker: implements `sealed.store.Store`. Use from any thread, not from the loop.

    One question is on its way at a time. An answer that comes too late is passed over by its number.
    """

    def __init__(self, end: socket.socket, patience_s: float = _PATIENCE_S) -> None:
        """Ask over `end`, and wait so long for an answer."""
        end.settimeout(patience_s)
        self._end = end
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._torn = False
        """A frame was left half read or half written: nothing that follows can be told apart."""

    def get(self, key: bytes) -> Blob | None:
        """Return what is kept under a key; None: nothing, or its time is over."""
        return self._asked(Get(next(self._ids), key)).blob

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
        """Keep a blob, unless another has been kept since (see `Store`)."""
        return bool(self._asked(Put(next(self._ids), key, sealed, seen, ttl_ms, share)).number)

    def count(self) -> int:
        """Return how many blobs of shares are kept, about."""
        return self._asked(Count(next(self._ids))).number

    def spend(self, nonce: bytes, expires_ms: int, now_ms: int) -> bool:
        """Spend a token; tell whether it had not been.

        Raises:
            NotReady: the parent can't tell, or can remember no more.
        """
        try:
            answer = self._asked(Spend(next(self._ids), nonce, expires_ms, now_ms))
        except VaultFailed as error:
            raise NotReady("nobody can tell whether this confirmation was used before; try again") from error
        if answer.full:
            raise NotReady("too many confirmations have been used of late; send the request again in a while")
        return bool(answer.number)

    def _asked(self, question: Question) -> Answer:
        with self._lock:
            if self._torn:
                raise VaultFailed("the parent of this process has not answered in time before; it is to be replaced")
            try:
                self._end.sendall(frames.encode(question))
                while True:
                    answer = _ANSWER.decode(frames.read_now(self._end))
                    if answer.id == question.id:
                        return answer
            except OSError as error:
                self._torn = True
                raise VaultFailed(f"the parent of this process does not answer: {str(error).lower()}") from error

    def close(self) -> None:
        """Let go of the socket."""
        with self._lock:
            self._torn = True
            self._end.close()
