"""What conversations have come to, between their requests: sealed for their callers, for a while, within bounds.

A process knows it alone, or shares it with others through a store.
"""

from __future__ import annotations

import random
import time

import msgspec

from checkstream.core.conversation import Conversation, Turn
from checkstream.sealed.sealing import Owner, Seal
from checkstream.sealed.store import Share, Store

_KIND = "conversations"
_MOST_TRIES = 64
"""How often something is put on top of what others have put there meanwhile: each time one of them was done."""
_PATIENCE = 3
"""Tries before others are given room."""
_PAUSE_S = 0.005


class Conversations:
    """What is known, as far as it is still kept. Its calls take as long as those of the store."""

    def __init__(self, store: Store, seal: Seal, *, ttl_s: float, most_bytes: int) -> None:
        """Take where it is kept, and how.

        Args:
            store: Keeps it.
            seal: Makes it unreadable to all but those that share the secret.
            ttl_s: How long a conversation is known behind its last request.
            most_bytes: Of all conversations, about; those that have rested longest are forgotten first, of the caller
                that has most.
        """
        self._store = store
        self._seal = seal
        self._ttl_ms = round(ttl_s * 1000)
        self._most = most_bytes

    def recall(self, caller: str, key: str) -> Conversation | None:
        """Return what is known of a conversation of a caller; None: nothing.

        Raises:
            VaultFailed: the store can't be read, or what it has was sealed with another secret.
        """
        return self._read(Owner(caller, key, _KIND))[0]

    def remember(self, caller: str, key: str, turn: Turn, on_top_of: Conversation | None = None) -> bool:
        """Put one more exchange on top of what is known; tell whether that was done, or too many others were at it.

        Raises:
            VaultFailed: as `recall`, or the store can't be written.
        """
        owner = Owner(caller, key, _KIND)
        share = Share(self._seal.key(Owner(caller, "", _KIND)), self._most)
        for count in range(_MOST_TRIES):
            before, version = self._read(owner)
            after = (on_top_of or before or Conversation()).after(turn)
            sealed = self._seal.sealed(owner, _ENCODER.encode(after))
            if self._store.put(self._seal.key(owner), sealed, seen=version, ttl_ms=self._ttl_ms, share=share):
                return True
            if count >= _PATIENCE:
                time.sleep(random.uniform(0, _PAUSE_S))  # noqa: S311 - to meet fewer others, not to hide
        return False

    def _read(self, owner: Owner) -> tuple[Conversation | None, int]:
        blob = self._store.get(self._seal.key(owner))
        if blob is None:
            return None, 0
        content = self._seal.opened(owner, blob.sealed)
        try:
            return _DECODER.decode(content), blob.version
        except msgspec.DecodeError:  # of another version
            return None, blob.version

    def count(self) -> int:
        """Return how many conversations are known.

        Raises:
            VaultFailed: as `recall`.
        """
        return self._store.count()

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(Conversation)
