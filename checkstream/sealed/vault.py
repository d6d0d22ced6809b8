"""The sealed memory of conversations, as the request path asks for it: states by caller, conversation and kind."""

from __future__ import annotations

import asyncio

from checkstream.core.commands import KeepNames, RecallNames
from checkstream.core.events import NamesKept, NamesKnown
from checkstream.sealed.sealing import Owner, Seal
from checkstream.sealed.store import Store


class Vault:
    """Answers `RecallNames` and `KeepNames`. Its calls to the store run on threads."""

    def __init__(self, store: Store, seal: Seal, *, ttl_s: float) -> None:
        """Take where states are kept, and how.

        Args:
            store: Keeps them.
            seal: Makes them unreadable to all but this memory.
            ttl_s: How long a state is kept after it was last changed.
        """
        self._store = store
        self._seal = seal
        self._ttl_ms = round(ttl_s * 1000)

    async def recall(self, caller: str, command: RecallNames) -> NamesKnown:
        """Return what stands for whose data in a conversation of a caller.

        Raises:
            VaultFailed: the store can't be read, or what it has is not for this vault.
        """
        return await asyncio.to_thread(self._recall, Owner(caller, command.conversation, _NAMES))

    async def keep(self, caller: str, command: KeepNames) -> NamesKept | NamesKnown:
        """Keep a state; where another has been kept since, return that.

        Raises:
            VaultFailed: as `recall`, or the store can't be written.
        """
        return await asyncio.to_thread(self._keep, Owner(caller, command.conversation, _NAMES), command)

    def _recall(self, owner: Owner) -> NamesKnown:
        blob = self._store.get(self._seal.key(owner))
        if blob is None:
            return NamesKnown()
        return NamesKnown(self._seal.opened(owner, blob.sealed), blob.version)

    def _keep(self, owner: Owner, command: KeepNames) -> NamesKept | NamesKnown:
        sealed = self._seal.sealed(owner, command.state)
        if self._store.put(self._seal.key(owner), sealed, seen=command.seen, ttl_ms=self._ttl_ms):
            return NamesKept()
        return self._recall(owner)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


_NAMES = "names"
"""The kind of state that says what stands for which value."""
