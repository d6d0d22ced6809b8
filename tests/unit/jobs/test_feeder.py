from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from checkstream.errors import StoreFailed
from checkstream.jobs.exchange import Exchange
from checkstream.jobs.feeder import Dropped, Feeder, FeederSettings
from checkstream.jobs.room import Load
from checkstream.jobs.terms import Finished, Job, Marker
from tests.jobs_store import SqliteStore, job
from tests.redis_server import memory_folder

PROFILES = ("watchdog",)


class Told:
    def __init__(self) -> None:
        self.jobs: list[str] = []
        self.drops: list[tuple[Dropped, int]] = []
        self.evictions = 0
        self.failures: list[StoreFailed] = []
        self.changed = threading.Condition()

    def accepted(self, jobs: Sequence[Job]) -> None:
        with self.changed:
            self.jobs += [one.id for one in jobs]
            self.changed.notify_all()

    def dropped(self, why: Dropped, jobs: int) -> None:
        with self.changed:
            self.drops.append((why, jobs))
            self.changed.notify_all()

    def evicted(self, jobs: int) -> None:
        self.evictions += jobs

    def store_failed(self, error: StoreFailed) -> None:
        with self.changed:
            self.failures.append(error)
            self.changed.notify_all()

    def wait(self, *, jobs: int = 0, drops: int = 0, failures: int = 0) -> None:
        with self.changed:
            assert self.changed.wait_for(
                lambda: len(self.jobs) >= jobs and len(self.drops) >= drops and len(self.failures) >= failures, 60
            )


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[SqliteStore]:
    monkeypatch.setattr("checkstream.jobs.feeder._STORE_RETRY_S", 0.001)
    with memory_folder() as folder:
        made = SqliteStore(Path(folder))
        yield made
        made.close()


def exchange(number: int, answer: str = "An answer.") -> Exchange:
    return Exchange(stream=f"s{number}", route="chat", surface="x", answer=answer)


def test_what_was_put_is_accepted_in_its_order_once_the_store_has_it(store: SqliteStore) -> None:
    told = Told()
    feeder = Feeder(store.open(), FeederSettings(), told)
    for number in range(20):
        assert feeder.put(exchange(number), ("watchdog", "rag"))
    told.wait(jobs=40)
    assert store.open().counts().waiting == 40
    feeder.close()
    assert told.jobs == [f"score:s{number}:{profile}" for number in range(20) for profile in ("watchdog", "rag")]
    assert (told.drops, feeder.buffered) == ([], 0)


def test_g28_what_waits_is_written_before_the_end_and_nothing_is_taken_after_it(store: SqliteStore) -> None:
    told = Told()
    feeder = Feeder(store.open(), FeederSettings(), told)
    for number in range(300):
        feeder.put(exchange(number), PROFILES)
    feeder.close(60)
    assert not feeder.put(exchange(301), PROFILES)
    assert len(told.jobs) == store.open().counts().waiting == 300
    assert told.drops == [("closing", 1)]


def locked(store: SqliteStore) -> SqliteStore:
    """Hold the store's write lock, so that whoever wants it fails at once."""
    store.open()._connection.execute("BEGIN IMMEDIATE")
    return store


def test_while_the_store_fails_jobs_wait_and_the_buffer_stays_bounded(store: SqliteStore) -> None:
    told = Told()
    queue = store.open()
    queue._connection.execute("PRAGMA busy_timeout = 0")
    locked(store)
    feeder = Feeder(queue, FeederSettings(buffer=Load(5, 1 << 20)), told)
    assert feeder.put(exchange(0), PROFILES)
    told.wait(failures=2)
    taken = [feeder.put(exchange(number), PROFILES) for number in range(1, 9)]
    assert taken.count(False) >= 3, "the one that is tried again may be out of the buffer meanwhile"
    assert told.jobs == []
    store._open[-1]._connection.execute("ROLLBACK")
    told.wait(jobs=1 + taken.count(True))
    feeder.close()
    assert told.jobs[0] == "score:s0:watchdog"
    assert {why for why, _ in told.drops} == {"buffer"}


def test_when_the_store_fails_to_the_end_what_is_left_is_told_as_dropped(store: SqliteStore) -> None:
    told = Told()
    queue = store.open()
    queue._connection.execute("PRAGMA busy_timeout = 0")
    locked(store)
    feeder = Feeder(queue, FeederSettings(), told)
    feeder.put(exchange(0), ("watchdog", "rag"))
    told.wait(failures=1)
    feeder.close()
    assert (told.jobs, told.drops) == ([], [("closing", 2)])


def test_when_the_buffer_is_full_the_oldest_go_if_they_are_to(store: SqliteStore) -> None:
    told = Told()
    queue = store.open()
    queue._connection.execute("PRAGMA busy_timeout = 0")
    locked(store)
    feeder = Feeder(queue, FeederSettings(buffer=Load(2, 1 << 20), full="drop_oldest"), told)
    assert all(feeder.put(exchange(number), PROFILES) for number in range(8))
    store._open[-1]._connection.execute("ROLLBACK")
    feeder.close(60)
    assert "score:s7:watchdog" in told.jobs
    assert len(told.jobs) + sum(count for _, count in told.drops) == 8
    assert len(told.drops) >= 4


def test_what_the_store_has_no_room_for_and_what_is_too_long_is_counted(store: SqliteStore) -> None:
    told = Told()
    feeder = Feeder(store.open(capacity=Load(2, 1 << 20)), FeederSettings(job_bytes=2000), told)
    feeder.put(exchange(0, "x" * 3000), PROFILES)
    told.wait(drops=1)
    for number in range(1, 5):
        feeder.put(exchange(number), PROFILES)
    feeder.close(60)
    assert told.drops[0] == ("invalid", 1)
    assert sum(count for why, count in told.drops if why == "store") == 2
    assert told.jobs == ["score:s1:watchdog", "score:s2:watchdog"]


def test_a_marker_is_brought_back_and_told_once(store: SqliteStore) -> None:
    told = Told()
    queue = store.open()
    queue.put([job(1), job(2)])
    marks = [
        Marker(conversation="c1", stream="s1", scorer="w", risk=80, expires_ms=2000),
        Marker(conversation="c2", stream="s2", scorer="w", risk=80, expires_ms=900),
    ]
    queue.done([Finished(lease=lease, marker=mark) for lease, mark in zip(queue.lease(2), marks, strict=True)])
    feeder = Feeder(store.open(), FeederSettings(markers_s=0.001), told, now_ms=lambda: 1000)
    feeder.put(exchange(1), PROFILES)
    told.wait(jobs=1)
    feeder.put(exchange(2), PROFILES)
    told.wait(jobs=2)  # so the look that followed the first has ended
    assert feeder.take_marker("c1") == marks[0]
    assert feeder.take_marker("c1") is None
    assert feeder.take_marker("c2") is None, "it has expired"
    assert feeder.take_marker("c3") is None
    feeder.close(60)
    assert [mark for _, mark in queue.markers("", 9)] == marks[1:]
