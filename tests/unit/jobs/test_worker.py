from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from checkstream.errors import JobError, JobInvalid, StoreFailed
from checkstream.jobs.backoff import Backoff
from checkstream.jobs.terms import Counts, Finished, Job, Result
from checkstream.jobs.worker import Handler, Outcome, Worker, WorkerEnding, WorkerSettings
from tests.jobs_store import LEASE_S, SqliteStore, job
from tests.redis_server import memory_folder

FAST = WorkerSettings(
    keep_ms=1 << 50, poll_s=0.001, count_s=0.001, lease_s=0.003, drain_s=0.001, backoff=Backoff(first_s=1e-4)
)


class Told:
    """Keeps what it was told, and ends the worker when that is enough."""

    def __init__(self, enough: Callable[[Told], bool]) -> None:
        self.endings: list[tuple[str, WorkerEnding, str]] = []
        self.counts: list[Counts] = []
        self.failures: list[StoreFailed] = []
        self.stop = asyncio.Event()
        self._enough = enough

    def ended(self, job: Job, ending: WorkerEnding, outcome: Finished | None, error: str) -> None:
        self.endings.append((job.id, ending, error))
        assert (outcome is None) or ending in ("done", "duplicate", "lost")
        self._look()

    def counted(self, counts: Counts) -> None:
        self.counts.append(counts)
        self._look()

    def store_failed(self, error: StoreFailed) -> None:
        self.failures.append(error)
        self._look()

    def _look(self) -> None:
        if self._enough(self):
            self.stop.set()


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    with memory_folder() as folder:
        made = SqliteStore(Path(folder))
        yield made
        made.close()


async def work(store: SqliteStore, handler: Handler, told: Told, settings: WorkerSettings = FAST, **more: Any) -> None:
    worker = Worker(store.open(**more), {"score": handler}, settings, told, draw=lambda: 1.0)
    async with asyncio.timeout(60):
        await worker.run(told.stop)


def endings(count: int) -> Callable[[Told], bool]:
    return lambda told: len(told.endings) >= count


async def scored(job: Job) -> Outcome:
    made = Result(stream=job.stream, route="chat", scorer="w", version="1", risk=1.0, report=b"{}", at_ms=0)
    return Outcome(result=made)


async def test_g28_every_job_is_done_and_its_result_written(store: SqliteStore) -> None:
    queue = store.open()
    queue.put([job(n) for n in range(50)])
    told = Told(endings(50))
    await work(store, scored, told)
    assert Counter(told.endings) == Counter((job(n).id, "done", "") for n in range(50))
    assert all(len(queue.results(f"s{n}")) == 1 for n in range(50))
    assert queue.counts() == Counts(waiting=0, delayed=0, leased=0, dead=0)
    assert told.counts


async def test_no_more_jobs_run_at_a_time_than_may(store: SqliteStore) -> None:
    store.open().put([job(n) for n in range(20)])
    running = most = 0

    async def handler(given: Job) -> Outcome:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for _ in range(5):
            await asyncio.sleep(0)
        running -= 1
        return await scored(given)

    await work(store, handler, Told(endings(20)))
    assert most == FAST.concurrency


async def test_g28_a_failing_job_is_tried_five_times_and_then_a_dead_letter_with_its_last_error(
    store: SqliteStore,
) -> None:
    queue = store.open()
    queue.put([job(1)])
    tries = 0

    async def handler(_: Job) -> Outcome:
        nonlocal tries
        tries += 1
        raise JobError(f"try {tries}")

    def enough(told: Told) -> bool:
        store.wait(1)  # delays pass
        return any(ending == "dead" for _, ending, _ in told.endings)

    told = Told(enough)
    await work(store, handler, told, attempts=5)
    assert [ending for _, ending, _ in told.endings] == ["failed"] * 4 + ["dead"]
    (letter,) = queue.dead(5)
    assert (letter.error, letter.attempts) == ("JobError: try 5", 5)


async def test_g28_what_can_never_be_done_is_a_dead_letter_at_once(store: SqliteStore) -> None:
    queue = store.open()
    queue.put([job(1), job(2, kind="webhook")])

    async def handler(_: Job) -> Outcome:
        raise JobInvalid("of another version")

    await work(store, handler, Told(endings(2)))
    assert {letter.id: letter.error for letter in queue.dead(5)} == {
        "score:1": "of another version",
        "score:2": "nobody here does jobs of kind `webhook`; start a worker that does",
    }


async def test_a_job_that_hangs_meets_its_deadline(store: SqliteStore) -> None:
    queue = store.open()
    queue.put([job(1)])

    async def handler(_: Job) -> Outcome:
        await asyncio.Event().wait()
        raise AssertionError

    settings = WorkerSettings(keep_ms=1 << 50, poll_s=0.001, deadline_s=0.001, backoff=Backoff(attempts=1))
    await work(store, handler, Told(endings(1)), settings)
    assert [letter.error for letter in queue.dead(5)] == ["it took longer than 0.001 s"]


async def test_leases_of_running_jobs_are_extended(store: SqliteStore) -> None:
    other = store.open()
    other.put([job(1)])
    extended = 0

    async def handler(given: Job) -> Outcome:
        nonlocal extended
        for _ in range(3):
            store.wait(LEASE_S * 0.9)
            before = other._connection.execute("SELECT due FROM jobs").fetchone()
            while other._connection.execute("SELECT due FROM jobs").fetchone() == before:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            extended += 1
            assert other.lease(1) == []
        return await scored(given)

    told = Told(endings(1))
    await work(store, handler, told)
    assert extended == 3
    assert told.endings == [("score:1", "done", "")]


async def test_a_job_whose_lease_is_anothers_is_given_up(store: SqliteStore) -> None:
    other = store.open()
    other.put([job(1)])

    async def handler(_: Job) -> Outcome:
        store.wait(LEASE_S + 1)
        (taken,) = other.lease(1)
        assert taken.attempt == 2
        await asyncio.Event().wait()
        raise AssertionError

    told = Told(endings(1))
    await work(store, handler, told)
    assert told.endings == [("score:1", "lost", "")]
    assert other.counts().leased == 1


async def test_what_still_runs_at_the_end_is_given_back_untried(store: SqliteStore) -> None:
    queue = store.open()
    queue.put([job(1)])
    told = Told(lambda _: False)

    async def handler(_: Job) -> Outcome:
        told.stop.set()
        await asyncio.Event().wait()
        raise AssertionError

    await work(store, handler, told)
    assert told.endings == [("score:1", "returned", "")]
    assert [lease.attempt for lease in queue.lease(1)] == [1]


async def test_a_store_that_fails_is_asked_again(store: SqliteStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkstream.jobs.worker._STORE_RETRY_S", 0.001)
    queue = store.open()
    queue.put([job(1), job(2)])
    blocker = store.open()
    blocker._connection.execute("PRAGMA busy_timeout = 0")
    locked = False

    async def handler(given: Job) -> Outcome:
        nonlocal locked
        if not locked:
            blocker._connection.execute("BEGIN IMMEDIATE")
            locked = True
        return await scored(given)

    def enough(told: Told) -> bool:
        if told.failures and blocker._connection.in_transaction:
            blocker._connection.execute("ROLLBACK")
        return len(told.endings) >= 2

    told = Told(enough)
    mine = store.open()
    mine._connection.execute("PRAGMA busy_timeout = 1")
    async with asyncio.timeout(60):
        await Worker(mine, {"score": handler}, FAST, told).run(told.stop)
    assert told.failures
    assert sorted(told.endings) == [("score:1", "done", ""), ("score:2", "done", "")]
