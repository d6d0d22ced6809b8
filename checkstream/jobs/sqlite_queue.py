"""The queue of one machine, in a SQLite file. Several processes may share it.

A job is due at a moment of the clock that nobody sets: when it was put, when its delay is over, or when its lease runs
out. So one comparison finds what may be leased, and a worker that died gives its jobs back by doing nothing. After a
restart of the machine all leases and delays are over, since nobody is left who holds one.

INVARIANT: every call is one transaction, and what a call accepts, finishes or gives up is fsynced when it returns.
"""

from __future__ import annotations

import contextlib
import secrets
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from checkstream.errors import StoreFailed
from checkstream.jobs.clock import Clock
from checkstream.jobs.room import Arrival, Full, Load, choose
from checkstream.jobs.sqlite_rows import DELAY, EXTEND, RELEASE, bury, evict, finish, insert, known, update
from checkstream.jobs.sqlite_schema import connect
from checkstream.jobs.terms import (
    Admitted,
    Counts,
    DeadLetter,
    Ending,
    Failure,
    Finished,
    Job,
    Lease,
    Marker,
    Result,
)
from checkstream.sqlite_file import transaction

_FARTHEST_S = 3600.0
"""No delay is longer."""
LEASE_LOST = "the lease ran out {attempts} times: whoever held it died or hung"
_PURGE = (
    "DELETE FROM dead WHERE at_ms < ?",
    "DELETE FROM results WHERE at_ms < ?",
    "DELETE FROM markers WHERE expires_ms < ?",
)


class SqliteQueue:
    """A queue in a file. Every call raises `StoreFailed` when the file can't be read or written."""

    weakness = ""

    def __init__(
        self,
        path: Path,
        *,
        capacity: Load,
        full: Full = "drop_new",
        lease_s: float = 60.0,
        attempts: int = 5,
        clock: Clock | None = None,
        make: bool = True,
    ) -> None:
        """Open the file, or make it.

        Args:
            path: The file; its folder is made too.
            capacity: Most that it may hold, dead letters and results aside.
            full: What to do beyond that.
            lease_s: How long a lease lasts.
            attempts: A job whose lease ran out so often is a dead letter.
            clock: The clocks; None: the machine's.
            make: Make a file that is not there; else that is an error.

        Raises:
            StoreFailed: the file can't be used.
        """
        self._path = path
        self._capacity = capacity
        self._full = full
        self._lease_s = lease_s
        self._attempts = attempts
        self._clock = clock or Clock()
        self._connection = connect(path, make=make)
        self._begin_boot()

    def put(self, jobs: Sequence[Job]) -> Admitted:
        """See `Queue`."""
        due = self._clock.elapsed()
        with self._transaction() as run:
            there = known(run, [job.id for job in jobs])
            new = list({job.id: job for job in jobs if job.id not in there}.values())
            arrivals = [Arrival(job.stream, len(job.body)) for job in new]
            load = Load(*run.execute("SELECT jobs, bytes FROM load").fetchone())
            choice = choose(self._full, self._capacity, load, arrivals)
            evicted = evict(run, choice.excess, self._clock.wall_ms())
            insert(run, [job for job, taken in zip(new, choice.taken, strict=True) if taken], due)
        refused = tuple(job.id for job, taken in zip(new, choice.taken, strict=True) if not taken)
        return Admitted(accepted=len({job.id for job in jobs}) - len(refused), refused=refused, evicted=evicted)

    def lease(self, count: int) -> list[Lease]:
        """See `Queue`."""
        now = self._clock.elapsed()
        token = secrets.token_hex(8)
        with self._reading() as run:  # a look that finds nothing must not cost a write
            if run.execute("SELECT 1 FROM jobs WHERE due <= ? LIMIT 1", (now,)).fetchone() is None:
                return []
        with self._transaction(durable=False) as run:
            tired = run.execute(
                "SELECT id, attempts FROM jobs WHERE lease IS NOT NULL AND due <= ? AND attempts >= ?",
                (now, self._attempts),
            ).fetchall()
            for id_, attempts in tired:
                bury(run, id_, LEASE_LOST.format(attempts=attempts), self._clock.wall_ms())
            rows = run.execute(
                "UPDATE jobs SET lease = ?, due = ?, attempts = attempts + 1 WHERE seq IN "
                "(SELECT seq FROM jobs WHERE due <= ? ORDER BY due, seq LIMIT ?) "
                "RETURNING seq, id, kind, stream, body, put_ms, attempts",
                (token, now + self._lease_s, now, count),
            ).fetchall()
        return [
            Lease(job=Job(id=id_, kind=kind, stream=stream, body=body, put_ms=put_ms), token=token, attempt=attempts)
            for _, id_, kind, stream, body, put_ms, attempts in sorted(rows)
        ]

    def extend(self, leases: Sequence[Lease]) -> list[bool]:
        """See `Queue`."""
        due = self._clock.elapsed() + self._lease_s
        with self._transaction(durable=False) as run:
            return [update(run, EXTEND, (due,), lease) for lease in leases]

    def done(self, finished: Sequence[Finished]) -> list[Ending]:
        """See `Queue`."""
        with self._transaction() as run:
            return [finish(run, one, self._clock.elapsed()) for one in finished]

    def fail(self, failures: Sequence[Failure]) -> list[bool]:
        """See `Queue`."""
        now = self._clock.elapsed()
        held = []
        with self._transaction() as run:
            for failure in failures:
                due = now + min(failure.retry_s or 0.0, _FARTHEST_S)
                held.append(update(run, DELAY, (due,), failure.lease))
                if held[-1] and failure.retry_s is None:
                    bury(run, failure.lease.job.id, failure.error, self._clock.wall_ms())
        return held

    def release(self, leases: Sequence[Lease]) -> list[bool]:
        """See `Queue`."""
        with self._transaction() as run:
            return [update(run, RELEASE, (self._clock.elapsed(),), lease) for lease in leases]

    def counts(self) -> Counts:
        """See `Queue`."""
        with self._reading() as run:
            (jobs,) = run.execute("SELECT jobs FROM load").fetchone()
            (leased,) = run.execute("SELECT count(*) FROM jobs WHERE lease IS NOT NULL").fetchone()
            (delayed,) = run.execute(
                "SELECT count(*) FROM jobs WHERE lease IS NULL AND attempts > 0 AND due > ?", (self._clock.elapsed(),)
            ).fetchone()
            (dead,) = run.execute("SELECT count(*) FROM dead").fetchone()
        return Counts(waiting=jobs - leased - delayed, delayed=delayed, leased=leased, dead=dead)

    def dead(self, count: int) -> list[DeadLetter]:
        """See `Queue`."""
        with self._reading() as run:
            rows = run.execute(
                "SELECT id, kind, stream, attempts, error, put_ms, at_ms, body IS NOT NULL FROM dead "
                "ORDER BY seq DESC LIMIT ?",
                (count,),
            ).fetchall()
        return [
            DeadLetter(
                id=id_,
                kind=kind,
                stream=stream,
                attempts=attempts,
                error=error,
                put_ms=put_ms,
                at_ms=at_ms,
                whole=bool(whole),
            )
            for id_, kind, stream, attempts, error, put_ms, at_ms, whole in rows
        ]

    def retry(self, ids: Sequence[str] | None) -> int:
        """See `Queue`."""
        due = self._clock.elapsed()
        with self._transaction() as run:
            if ids is None:
                ids = [id_ for (id_,) in run.execute("SELECT id FROM dead WHERE body IS NOT NULL ORDER BY seq")]
            count = 0
            for id_ in ids:
                row = run.execute(
                    "DELETE FROM dead WHERE id = ? AND body IS NOT NULL RETURNING id, kind, stream, body, put_ms",
                    (id_,),
                ).fetchone()
                if row is not None:
                    insert(run, [Job(id=row[0], kind=row[1], stream=row[2], body=row[3], put_ms=row[4])], due)
                    count += 1
        return count

    def results(self, stream: str) -> list[Result]:
        """See `Queue`."""
        with self._reading() as run:
            rows = run.execute(
                "SELECT stream, route, scorer, version, risk, report, at_ms FROM results WHERE stream = ? "
                "ORDER BY scorer, version",
                (stream,),
            ).fetchall()
        return [
            Result(
                stream=row[0],
                route=row[1],
                scorer=row[2],
                version=row[3],
                risk=row[4],
                report=row[5],
                at_ms=row[6],
            )
            for row in rows
        ]

    def markers(self, after: str, count: int) -> list[tuple[str, Marker]]:
        """See `Queue`."""
        with self._reading() as run:
            rows = run.execute(
                "SELECT seq, conversation, stream, scorer, risk, expires_ms FROM markers WHERE seq > ? "
                "ORDER BY seq LIMIT ?",
                (int(after or "0"), count),
            ).fetchall()
        return [
            (str(row[0]), Marker(conversation=row[1], stream=row[2], scorer=row[3], risk=row[4], expires_ms=row[5]))
            for row in rows
        ]

    def unmark(self, place: str) -> None:
        """See `Queue`."""
        with self._transaction() as run:
            run.execute("DELETE FROM markers WHERE seq = ?", (int(place),))

    def purge(self, before_ms: int) -> int:
        """See `Queue`."""
        with self._transaction() as run:
            return sum(run.execute(statement, (before_ms,)).rowcount for statement in _PURGE)

    def close(self) -> None:
        """See `Queue`."""
        self._connection.close()

    def _begin_boot(self) -> None:
        """In a new run of the machine nobody holds a lease, and the clock of delays began anew.

        Raises:
            StoreFailed: the file can't be written.
        """
        with self._transaction() as run:
            if run.execute("SELECT id FROM boot").fetchone() != (self._clock.boot,):
                run.execute("UPDATE jobs SET due = 0, lease = NULL")
                run.execute("UPDATE boot SET id = ?", (self._clock.boot,))
            # where the system names no boot, a moment beyond all leases and delays was written in another one
            farthest = self._clock.elapsed() + max(_FARTHEST_S, self._lease_s)
            run.execute("UPDATE jobs SET due = 0, lease = NULL WHERE due > ?", (farthest,))

    @contextlib.contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Do all of it or nothing, and have it on disk.

        What is not durable survives a kill of the process, but not a power cut. Leases need no more: when the machine
        starts again they are over anyway.

        Raises:
            StoreFailed: the file can't be read or written.
        """
        with self._reading() as run:
            run.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            with transaction(run):
                yield run

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        """Use the connection.

        Raises:
            StoreFailed: the file can't be read or written.
        """
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise StoreFailed(f"the queue `{self._path}` can't be used: {error}; check its disk") from error
