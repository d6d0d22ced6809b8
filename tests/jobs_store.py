"""Stores of the queue for tests: each opens queues, lets time pass without waiting, and can be restarted."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Protocol

import redis

from checkstream.jobs.clock import Clock
from checkstream.jobs.redis_queue import RedisQueue
from checkstream.jobs.room import Load
from checkstream.jobs.sqlite_queue import SqliteQueue
from checkstream.jobs.terms import Job, Queue
from tests.redis_server import RedisServer

LEASE_S = 60.0
ROOM = Load(10_000, 1 << 30)


def job(number: int, **changes: Any) -> Job:
    fields: dict[str, Any] = {"kind": "score", "stream": f"s{number}", "body": b"b%d" % number, "put_ms": 1000 + number}
    return Job(id=f"score:{number}", **(fields | changes))


class Store(Protocol):
    def open(self, **settings: Any) -> Queue: ...

    def wait(self, seconds: float) -> None:
        """Let time pass."""

    def restart(self) -> None:
        """Kill what keeps the jobs and start it again; what was open is of no use afterwards."""


class SqliteStore:
    def __init__(self, folder: Path) -> None:
        self.path = folder / "jobs" / "jobs.db"
        self.now = 1000.0
        self.wall = 1_700_000_000_000
        self.boot = "boot 1"
        self._open: list[SqliteQueue] = []

    def open(self, **settings: Any) -> SqliteQueue:
        clock = Clock(elapsed=lambda: self.now, wall_ms=lambda: self.wall, boot=self.boot)
        given: dict[str, Any] = {"capacity": ROOM, "lease_s": LEASE_S, "attempts": 3} | settings
        self._open.append(SqliteQueue(self.path, clock=clock, **given))
        return self._open[-1]

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.wall += int(seconds * 1000)

    def restart(self) -> None:
        self.close()

    def close(self) -> None:
        for queue in self._open:
            queue.close()
        self._open.clear()


class RedisStore:
    """The server's clock can't be set, so what it has written down of times is set back instead."""

    def __init__(self, server: RedisServer) -> None:
        self._server = server
        self._open: list[RedisQueue] = []

    def open(self, **settings: Any) -> RedisQueue:
        given: dict[str, Any] = {"capacity": ROOM, "lease_s": LEASE_S, "attempts": 3} | settings
        self._open.append(RedisQueue(self._server.url, **given))
        return self._open[-1]

    def wait(self, seconds: float) -> None:
        stream, group, delayed = "{checkstream}:stream", "workers", "{checkstream}:delayed"
        with redis.Redis.from_url(self._server.url, protocol=2) as server:
            for id_ in server.zrange(delayed, 0, -1):
                server.zincrby(delayed, -seconds * 1000, id_)
            if not server.exists(stream) or not server.xinfo_groups(stream):
                return
            for entry in server.xpending_range(stream, group, "-", "+", 10_000):
                idle = int(entry["time_since_delivered"] + seconds * 1000)
                server.xclaim(stream, group, entry["consumer"], 0, [entry["message_id"]], idle=idle, justid=True)

    def restart(self) -> None:
        self.close()
        self._server.kill()
        self._server.start()

    def close(self) -> None:
        for queue in self._open:
            queue.close()
        self._open.clear()
