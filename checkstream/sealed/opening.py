"""Opens the memory that the configuration asks for."""

from __future__ import annotations

from pathlib import Path

from checkstream.config import PseudonymSettings, reveal
from checkstream.errors import VaultFailed
from checkstream.sealed.redis_store import RedisStore
from checkstream.sealed.sealing import LEAST_SECRET_BYTES, Seal
from checkstream.sealed.sqlite_store import SqliteStore
from checkstream.sealed.store import Store
from checkstream.sealed.vault import Vault


def open_vault(settings: PseudonymSettings | None) -> Vault | None:
    """Return the memory; None: nothing is remembered. A Redis server is not asked before the first call.

    Raises:
        ConfigError: a secret can't be read.
        VaultFailed: the secret is too short, or the store can't be used.
    """
    if settings is None:
        return None
    secret = reveal(settings.secret).encode()
    if len(secret) < LEAST_SECRET_BYTES:
        raise VaultFailed(
            f"the secret of `conversations` has {len(secret)} bytes; it needs at least {LEAST_SECRET_BYTES}: "
            "`openssl rand -base64 32` makes one"
        )
    store: Store
    if settings.file is not None:
        store = SqliteStore(Path(settings.file))
    else:
        password = None if settings.password is None else reveal(settings.password)
        store = RedisStore(settings.store, password=password)
    return Vault(store, Seal(secret), ttl_s=settings.ttl_s)
