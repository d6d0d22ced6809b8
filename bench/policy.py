"""What large policies cost: phrases by the thousand, two hundred rules to compile, a reload beside a paced stream."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.generated import phrase_policy, policy
from bench.load import Caller, Model
from bench.scenario import answer, event, request
from checkstream.core.match.scan import Scan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Stage

_LABELS = (ClassifierLabel("lexicon.toxicity"), ClassifierLabel("lexicon.injection"))
_CHUNK_CHARS = 64
_CHUNKS = 1500
_LISTS = (0, 100, 1_000, 10_000)
_RULES = 200
_PER_S = 500.0
_WINDOW_S = 3.0
_START_S = 60.0


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Figures of a run."""

    chunk_us: dict[int, tuple[float, ...]]
    """Phrases -> CPU time of one chunk in each round, microseconds."""
    compile_ms: tuple[float, ...]
    """CPU time to compile a policy of `_RULES` rules, none of which has been seen, in each round."""
    again_ms: tuple[float, ...]
    """The same for the same policy once more."""
    calm_ms: tuple[tuple[float, ...], ...]
    """Time by which each event of a paced stream came late, in each window without a reload."""
    reload_ms: tuple[tuple[float, ...], ...]
    """The same with a reload."""


def phrase_lists(rounds: int) -> dict[int, tuple[float, ...]]:
    """Measure a benign text in chunks under lists of phrases, in turns, after one that warms up the automata."""
    text = "".join(answer("benign.txt"))
    text *= _CHUNKS * _CHUNK_CHARS // len(text) + 1
    chunks = [text[at : at + _CHUNK_CHARS] for at in range(0, _CHUNKS * _CHUNK_CHARS, _CHUNK_CHARS)]
    sets = {}
    for size in _LISTS:
        program = compile_sources([("list.yaml", phrase_policy(size))])
        sets[size] = program.scope(Stage.MIDSTREAM, "content").hold
    found: dict[int, list[float]] = {size: [] for size in _LISTS}
    for turn in range(rounds + 1):
        for size, patterns in sets.items():
            feed = Scan(patterns).feed
            start = time.thread_time_ns()
            for chunk in chunks:
                feed(chunk)
            if turn:
                found[size].append((time.thread_time_ns() - start) / _CHUNKS / 1000)
    return {size: tuple(spent) for size, spent in found.items()}


def compiling(rounds: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Measure the compiling of a new policy in each round, and of the same again."""
    found: tuple[list[float], list[float]] = ([], [])
    for turn in range(rounds + 1):
        source = policy(_RULES, seed=1000 + turn)
        for spent in found:
            start = time.thread_time_ns()
            compile_sources([("policy.yaml", source)], _LABELS)
            if turn:  # the first compiles the entities, once in a process
                spent.append((time.thread_time_ns() - start) / 1e6)
    return tuple(found[0]), tuple(found[1])


class _Arrivals:
    """When the events of a stream came."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def add(self, count: int) -> None:
        self.times += [time.perf_counter()] * count

    def late_ms(self, start: float, end: float) -> tuple[float, ...]:
        """Return by how much each event of a window came later after the one before than it was sent."""
        inside = [at for at in self.times if start <= at < end]
        return tuple((b - a - 1 / _PER_S) * 1000 for a, b in pairwise(inside))


class _Proxy:
    """A running `checkstream serve` with one route."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self._folder = folder

    def lines(self, name: str) -> list[dict[str, object]]:
        """Return the lines of its log with this event."""
        lines = (self._folder / "log").read_text("utf-8").splitlines()
        return [json.loads(line) for line in lines if f'"{name}"' in line and line.endswith("}")]

    async def wait(self, name: str, count: int) -> dict[str, object]:
        """Wait for the line with this event and number.

        Raises:
            RuntimeError: the process ended, or takes too long.
        """
        end = time.monotonic() + _START_S
        while self.process.poll() is None and time.monotonic() < end:
            if len(found := self.lines(name)) >= count:
                return found[count - 1]
            await asyncio.sleep(0.05)
        raise RuntimeError(f"no `{name}`: {(self._folder / 'log').read_text('utf-8')}")

    def reload(self, seed: int) -> None:
        """Put another policy in place and have it loaded."""
        (self._folder / "policy.yaml").write_text(policy(_RULES, seed=seed, scores=False), "utf-8")
        self.process.send_signal(signal.SIGHUP)


@contextmanager
def _serving(model_port: int) -> Iterator[_Proxy]:
    config = {
        "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "limits": {"answer_bytes": 1 << 30}},
        "upstreams": {"model": {"url": f"http://127.0.0.1:{model_port}"}},
        "routes": [
            {
                "name": "chat",
                "match": {"path": "/v1/chat/completions"},
                "upstream": "model",
                "policies": ["policy.yaml"],
                "deadline": {"check_ms": 5000},
            }
        ],
    }
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "policy.yaml").write_text(policy(_RULES, seed=0, scores=False), "utf-8")
        (folder / "checkstream.yaml").write_text(
            json.dumps({**config, "audit": {"dir": str(folder / "audit")}}), "utf-8"
        )
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "checkstream", "serve", "--config", "checkstream.yaml"],
                stderr=log,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
            )
        try:
            yield _Proxy(process, folder)
        finally:
            process.terminate()
            process.wait(_START_S)


async def reloading(rounds: int) -> tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]:
    """Measure how late the events of one paced stream are, in windows without and with a reload in turns."""
    model = Model([event({"content": token}) for token in answer("benign.txt")], _PER_S)
    port = await model.open()
    calm: list[tuple[float, ...]] = []
    loaded: list[tuple[float, ...]] = []
    try:
        with _serving(port) as proxy:
            listen = str((await proxy.wait("listening", 1))["listen"])
            arrivals, loop = _Arrivals(), asyncio.get_running_loop()
            body = request("m", "hi")
            _, caller = await loop.create_connection(
                lambda: Caller(arrivals.add, "/v1/chat/completions", body), "127.0.0.1", int(listen.rpartition(":")[2])
            )
            await caller.heard_s(1)
            for turn in range(rounds + 1):
                for windows in (calm, loaded):
                    await asyncio.sleep(0.5)
                    start = time.perf_counter()
                    if windows is loaded:
                        proxy.reload(turn + 1)
                    await asyncio.sleep(_WINDOW_S)
                    if windows is loaded:
                        await proxy.wait("reload.accepted", turn + 1)
                    windows.append(arrivals.late_ms(start, time.perf_counter()))
            caller.close()
    finally:
        await model.close()
    return tuple(calm[1:]), tuple(loaded[1:])


async def run(rounds: int) -> Report:
    """Measure everything."""
    calm, loaded = await reloading(rounds)
    fresh, again = compiling(rounds)
    return Report(chunk_us=phrase_lists(rounds), compile_ms=fresh, again_ms=again, calm_ms=calm, reload_ms=loaded)


def lines(report: Report) -> list[str]:
    """Return the report as Markdown."""
    base = report.chunk_us[0]
    out = [
        "## Phrases",
        "",
        f"A benign answer in chunks of {_CHUNK_CHARS} characters under one pattern and a list of phrases whose words",
        "are drawn from 8,000, all words of the answer among them. CPU time.",
        "",
        "| phrases | us a chunk: median | added: median (quartiles) |",
        "| --- | --- | --- |",
    ]
    for size, spent in report.chunk_us.items():
        added = [one - other for one, other in zip(spent, base, strict=True)]
        out.append(f"| {size:,} | {statistics.median(spent):.1f} | {_spread(added)} |")
    out += [
        "",
        f"## {_RULES} rules",
        "",
        "| | CPU ms: median (quartiles) |",
        "| --- | --- |",
        f"| compile rules never seen | {_spread(report.compile_ms)} |",
        f"| compile the same again | {_spread(report.again_ms)} |",
        "",
        f"## A reload of {_RULES} other rules beside a stream",
        "",
        f"One stream of {_PER_S:g} events a second through `checkstream serve`; how late events come after the one",
        f"before, in windows of {_WINDOW_S:g} s without and with a reload in turns.",
        "",
        "| window | ms late: median event | 99 % | longest: median of windows | longest of all |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, windows in (("without a reload", report.calm_ms), ("with a reload", report.reload_ms)):
        late = sorted(one for window in windows for one in window)
        longest = [max(window) for window in windows]
        out.append(
            f"| {name} | {statistics.median(late):.2f} | {late[len(late) * 99 // 100]:.2f} "
            f"| {statistics.median(longest):.1f} | {max(longest):.1f} |"
        )
    return [*out, ""]


def _spread(values: list[float] | tuple[float, ...]) -> str:
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else (values[0],) * 3
    return f"{middle:.1f} ({low:.1f} to {high:.1f})"
