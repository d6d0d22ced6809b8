"""How the tools of servers were described, kept for all processes: as requests ask, and as operators review it.

It is sealed, so that nobody but who has the secret can say that a tool was described as it never was.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

import msgspec

from checkstream.core.commands import KeepTools, RecallTools
from checkstream.core.events import ToolsKept, ToolsKnown
from checkstream.core.exchange.rpc.toolbook import Pin, Pins
from checkstream.errors import ToolsUnreadable, VaultFailed
from checkstream.sealed.sealing import Owner, Seal
from checkstream.sealed.store import Store

_TOOLS = "tools"
"""The kind of state that says how a server's tools were described."""
_SERVERS = Owner("", "", "servers of tools")
"""Whose state names the servers: a store tells nobody what it has."""
_FOREVER_MS = 100 * 365 * 86_400_000
_FRESH_S = 1.0
"""So long an answer of the store is taken for the present state: what an operator accepts counts after that."""
_MOST_SERVERS = 1000
_MOST_TRIES = 20


class ToolStore:
    """Answers `RecallTools` and `KeepTools`; its calls to the store run on threads. The others are for commands."""

    def __init__(self, store: Store, seal: Seal) -> None:
        """Take where it is kept, and what makes it unreadable to all but who has the secret."""
        self._store = store
        self._seal = seal
        self._known: dict[str, tuple[float, ToolsKnown]] = {}
        """Server -> when the store was asked (monotonic seconds), and what it said."""

    async def recall(self, command: RecallTools) -> ToolsKnown:
        """Return how a server's tools were described.

        Raises:
            VaultFailed: the store can't be read, or what it has was altered.
        """
        at, known = self._known.get(command.server, (0.0, None))
        if known is not None and time.monotonic() - at < _FRESH_S:
            return known
        known = await asyncio.to_thread(self._get, command.server)
        self._note(command.server, known)
        return known

    async def keep(self, command: KeepTools) -> ToolsKept | ToolsKnown:
        """Keep it; where another process has kept something since, return that.

        Raises:
            VaultFailed: as `recall`, or the store can't be written, or has too many servers.
        """
        if await asyncio.to_thread(self._put, command.server, command.state, command.seen):
            self._note(command.server, ToolsKnown(command.state, command.seen + 1))
            return ToolsKept()
        known = await asyncio.to_thread(self._get, command.server)
        self._note(command.server, known)
        return known

    def _note(self, server: str, known: ToolsKnown) -> None:
        if len(self._known) >= _MOST_SERVERS:
            self._known.clear()
        self._known[server] = time.monotonic(), known

    def _get(self, server: str) -> ToolsKnown:
        return ToolsKnown(*self._read(Owner("", server, _TOOLS)))

    def _put(self, server: str, state: bytes, seen: int) -> bool:
        if not seen:
            self._name(server)  # before: what is not named is never reviewed
        return self._write(Owner("", server, _TOOLS), state, seen)

    def _read(self, owner: Owner) -> tuple[bytes | None, int]:
        blob = self._store.get(self._seal.key(owner))
        return (None, 0) if blob is None else (self._seal.opened(owner, blob.sealed), blob.version)

    def _write(self, owner: Owner, state: bytes, seen: int) -> bool:
        return self._store.put(self._seal.key(owner), self._seal.sealed(owner, state), seen=seen, ttl_ms=_FOREVER_MS)

    def _name(self, server: str) -> None:
        """Note that a server is there."""
        for _ in range(_MOST_TRIES):
            servers, version = self._servers()
            if server in servers:
                return
            if len(servers) >= _MOST_SERVERS:
                raise VaultFailed(f"the store of tools has {_MOST_SERVERS} servers; it takes no more")
            state = msgspec.json.encode([*servers, server])
            if self._write(_SERVERS, state, version):
                return
        raise VaultFailed("the store of tools is written by too many at a time; try again")

    def _servers(self) -> tuple[list[str], int]:
        content, version = self._read(_SERVERS)
        try:
            return ([] if content is None else msgspec.json.decode(content, type=list[str])), version
        except msgspec.DecodeError as error:
            raise VaultFailed("what the store of tools says of its servers can't be read") from error

    # --- for commands

    def servers(self) -> list[str]:
        """Return the servers whose tools have been seen.

        Raises:
            VaultFailed: the store can't be read, or what it has was altered.
        """
        return sorted(self._servers()[0])

    def tools(self, server: str) -> dict[str, Pin]:
        """Return what is known of a server's tools, by name.

        Raises:
            VaultFailed: as `servers`.
        """
        return self._pins(server)[0].tools

    def change(self, server: str, change: Callable[[Pins], int]) -> int:
        """Have what is known of a server changed, whatever is kept meanwhile; return how many tools that concerns.

        Raises:
            VaultFailed: as `servers`, or the store can't be written.
        """
        for _ in range(_MOST_TRIES):
            pins, version = self._pins(server)
            count = change(pins)
            if not pins.changed or self._put(server, pins.state(), version):
                return count
        raise VaultFailed("the store of tools is written by too many at a time; try again")

    def _pins(self, server: str) -> tuple[Pins, int]:
        known, pins = self._get(server), Pins()
        try:
            pins.begin_with(known.state)
        except ToolsUnreadable as error:
            raise VaultFailed(str(error)) from error
        return pins, known.version

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()
