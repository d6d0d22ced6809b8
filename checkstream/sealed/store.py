"""What a store of conversations does: it keeps sealed blobs for a time, and replaces one only by who has seen it.

A store knows neither callers nor conversations: a blob has a key that tells nothing, and content that is sealed.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Blob(NamedTuple):
    """What is kept under one key."""

    sealed: bytes
    version: int
    """1 for the first content, one more for each that has replaced it."""


class Share(NamedTuple):
    """Whose a blob is, where what is kept has bounds."""

    key: bytes
    """Tells nothing of the owner."""
    most_bytes: int
    """Of all blobs that are of shares, about: above it those that have rested longest are forgotten, of the share that
    has most."""


class Store(Protocol):
    """Keeps blobs. Every call raises `VaultFailed` when the store can't be read or written; it may take long."""

    def get(self, key: bytes) -> Blob | None:
        """Return what is kept under a key; None: nothing, or its time is over."""

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
        """Keep a blob, unless another has been kept since.

        Args:
            key: Under which.
            sealed: The content.
            seen: The version that it replaces; 0: none is there.
            ttl_ms: How long it is kept from now on.
            share: In whose share of the room; None: it has no bounds.

        Returns:
            Whether it is kept; else another version is there than `seen`.
        """

    def count(self) -> int:
        """Return how many blobs of shares are kept, about."""

    def close(self) -> None:
        """Let go of the file or the connections."""
