"""Opens the queue that the configuration names."""

from __future__ import annotations

from pathlib import Path

from checkstream.config import JobsSettings, reveal
from checkstream.jobs.room import Load
from checkstream.jobs.sqlite_queue import SqliteQueue
from checkstream.jobs.terms import Queue


def open_queue(settings: JobsSettings, *, make: bool = True) -> Queue:
    """Return the queue. A Redis server is not asked before the first call.

    Args:
        settings: Which, and how much it holds.
        make: Make the file of an embedded queue that is not there; else that is an error.

    Raises:
        ConfigError: the password can't be read.
        JobError: what the store needs is not installed.
        StoreFailed: the file can't be used.
    """
    capacity = Load(settings.capacity, settings.max_bytes)
    lease_s = settings.lease_ms / 1000
    if settings.file is not None:
        return SqliteQueue(
            Path(settings.file),
            capacity=capacity,
            full=settings.full,
            lease_s=lease_s,
            attempts=settings.attempts,
            make=make,
        )
    from checkstream.jobs.redis_queue import RedisQueue  # noqa: PLC0415 - its client is large, and needed here alone

    return RedisQueue(
        settings.store,
        capacity=capacity,
        full=settings.full,
        lease_s=lease_s,
        attempts=settings.attempts,
        keep_s=settings.retention_days * 86_400.0,
        password=None if settings.password is None else reveal(settings.password),
    )
