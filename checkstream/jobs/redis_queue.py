"""The queue of several machines, in Redis Streams: one consumer group, and a consumer for each worker.

A lease is an entry that a consumer holds and has not acknowledged; one that was idle for the lease time is claimed by
whoever asks next (XAUTOCLAIM). Time is the server's. If its clock is set forward, leases run out early and a job may be
done twice, which leaves one result: a holder whose lease was taken over can't finish. If it is set back, what was
delayed waits for an hour at most, and the leases of those who died until the clock has caught up.

What the server has acknowledged is accepted. That it survives the server's own kill is for the server's settings to say
(`appendonly yes`, `appendfsync always`); `weakness` tells what they don't promise.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
from collections.abc import Iterator, Sequence
from typing import Any, cast

import msgspec

from checkstream.errors import JobError, StoreFailed
from checkstream.jobs import redis_scripts as scripts
from checkstream.jobs.clock import wall_ms
from checkstream.jobs.room import Arrival, Full, Load, choose
from checkstream.jobs.terms import (
    DROPPED,
    Admitted,
    Counts,
    DeadLetter,
    Ending,
    Failure,
    Finished,
    Job,
    Kind,
    Lease,
    Marker,
    Result,
)

try:
    import redis
    from redis.backoff import ExponentialBackoff
    from redis.retry import Retry
except ModuleNotFoundError:  # an extra
    redis = None  # type: ignore[assignment]

_TIMEOUT_S = 5.0
_CONSUMER_IDLE_S = 86_400


class _Head(msgspec.Struct, frozen=True):
    """A job without its body."""

    id: str
    kind: str
    """Of another version's too: who can't do it says so."""
    stream: str
    put_ms: int


class _Letter(msgspec.Struct, frozen=True):
    """A dead letter as a script writes it."""

    attempts: int
    error: str
    at_ms: int
    head: str
    whole: bool


class RedisQueue:
    """A queue in Redis. Every call raises `StoreFailed` when the server can't be reached or refuses."""

    def __init__(
        self,
        url: str,
        *,
        capacity: Load,
        full: Full = "drop_new",
        lease_s: float = 60.0,
        attempts: int = 5,
        keep_s: float = 30 * 86_400.0,
        password: str | None = None,
        prefix: str = "checkstream",
    ) -> None:
        """Connect at the first call.

        Args:
            url: `redis://host:port/db`, or `rediss://` for TLS.
            capacity: Most that it may hold, dead letters and results aside.
            full: What to do beyond that.
            lease_s: How long a lease lasts.
            attempts: A job whose lease ran out so often is a dead letter.
            keep_s: How long results are kept.
            password: Of the server, if it wants one.
            prefix: Begins the names of all keys; in braces, so that a cluster keeps them together.

        Raises:
            JobError: the extra `redis` is not installed.
            StoreFailed: the url is none.
        """
        if redis is None:
            raise JobError("`redis` is not installed; install `checkstream[redis]`, or use a store of kind `sqlite:`")
        try:
            self._redis = redis.Redis.from_url(
                url,
                password=password,
                protocol=2,
                socket_timeout=_TIMEOUT_S,
                socket_connect_timeout=_TIMEOUT_S,
                retry=Retry(ExponentialBackoff(cap=0.5, base=0.05), 2),
            )
        except ValueError as error:
            raise StoreFailed(f"`{url}` is no address of a Redis server; write `redis://host:6379/0`") from error
        self._capacity = capacity
        self._full = full
        self._lease_ms = int(lease_s * 1000)
        self._attempts = attempts
        self._keep_ms = int(keep_s * 1000)
        self._prefix = f"{{{prefix}}}:"
        self._keys = [self._prefix + name for name in scripts.KEYS]
        self._stream, self._bodies, *_, self._bytes, self._markers = self._keys
        self._delayed, self._dead, self._order = self._keys[3], self._keys[4], self._keys[6]
        self._consumer = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        self._cursor = "0-0"
        self._scripts = {
            name: self._redis.register_script(text)
            for name, text in vars(scripts).items()
            if name.isupper() and name not in ("KEYS", "GROUP") and not name.startswith("_")
        }

    @property
    def weakness(self) -> str:
        """What the server's settings don't promise; empty: nothing."""
        try:
            with self._talking():
                appendonly = self._setting("appendonly")
                fsync = self._setting("appendfsync")
                evicts = self._setting("maxmemory") != "0" and self._setting("maxmemory-policy") != "noeviction"
        except StoreFailed:  # a managed server may not tell
            return "redis does not tell whether it writes to disk; see that it has appendonly and appendfsync always"
        if evicts:
            return "redis throws keys away when its memory is full, accepted jobs too; set maxmemory-policy noeviction"
        if appendonly != "yes":
            return "redis has no appendonly file: accepted jobs are lost when it is killed"
        if fsync != "always":
            return f"redis has appendfsync {fsync}: the jobs of the last second are lost when its machine fails"
        return ""

    def put(self, jobs: Sequence[Job]) -> Admitted:
        """See `Queue`."""
        unique = {job.id: job for job in jobs}
        with self._talking():
            pipe = self._redis.pipeline(transaction=False)
            for id_ in unique:
                pipe.hexists(self._bodies, id_)
            pipe.hlen(self._bodies)
            pipe.get(self._bytes)
            *known, count, size = pipe.execute()
            new = [job for job, there in zip(unique.values(), known, strict=True) if not there]
            written = [_encode(job) for job in new]
            arrivals = [Arrival(job.stream, len(data)) for job, data in zip(new, written, strict=True)]
            choice = choose(self._full, self._capacity, Load(count, int(size or 0)), arrivals)
            pairs: list[str | bytes] = []
            for job, data, taken in zip(new, written, choice.taken, strict=True):
                pairs += [job.id, data] if taken else []
            excess = choice.excess
            evicted = self._call("PUT", excess.jobs, excess.bytes, wall_ms(), DROPPED, *pairs) if pairs else 0
        refused = tuple(job.id for job, taken in zip(new, choice.taken, strict=True) if not taken)
        return Admitted(accepted=len(unique) - len(refused), refused=refused, evicted=cast("int", evicted))

    def lease(self, count: int) -> list[Lease]:
        """See `Queue`."""
        with self._talking():
            answer = self._call("LEASE", self._consumer, count, self._lease_ms, self._attempts, wall_ms(), self._cursor)
        cursor, found = cast("tuple[bytes, list[tuple[bytes, bytes, int, bytes]]]", answer)
        self._cursor = cursor.decode()
        return [Lease(job=_decode(body), token=entry.decode(), attempt=attempt) for entry, _, attempt, body in found]

    def extend(self, leases: Sequence[Lease]) -> list[bool]:
        """See `Queue`."""
        return [bool(held) for held in self._each("EXTEND", [self._proof(lease) for lease in leases])]

    def done(self, finished: Sequence[Finished]) -> list[Ending]:
        """See `Queue`."""
        rows = []
        for one in finished:
            result, marker = one.result, one.marker
            row = [
                *self._proof(one.lease),
                "" if result is None else f"{result.scorer}\0{result.version}",
                b"" if result is None else msgspec.msgpack.encode(result),
                self._keep_ms,
                b"" if marker is None else msgspec.msgpack.encode(marker),
            ]
            for job in one.jobs:
                row += [job.id, _encode(job)]
            rows.append(row)
        keys = [self._result_key("" if one.result is None else one.result.stream) for one in finished]
        return [cast("Ending", ending.decode()) for ending in cast("list[bytes]", self._each("DONE", rows, keys))]

    def fail(self, failures: Sequence[Failure]) -> list[bool]:
        """See `Queue`."""
        rows = [
            [
                *self._proof(failure.lease),
                "" if failure.retry_s is None else int(failure.retry_s * 1000),
                failure.error,
                wall_ms(),
            ]
            for failure in failures
        ]
        return [bool(held) for held in self._each("FAIL", rows)]

    def release(self, leases: Sequence[Lease]) -> list[bool]:
        """See `Queue`."""
        return [bool(held) for held in self._each("RELEASE", [self._proof(lease) for lease in leases])]

    def counts(self) -> Counts:
        """See `Queue`."""
        with self._talking():
            pipe = self._redis.pipeline()
            pipe.hlen(self._bodies)
            pipe.zcard(self._delayed)
            pipe.hlen(self._dead)
            jobs, delayed, dead = pipe.execute()
            leased = cast("int", self._call("LEASED")) if jobs else 0
        return Counts(waiting=max(0, jobs - leased - delayed), delayed=delayed, leased=leased, dead=dead)

    def dead(self, count: int) -> list[DeadLetter]:
        """See `Queue`."""
        with self._talking():
            ids = cast("list[bytes]", self._redis.zrevrange(self._order, 0, count - 1))
            found = cast("list[bytes | None]", self._redis.hmget(self._dead, ids)) if ids else []
        return [_letter(data) for data in found if data is not None]

    def retry(self, ids: Sequence[str] | None) -> int:
        """See `Queue`."""
        with self._talking():
            wanted = cast("list[bytes]", self._redis.zrange(self._order, 0, -1)) if ids is None else ids
            return cast("int", self._call("RETRY", *wanted))

    def results(self, stream: str) -> list[Result]:
        """See `Queue`."""
        with self._talking():
            found = cast("list[bytes]", self._redis.hvals(self._result_key(stream)))
        results = [msgspec.msgpack.decode(data, type=Result) for data in found]
        return sorted(results, key=lambda result: (result.scorer, result.version))

    def markers(self, after: str, count: int) -> list[tuple[str, Marker]]:
        """See `Queue`."""
        with self._talking():
            found = self._redis.xrange(self._markers, f"({after}" if after else "-", "+", count)
        rows = cast("list[tuple[bytes, dict[bytes, bytes]]]", found)
        return [(place.decode(), msgspec.msgpack.decode(row[b"marker"], type=Marker)) for place, row in rows]

    def unmark(self, place: str) -> None:
        """See `Queue`."""
        with self._talking():
            self._redis.xdel(self._markers, place)

    def purge(self, before_ms: int) -> int:
        """See `Queue`."""
        with self._talking():
            gone = cast("int", self._call("PURGE", before_ms, _CONSUMER_IDLE_S))
            return gone + (self._redis.xtrim(self._markers, minid=max(0, before_ms)))

    def close(self) -> None:
        """See `Queue`."""
        self._redis.close()

    # --- talking to the server

    def _proof(self, lease: Lease) -> list[Any]:
        return [lease.token, self._consumer, lease.job.id, lease.attempt]

    def _result_key(self, stream: str) -> str:
        return f"{self._prefix}result:{stream}"

    def _setting(self, name: str) -> str:
        return cast("dict[str, str]", self._redis.config_get(name)).get(name, "")

    def _call(self, script: str, *arguments: str | bytes | int) -> object:
        """Run a script; the group is made when it is missed, as after a server lost everything."""
        try:
            return self._scripts[script](self._keys, arguments)
        except redis.ResponseError as error:
            if "NOGROUP" not in str(error) and "no such key" not in str(error):
                raise
            self._make_group()
            return self._scripts[script](self._keys, arguments)

    def _each(self, script: str, rows: Sequence[Sequence[Any]], keys: Sequence[str] | None = None) -> list[object]:
        """Run a script for each row, in one round trip; a part that failed tells of a server that lost everything."""
        with self._talking():
            pipe = self._redis.pipeline(transaction=False)
            for place, row in enumerate(rows):
                self._scripts[script](self._keys + ([keys[place]] if keys is not None else []), row, client=pipe)
            return cast("list[object]", pipe.execute())

    def _make_group(self) -> None:
        with contextlib.suppress(redis.ResponseError):  # another was quicker
            self._redis.xgroup_create(self._stream, scripts.GROUP, "0", mkstream=True)

    @contextlib.contextmanager
    def _talking(self) -> Iterator[None]:
        """Tell of the server's failures in our own words.

        Raises:
            StoreFailed: the server can't be reached or refuses.
        """
        try:
            yield
        except redis.RedisError as error:
            raise StoreFailed(f"redis can't be used: {error}; check that it runs and has memory left") from error


def _encode(job: Job) -> bytes:
    head = _Head(job.id, job.kind, job.stream, job.put_ms)
    return msgspec.json.encode(head) + b"\n" + job.body


def _decode(data: bytes) -> Job:
    head, _, body = data.partition(b"\n")
    told = msgspec.json.decode(head, type=_Head)
    return Job(id=told.id, kind=cast("Kind", told.kind), stream=told.stream, body=body, put_ms=told.put_ms)


def _letter(data: bytes) -> DeadLetter:
    letter = msgspec.json.decode(data, type=_Letter)
    head = msgspec.json.decode(letter.head, type=_Head)
    return DeadLetter(
        id=head.id,
        kind=head.kind,
        stream=head.stream,
        attempts=letter.attempts,
        error=letter.error,
        put_ms=head.put_ms,
        at_ms=letter.at_ms,
        whole=letter.whole,
    )
