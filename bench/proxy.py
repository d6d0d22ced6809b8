"""One benign event through the running proxy: CPU time, and what a caller waits for the first events.

`checkstream serve` runs as the process that it is, pinned to one core; model and callers share another. Guarded and
unguarded routes of the same process take turns, so that their ratio holds though the machine's speed changes.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.load import Caller, Model
from bench.policies import with_classifiers
from bench.scenario import Scenario, answer, event, joined, request

MODES = {
    "direct": "no proxy",
    "pass": "route `pass: true`",
    "guarded": "guarded, no classifiers",
    "safety": "guarded, `safety` alone",
    "default": "guarded, default policies",
}
"""What is compared; a request chooses its route by path and model."""
_GUARDED = "/v1/chat/completions"
_PATHS = {"pass": "/unguarded/v1/chat/completions"}
_BUCKET = re.compile(r'checkstream_check_seconds_bucket{detector="[^"]*",le="([^"]+)"} (\S+)')
_START_S = 30.0
ROOT = Path(__file__).resolve().parents[1]
"""This checkout."""
_SETTLE_S = 0.3


class Turn(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one mode."""

    events: int
    """Events that callers got within the window."""
    wall_s: float
    cpu_s: float
    """CPU time of the proxy's process within the window, user and system."""
    waited_s: float = 0.0
    """How long its event loop's thread was ready to run in the window and the core had other work."""
    first_event_ms: tuple[float, ...]
    """From request to first event (the role), of each probe: connection, ingress and processing."""
    first_text_ms: tuple[float, ...]
    """From request to first text, of each probe: the hold besides."""
    late_ms: float
    """How late the load generator was with the median event, by its own schedule."""
    checks: Mapping[float, int] = {}
    """Checks of classifiers within the window, by their time: upper bound of a bucket in ms -> how many up to it."""

    @property
    def event_us(self) -> float:
        """CPU time of the proxy for one event, microseconds."""
        return self.cpu_s / self.events * 1e6


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """All turns of one scenario."""

    scenario: Scenario
    turns: dict[str, tuple[Turn, ...]]
    event_bytes: float


class Proxy:
    """A running `checkstream serve`."""

    def __init__(self, process: subprocess.Popen[bytes], port: int, admin: int) -> None:
        """Know the process and its ports."""
        self.port = port
        self.pid = process.pid
        self._admin = admin
        self._schedule = Path(f"/proc/{process.pid}/task/{process.pid}/schedstat")
        self._statm = Path(f"/proc/{process.pid}/statm")
        # The process's own CPU clock, in nanoseconds where /proc has hundredths of a second.
        self._clock = (~process.pid << 3) | 2

    def rss_bytes(self) -> int:
        """Return the memory of it that is in use."""
        return int(self._statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def cpu_s(self) -> float:
        """Return the CPU time that it has used, of all its threads."""
        return time.clock_gettime(self._clock)

    def waited_s(self) -> float:
        """Return how long its main thread has waited for its core while it was ready to run; 0 where nobody tells."""
        try:
            return int(self._schedule.read_text().split()[1]) / 1e9
        except OSError:
            return 0.0

    async def checks(self) -> dict[float, int]:
        """Return how many checks of answers took up to so many ms, since it started."""
        url = f"http://127.0.0.1:{self._admin}/metrics"
        text = await asyncio.to_thread(lambda: urllib.request.urlopen(url).read().decode())
        found: dict[float, int] = {}
        for line in text.splitlines():
            bucket = _BUCKET.match(line)
            if bucket is not None:
                bound = float(bucket[1]) * 1000
                found[bound] = found.get(bound, 0) + int(float(bucket[2]))
        return found


def _config(model_port: int, folder: Path) -> dict[str, object]:
    """Return a configuration with one route for each mode."""
    path = _GUARDED
    return {
        "server": {
            "listen": "127.0.0.1:0",
            "admin": "127.0.0.1:0",
            "limits": {"answer_bytes": 1 << 30, "load": 1},  # a request that is shed would end the measurement
        },
        "upstreams": {"model": {"url": f"http://127.0.0.1:{model_port}"}},
        "routes": [
            {"name": "pass", "match": {"path": _PATHS["pass"]}, "upstream": "model", "pass": True},
            {
                "name": "guarded",
                "match": {"path": path, "model": "guarded"},
                "upstream": "model",
                "policies": ["patterns.yaml"],
            },
            {
                "name": "safety",
                "match": {"path": path, "model": "safety"},
                "upstream": "model",
                "policies": ["safety.yaml"],
                "deadline": {"check_ms": 5000},
            },
            {
                "name": "default",
                "match": {"path": path, "model": "default"},
                "upstream": "model",
                "policies": ["builtin:default"],
                # A check that is late on a busy machine would end its stream, and the measurement with it.
                "deadline": {"check_ms": 5000},
            },
        ],
        "audit": {"dir": str(folder / "audit")},
    }


@contextmanager
def serving(model_port: int, core: int | None, others: set[int], *, root: Path = ROOT) -> Iterator[Proxy]:
    """Run the proxy of a checkout on its core; this process moves to the others."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "patterns.yaml").write_text(with_classifiers(), "utf-8")
        (folder / "safety.yaml").write_text(with_classifiers("safety"), "utf-8")
        file = folder / "checkstream.yaml"
        file.write_text(json.dumps(_config(model_port, folder)), "utf-8")
        before = os.sched_getaffinity(0)
        if core is not None:
            os.sched_setaffinity(0, {core})  # what is started now inherits it
        log = folder / "log"
        with log.open("w") as stderr:  # not a pipe: nobody reads it, and a full one would stop the proxy
            process = subprocess.Popen(
                [sys.executable, "-m", "checkstream", "serve", "--config", str(file)],
                stderr=stderr,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(root)},
            )
        os.sched_setaffinity(0, others)
        try:
            yield Proxy(process, *ports(process, log))
        finally:
            os.sched_setaffinity(0, before)
            process.terminate()
            try:
                process.wait(_START_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def ports(process: subprocess.Popen[bytes], log: Path) -> tuple[int, int]:
    """Wait until it says where it listens, for callers and for its operator.

    Raises:
        RuntimeError: it ended, or takes too long.
    """
    end = time.monotonic() + _START_S
    while process.poll() is None and time.monotonic() < end:
        for line in log.read_text("utf-8").splitlines():
            if '"listening"' in line and line.endswith("}"):
                told = json.loads(line)
                return int(told["listen"].rpartition(":")[2]), int(told["admin"].rpartition(":")[2])
        time.sleep(0.02)
    raise RuntimeError(f"the proxy did not start: {log.read_text('utf-8')}")


class _Count:
    """Events that reached callers."""

    def __init__(self) -> None:
        self.events = 0

    def add(self, count: int) -> None:
        self.events += count


async def _call(port: int, mode: str, scenario: Scenario, count: _Count) -> Caller:
    loop = asyncio.get_running_loop()
    path, body = _PATHS.get(mode, _GUARDED), request(mode, scenario.prompt)
    _, caller = await loop.create_connection(lambda: Caller(count.add, path, body), "127.0.0.1", port)
    return caller


@asynccontextmanager
async def _streams(port: int, mode: str, scenario: Scenario, count: _Count) -> AsyncIterator[list[Caller]]:
    """Begin all streams; wait until each has said something."""
    callers: list[Caller] = []
    try:
        for _ in range(scenario.streams):
            caller = await _call(port, mode, scenario, count)
            callers.append(caller)
            await caller.heard_s(1)
        yield callers
    finally:
        for caller in callers:
            caller.close()


async def _turn(proxy: Proxy, model: Model, model_port: int, mode: str, scenario: Scenario) -> Turn:
    """Measure one mode once.

    Raises:
        ConnectionError: a stream broke off.
        RuntimeError: callers did not get every event that was sent.
    """
    port = model_port if mode == "direct" else proxy.port
    count = _Count()
    sent = model.sent
    async with _streams(port, mode, scenario, count) as callers:
        await asyncio.sleep(_SETTLE_S)
        model.late_s.clear()
        checks = await proxy.checks()
        waited = proxy.waited_s()
        cpu, events, start = proxy.cpu_s(), count.events, time.perf_counter()
        await asyncio.sleep(scenario.window_s)
        cpu, events, wall = proxy.cpu_s() - cpu, count.events - events, time.perf_counter() - start
        waited = proxy.waited_s() - waited
        checks = {bound: count - checks.get(bound, 0) for bound, count in (await proxy.checks()).items()}
        late = sorted(model.late_s) or [0.0]
        first_event, first_text = [], []
        for _ in range(scenario.probes):
            probe = await _call(port, mode, scenario, count)
            callers.append(probe)
            first_event.append(await probe.heard_s(1) * 1000)
            first_text.append(await probe.heard_s(2) * 1000)
        model.finish()
        for caller in callers:
            await asyncio.wait_for(caller.ended, _START_S)
    if count.events != model.sent - sent:
        raise RuntimeError(f"`{mode}`: {model.sent - sent} events were sent and {count.events} came")
    return Turn(
        events=events,
        wall_s=wall,
        cpu_s=cpu,
        waited_s=waited,
        first_event_ms=tuple(first_event),
        first_text_ms=tuple(first_text),
        late_ms=late[len(late) // 2] * 1000,
        checks=checks,
    )


async def run(scenario: Scenario, rounds: int | None = None) -> Report:
    """Measure every mode in turn, `rounds` times, after one turn of each to warm up."""
    said = [event({"content": text}) for text in joined(answer(scenario.answer), scenario.tokens)]
    model = Model(said, scenario.per_s)
    model_port = await model.open()
    cores = sorted(os.sched_getaffinity(0))
    pinned = cores[0] if len(cores) > 1 else None
    turns: dict[str, list[Turn]] = {mode: [] for mode in scenario.modes}
    warm_up = msgspec.structs.replace(scenario, window_s=0.3, probes=min(scenario.probes, 2))
    try:
        with serving(model_port, pinned, set(cores[1:] or cores)) as proxy:
            for mode in turns:
                await _turn(proxy, model, model_port, mode, warm_up)
            for _ in range(rounds or scenario.rounds):
                for mode, found in turns.items():
                    found.append(await _turn(proxy, model, model_port, mode, scenario))
    finally:
        await model.close()
    return Report(
        scenario=scenario,
        turns={mode: tuple(found) for mode, found in turns.items()},
        event_bytes=sum(map(len, said)) / len(said),
    )
