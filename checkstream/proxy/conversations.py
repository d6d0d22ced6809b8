"""What is known of conversations between their requests: small values under a key, each caller's apart, for a while.

Forgetting is safe: each request is judged for itself all the same, and a history that is sent again says again what it
says. So memory is bounded, and a process that ends takes it along.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Protocol

import msgspec

from checkstream.core.conversation import Conversation, Turn

_OVERHEAD_BYTES = 512
"""Of a value, besides itself: its key, and where it stands."""
_MOST_TRIES = 4
"""How often something is put on top of what others have put there meanwhile."""


class Kept(Protocol):
    """A store of values that change under the hands of many."""

    def get(self, caller: str, key: str) -> tuple[bytes, int] | None:
        """Return a value and its version; None: there is none, or none any more."""

    def put(self, caller: str, key: str, value: bytes, version: int) -> bool:
        """Keep a value in place of the one of that version, 0: where there is none; tell whether it was still there."""


class _Entry(msgspec.Struct):
    value: bytes
    version: int
    expires: float


class Memory:
    """Values in this process, those least recently put given up first, of the caller that has most."""

    def __init__(self, *, ttl_s: float, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty.

        Args:
            ttl_s: How long a value is kept that nobody puts anew.
            most_bytes: Of all values, about.
            clock: Seconds that only grow.
        """
        self._ttl_s = ttl_s
        self._most = most_bytes
        self._clock = clock
        self._callers: dict[str, OrderedDict[str, _Entry]] = {}
        self._bytes: dict[str, int] = {}
        self._version = 0

    @property
    def size(self) -> int:
        """Bytes of all values, about."""
        return sum(self._bytes.values())

    def get(self, caller: str, key: str) -> tuple[bytes, int] | None:
        """Return a value and its version; None: there is none, or none any more."""
        own = self._callers.get(caller)
        entry = None if own is None else own.get(key)
        if entry is None or entry.expires <= self._clock():
            return None
        return entry.value, entry.version

    def put(self, caller: str, key: str, value: bytes, version: int) -> bool:
        """Keep a value in place of the one of that version, 0: where there is none; tell whether it was still there."""
        known = self.get(caller, key)
        if (0 if known is None else known[1]) != version:
            return False
        own = self._callers.setdefault(caller, OrderedDict())
        if key in own:
            self._drop(caller, key)
            own = self._callers.setdefault(caller, own)
        now = self._clock()
        self._version += 1
        own[key] = _Entry(value, self._version, now + self._ttl_s)
        self._bytes[caller] = self._bytes.get(caller, 0) + len(value) + _OVERHEAD_BYTES
        while next(iter(own.values())).expires <= now:
            self._drop(caller, next(iter(own)))
        while self.size > self._most:
            most = max(self._bytes, key=self._bytes.__getitem__)
            self._drop(most, next(iter(self._callers[most])))
        return True

    def _drop(self, caller: str, key: str) -> None:
        own = self._callers[caller]
        self._bytes[caller] -= len(own.pop(key).value) + _OVERHEAD_BYTES
        if not own:
            del self._callers[caller], self._bytes[caller]


class Conversations:
    """What conversations have come to, as far as it is still kept."""

    def __init__(self, kept: Kept) -> None:
        """Keep it in `kept`."""
        self._kept = kept

    def recall(self, caller: str, key: str) -> Conversation | None:
        """Return what is known of a conversation; None: nothing."""
        return self._read(caller, key)[0]

    def remember(self, caller: str, key: str, turn: Turn, on_top_of: Conversation | None = None) -> bool:
        """Put one more exchange on top of what is known; tell whether that was done, or too many others were at it."""
        for _ in range(_MOST_TRIES):
            before, version = self._read(caller, key)
            after = (on_top_of or before or Conversation()).after(turn)
            if self._kept.put(caller, key, _ENCODER.encode(after), version):
                return True
        return False

    def _read(self, caller: str, key: str) -> tuple[Conversation | None, int]:
        found = self._kept.get(caller, key)
        if found is None:
            return None, 0
        try:
            return _DECODER.decode(found[0]), found[1]
        except msgspec.DecodeError:  # of another version
            return None, found[1]


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Conversation)
