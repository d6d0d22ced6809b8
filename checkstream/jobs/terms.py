"""The words of the background queue: job, lease, result, marker, dead letter. Records are frozen.

A job is *accepted* when its store has committed it; what waits in a process's memory is not. From then on it is done
at least once, or stands in the list of dead letters with its reason (G28). A job that was done twice has one result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec

DROPPED = "dropped to make room: the queue was full"
"""The reason of a dead letter that never was tried."""
Kind = Literal["score", "webhook"]
Ending = Literal["done", "duplicate", "lost"]
"""What became of a finished job. duplicate: its result was there already, so nothing of it was written and nothing
follows from it. lost: the lease was another's by then, so nothing at all was written."""


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """Something to do after an answer has gone out."""

    id: str
    """The same for the same thing to do: a store keeps one."""
    kind: Kind
    stream: str
    """Id of the exchange that it is about."""
    body: bytes
    """What the handler of its kind reads. May hold text of callers and models."""
    put_ms: int
    """When it was put, milliseconds since 1970."""


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A job in the hands of one worker, until the lease runs out."""

    job: Job
    token: str
    """Proves to the store that the lease is still this one."""
    attempt: int
    """How often the job has been tried, this time included."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a scorer says of an exchange. One for each (stream, scorer, version); the first that is written stays."""

    stream: str
    route: str
    scorer: str
    version: str
    risk: float
    """0 (sound) to 100."""
    report: bytes
    """The scorer's own output, JSON."""
    at_ms: int
    """When, milliseconds since 1970."""


class Marker(msgspec.Struct, frozen=True, kw_only=True):
    """What the next request of a conversation is told: an answer in it had a high risk."""

    conversation: str
    """Made by `conversation_key`."""
    stream: str
    scorer: str
    risk: float
    expires_ms: int
    """After this it counts no more, milliseconds since 1970."""


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was done, and what is to be kept of it: all of it is written, or nothing."""

    lease: Lease
    result: Result | None = None
    jobs: tuple[Job, ...] = ()
    """What is to be done next."""
    marker: Marker | None = None


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """A job that was tried in vain."""

    lease: Lease
    error: str
    """The reason, for people."""
    retry_s: float | None
    """Seconds until it is tried again, an hour at most; None: it is a dead letter."""


class DeadLetter(msgspec.Struct, frozen=True, kw_only=True):
    """A job that nobody will do unless somebody asks for it."""

    id: str
    kind: str
    stream: str
    attempts: int
    error: str
    """The last one."""
    put_ms: int
    at_ms: int
    """When it was given up, milliseconds since 1970."""
    whole: bool
    """Its body is still there, so it can be tried again. That of a job that was dropped to make room is not."""


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """How many jobs are where."""

    waiting: int
    delayed: int
    """To be tried again later."""
    leased: int
    dead: int


class Admitted(msgspec.Struct, frozen=True, kw_only=True):
    """What became of jobs that were put."""

    accepted: int
    """Are in the store now, whether or not they were before."""
    refused: tuple[str, ...] = ()
    """Ids of those that had no room."""
    evicted: int = 0
    """Older jobs that are dead letters now, to make room."""


class Queue(Protocol):
    """A durable queue. Every call blocks; one thread at a time uses it, and several processes may share its store.

    INVARIANT: what a call has returned from is on disk (or acknowledged by the server that keeps it).
    Each call raises `StoreFailed` when the store can't be used.
    """

    @property
    def weakness(self) -> str:
        """What the store as it is set up doesn't promise; empty: nothing."""
        ...

    def put(self, jobs: Sequence[Job]) -> Admitted:
        """Accept jobs as far as there is room. One whose id is in the queue already is not doubled."""
        ...

    def lease(self, count: int) -> list[Lease]:
        """Take up to so many jobs that are due, oldest first, for the store's lease time."""
        ...

    def extend(self, leases: Sequence[Lease]) -> list[bool]:
        """Begin the lease time of each anew; False: the lease is another's, or the job is gone."""
        ...

    def done(self, finished: Sequence[Finished]) -> list[Ending]:
        """Write what came of jobs and take them out of the queue."""
        ...

    def fail(self, failures: Sequence[Failure]) -> list[bool]:
        """Give jobs back for later, or up; False: the lease is another's, or the job is gone."""
        ...

    def release(self, leases: Sequence[Lease]) -> list[bool]:
        """Give jobs back untried; False: the lease is another's, or the job is gone."""
        ...

    def counts(self) -> Counts:
        """Count."""
        ...

    def dead(self, count: int) -> list[DeadLetter]:
        """Return the latest dead letters, newest first."""
        ...

    def retry(self, ids: Sequence[str] | None) -> int:
        """Put dead letters that are whole back into the queue (None: all of them); return how many."""
        ...

    def results(self, stream: str) -> list[Result]:
        """Return what scorers said of an exchange, by scorer and version."""
        ...

    def markers(self, after: str, count: int) -> list[tuple[str, Marker]]:
        """Return markers written after a place (empty: from the first), each with its place, oldest first."""
        ...

    def unmark(self, place: str) -> None:
        """Forget a marker: the conversation has been told."""
        ...

    def purge(self, before_ms: int) -> int:
        """Forget results, dead letters and markers of before a time; return how many. Never a job."""
        ...

    def close(self) -> None:
        """Give the store back."""
        ...
