"""What workers and the proxy rely on in a queue, whatever keeps it: a SQLite file, a Redis server."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from checkstream.jobs.room import Load, sampled
from checkstream.jobs.terms import Counts, Failure, Finished, Lease, Marker, Result
from tests.jobs_store import LEASE_S, RedisStore, SqliteStore, Store, job
from tests.redis_server import RedisServer, memory_folder


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer() as running:
        yield running


@pytest.fixture(params=["sqlite", "redis"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    if request.param == "sqlite":
        with memory_folder() as folder:
            sqlite = SqliteStore(Path(folder))
            yield sqlite
            sqlite.close()
        return
    running: RedisServer = request.getfixturevalue("server")
    with redis.Redis.from_url(running.url) as admin:
        admin.flushall()
    store = RedisStore(running)
    yield store
    store.close()


def result(lease: Lease, risk: float = 50.0, version: str = "1") -> Result:
    return Result(
        stream=lease.job.stream, route="chat", scorer="watchdog", version=version, risk=risk, report=b"{}", at_ms=5
    )


def test_what_was_put_is_leased_once_oldest_first_and_gone_when_it_is_done(store: Store) -> None:
    queue = store.open()
    assert queue.put([job(n) for n in range(5)]).accepted == 5
    assert queue.counts() == Counts(waiting=5, delayed=0, leased=0, dead=0)
    leases = queue.lease(3)
    assert [lease.job for lease in leases] == [job(0), job(1), job(2)]
    assert [lease.attempt for lease in leases] == [1, 1, 1]
    assert queue.counts() == Counts(waiting=2, delayed=0, leased=3, dead=0)
    rest = queue.lease(9)
    assert [lease.job for lease in rest] == [job(3), job(4)]
    assert queue.lease(9) == []
    assert queue.done([Finished(lease=lease) for lease in leases + rest]) == ["done"] * 5
    assert queue.counts() == Counts(waiting=0, delayed=0, leased=0, dead=0)
    assert queue.done([Finished(lease=leases[0])]) == ["lost"]


def test_an_empty_queue_answers_everything(store: Store) -> None:
    queue = store.open()
    assert queue.lease(5) == []
    assert queue.counts() == Counts(waiting=0, delayed=0, leased=0, dead=0)
    assert (queue.dead(5), queue.retry(None), queue.results("s"), queue.markers("", 5)) == ([], 0, [], [])
    assert queue.put([]).accepted == 0
    assert queue.retry(["score:1"]) == 0
    assert (queue.extend([]), queue.done([]), queue.fail([]), queue.release([])) == ([], [], [], [])


def test_a_job_that_is_there_is_not_doubled_waiting_or_leased(store: Store) -> None:
    queue = store.open()
    assert queue.put([job(1), job(1)]).accepted == 1
    assert queue.put([job(1), job(2)]).accepted == 2
    (first, _) = queue.lease(5)
    assert queue.put([job(1)]).accepted == 1
    assert queue.lease(5) == []
    queue.done([Finished(lease=first)])
    queue.put([job(1)])
    assert [lease.job for lease in queue.lease(5)] == [job(1)]


def test_two_workers_never_hold_one_lease(store: Store) -> None:
    queue = store.open()
    queue.put([job(n) for n in range(300)])
    taken: list[str] = []
    queues = [store.open() for _ in range(4)]
    begin = threading.Barrier(4)

    def work(number: int) -> None:
        begin.wait()
        while leases := queues[number].lease(7):
            taken.extend(lease.job.id for lease in leases)
            queues[number].done([Finished(lease=lease) for lease in leases[::2]])  # the rest stays held

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(taken) == Counter(job(n).id for n in range(300))


def test_a_lease_that_ran_out_is_anothers_and_its_first_holder_can_do_nothing_any_more(store: Store) -> None:
    first, second = store.open(), store.open()
    first.put([job(1)])
    (old,) = first.lease(1)
    store.wait(LEASE_S - 1)
    assert second.lease(1) == []
    store.wait(2)
    (new,) = second.lease(1)
    assert (new.job, new.attempt) == (job(1), 2)
    late = result(old)
    assert first.extend([old]) == [False]
    assert first.done([Finished(lease=old, result=late)]) == ["lost"]
    assert first.fail([Failure(lease=old, error="x", retry_s=None)]) == [False]
    assert first.release([old]) == [False]
    assert first.results("s1") == []
    assert second.done([Finished(lease=new, result=result(new, 7.0))]) == ["done"]
    assert [one.risk for one in first.results("s1")] == [7.0]


def test_a_worker_that_takes_its_own_lost_job_again_can_not_finish_it_with_the_old_lease(store: Store) -> None:
    queue = store.open()
    queue.put([job(1)])
    (old,) = queue.lease(1)
    store.wait(LEASE_S + 1)
    (new,) = queue.lease(1)
    assert queue.done([Finished(lease=old)]) == ["lost"]
    assert queue.done([Finished(lease=new)]) == ["done"]


def test_a_lease_that_is_extended_is_kept(store: Store) -> None:
    queue, other = store.open(), store.open()
    queue.put([job(1)])
    (lease,) = queue.lease(1)
    for _ in range(4):
        store.wait(LEASE_S * 0.7)
        assert queue.extend([lease]) == [True]
        assert other.lease(1) == []
    assert queue.done([Finished(lease=lease)]) == ["done"]


def test_a_failed_job_comes_again_after_its_delay(store: Store) -> None:
    queue = store.open()
    queue.put([job(1), job(2)])
    (lease,) = queue.lease(1)
    assert queue.fail([Failure(lease=lease, error="late", retry_s=30.0)]) == [True]
    assert queue.counts() == Counts(waiting=1, delayed=1, leased=0, dead=0)
    assert [one.job for one in queue.lease(5)] == [job(2)]
    store.wait(29)
    assert queue.lease(5) == []
    store.wait(2)
    assert [(one.job, one.attempt) for one in queue.lease(5)] == [(job(1), 2)]


def test_g28_a_job_given_up_is_a_dead_letter_with_its_reason_and_can_be_tried_again(store: Store) -> None:
    queue = store.open()
    queue.put([job(1), job(2)])
    one, two = queue.lease(2)
    assert queue.fail([Failure(lease=one, error='no "judge" {\\', retry_s=None)]) == [True]
    store.wait(1)
    assert queue.fail([Failure(lease=two, error="ü", retry_s=None)]) == [True]
    letters = {letter.id: letter for letter in queue.dead(10)}
    assert {id_: (letter.error, letter.attempts, letter.whole) for id_, letter in letters.items()} == {
        "score:1": ('no "judge" {\\', 1, True),
        "score:2": ("ü", 1, True),
    }
    assert (letters["score:1"].stream, letters["score:1"].kind, letters["score:1"].put_ms) == ("s1", "score", 1001)
    assert queue.counts() == Counts(waiting=0, delayed=0, leased=0, dead=2)
    assert queue.retry(["score:1", "score:9"]) == 1
    (again,) = queue.lease(5)
    assert (again.job, again.attempt) == (job(1), 1)
    queue.fail([Failure(lease=again, error="still", retry_s=None)])
    assert queue.retry(None) == 2
    assert queue.counts() == Counts(waiting=2, delayed=0, leased=0, dead=0)
    assert queue.done([Finished(lease=one)]) == ["lost"], "a lease of before the death counts again"


def test_g28_a_job_whose_holders_all_die_is_a_dead_letter(store: Store) -> None:
    queue = store.open(attempts=3)
    queue.put([job(1)])
    for attempt in (1, 2, 3):
        assert [lease.attempt for lease in queue.lease(1)] == [attempt]
        store.wait(LEASE_S + 1)
    queue.put([job(2)])
    assert [lease.job for lease in queue.lease(5)] == [job(2)]
    (letter,) = queue.dead(5)
    assert (letter.id, letter.attempts) == ("score:1", 3)
    assert "the lease ran out 3 times" in letter.error


def test_a_job_that_is_given_back_has_not_been_tried(store: Store) -> None:
    queue = store.open()
    queue.put([job(1)])
    for _ in range(5):
        (lease,) = queue.lease(1)
        assert lease.attempt == 1
        assert queue.release([lease]) == [True]
    assert queue.counts() == Counts(waiting=1, delayed=0, leased=0, dead=0)


def test_g28_a_duplicate_is_written_once_and_nothing_follows_from_it(store: Store) -> None:
    queue = store.open()
    for risk in (50.0, 60.0):
        queue.put([job(1)])
        lease = next(lease for lease in queue.lease(5) if lease.job == job(1))
        marker = Marker(conversation="c", stream="s1", scorer="watchdog", risk=risk, expires_ms=1 << 50)
        follows = job(100 + int(risk), kind="webhook")
        finished = Finished(lease=lease, result=result(lease, risk), jobs=(follows,), marker=marker)
        assert queue.done([finished]) == ["done" if risk == 50.0 else "duplicate"]
    assert [one.risk for one in queue.results("s1")] == [50.0]
    assert queue.counts() == Counts(waiting=0, delayed=0, leased=1, dead=0), "the webhook of the first, and no other"
    assert [marker.risk for _, marker in queue.markers("", 5)] == [50.0]


def test_results_are_kept_by_scorer_and_version(store: Store) -> None:
    queue = store.open()
    for version in ("2", "1"):
        queue.put([job(1)])
        (lease,) = queue.lease(1)
        assert queue.done([Finished(lease=lease, result=result(lease, version=version))]) == ["done"]
    assert [(one.scorer, one.version) for one in queue.results("s1")] == [("watchdog", "1"), ("watchdog", "2")]
    assert queue.results("s2") == []


def test_markers_come_in_order_from_a_place_on_until_they_are_forgotten(store: Store) -> None:
    queue = store.open()
    written = [Marker(conversation=f"c{n}", stream="s", scorer="w", risk=90.0, expires_ms=9) for n in range(3)]
    queue.put([job(n) for n in range(3)])
    queue.done([Finished(lease=lease, marker=marker) for lease, marker in zip(queue.lease(3), written, strict=True)])
    found = queue.markers("", 2)
    assert [marker for _, marker in found] == written[:2]
    later = queue.markers(found[-1][0], 2)
    assert [marker for _, marker in later] == written[2:]
    queue.unmark(found[0][0])
    assert [marker for _, marker in queue.markers("", 9)] == written[1:]


def test_when_full_new_jobs_are_refused(store: Store) -> None:
    queue = store.open(capacity=Load(3, 1 << 20), full="drop_new")
    admitted = queue.put([job(n) for n in range(5)])
    assert (admitted.accepted, admitted.refused, admitted.evicted) == (3, ("score:3", "score:4"), 0)
    (lease,) = queue.lease(1)
    assert queue.put([job(9)]).refused == ("score:9",), "what is held takes room, too"
    queue.done([Finished(lease=lease)])
    assert queue.put([job(9), job(10)]).refused == ("score:10",)
    assert queue.put([job(1)]).accepted == 1, "what is there needs no room"


def test_when_full_of_bytes_new_jobs_are_refused(store: Store) -> None:
    queue = store.open(capacity=Load(100, 5000), full="drop_new")
    admitted = queue.put([job(n, body=b"x" * 2000) for n in range(3)])
    assert (admitted.accepted, admitted.refused) == (2, ("score:2",))
    assert queue.put([job(7, body=b"x")]).accepted == 1


def test_g28_when_full_the_oldest_that_nobody_holds_become_dead_letters(store: Store) -> None:
    queue = store.open(capacity=Load(4, 1 << 20), full="drop_oldest")
    queue.put([job(n) for n in range(4)])
    (held,) = queue.lease(1)
    admitted = queue.put([job(4), job(5)])
    assert (admitted.accepted, admitted.refused, admitted.evicted) == (2, (), 2)
    assert {letter.id for letter in queue.dead(9)} == {"score:1", "score:2"}
    assert all(not letter.whole and "dropped to make room" in letter.error for letter in queue.dead(9))
    assert queue.retry(None) == 0, "its body is gone"
    assert queue.done([Finished(lease=held)]) == ["done"]
    assert [lease.job for lease in queue.lease(9)] == [job(3), job(4), job(5)]


def test_when_delayed_jobs_fill_the_queue_they_make_room_too(store: Store) -> None:
    queue = store.open(capacity=Load(2, 1 << 20), full="drop_oldest")
    queue.put([job(1), job(2)])
    queue.fail([Failure(lease=lease, error="x", retry_s=500.0) for lease in queue.lease(2)])
    assert queue.put([job(3), job(4)]).evicted == 2
    assert [lease.job for lease in queue.lease(9)] == [job(3), job(4)]


def test_when_full_a_sample_is_taken_by_stream(store: Store) -> None:
    queue = store.open(capacity=Load(40, 1 << 20), full="sample")
    admitted = queue.put([job(n) for n in range(200)])
    assert admitted.accepted <= 40
    refused = set(admitted.refused)
    assert not refused & {job(n).id for n in range(21)}, "all are taken until it is half full"
    last = next(n for n in range(199, -1, -1) if job(n).id not in refused)
    assert last > 40, "some of those that come later are taken in place of earlier ones"
    assert sampled(job(last).stream, 0.5, "room")


def test_old_dead_letters_are_forgotten_and_jobs_never(store: Store) -> None:
    queue = store.open()
    queue.put([job(1), job(2)])
    queue.fail([Failure(lease=lease, error="x", retry_s=None) for lease in queue.lease(1)])
    assert queue.purge(1_000_000_000_000) == 0
    (letter,) = queue.dead(9)
    assert queue.purge(letter.at_ms + 1) == 1
    assert queue.dead(9) == []
    assert queue.counts() == Counts(waiting=1, delayed=0, leased=0, dead=0)


def test_g28_all_of_it_survives_a_restart(store: Store) -> None:
    queue = store.open()
    queue.put([job(n, body=bytes(range(256)) * 100) for n in range(6)])
    held, failed, dead, done = queue.lease(4)
    queue.fail([Failure(lease=failed, error="x", retry_s=30.0), Failure(lease=dead, error="y", retry_s=None)])
    queue.done([Finished(lease=done, result=result(done))])
    store.restart()
    queue = store.open()
    assert queue.counts() == Counts(waiting=2, delayed=1, leased=1, dead=1)
    assert [letter.error for letter in queue.dead(5)] == ["y"]
    assert len(queue.results(done.job.stream)) == 1
    store.wait(LEASE_S + 1)
    found = {lease.job.id: lease for lease in queue.lease(9)}
    assert set(found) == {"score:0", "score:1", "score:4", "score:5"}
    assert found[held.job.id].attempt == 2
    assert found["score:4"].job.body == bytes(range(256)) * 100


def test_a_job_of_a_kind_that_is_not_known_yet_is_leased_as_any_other(store: Store) -> None:
    queue = store.open()
    later = job(1, kind="of a later version")
    queue.put([later])
    (lease,) = queue.lease(1)
    assert lease.job == later
    queue.fail([Failure(lease=lease, error="x", retry_s=None)])
    assert [letter.kind for letter in queue.dead(1)] == ["of a later version"]


HOSTILE = [
    "\0",
    "\n",
    'a"b',
    "ü\u202e🤖",
    "x" * 200,
    "'; DROP TABLE jobs; --",
    "{checkstream}:stream",
    " ",
    "-",
    "$",
    ">",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_any_text_may_be_an_id_a_stream_a_body_or_an_error(store: Store, text: str) -> None:
    queue = store.open()
    strange = job(1, stream=text, body=text.encode() + b"\n\0\xff")
    strange = type(strange)(id=text, kind="score", stream=text, body=strange.body, put_ms=0)
    queue.put([strange])
    (lease,) = queue.lease(1)
    assert lease.job == strange
    queue.fail([Failure(lease=lease, error=text, retry_s=None)])
    (letter,) = queue.dead(1)
    assert (letter.id, letter.stream, letter.error) == (text, text, text)
    assert queue.retry([text]) == 1
    (lease,) = queue.lease(1)
    made = Result(stream=text, route=text, scorer=text, version=text, risk=1.0, report=text.encode(), at_ms=0)
    assert queue.done([Finished(lease=lease, result=made)]) == ["done"]
    assert queue.results(text) == [made]


def test_an_empty_body_is_a_body(store: Store) -> None:
    queue = store.open()
    queue.put([job(1, body=b"")])
    assert [lease.job.body for lease in queue.lease(1)] == [b""]
