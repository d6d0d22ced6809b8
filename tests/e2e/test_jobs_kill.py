"""Feeder, worker and store are killed with SIGKILL under load, again and again; what was accepted is done once."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from checkstream.jobs.redis_queue import RedisQueue
from checkstream.jobs.room import Load
from checkstream.jobs.sqlite_queue import SqliteQueue
from checkstream.jobs.terms import Finished, Queue, Result
from tests.redis_server import RedisServer, memory_folder

ROOT = Path(__file__).parents[2]
OPEN = """
import asyncio, sys, time
from pathlib import Path
from checkstream.jobs.redis_queue import RedisQueue
from checkstream.jobs.room import Load
from checkstream.jobs.sqlite_queue import SqliteQueue

def open_queue(place):
    settings = dict(capacity=Load(1_000_000, 1 << 40), lease_s=0.3, attempts=100_000)
    return RedisQueue(place, **settings) if place.startswith("unix:") else SqliteQueue(Path(place), **settings)
"""
FEED = (
    OPEN
    + """
from checkstream.jobs.exchange import Exchange
from checkstream.jobs.feeder import Feeder, FeederSettings

class Told:
    def accepted(self, jobs):
        print("".join(f"{job.stream}\\n" for job in jobs), end="", flush=True)
    def dropped(self, why, jobs): pass
    def evicted(self, jobs): pass
    def store_failed(self, error): pass

feeder = Feeder(open_queue(sys.argv[1]), FeederSettings(), Told())
number = 0
while True:
    for _ in range(5):
        number += 1
        stream = f"{sys.argv[2]}-{number}"
        feeder.put(Exchange(stream=stream, route="chat", surface="x", answer="An answer. " * 50), ["w"])
    time.sleep(0.01)
"""
)
WORK = (
    OPEN
    + """
from checkstream.jobs.reaction import Reaction
from checkstream.jobs.scoring import Assessment, Scorer, Scoring
from checkstream.jobs.terms import Marker
from checkstream.jobs.worker import Outcome, Worker, WorkerSettings
import msgspec

class Told:
    def ended(self, job, ending, outcome, error): print(ending, flush=True)
    def counted(self, counts): pass
    def store_failed(self, error): pass

async def assess(exchange):
    await asyncio.sleep(0.002)
    return Assessment(risk=99.0, report=sys.argv[2].encode())

scoring = Scoring({"w": Scorer(version="1", assess=assess)}, {})

async def handler(job):  # every result brings a marker along: what is done twice would bring two
    outcome = await scoring(job)
    mark = Marker(conversation=job.stream, stream=job.stream, scorer="w", risk=99.0, expires_ms=1 << 50)
    return msgspec.structs.replace(outcome, marker=mark)

queue = open_queue(sys.argv[1])
settings = WorkerSettings(concurrency=16, lease_s=0.3, poll_s=0.01)
asyncio.run(Worker(queue, {"score": handler}, settings, Told()).run(asyncio.Event()))
"""
)


class Process:
    """A script in a process of its own, and the lines that it has written."""

    def __init__(self, script: str, *arguments: str) -> None:
        self.lines: list[str] = []
        self._wrote = threading.Event()
        self._process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments], stdout=subprocess.PIPE, text=True, cwd=ROOT
        )
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):  # the last may have been cut off
                self.lines.append(line.strip())
                self._wrote.set()

    def wait_for_a_line(self) -> None:
        assert self._wrote.wait(60), "the process did nothing"

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


class Place:
    """A store, as rounds see it."""

    def __init__(self, place: str, server: RedisServer | None) -> None:
        self.place = place
        self.server = server

    def open(self) -> Queue:
        room = Load(1_000_000, 1 << 40)
        if self.server is not None:
            return RedisQueue(self.place, capacity=room, lease_s=0.3, attempts=100_000)
        return SqliteQueue(Path(self.place), capacity=room, lease_s=0.3, attempts=100_000)


@pytest.fixture(params=["sqlite", "redis"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    if request.param == "redis":
        with RedisServer() as server:
            yield Place(server.url, server)
        return
    with memory_folder() as folder:
        yield Place(f"{folder}/jobs.db", None)


def test_g28_two_kills_under_load_lose_nothing_and_write_nothing_twice(place: Place) -> None:
    kill_rounds(place, 2, 0.3)


@pytest.mark.nightly
def test_g28_a_hundred_kills_under_load_lose_nothing_and_write_nothing_twice(place: Place) -> None:
    kill_rounds(place, 100, 1.0)


def kill_rounds(place: Place, rounds: int, longest_s: float) -> None:
    """Kill at random moments, look at what is written, and at last do all that is left."""
    dice = random.Random("jobs 1")
    accepted: list[str] = []
    written: dict[str, Result] = {}
    ended: Counter[str] = Counter()
    for turn in range(rounds):
        feeder = Process(FEED, place.place, str(turn))
        worker = Process(WORK, place.place, f'"{turn}"')
        feeder.wait_for_a_line()
        worker.wait_for_a_line()
        threading.Event().wait(dice.uniform(0, longest_s))
        victims = [feeder.kill, worker.kill]
        dice.shuffle(victims)
        if place.server is not None:
            victims.insert(dice.randrange(3), place.server.kill)
        for kill in victims:
            kill()
        if place.server is not None:
            place.server.start()
        accepted += feeder.lines
        ended.update(worker.lines)
        queue = place.open()
        for stream in dice.sample(accepted, min(len(accepted), 200)):
            for result in queue.results(stream):
                assert written.setdefault(stream, result) == result, "a result was written over"
        queue.close()
    queue = place.open()
    finish(queue)
    results = {stream: queue.results(stream) for stream in accepted}
    assert [stream for stream, found in results.items() if len(found) != 1] == []
    assert all(results[stream] == [result] for stream, result in written.items())
    marks = [marker.stream for _, marker in queue.markers("", 10_000_000)]
    twice = [stream for stream, count in Counter(marks).items() if count > 1]
    assert twice == [], "something followed twice from one result"
    assert queue.counts().dead == 0
    sys.stdout.write(
        f"{rounds} kills; {len(accepted)} accepted, {dict(ended)} told by workers; none lost, none twice\n"
    )
    queue.close()


def finish(queue: Queue) -> None:
    """Do what is left."""
    while queue.counts() != type(queue.counts())(waiting=0, delayed=0, leased=0, dead=0):
        done = [
            Finished(
                lease=lease,
                result=Result(
                    stream=lease.job.stream, route="chat", scorer="w", version="1", risk=1, report=b'"end"', at_ms=0
                ),
            )
            for lease in queue.lease(1000)
        ]
        queue.done(done)
