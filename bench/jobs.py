"""The embedded queue on this disk: durable leases and acknowledgements a second, and what `put` costs a request.

A lease is a commit that waits for no disk (it is over anyway when the machine starts again), an acknowledgement with
its result one that does; a worker takes and returns what has come together, so the figure depends on how many go into
one commit.

    python -m bench.jobs [FOLDER]
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.report import machine
from checkstream.errors import StoreFailed
from checkstream.jobs.exchange import Exchange, scoring_jobs
from checkstream.jobs.feeder import Dropped, Feeder, FeederSettings
from checkstream.jobs.room import Load
from checkstream.jobs.sqlite_queue import SqliteQueue
from checkstream.jobs.terms import Finished, Job, Result

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


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What was measured."""

    fsync_ms: float
    """Median time of one fsync of this disk."""
    paces: tuple[Pace, ...]
    put_us: tuple[float, float, float]
    """Of `Feeder.put`: median, 99th percentile, most; microseconds."""
    fed_s: float
    """Exchanges a second that the feeder got accepted."""


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
        put_us, fed_s = _put(place / "fed.db")
        return Figures(fsync_ms=_fsync_ms(place / "x"), paces=paces, put_us=put_us, fed_s=fed_s)


def _exchange(number: int) -> Exchange:
    return Exchange(stream=f"{number:024x}", route="chat", surface="openai_chat", answer=_ANSWER)


def _pace(path: Path, together: int) -> Pace:
    queue = SqliteQueue(path, capacity=_ROOM)
    count = min(_LEASES, together * 250)
    queue.put([scoring_jobs(_exchange(number), ["watchdog"], 0, 1 << 20)[0] for number in range(count)])
    begin, cpu = time.perf_counter(), time.process_time()
    while leases := queue.lease(together):
        queue.done(
            [
                Finished(
                    lease=lease,
                    result=Result(
                        stream=lease.job.stream,
                        route="chat",
                        scorer="watchdog",
                        version="1",
                        risk=1,
                        report=b"{}",
                        at_ms=0,
                    ),
                )
                for lease in leases
            ]
        )
    took, cpu = time.perf_counter() - begin, time.process_time() - cpu
    queue.close()
    return Pace(together, count / took, cpu / count * 1e6)


def _put(path: Path) -> tuple[tuple[float, float, float], float]:
    feeder = Feeder(SqliteQueue(path, capacity=_ROOM), FeederSettings(), _Told())
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
    return (took[len(took) // 2], took[len(took) * 99 // 100], took[-1]), fed_s


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


def lines(figures: Figures) -> list[str]:
    """Return the report, as lines of Markdown."""
    median, p99, most = figures.put_us
    return [
        "## The background queue",
        "",
        f"An fsync of this disk takes {figures.fsync_ms:.2f} ms.",
        f"`put` takes {median:.0f} µs, p99 {p99:.0f} µs, at most {most:.0f} µs; {figures.fed_s:,.0f}/s are accepted.",
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
