"""What a file must stand: kills, torn tails, a full disk, clocks that jump, other programs' files."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkstream.errors import StoreFailed
from checkstream.jobs.clock import Clock, boot_id
from checkstream.jobs.sqlite_queue import SqliteQueue
from checkstream.jobs.terms import Failure, Finished
from tests.chance import examples
from tests.jobs_store import LEASE_S, ROOM, SqliteStore, job
from tests.redis_server import memory_folder

ROOT = Path(__file__).parents[3]


@pytest.fixture
def folder() -> Iterator[Path]:
    with memory_folder() as name:
        yield Path(name)


def test_only_its_owner_can_read_the_file_and_what_is_beside_it(folder: Path) -> None:
    umask = os.umask(0)
    try:
        store = SqliteStore(folder)
        store.open().put([job(1)])
        files = list(store.path.parent.iterdir())
        assert {file.name for file in files} == {"jobs.db", "jobs.db-wal", "jobs.db-shm"}
        assert {file.stat().st_mode & 0o777 for file in files} == {0o600}
        store.close()
    finally:
        os.umask(umask)


def test_all_but_leases_is_fsynced_and_what_is_deleted_is_overwritten(folder: Path) -> None:
    store = SqliteStore(folder)
    queue = store.open()
    seen: list[str] = []
    queue._connection.set_trace_callback(seen.append)
    queue.put([job(1, body=b"an address in Berlin" * 50)])
    leases = queue.lease(1)
    queue.extend(leases)
    queue.done([Finished(lease=lease) for lease in leases])
    synchronous = [statement.rpartition(" ")[2] for statement in seen if statement.startswith("PRAGMA synchronous")]
    assert synchronous == ["FULL", "NORMAL", "NORMAL", "FULL"]
    queue._connection.set_trace_callback(None)
    assert queue._connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    store.close()
    assert b"Berlin" not in store.path.read_bytes()


@pytest.mark.parametrize("jump_ms", [-(10**12), 10**12])
def test_a_wall_clock_that_is_set_takes_no_lease_away_and_keeps_no_job_back(folder: Path, jump_ms: int) -> None:
    store = SqliteStore(folder)
    queue = store.open()
    queue.put([job(1), job(2)])
    (lease,) = queue.lease(1)
    store.wall += jump_ms
    queue.put([job(3)])
    assert [one.job for one in queue.lease(9)] == [job(2), job(3)]
    assert queue.extend([lease]) == [True]
    store.wait(LEASE_S + 1)
    assert len(queue.lease(9)) == 3
    store.close()


def test_a_restart_of_the_machine_gives_every_job_back_at_once(folder: Path) -> None:
    store = SqliteStore(folder)
    queue = store.open()
    queue.put([job(1), job(2)])
    queue.lease(1)
    store.close()
    store.boot, store.now = "boot 2", 3.0  # the clock begins anew, far before what was written down
    queue = store.open()
    assert queue.counts().leased == 0
    assert [(lease.job, lease.attempt) for lease in queue.lease(9)] == [(job(1), 2), (job(2), 1)]
    other = store.open()
    assert other.counts().leased == 2, "a second process of the same boot took the leases away"
    store.close()


def test_where_the_system_names_no_boot_a_restart_gives_every_job_back_too(folder: Path) -> None:
    store = SqliteStore(folder)
    store.boot, store.now = "", 1e6
    queue = store.open()
    queue.put([job(1), job(2), job(3)])
    one, _ = queue.lease(2)
    queue.fail([Failure(lease=one, error="x", retry_s=600.0)])
    store.restart()
    assert len(store.open().lease(9)) == 1, "the same boot"
    store.restart()
    store.now = 5.0
    assert len(store.open().lease(9)) == 3
    store.close()


def test_the_machine_names_its_boot() -> None:
    assert boot_id() == boot_id()
    assert Clock().boot == boot_id()


def test_many_processes_may_make_the_file_at_once(folder: Path) -> None:
    path = folder / "jobs.db"
    begin = threading.Barrier(8)
    problems: list[StoreFailed] = []

    def make(number: int) -> None:
        begin.wait()
        try:
            queue = SqliteQueue(path, capacity=ROOM)
            queue.put([job(number)])
            queue.close()
        except StoreFailed as error:
            problems.append(error)

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert SqliteQueue(path, capacity=ROOM).counts().waiting == 8


def test_what_is_no_queue_of_this_version_is_refused_and_left_as_it_is(folder: Path) -> None:
    path = folder / "x.db"
    path.write_bytes(b"not a database at all, but long enough to have a header of its own" * 20)
    before = path.read_bytes()
    with pytest.raises(StoreFailed, match="can't be used"):
        SqliteQueue(path, capacity=ROOM)
    assert path.read_bytes() == before
    other = folder / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE t (a)")
    connection.close()
    with pytest.raises(StoreFailed, match="another program's database"):
        SqliteQueue(other, capacity=ROOM)
    store = SqliteStore(folder)
    store.open()._connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreFailed, match="of version 99"):
        store.open()
    with pytest.raises(StoreFailed, match="there is no queue"):
        SqliteQueue(folder / "none.db", capacity=ROOM, make=False)
    with pytest.raises(StoreFailed, match="can't be opened"):
        SqliteQueue(path / "below a file.db", capacity=ROOM)
    store.close()


def test_g28_a_full_disk_refuses_and_loses_nothing(folder: Path) -> None:
    store = SqliteStore(folder)
    queue = store.open()
    queue.put([job(n) for n in range(20)])
    queue._connection.execute("PRAGMA max_page_count = 1")  # of the pages that there are
    with pytest.raises(StoreFailed, match="full"):
        queue.put([job(99, body=b"x" * 100_000)])
    assert queue.counts().waiting == 20
    queue._connection.execute("PRAGMA max_page_count = 1000000")
    assert queue.put([job(99, body=b"x" * 100_000)]).accepted == 1
    assert len(queue.lease(99)) == 21
    store.close()


WRITER = """
import resource, sys
from pathlib import Path
from checkstream.errors import StoreFailed
from checkstream.jobs.sqlite_queue import SqliteQueue
from tests.jobs_store import ROOM, job

queue = SqliteQueue(Path(sys.argv[1]), capacity=ROOM)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
number = 0
try:
    while True:
        queue.put([job(number, body=b"x" * 10_000)])
        print(number, flush=True)
        number += 1
except StoreFailed as error:
    print(error)
"""


def test_g28_what_was_accepted_before_the_disk_refused_is_there_after_a_restart(folder: Path) -> None:
    path = folder / "jobs.db"
    run = subprocess.run(
        [sys.executable, "-c", WRITER, str(path)], capture_output=True, text=True, cwd=ROOT, check=True
    )
    *accepted, problem = run.stdout.splitlines()
    assert "can't be used" in problem
    assert len(accepted) > 5
    queue = SqliteQueue(path, capacity=ROOM)
    found = {lease.job.id for lease in queue.lease(1000)}
    assert found >= {job(int(number)).id for number in accepted}
    assert queue._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    queue.close()


@pytest.fixture(scope="module")
def logged() -> Iterator[Path]:
    """Yield a folder with a queue of which nothing has left the log yet, as a kill leaves it."""
    with memory_folder() as name:
        store = SqliteStore(Path(name))
        queue = store.open()
        queue._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        queue._connection.execute("PRAGMA wal_autocheckpoint = 0")
        for number in range(12):
            queue.put([job(number)])
        copy = Path(name) / "copy"
        shutil.copytree(store.path.parent, copy)
        yield copy
        store.close()


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1), flip=st.booleans())
def test_g28_a_torn_tail_takes_the_last_commits_only_and_never_the_file(logged: Path, cut: float, flip: bool) -> None:
    with memory_folder() as name:
        copy = Path(name) / "q"
        shutil.copytree(logged, copy)
        (copy / "jobs.db-shm").unlink(missing_ok=True)
        wal = bytearray((copy / "jobs.db-wal").read_bytes())
        whole = len(wal)
        place = min(int(cut * whole), whole - 1)
        if flip:
            wal[place] ^= 0x40
        else:
            del wal[place:]
        (copy / "jobs.db-wal").write_bytes(wal)
        queue = SqliteQueue(copy / "jobs.db", capacity=ROOM, clock=Clock(elapsed=lambda: 2000.0, boot="boot 1"))
        found = [lease.job.id for lease in queue.lease(99)]
        assert found == [job(number).id for number in range(len(found))]
        assert queue.counts().leased == len(found)
        assert queue._connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        if place > whole * 0.9:
            assert len(found) >= 8, "commits before the tail are gone"
        queue.close()
