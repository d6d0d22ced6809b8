"""What machines that serve as one tell each other, in Redis: what each has, and which confirmations are spent.

What was spent is known as long as the server remembers all of it. So its memory has a number, which confirmations
carry: it is another one where the server was started anew (it may have lost what it was told last), was replaced by a
replica, or has been emptied. Time is the server's alone. A cluster of Redis would keep the keys apart, and says so.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

from checkstream.errors import NotReady, VaultFailed

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError:  # an extra
    redis = None  # type: ignore[assignment]

MOST_BYTES = 131_072
"""That one machine may say at a time."""
_MOST_MEMORY = 10**18
_MOST_MS = 10**14
_TIMEOUT_S = 1.0
_REST_S = 1.0
"""Where the server has failed, confirmations are refused for so long without asking it."""
_MEMORY = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local told = redis.pcall('INFO', 'server')
local run = type(told) == 'string' and string.match(told, 'run_id:(%w+)') or ''
local kept = redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GETRANGE', KEYS[1], 0, 100) or ''
local memory = string.match(kept, '^' .. run .. ':([1-9]%d*)$')
"""
_EXCHANGE = (
    _MEMORY
    + """
if not memory or #memory > 18 then
  memory = ARGV[3]
  redis.call('SET', KEYS[1], run .. ':' .. memory)
end
redis.call('PEXPIRE', KEYS[1], 86400000)
local pages, own, ttl, most = KEYS[2], ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
if redis.call('TYPE', pages).ok ~= 'hash' or redis.call('HLEN', pages) > 1024 then redis.call('DEL', pages) end
redis.call('HSET', pages, own, string.format('%.0f:', now + ttl) .. ARGV[2])
redis.call('PEXPIRE', pages, ttl)
local said, room = {string.format('%.0f', now), memory}, 32 * most
for _, each in ipairs(redis.call('HKEYS', pages)) do
  if each ~= own then
    local value = ''
    if #each <= 64 and redis.call('HSTRLEN', pages, each) <= most then value = redis.call('HGET', pages, each) end
    local ends, sealed = string.match(value, '^(%d+):(.*)$')
    ends = tonumber(ends)
    if not ends or ends <= now or ends > now + ttl then
      redis.call('HDEL', pages, each)
    elseif #sealed <= room then
      room = room - #sealed
      said[#said + 1] = each
      said[#said + 1] = sealed
    end
  end
end
return said
"""
)
_SPEND = (
    _MEMORY
    + """
local left = ARGV[2] - now
if memory ~= ARGV[1] or left <= 0 then return -1 end
return redis.call('SET', KEYS[2], '1', 'NX', 'PX', left + 60000) and 1 or 0
"""
)


class Said(NamedTuple):
    """What the store said."""

    now_ms: int
    """Its time, above 0 and below 10**14."""
    memory: int
    """The number of its memory, above 0 and below 10**18."""
    others: Mapping[str, bytes]
    """What each other machine has said, sealed; nobody vouches for it."""


class FleetStore:
    """A Redis server. Use from any thread, not from the loop."""

    def __init__(self, url: str, name: str, password: str | None = None) -> None:
        """Connect at the first call.

        Args:
            url: `redis://HOST:PORT/DB`, or `rediss://` with TLS.
            name: Of the fleet: several may share a server.
            password: The server's.

        Raises:
            VaultFailed: the client is not installed.
        """
        if redis is None:
            raise VaultFailed("Redis needs its client: `pip install 'checkstream[redis]'`")
        self._client: Any = redis.Redis.from_url(
            url,
            password=password,
            protocol=2,
            socket_timeout=_TIMEOUT_S,
            socket_connect_timeout=_TIMEOUT_S,
            retry=Retry(NoBackoff(), 1),  # a connection that was kept may be to a server that is gone
        )
        self.url = url
        """Where it is."""
        self._prefix = f"checkstream:fleet:{name}:"
        self._keys = [f"{self._prefix}memory", f"{self._prefix}machines"]
        self._exchange = self._client.register_script(_EXCHANGE)
        self._spend = self._client.register_script(_SPEND)
        self._rests_until = 0.0

    def exchange(self, machine: str, sealed: bytes, keep_s: float) -> Said:
        """Say what this machine has, and return what the others have said of late.

        Args:
            machine: This machine.
            sealed: What it has.
            keep_s: A machine of which nobody has heard for so long is forgotten.

        Raises:
            VaultFailed: the server can't be asked, or answers what it never does.
        """
        number = 1 + secrets.randbelow(_MOST_MEMORY - 1)
        arguments: list[str | bytes | int] = [machine, sealed, number, round(keep_s * 1000), MOST_BYTES]
        try:
            now_ms, memory, *said = self._exchange(keys=self._keys, args=arguments)
            machines = (each.decode("utf-8", "replace") for each in said[::2])
            found = Said(int(now_ms), int(memory), dict(zip(machines, said[1::2], strict=True)))
        except (redis.RedisError, OSError, ValueError, TypeError, AttributeError) as error:
            raise VaultFailed(type(error).__name__) from error
        if not (0 < found.memory < _MOST_MEMORY and 0 < found.now_ms < _MOST_MS):
            raise VaultFailed("its time or the number of its memory is none")
        return found

    def spend(self, nonce: bytes, expires_ms: int, now_ms: int) -> bool | None:  # noqa: ARG002 - the server has a clock
        """Spend a token, as `proxy.confirm.Spending` does.

        Args:
            nonce: The number of the memory in which it was made, 8 bytes, and what makes it another than all others.
            expires_ms: On the server's clock.
            now_ms: Not asked for.

        Raises:
            NotReady: the server can't tell.
        """
        unknown = "nobody can tell whether this confirmation was used before; try again"
        if time.monotonic() < self._rests_until:
            raise NotReady(unknown)
        memory, key = int.from_bytes(nonce[:8], "big"), f"{self._prefix}spent:{nonce[8:].hex()}"
        try:
            said = self._spend(keys=[self._keys[0], key], args=[memory, expires_ms])
        except (redis.RedisError, OSError) as error:
            self._rests_until = time.monotonic() + _REST_S
            raise NotReady(unknown) from error
        return None if said == -1 else said == 1

    @property
    def weakness(self) -> str:
        """What the server's settings don't promise; empty: nothing, or it does not tell. Blocks."""
        try:
            told = self._client.info("memory")
            evicts = told.get("maxmemory") and told.get("maxmemory_policy") != "noeviction"
        except Exception:  # noqa: BLE001 - a client that is told what Redis never tells fails in many ways
            return ""
        if evicts:
            return "it throws keys away when its memory is full: a confirmation could be used twice"
        return ""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
