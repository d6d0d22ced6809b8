"""The sealed memory of conversations, as the request path asks for it: states by caller, conversation and kind."""

from __future__ import annotations

import asyncio

from checkstream.core.commands import KeepNames, RecallNames
from checkstream.core.events import NamesKept, NamesKnown
from checkstream.errors import VaultFailed
from checkstream.sealed.sealing import Owner, Seal
from checkstream.sealed.store import Share, Store


class Vault:
    """Answers `RecallNames` and `KeepNames`. Its calls to the store run on threads."""

    def __init__(self, store: Store, seal: Seal, *, ttl_s: float, most_bytes: int) -> None:
        """Take where states are kept, and how.

        Args:
            store: Keeps them.
            seal: Makes them unreadable to all but this memory.
            ttl_s: How long a state is kept after it was last changed.
            most_bytes: Of all states, about; those that have rested longest are forgotten first, of the caller that has
                most.
        """
        self._store = store
        self._seal = seal
        self._ttl_ms = round(ttl_s * 1000)
        self._most = most_bytes

    async def recall(self, caller: str, command: RecallNames) -> NamesKnown:
        """Return what stands for whose data in a conversation of a caller.

        Raises:
            VaultFailed: the store can't be read, or what it has is not for this vault.
        """
        return await asyncio.to_thread(self._recall, Owner(caller, command.conversation, _NAMES))

    async def keep(self, caller: str, command: KeepNames) -> NamesKept | NamesKnown:
        """Keep a state; where another has been kept since, return that.

        Where it is an answer's (`later`), and another answer of that id had other names, none are kept under it: nobody
        can tell which of them a request goes on from.

        Raises:
            VaultFailed: as `recall`, or the store can't be written.
        """
        keep = self._keep_of_answer if command.later else self._keep
        return await asyncio.to_thread(keep, Owner(caller, command.conversation, _NAMES), command)

    def _recall(self, owner: Owner) -> NamesKnown:
        state, version = self._read(owner)
        return NamesKnown(None if state == _OF_SEVERAL else state, version)

    def _read(self, owner: Owner) -> tuple[bytes | None, int]:
        blob = self._store.get(self._seal.key(owner))
        return (None, 0) if blob is None else (self._seal.opened(owner, blob.sealed), blob.version)

    def _keep(self, owner: Owner, command: KeepNames) -> NamesKept | NamesKnown:
        return NamesKept() if self._put(owner, command.state, command.seen) else self._recall(owner)

    def _keep_of_answer(self, owner: Owner, command: KeepNames) -> NamesKept | NamesKnown:
        for _ in range(_MOST_TRIES):
            known, version = self._read(owner)
            if known == command.state:
                return NamesKept()
            state = command.state if known is None else _OF_SEVERAL
            if known == _OF_SEVERAL or self._put(owner, state, version):
                return NamesKept() if known is None else NamesKnown(None, version)
        raise VaultFailed("the store of names is written by too many at a time")

    def _put(self, owner: Owner, state: bytes, seen: int) -> bool:
        share = Share(self._seal.key(Owner(owner.caller, "", _NAMES)), self._most)
        sealed = self._seal.sealed(owner, state)
        return self._store.put(self._seal.key(owner), sealed, seen=seen, ttl_ms=self._ttl_ms, share=share)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()


_NAMES = "names, and where they stood"
"""The kind of state that says what stands for which value."""
_OF_SEVERAL = b"-"
"""In place of a state: several answers have had the id, each with names of its own."""
_MOST_TRIES = 20
