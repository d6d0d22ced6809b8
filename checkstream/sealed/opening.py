"""Opens the memories that the configuration asks for."""

from __future__ import annotations

import os
from pathlib import Path

from checkstream.config import ConversationSettings, PseudonymSettings, Secret, ToolSettings, reveal
from checkstream.errors import VaultFailed
from checkstream.sealed.conversations import Conversations
from checkstream.sealed.memory_store import MemoryStore
from checkstream.sealed.sealing import LEAST_SECRET_BYTES, Seal
from checkstream.sealed.sqlite_store import SqliteStore
from checkstream.sealed.store import Store
from checkstream.sealed.tools import ToolStore
from checkstream.sealed.vault import Vault


def open_vault(settings: PseudonymSettings | None) -> Vault | None:
    """Return the memory of names; None: none are remembered. A Redis server that doesn't answer yet is asked later.

    Raises:
        ConfigError: a secret can't be read.
        VaultFailed: the secret is too short, or the store can't be used.
    """
    if settings is None:
        return None
    seal = _seal(settings.secret, "pseudonyms")
    store = _store(settings.file, settings.store, settings.password, "pseudonyms", "checkstream:names:")
    return Vault(store, seal, ttl_s=settings.ttl_s, most_bytes=settings.bytes)


def open_conversations(
    settings: ConversationSettings | None, shared: tuple[Store, bytes] | None = None
) -> Conversations | None:
    """Return the memory of conversations, of this process or shared; None: nothing is remembered.

    Args:
        settings: Where it is.
        shared: Keeps it where the settings name no store, and what it is sealed with; None: this process's own memory.

    Raises:
        ConfigError: a secret can't be read.
        VaultFailed: the secret is too short, or the store can't be used.
    """
    if settings is None:
        return None
    store: Store
    if settings.store is None or settings.secret is None:
        store, secret = shared or (MemoryStore(), os.urandom(LEAST_SECRET_BYTES))
        seal = Seal(secret)
    else:
        seal = _seal(settings.secret, "conversations")
        store = _store(settings.file, settings.store, settings.password)
    return Conversations(store, seal, ttl_s=settings.ttl_s, most_bytes=settings.bytes)


def open_tools(settings: ToolSettings | None) -> ToolStore | None:
    """Return what keeps how tools were described; None: each process knows what it has seen.

    Raises:
        ConfigError: a secret can't be read.
        VaultFailed: the secret is too short, or the store can't be used.
    """
    if settings is None:
        return None
    seal = _seal(settings.secret, "tools")
    return ToolStore(_store(settings.file, settings.store, settings.password, "tools"), seal)


def long_secret(given: Secret, what: str) -> bytes:
    """Return a secret that is long enough to seal with. Blocks on its file.

    Args:
        given: Where it is.
        what: Of which section of the configuration, as the error says it.

    Raises:
        ConfigError: it can't be read.
        VaultFailed: it is too short.
    """
    secret = reveal(given).encode()
    if len(secret) < LEAST_SECRET_BYTES:
        raise VaultFailed(
            f"the secret of `{what}` has {len(secret)} bytes; it needs at least {LEAST_SECRET_BYTES}: "
            "`openssl rand -base64 32` makes one"
        )
    return secret


def _seal(given: Secret, what: str) -> Seal:
    return Seal(long_secret(given, what))


def _store(
    file: str | None,
    url: str,
    password: Secret | None,
    what: str = "conversations",
    prefix: str = "checkstream:conversation:",
) -> Store:
    if file is not None:
        return SqliteStore(Path(file), what)
    from checkstream.sealed.redis_store import RedisStore  # noqa: PLC0415 - its client is large, and needed here alone

    store = RedisStore(url, what, password=None if password is None else reveal(password), prefix=prefix)
    store.look()
    return store
