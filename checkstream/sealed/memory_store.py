"""The store of one process, which ends with it."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterable

import msgspec

from checkstream.sealed.store import Blob, Share

_OVERHEAD_BYTES = 512
"""Of a blob, besides itself: its key, and where it stands."""


class _Entry(msgspec.Struct):
    sealed: bytes
    version: int
    expires: float


class Kept(msgspec.Struct, frozen=True, array_like=True):
    """A blob as another store of this machine keeps on with it."""

    share: bytes
    """Whose it is; empty: it has no bounds."""
    key: bytes
    sealed: bytes
    version: int
    expires: float


class MemoryStore:
    """Keeps blobs of shares. It is asked on one thread."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Start empty; `clock`: seconds that only grow."""
        self._clock = clock
        self._owners: dict[bytes, bytes] = {}
        """Key -> the share that it is of."""
        self._shares: dict[bytes, OrderedDict[bytes, _Entry]] = {}
        """Of each what has rested longest first."""
        self._bytes: dict[bytes, int] = {}

    @property
    def size(self) -> int:
        """Bytes of all blobs of shares, about."""
        return sum(self._bytes.values())

    def get(self, key: bytes) -> Blob | None:
        """Return what is kept under a key; None: nothing, or its time is over."""
        share = self._owners.get(key)
        entry = None if share is None else self._shares[share][key]
        if entry is None or entry.expires <= self._clock():
            return None
        return Blob(entry.sealed, entry.version)

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
        """Keep a blob, unless another has been kept since (see `Store`)."""
        known = self.get(key)
        if (0 if known is None else known.version) != seen:
            return False
        if key in self._owners:
            self._drop(key)
        owner, now = (b"" if share is None else share.key), self._clock()
        own = self._shares.setdefault(owner, OrderedDict())
        own[key] = _Entry(sealed, seen + 1, now + ttl_ms / 1000)
        self._owners[key] = owner
        if share is not None:
            self._bytes[owner] = self._bytes.get(owner, 0) + len(sealed) + _OVERHEAD_BYTES
        while next(iter(own.values())).expires <= now:
            self._drop(next(iter(own)))
        while share is not None and self.size > share.most_bytes:
            most = max(self._bytes, key=self._bytes.__getitem__)
            self._drop(next(iter(self._shares[most])))
        return True

    def count(self) -> int:
        """Return how many blobs of shares are kept, about."""
        return sum(len(self._shares[share]) for share in self._bytes)

    def all(self) -> list[Kept]:
        """Return all that is kept; of each share what has rested longest first."""
        return [
            Kept(share, key, entry.sealed, entry.version, entry.expires)
            for share, own in self._shares.items()
            for key, entry in own.items()
        ]

    def restore(self, kept: Iterable[Kept]) -> None:
        """Keep what another store with the same clock has kept; this one is empty."""
        for each in kept:
            self._owners[each.key] = each.share
            own = self._shares.setdefault(each.share, OrderedDict())
            own[each.key] = _Entry(each.sealed, each.version, each.expires)
            if each.share:
                self._bytes[each.share] = self._bytes.get(each.share, 0) + len(each.sealed) + _OVERHEAD_BYTES

    def close(self) -> None:
        """Forget all."""
        self._owners.clear()
        self._shares.clear()
        self._bytes.clear()

    def _drop(self, key: bytes) -> None:
        share = self._owners.pop(key)
        own = self._shares[share]
        sealed = own.pop(key).sealed
        if share in self._bytes:
            self._bytes[share] -= len(sealed) + _OVERHEAD_BYTES
        if not own:
            del self._shares[share]
            self._bytes.pop(share, None)
