"""What the embedded queue does to its rows, inside the caller's transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from checkstream.jobs.room import Load, freed
from checkstream.jobs.terms import DROPPED, Ending, Finished, Job, Lease

EXTEND = "UPDATE jobs SET due = ? WHERE id = ? AND lease = ?"
DELAY = "UPDATE jobs SET lease = NULL, due = ? WHERE id = ? AND lease = ?"
RELEASE = "UPDATE jobs SET lease = NULL, due = ?, attempts = attempts - 1 WHERE id = ? AND lease = ?"


def known(run: sqlite3.Connection, ids: Sequence[str]) -> set[str]:
    """Return which of these jobs are in the queue."""
    return {id_ for id_ in ids if run.execute("SELECT 1 FROM jobs WHERE id = ?", (id_,)).fetchone() is not None}


def insert(run: sqlite3.Connection, jobs: Sequence[Job], due: float) -> None:
    """Put jobs at the end, but for those that are there."""
    run.executemany(
        "INSERT INTO jobs (id, kind, stream, body, put_ms, due) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [(job.id, job.kind, job.stream, job.body, job.put_ms, due) for job in jobs],
    )


def update(run: sqlite3.Connection, statement: str, values: tuple[object, ...], lease: Lease) -> bool:
    """Change the job of a lease if it is still held."""
    return run.execute(statement, (*values, lease.job.id, lease.token)).rowcount == 1


def bury(run: sqlite3.Connection, id_: str, error: str, at_ms: int) -> None:
    """Make a dead letter of a job."""
    run.execute(
        "INSERT OR REPLACE INTO dead (id, kind, stream, body, put_ms, attempts, error, at_ms) "
        "SELECT id, kind, stream, body, put_ms, attempts, ?, ? FROM jobs WHERE id = ?",
        (error, at_ms, id_),
    )
    run.execute("DELETE FROM jobs WHERE id = ?", (id_,))


def evict(run: sqlite3.Connection, excess: Load, at_ms: int) -> int:
    """Make dead letters without their bodies of the oldest jobs that nobody holds; return of how many."""
    if excess == Load(0, 0):
        return 0
    sizes = (row[0] for row in run.execute("SELECT length(body) FROM jobs WHERE lease IS NULL ORDER BY seq"))
    count = freed(excess, sizes)
    oldest = run.execute("SELECT id FROM jobs WHERE lease IS NULL ORDER BY seq LIMIT ?", (count,)).fetchall()
    for (id_,) in oldest:
        bury(run, id_, DROPPED, at_ms)
        run.execute("UPDATE dead SET body = NULL WHERE id = ?", (id_,))
    return len(oldest)


def finish(run: sqlite3.Connection, finished: Finished, due: float) -> Ending:
    """Take a job out, and write what came of it unless it was written before."""
    lease = finished.lease
    if not run.execute("DELETE FROM jobs WHERE id = ? AND lease = ?", (lease.job.id, lease.token)).rowcount:
        return "lost"
    result = finished.result
    if result is not None:
        written = run.execute(
            "INSERT INTO results (stream, route, scorer, version, risk, report, at_ms) VALUES (?, ?, ?, ?, ?, ?, ?) "
            "ON CONFLICT DO NOTHING",
            (result.stream, result.route, result.scorer, result.version, result.risk, result.report, result.at_ms),
        ).rowcount
        if not written:
            return "duplicate"
    insert(run, finished.jobs, due)
    marker = finished.marker
    if marker is not None:
        run.execute(
            "INSERT INTO markers (conversation, stream, scorer, risk, expires_ms) VALUES (?, ?, ?, ?, ?)",
            (marker.conversation, marker.stream, marker.scorer, marker.risk, marker.expires_ms),
        )
    return "done"
