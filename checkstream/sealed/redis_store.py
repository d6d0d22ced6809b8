"""The store of several machines: hashes in Redis that expire by themselves, replaced by a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from checkstream.errors import VaultFailed
from checkstream.sealed.store import Blob

try:
    import redis
except ModuleNotFoundError:  # an extra
    redis = None  # type: ignore[assignment]

_TIMEOUT_S = 5.0
_PUT = """
local version = tonumber(redis.call('HGET', KEYS[1], 'version') or '0')
if version ~= tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'version', version + 1, 'sealed', ARGV[2])
redis.call('PEXPIRE', KEYS[1], ARGV[3])
return 1
"""

_Result = TypeVar("_Result")


class RedisStore:
    """Keeps blobs in a Redis server, which is asked at the first call."""

    def __init__(self, url: str, *, password: str | None = None, prefix: str = "checkstream:conversation:") -> None:
        """Take where the server is.

        Args:
            url: `redis://HOST:PORT/DB`, or `rediss://` with TLS.
            password: The server's.
            prefix: Before each key.

        Raises:
            VaultFailed: the client is not installed.
        """
        if redis is None:
            raise VaultFailed("Redis needs its client: `pip install 'checkstream[redis]'`")
        self._client: Any = redis.Redis.from_url(
            url, password=password, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
        )
        self._put = self._client.register_script(_PUT)
        self._prefix = prefix

    def get(self, key: bytes) -> Blob | None:
        """Return what is kept under a key; None: nothing, or its time is over."""
        sealed, version = self._asked(lambda: self._client.hmget(self._key(key), "sealed", "version"))
        return None if sealed is None or version is None else Blob(bytes(sealed), int(version))

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int) -> bool:
        """Keep a blob, unless another has been kept since (see `Store`)."""
        return bool(self._asked(lambda: self._put(keys=[self._key(key)], args=[seen, sealed, ttl_ms])))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _key(self, key: bytes) -> str:
        return f"{self._prefix}{key.hex()}"

    def _asked(self, ask: Callable[[], _Result]) -> _Result:
        try:
            return ask()
        except (redis.RedisError, OSError) as error:
            raise VaultFailed(f"the store of conversations failed: {type(error).__name__}") from error
