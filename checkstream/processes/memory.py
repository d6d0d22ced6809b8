"""What all workers remember as one, in the memory of their parent: sealed blobs, asked for over a pair of sockets.

It ends with the parent. What is to outlive it is configured: a file of SQLite, or Redis.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import threading
import time
from collections.abc import Awaitable, Callable

import msgspec

from checkstream.errors import NotReady, VaultFailed
from checkstream.processes import frames
from checkstream.proxy.spent import Spent
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.store import Blob, Share

_PIECE_BYTES = 65_536
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

    One question is on its way at a time. While one is late, further ones fail at once and wait for nobody; what is
    left of it is passed over when the parent answers again, since a pause of the machine is no end.
    """

    def __init__(self, end: socket.socket, patience_s: float = _PATIENCE_S) -> None:
        """Ask over `end`, and wait so long for an answer."""
        self._end = end
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._ids = itertools.count(1)
        self._unsent = b""
        self._got = bytearray()
        self._late = 0
        """The question that the parent has yet to answer; 0: none."""
        self._gone = False

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
            if self._gone:
                raise VaultFailed("the parent of this process is gone")
            try:
                if self._late:
                    self._wait_for(self._late, 0.0)
                self._late, self._unsent = question.id, frames.encode(question)
                answer = self._wait_for(question.id, self._patience_s)
            except TimeoutError as error:
                raise VaultFailed("the parent of this process does not answer in time; try again") from error
            except OSError as error:
                self._gone = True
                raise VaultFailed(f"the parent of this process does not answer: {str(error).lower()}") from error
            return answer

    def _wait_for(self, id_: int, patience_s: float) -> Answer:
        """Send what is to be sent, and return the answer to a question.

        Raises:
            TimeoutError: it has not come; what has come of it is kept.
            OSError: the parent is gone.
        """
        ends = time.monotonic() + patience_s
        while True:
            body = frames.cut(self._got)
            if body is not None:
                answer = _ANSWER.decode(body)
                if answer.id == id_:
                    self._late = 0
                    return answer
                continue
            self._end.settimeout(max(ends - time.monotonic(), 0.0))
            try:
                if self._unsent:
                    self._unsent = self._unsent[self._end.send(self._unsent) :]
                    continue
                piece = self._end.recv(_PIECE_BYTES)
            except BlockingIOError as error:
                raise TimeoutError from error
            if not piece:
                raise ConnectionResetError("the other end is gone")
            self._got += piece

    def close(self) -> None:
        """Let go of the socket."""
        with self._lock:
            self._gone = True
            self._end.close()
