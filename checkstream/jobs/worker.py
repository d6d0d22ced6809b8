"""Takes jobs from a queue, hands each to the handler of its kind, and writes what came of them. An asyncio task.

The queue's calls block, so they run one after another on a thread of their own; while one writes, what has ended
gathers, and the next commit takes all of it. Handlers know nothing of leases.

INVARIANT: a job is written as done by the holder of its lease alone, and leases are extended while jobs run.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, Protocol, TypeVar

import msgspec

from checkstream.errors import JobInvalid, StoreFailed
from checkstream.jobs.backoff import Backoff, retry_after
from checkstream.jobs.clock import wall_ms
from checkstream.jobs.terms import Counts, Ending, Failure, Finished, Job, Kind, Lease, Marker, Queue, Result

_T = TypeVar("_T")
_ERROR_CHARS = 1000
_STORE_RETRY_S = 1.0
_PURGE_S = 3600.0
WorkerEnding = Ending | Literal["failed", "dead", "returned"]
"""Of a job in a worker's hands. failed: it will be tried again. dead: it will not. returned: given back untried."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler made of a job."""

    result: Result | None = None
    jobs: tuple[Job, ...] = ()
    marker: Marker | None = None


Handler = Callable[[Job], Awaitable[Outcome]]
"""Does a job. Whatever it raises is the job's failure; `JobInvalid` makes a dead letter of it at once."""


class WorkerTold(Protocol):
    """Who wants to know what the worker does. Called on the event loop."""

    def ended(self, job: Job, ending: WorkerEnding, outcome: Finished | None, error: str) -> None:
        """Hear what became of a job; of one that was done, what was written."""

    def counted(self, counts: Counts) -> None:
        """Hear how many jobs are where."""

    def store_failed(self, error: StoreFailed) -> None:
        """Hear that the store can't be used; the worker tries again."""


class WorkerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a worker works."""

    concurrency: int = 4
    """Jobs at a time."""
    lease_s: float = 60.0
    """As the queue has it; leases are extended three times in it."""
    deadline_s: float = 300.0
    """A job that takes longer has failed."""
    poll_s: float = 0.25
    """How often an empty queue is looked at."""
    count_s: float = 5.0
    drain_s: float = 20.0
    """How long jobs may go on after the worker was told to stop."""
    keep_ms: int = 30 * 86_400_000
    """How long dead letters and results are kept."""
    backoff: Backoff = Backoff()


class _Batch:
    """Jobs that have ended and are not written yet. What a failing store took of it is not written again."""

    def __init__(self) -> None:
        self.finished: list[Finished] = []
        self.failed: list[Failure] = []
        self.returned: list[Lease] = []
        self.told: list[tuple[Job, WorkerEnding, Finished | None, str]] = []

    def write(self, queue: Queue) -> bool:
        """Write all of it.

        Raises:
            StoreFailed: the store took only a part; call again.
        """
        if self.finished:
            endings = queue.done(self.finished)
            self.told += [(one.lease.job, end, one, "") for one, end in zip(self.finished, endings, strict=True)]
            self.finished = []
        if self.failed:
            for failure, held in zip(self.failed, queue.fail(self.failed), strict=True):
                end: WorkerEnding = "dead" if failure.retry_s is None else "failed"
                self.told.append((failure.lease.job, end if held else "lost", None, failure.error))
            self.failed = []
        if self.returned:
            queue.release(self.returned)
            self.told += [(lease.job, "returned", None, "") for lease in self.returned]
            self.returned = []
        return True


class Worker:
    """One worker of a queue. Runs once."""

    def __init__(
        self,
        queue: Queue,
        handlers: Mapping[Kind, Handler],
        settings: WorkerSettings,
        told: WorkerTold,
        *,
        draw: Callable[[], float] = random.random,
    ) -> None:
        """Do nothing yet.

        Args:
            queue: Used by this worker's thread alone, while it runs.
            handlers: By kind of job.
            settings: How it works.
            told: Hears what becomes of jobs.
            draw: Random, 0..1, spreads what is tried again.
        """
        self._queue = queue
        self._handlers = handlers
        self._settings = settings
        self._told = told
        self._draw = draw
        self._running: dict[asyncio.Task[None], Lease] = {}
        self._lost: set[Lease] = set()
        self._batch = _Batch()
        self._ended = asyncio.Event()
        self._closing = False
        self._thread = ThreadPoolExecutor(1, "jobs")

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop`, then let jobs end for a while, and give back those that don't."""
        try:
            async with asyncio.TaskGroup() as group:
                settling = group.create_task(self._settle())
                others = [group.create_task(self._extend()), group.create_task(self._count())]
                await self._take(stop, group)
                await self._drain()
                for other in others:
                    other.cancel()
                self._closing = True
                self._ended.set()
                await settling
        finally:
            self._thread.shutdown(wait=True)

    async def _take(self, stop: asyncio.Event, group: asyncio.TaskGroup) -> None:
        """Lease as many jobs as there are free hands, again and again."""
        stopped = group.create_task(_wait(stop))
        while not stop.is_set():
            free = self._settings.concurrency - len(self._running)
            leases = (await self._ask(self._queue.lease, free) or []) if free else []
            for lease in leases:
                task = group.create_task(self._do(lease))
                self._running[task] = lease
                task.add_done_callback(self._running.pop)
            if len(leases) < free:
                await asyncio.wait((stopped,), timeout=self._settings.poll_s)
            else:
                await asyncio.wait((stopped, *self._running), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()

    async def _do(self, lease: Lease) -> None:
        """Carry one job out and keep what came of it. Cancelled, it is given back, unless it is another's already."""
        limit = asyncio.timeout(self._settings.deadline_s)
        try:
            async with limit:
                outcome = await self._handlers.get(lease.job.kind, _refuse)(lease.job)
        except asyncio.CancelledError:
            if lease in self._lost:
                self._lost.remove(lease)
            else:
                self._batch.returned.append(lease)
        except JobInvalid as error:
            self._batch.failed.append(Failure(lease=lease, error=str(error)[:_ERROR_CHARS], retry_s=None))
        except Exception as error:  # noqa: BLE001 - whatever a handler raises is its job's failure
            late = f"it took longer than {self._settings.deadline_s:g} s"
            self._fail(lease, late if limit.expired() else f"{type(error).__name__}: {error}")
        else:
            self._batch.finished.append(
                Finished(lease=lease, result=outcome.result, jobs=outcome.jobs, marker=outcome.marker)
            )
        self._ended.set()

    def _fail(self, lease: Lease, error: str) -> None:
        retry_s = retry_after(self._settings.backoff, lease.attempt, self._draw())
        self._batch.failed.append(Failure(lease=lease, error=error[:_ERROR_CHARS], retry_s=retry_s))

    async def _settle(self) -> None:
        """Write what has ended, all that has come together at once; a store that fails is asked again until the end."""
        while not self._closing or self._ended.is_set():
            await self._ended.wait()
            self._ended.clear()
            batch, self._batch = self._batch, _Batch()
            while await self._ask(batch.write, self._queue) is None:
                if self._closing:
                    return  # the leases run out, and others do the jobs
            for told in batch.told:
                self._told.ended(*told)

    async def _extend(self) -> None:
        """Keep the leases of what runs; a job that is another's by now is given up."""
        while True:
            await asyncio.sleep(self._settings.lease_s / 3)
            held = dict(self._running)
            kept = await self._ask(self._queue.extend, list(held.values())) if held else []
            for (task, lease), mine in zip(held.items(), kept or [], strict=False):
                if not mine and task in self._running:
                    self._lost.add(lease)
                    task.cancel()
                    self._told.ended(lease.job, "lost", None, "")

    async def _count(self) -> None:
        """Tell how many jobs are where, and forget now and then what is too old."""
        purged = -_PURGE_S
        while True:
            counts = await self._ask(self._queue.counts)
            if counts is not None:
                self._told.counted(counts)
            now = asyncio.get_running_loop().time()
            if now - purged > _PURGE_S:
                await self._ask(self._queue.purge, wall_ms() - self._settings.keep_ms)
                purged = now
            await asyncio.sleep(self._settings.count_s)

    async def _drain(self) -> None:
        """Wait for what runs; what doesn't end in time is given back."""
        if self._running:
            await asyncio.wait(self._running, timeout=self._settings.drain_s)
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)

    async def _ask(self, call: Callable[..., _T], *arguments: object) -> _T | None:
        """Call the queue on its thread; after a failure wait a little, and return None."""
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, call, *arguments)
        except StoreFailed as error:
            self._told.store_failed(error)
            await asyncio.sleep(_STORE_RETRY_S)
            return None


async def _refuse(job: Job) -> Outcome:
    raise JobInvalid(f"nobody here does jobs of kind `{job.kind}`; start a worker that does")


async def _wait(event: asyncio.Event) -> None:
    await event.wait()
