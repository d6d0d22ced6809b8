"""The queues on this machine: durable leases and acknowledgements a second, and what `put` costs a request.

In the embedded queue a lease is a commit that waits for no disk (it is over anyway when the machine starts again), an
acknowledgement with its result one that does; a worker takes and returns what has come together, so the figure depends
on how many go into one commit. Redis runs with `appendfsync always`, its file in memory; there a worker takes and
returns jobs all the time that `put` is measured.

    python -m bench.jobs [FOLDER]
"""

from __future__ import annotations

import os
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.report import machine
from checkstream.errors import StoreFailed
from checkstream.jobs.exchange import Exchange, scoring_jobs
from checkstream.jobs.feeder import Dropped, Feeder, FeederSettings
from checkstream.jobs.redis_queue import RedisQueue
from checkstream.jobs.room import Load
from checkstream.jobs.sqlite_queue import SqliteQueue
from checkstream.jobs.terms import Finished, Job, Queue, Result
from tests.redis_server import RedisServer

_ANSWER = "The balance is 1,200 pounds, and the rate is 4.2 % until March. " * 20
_ROOM = Load(1_000_000, 1 << 40)
_PUTS = 5_000
_LEASES = 4_000


class Pace(msgspec.Struct, frozen=True):
    """How fast jobs go through the queue."""

    together: int
    """Jobs of one commit."""
    jobs_s: float
    """Leased, scored by nobody, acknowledged with a result, a second."""
    cpu_us: float
    """CPU time of one of them, microseconds."""


class Puts(msgspec.Struct, frozen=True, kw_only=True):
    """What `Feeder.put` costs who calls it, and what becomes of it."""

    us: tuple[float, float, float]
    """Median, 99th percentile, most; microseconds."""
    fed_s: float
    """Exchanges a second that the feeder got accepted."""
    done_s: float = 0.0
    """Jobs a second that a worker took and acknowledged meanwhile."""


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured."""

    fsync_ms: float
    """Median time of one fsync of this disk."""
    paces: tuple[Pace, ...]
    embedded: Puts
    redis: Puts


class _Told:
    def accepted(self, jobs: Sequence[Job]) -> None:
        pass

    def dropped(self, why: Dropped, jobs: int) -> None:
        raise AssertionError(f"{jobs} jobs were dropped: {why}")

    def evicted(self, jobs: int) -> None:
        raise AssertionError(f"{jobs} jobs were evicted")

    def store_failed(self, error: StoreFailed) -> None:
        raise error


def run(folder: Path | None = None) -> Figures:
    """Measure in `folder` (None: where temporary files go)."""
    with tempfile.TemporaryDirectory(dir=folder) as name:
        place = Path(name)
        paces = tuple(_pace(place / f"{together}.db", together) for together in (1, 4, 16, 64))
        embedded = _put(SqliteQueue(place / "fed.db", capacity=_ROOM))
        return Figures(fsync_ms=_fsync_ms(place / "x"), paces=paces, embedded=embedded, redis=_redis())


def _exchange(number: int) -> Exchange:
    return Exchange(stream=f"{number:024x}", route="chat", surface="openai_chat", answer=_ANSWER)


def _pace(path: Path, together: int) -> Pace:
    queue = SqliteQueue(path, capacity=_ROOM)
    count = min(_LEASES, together * 250)
    queue.put([scoring_jobs(_exchange(number), ["watchdog"], 0, 1 << 20)[0] for number in range(count)])
    begin, cpu = time.perf_counter(), time.process_time()
    while _take(queue, together):
        pass
    took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    queue.close()
    return Pace(together, count / took, cpu / count * 1e6)


def _take(queue: Queue, together: int) -> int:
    """Lease jobs and acknowledge them with a result; return how many."""
    leases = queue.lease(together)
    if leases:
        queue.done([Finished(lease=lease, result=_result(lease.job)) for lease in leases])
    return len(leases)


def _result(job: Job) -> Result:
    return Result(stream=job.stream, route="chat", scorer="watchdog", version="1", risk=1, report=b"{}", at_ms=0)


def _redis() -> Puts:
    """Put while a worker works."""
    with RedisServer() as server:
        queue = RedisQueue(server.url, capacity=_ROOM)
        queue.put([scoring_jobs(_exchange(-number), ["watchdog"], 0, 1 << 20)[0] for number in range(1, 20_000)])
        stop, done = threading.Event(), 0

        def work() -> None:
            nonlocal done
            while not stop.is_set():
                done += _take(queue, 16)

        worker = threading.Thread(target=work)
        worker.start()
        begin = time.perf_counter()
        puts = _put(RedisQueue(server.url, capacity=_ROOM))
        done_s = done / (time.perf_counter() - begin)
        stop.set()
        worker.join()
        queue.close()
    return msgspec.structs.replace(puts, done_s=done_s)


def _put(queue: Queue) -> Puts:
    feeder = Feeder(queue, FeederSettings(), _Told())
    exchanges = [_exchange(number) for number in range(_PUTS)]
    took = []
    begin = time.perf_counter()
    for exchange in exchanges:
        before = time.perf_counter()
        feeder.put(exchange, ("watchdog",))
        took.append((time.perf_counter() - before) * 1e6)
    feeder.close(120)
    fed_s = _PUTS / (time.perf_counter() - begin)
    took.sort()
    return Puts(us=(took[len(took) // 2], took[len(took) * 99 // 100], took[-1]), fed_s=fed_s)


def _fsync_ms(path: Path) -> float:
    took = []
    with path.open("wb") as file:
        for _ in range(101):
            file.write(b"x" * 4096)
            before = time.perf_counter()
            file.flush()
            os.fsync(file.fileno())
            took.append((time.perf_counter() - before) * 1e3)
    return sorted(took)[50]


def _told(puts: Puts) -> str:
    middle, p99, most = puts.us
    return f"`put` takes {middle:.0f} µs, p99 {p99:.0f} µs, at most {most:.0f} µs; {puts.fed_s:,.0f}/s are accepted."


def lines(figures: Figures) -> list[str]:
    """Return the report, as lines of Markdown."""
    embedded, redis = figures.embedded, figures.redis
    return [
        "## The background queue",
        "",
        f"An fsync of this disk takes {figures.fsync_ms:.2f} ms.",
        f"{_told(embedded)} With Redis, while a worker acknowledges {redis.done_s:,.0f} jobs/s: {_told(redis)}",
        "",
        "| jobs of one commit | leases and durable acknowledgements a second | CPU of one, µs |",
        "|---:|---:|---:|",
        *(f"| {pace.together} | {pace.jobs_s:,.0f} | {pace.cpu_us:.0f} |" for pace in figures.paces),
        "",
    ]


if __name__ == "__main__":
    figures = run(Path(sys.argv[1]) if sys.argv[1:] else None)
    sys.stdout.write(
        "\n".join(["Made by `python -m bench.jobs`.", "", *machine(), "", *lines(figures)]).rstrip() + "\n"
    )
