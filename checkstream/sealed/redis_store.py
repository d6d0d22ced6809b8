"""The store of several machines: hashes in Redis that expire by themselves, replaced by a script.

What has bounds stands besides in lists of its share, whose names the script makes: a cluster of Redis can't keep it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, TypeVar

from checkstream.errors import VaultFailed
from checkstream.sealed.store import Blob, Share

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
if ARGV[4] == '' then return 1 end
local root, share, most = ARGV[5], ARGV[4], tonumber(ARGV[6])
local function left(of, id)
  local size = tonumber(redis.call('HGET', root .. 'sizes:' .. of, id) or '0')
  redis.call('HDEL', root .. 'sizes:' .. of, id)
  redis.call('ZREM', root .. 'order:' .. of, id)
  if redis.call('HINCRBY', root .. 'shares', of, -size) <= 0 then redis.call('HDEL', root .. 'shares', of) end
end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for _, id in ipairs(redis.call('ZRANGEBYSCORE', root .. 'order:' .. share, '-inf', now, 'LIMIT', 0, 16)) do
  left(share, id)
end
left(share, KEYS[1])
local size = #ARGV[2] + 512
redis.call('HSET', root .. 'sizes:' .. share, KEYS[1], size)
redis.call('ZADD', root .. 'order:' .. share, now + tonumber(ARGV[3]), KEYS[1])
redis.call('HINCRBY', root .. 'shares', share, size)
while true do
  local all, largest, bytes = 0, '', -1
  local shares = redis.call('HGETALL', root .. 'shares')
  for at = 1, #shares, 2 do
    local own = tonumber(shares[at + 1])
    all = all + own
    if own > bytes then largest, bytes = shares[at], own end
  end
  if all <= most then return 1 end
  local id = redis.call('ZRANGE', root .. 'order:' .. largest, 0, 0)[1]
  if not id then redis.call('HDEL', root .. 'shares', largest) else
    redis.call('DEL', id)
    left(largest, id)
  end
end
"""
_COUNT = """
local number = 0
for _, share in ipairs(redis.call('HKEYS', ARGV[1] .. 'shares')) do
  number = number + redis.call('ZCARD', ARGV[1] .. 'order:' .. share)
end
return number
"""

_Result = TypeVar("_Result")


class RedisStore:
    """Keeps blobs in a Redis server."""

    def __init__(
        self,
        url: str,
        what: str = "conversations",
        *,
        password: str | None = None,
        prefix: str = "checkstream:conversation:",
    ) -> None:
        """Take where the server is.

        Args:
            url: `redis://HOST:PORT/DB`, or `rediss://` with TLS.
            what: What is kept there, as errors say it.
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
        self._count = self._client.register_script(_COUNT)
        self._prefix = prefix
        self._what = what
        self._is_single = False
        """It is known to be a server by itself."""

    def look(self) -> None:
        """Ask what kind of server it is, if it answers: one that doesn't is asked when something is to be kept.

        Raises:
            VaultFailed: it is a node of a cluster.
        """
        with contextlib.suppress(redis.RedisError, OSError):
            self._refuse_cluster()

    def get(self, key: bytes) -> Blob | None:
        """Return what is kept under a key; None: nothing, or its time is over."""
        sealed, version = self._asked(lambda: self._client.hmget(self._key(key), "sealed", "version"))
        return None if sealed is None or version is None else Blob(bytes(sealed), int(version))

    def put(self, key: bytes, sealed: bytes, *, seen: int, ttl_ms: int, share: Share | None = None) -> bool:
        """Keep a blob, unless another has been kept since (see `Store`)."""
        bounds = ("", "", 0) if share is None else (share.key.hex(), self._prefix, share.most_bytes)
        return bool(self._asked(lambda: self._put(keys=[self._key(key)], args=[seen, sealed, ttl_ms, *bounds])))

    def count(self) -> int:
        """Return how many blobs of shares are kept, about."""
        return int(self._asked(lambda: self._count(keys=[], args=[self._prefix])))

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _key(self, key: bytes) -> str:
        return f"{self._prefix}{key.hex()}"

    def _refuse_cluster(self) -> None:
        """Refuse a node of a cluster, which has a part of the keys alone."""
        try:
            said = self._client.info("cluster")
        except redis.ResponseError:  # who may keep things need not be allowed to ask this
            said = {}
        if said.get("cluster_enabled"):
            raise VaultFailed(
                f"the store of {self._what} is a node of a Redis Cluster, which keeps keys of one share apart; "
                "name a single server, or one with replicas and Sentinel behind one address"
            )
        self._is_single = True

    def _asked(self, ask: Callable[[], _Result]) -> _Result:
        try:
            if not self._is_single:
                self._refuse_cluster()
            return ask()
        except (redis.RedisError, OSError) as error:
            raise VaultFailed(f"the store of {self._what} failed: {type(error).__name__}") from error
