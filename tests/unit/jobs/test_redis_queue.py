"""What a server of Redis must stand beside what all queues do: restarts, no memory, no disk, clocks that jump."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest
import redis

from checkstream.errors import StoreFailed
from checkstream.jobs.redis_queue import RedisQueue
from checkstream.jobs.terms import Counts, Failure, Finished
from tests.jobs_store import LEASE_S, ROOM, RedisStore, job
from tests.redis_server import RedisServer

DELAYED = "{checkstream}:delayed"


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture
def store(server: RedisServer) -> Iterator[RedisStore]:
    made = RedisStore(server)
    yield made
    made.close()


def admin(server: RedisServer) -> redis.Redis:
    return redis.Redis.from_url(server.url)


def test_g28_a_queue_that_is_open_works_on_after_a_restart_and_its_leases_hold(
    server: RedisServer, store: RedisStore
) -> None:
    queue, other = store.open(), store.open()
    queue.put([job(n) for n in range(3)])
    (held,) = queue.lease(1)
    server.kill()
    for call in (lambda: queue.put([job(7)]), lambda: queue.lease(1), lambda: queue.done([Finished(lease=held)])):
        with pytest.raises(StoreFailed, match="check that it runs"):
            call()
    server.start()
    assert [lease.job for lease in other.lease(9)] == [job(1), job(2)]
    assert queue.extend([held]) == [True]
    assert queue.done([Finished(lease=held)]) == ["done"]
    assert queue.counts() == Counts(waiting=0, delayed=0, leased=2, dead=0)


def test_after_a_server_lost_everything_old_leases_are_lost_and_new_jobs_are_taken(
    server: RedisServer, store: RedisStore
) -> None:
    queue = store.open()
    queue.put([job(1)])
    (held,) = queue.lease(1)
    with admin(server) as server_itself:
        server_itself.flushall()
    assert queue.lease(1) == []
    assert queue.done([Finished(lease=held)]) == ["lost"]
    assert queue.put([job(1)]).accepted == 1
    (again,) = queue.lease(1)
    assert queue.done([Finished(lease=again)]) == ["done"]


def test_g28_a_server_without_memory_refuses_and_loses_nothing(server: RedisServer, store: RedisStore) -> None:
    queue = store.open(attempts=9)
    queue.put([job(n) for n in range(20)])
    one, two, three, *_ = queue.lease(6)
    with admin(server) as server_itself:
        server_itself.config_set("maxmemory", "1")
        with pytest.raises(StoreFailed, match="memory"):
            queue.put([job(99)])
        for call in (
            lambda: queue.fail([Failure(lease=one, error="x", retry_s=30.0)]),
            lambda: queue.fail([Failure(lease=two, error="x", retry_s=None)]),
            lambda: queue.release([three]),
            lambda: queue.lease(5),
        ):
            try:  # whether it is refused is the server's to say; half done it must not be
                call()
            except StoreFailed as error:
                assert "memory" in str(error)  # noqa: PT017 - it may come or not
        server_itself.config_set("maxmemory", "0")
    store.wait(LEASE_S + 1)
    found = {lease.job.id for lease in queue.lease(99)} | {letter.id for letter in queue.dead(99)}
    assert found == {job(n).id for n in range(20)}
    assert queue.put([job(99)]).accepted == 1


def test_g28_what_was_accepted_before_the_disk_was_full_is_there_after_a_restart(
    server: RedisServer, store: RedisStore
) -> None:
    queue = store.open()
    accepted: list[str] = []
    resource.prlimit(server.process_id, resource.RLIMIT_FSIZE, (300_000, 300_000))

    def fill() -> None:
        while len(accepted) < 1000:
            queue.put([job(len(accepted), body=b"x" * 10_000)])
            accepted.append(job(len(accepted)).id)

    with pytest.raises(StoreFailed):
        fill()
    assert 5 < len(accepted) < 40
    store.restart()
    found = {lease.job.id for lease in store.open().lease(1000)}
    assert found >= set(accepted)


@pytest.mark.parametrize("back_ms", [-7_200_000, 10**11])
def test_a_clock_that_is_set_keeps_no_delayed_job_back(server: RedisServer, store: RedisStore, back_ms: int) -> None:
    queue = store.open()
    queue.put([job(1), job(2)])
    for lease in queue.lease(2):
        queue.fail([Failure(lease=lease, error="x", retry_s=600.0)])
    assert queue.lease(9) == []
    with admin(server) as server_itself:  # as if the clock had been set by so much since
        server_itself.zincrby(DELAYED, back_ms, job(1).id)
    assert [lease.job for lease in queue.lease(9)] == [job(1)]
    assert queue.counts() == Counts(waiting=0, delayed=1, leased=1, dead=0)


def test_a_delay_beyond_all_bounds_is_an_hour(server: RedisServer, store: RedisStore) -> None:
    queue = store.open()
    queue.put([job(1)])
    queue.fail([Failure(lease=lease, error="x", retry_s=1e9) for lease in queue.lease(1)])
    assert queue.lease(1) == []
    store.wait(3601)
    assert [lease.job for lease in queue.lease(1)] == [job(1)]
    del server


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("appendonly", "yes", ""),
        ("appendfsync", "everysec", "the jobs of the last second"),
        ("appendonly", "no", "accepted jobs are lost when it is killed"),
    ],
)
def test_what_a_server_does_not_promise_is_told(server: RedisServer, name: str, value: str, told: str) -> None:
    with admin(server) as server_itself:
        server_itself.config_set(name, value)
    queue = RedisStore(server).open()
    assert told in queue.weakness
    assert bool(told) == bool(queue.weakness)
    queue.close()


def test_a_server_that_throws_keys_away_is_told(server: RedisServer) -> None:
    queue = RedisStore(server).open()
    with admin(server) as server_itself:
        server_itself.config_set("maxmemory-policy", "allkeys-lru")
        assert queue.weakness == "", "without a bound it throws nothing away"
        server_itself.config_set("maxmemory", "100mb")
    assert "throws keys away" in queue.weakness
    queue.close()


@pytest.mark.parametrize("url", ["http://host", "host:6379", ""])
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(StoreFailed, match="no address"):
        RedisQueue(url, capacity=ROOM)
