"""More answers at once than can be checked: what is admitted comes whole and in time, the rest is refused (G32).

`checkstream serve` with the shipped policies and settings runs on one core; model and callers share the others. Answers
are calm English, source code and prose in other languages, at full speed and at 50 tokens a second. Counted are answers
that came whole, that were cut, and that were refused with 429; the delay of a token is from its writing by the model to
its coming to the caller, so the hold is part of it.

    python -m bench.crowd [--quick] [--out FILE]

Prints Markdown. Answers are asked for at a rate, whatever becomes of those before. Capacity is the most that come whole
at a rate at which p99 is within twice the unloaded one, with admission switched off; three times that rate is then
offered to the proxy as it is shipped, in three rounds: the median counts, and each is told, so that one sees what is
chance. (So many answers at once that begin together are no measure of it: while they run, no prompt is checked.)

A core that shares its parts with another (hyper-threads, other tenants) is up to half slower while that one works, and
then there is less capacity than was measured. So the same small piece of work is done on the proxy's core all the
while, and the report says what it took.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import uvloop

from bench.scenario import DONE, FIRST, LAST, event, request
from checkstream.bench.scenario import TEXTS
from checkstream.config import Limits

_ROOT = Path(__file__).resolve().parents[1]
_TEXTS = ("benign.txt", "code.txt", "languages.txt")
_TOKENS = 300
_PER_S = 50.0
_BLOCK = 32
_ROUNDS = 3
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
_PATH = "/v1/chat/completions"


class _Chunk(msgspec.Struct):
    """Of an event, what is looked at."""

    choices: tuple[_Choice, ...] = ()
    error: dict[str, object] | None = None


class _Choice(msgspec.Struct):
    delta: dict[str, object]
    finish_reason: str | None = None


class Told(msgspec.Struct):
    """One answer on its way."""

    text: list[str]
    wrote: list[float] = msgspec.field(default_factory=list)
    """When each token was written."""
    heard: list[tuple[int, float]] = msgspec.field(default_factory=list)
    """Characters that had come, and when."""
    status: int = 0
    whole: bool = False
    judged: bool = False
    """A rule has stopped it, and its message stands there."""

    def delays(self) -> Iterator[float]:
        """Yield the delay of each token, seconds."""
        counts = [count for count, _ in self.heard]
        end = 0
        for token, wrote in zip(self.text, self.wrote, strict=False):
            end += len(token)
            at = bisect_left(counts, end)
            if at < len(counts):
                yield self.heard[at][1] - wrote


class Figures(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a crowd."""

    offered: int
    whole: int
    judged: int
    """Stopped by a rule, which says so: benign text that the shipped models take for something else."""
    cut: int
    """Broken off, or with a text that is not the model's."""
    refused: int
    p50_ms: float
    p99_ms: float
    goodput: float
    """Tokens a second of answers that came whole."""

    def row(self, name: str) -> str:
        """Return it as a row."""
        delays = f"{self.p50_ms:.0f} | {self.p99_ms:.0f}"
        counts = f"{self.offered} | {self.whole} | {self.judged} | {self.cut} | {self.refused}"
        return f"| {name} | {counts} | {delays} | {self.goodput:,.0f} |"


class Pace:
    """How fast the proxy's core is: the CPU time of a small piece of work on it, ten times a second."""

    def __init__(self) -> None:
        """Begin."""
        self.took_us: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(min(os.sched_getaffinity(0)),), daemon=True)
        self._thread.start()

    def _run(self, core: int) -> None:
        os.sched_setaffinity(0, {core})  # of this thread alone
        while not self._ended.wait(0.1):
            began = time.thread_time()
            sum(number % 7 for number in range(3000))
            self.took_us.append((time.thread_time() - began) * 1e6)

    def end(self) -> str:
        """Stop; return what there is to say."""
        self._ended.set()
        self._thread.join()
        least, *_, most = statistics.quantiles(self.took_us, n=20)
        middle = statistics.median(self.took_us)
        return f"One piece of work took {least:.0f} to {most:.0f} us on the proxy's core, at the median {middle:.0f}."


def _tokens(name: str) -> list[str]:
    """Return a text cut as a model would: before spaces, and every two characters where there are none."""
    text = (TEXTS / name).read_text("utf-8").strip() + "\n\n"
    pieces = re.findall(r"\s*[^\s]{1,7}|\s+", text)
    return [piece for piece in pieces if piece]


class Crowd:
    """The model server, and those who ask for its answers."""

    def __init__(self) -> None:
        """Read the texts."""
        self._texts = [_tokens(name) for name in _TEXTS]
        self._answers: dict[str, Told] = {}
        self._per_s: float | None = None
        self.port = 0

    async def open(self) -> None:
        """Have the model listen."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
            asked = json.loads(await reader.readexactly(length))
            told = self._answers[asked["messages"][-1]["content"]]
            writer.write(_HEAD + FIRST)
            start = time.perf_counter()
            for at, token in enumerate(told.text):
                if self._per_s is not None:
                    await asyncio.sleep(max(start + at / self._per_s - time.perf_counter(), 0))
                elif at % _BLOCK == 0:
                    await writer.drain()
                told.wrote.append(time.perf_counter())
                writer.write(event({"content": token}))
            writer.write(LAST + DONE)
            await writer.drain()
        except (OSError, RuntimeError, asyncio.IncompleteReadError):
            pass  # cut off by the proxy, which the caller's side counts
        finally:
            writer.close()

    async def ask(self, port: int, number: int) -> Told:
        """Ask once, and read to the end."""
        text = self._texts[number % len(self._texts)]
        told = Told([text[(number * 31 + at) % len(text)] for at in range(_TOKENS)])
        prompt = f"Please go on with number {number}."
        self._answers[prompt] = told
        body = request("m", prompt)
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 22)
        head = f"POST {_PATH} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: {len(body)}\r\nconnection: close\r\n"
        writer.write(f"{head}content-type: application/json\r\n\r\n".encode() + body)
        said: list[str] = []
        chars, finish = 0, None
        while line := await reader.readline():
            if line.startswith(b"HTTP/1.1"):
                told.status = int(line.split()[1])
            elif line.startswith(b"data: {"):
                chunk = msgspec.json.decode(line[6:], type=_Chunk)
                for choice in chunk.choices:
                    piece = choice.delta.get("content")
                    finish = choice.finish_reason or finish
                    if isinstance(piece, str) and piece:
                        said.append(piece)
                        chars += len(piece)
                        told.heard.append((chars, time.perf_counter()))
        writer.close()
        told.whole = finish == "stop" and "".join(said) == "".join(told.text)
        told.judged = finish == "content_filter"
        del self._answers[prompt]
        return told

    async def together(self, port: int, count: int, *, rounds: int = 1, per_s: float | None = None) -> Figures:
        """Ask for so many answers at once, each caller for several in turn."""
        self._per_s = per_s

        async def one(first: int) -> list[Told]:
            await asyncio.sleep(0 if per_s is None else first / count / per_s)
            return [await self.ask(port, first + turn * count) for turn in range(rounds)]

        start = time.perf_counter()
        found = await asyncio.gather(*(one(number) for number in range(count)))
        return _figures([told for each in found for told in each], time.perf_counter() - start)

    async def offered(self, port: int, per_s: float, seconds: float) -> Figures:
        """Offer answers at a rate, whatever becomes of them."""
        self._per_s = _PER_S
        start, tasks = time.perf_counter(), []
        for number in range(int(per_s * seconds)):
            await asyncio.sleep(max(start + number / per_s - time.perf_counter(), 0))
            tasks.append(asyncio.create_task(self.ask(port, number)))
        return _figures(list(await asyncio.gather(*tasks)), time.perf_counter() - start - _TOKENS / _PER_S / 2)


def _figures(found: Sequence[Told], seconds: float) -> Figures:
    delays = sorted(delay for told in found if told.whole for delay in told.delays()) or [0.0]
    whole = sum(told.whole for told in found)
    judged = sum(told.judged for told in found)
    refused = sum(told.status == 429 for told in found)
    return Figures(
        offered=len(found),
        whole=whole,
        judged=judged,
        cut=len(found) - whole - judged - refused,
        refused=refused,
        p50_ms=delays[len(delays) // 2] * 1000,
        p99_ms=delays[len(delays) * 99 // 100] * 1000,
        goodput=whole * _TOKENS / seconds,
    )


@contextmanager
def _serving(model_port: int, load: float) -> Iterator[int]:
    """Run the proxy as it is shipped, on the first core; this process keeps the others."""
    cores = sorted(os.sched_getaffinity(0))
    with TemporaryDirectory() as name:
        file = Path(name) / "checkstream.yaml"
        config = {
            "server": {"listen": "127.0.0.1:0", "admin": "127.0.0.1:0", "limits": {"load": load, "streams": 4000}},
            "upstreams": {"model": {"url": f"http://127.0.0.1:{model_port}"}},
            "routes": [{"name": "r", "match": {"path": _PATH}, "upstream": "model", "policies": ["builtin:default"]}],
        }
        file.write_text(json.dumps(config), "utf-8")
        command = ["taskset", "-c", str(cores[0]), sys.executable, "-m", "checkstream", "serve", "--config", str(file)]
        env = {**os.environ, "PYTHONPATH": str(_ROOT)}
        process = subprocess.Popen([*command, "--log", "json"], stderr=subprocess.PIPE, cwd=name, env=env, text=True)
        try:
            if process.stderr is None:
                raise AssertionError("its log is read")
            port = 0
            for line in process.stderr:
                row = json.loads(line)
                if row.get("event") == "listening":
                    port = int(row["listen"].rpartition(":")[2])
                    break
            drain = subprocess.Popen(["cat"], stdin=process.stderr, stdout=subprocess.DEVNULL)
            os.sched_setaffinity(0, set(cores[1:] or cores))
            yield port
            os.sched_setaffinity(0, set(cores))
            process.terminate()
            process.wait(30)
            drain.wait(30)
        finally:
            process.kill()


async def run(*, quick: bool) -> list[str]:
    """Measure, and return the report."""
    crowd, seconds = Crowd(), 12.0 if quick else 24.0
    await crowd.open()
    names = ("what", "offered", "whole", "stopped by a rule", "cut", "refused", "p50 ms", "p99 ms", "tokens/s")
    head = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    rows: list[str] = []

    def note(name: str, figures: Figures) -> Figures:
        rows.append(figures.row(name))
        sys.stderr.write(rows[-1] + "\n")
        return figures

    with _serving(crowd.port, Limits().load) as port:
        await crowd.together(port, 4)
        for count in (4, 8, 16, 20, 24):
            note(f"full speed, {count} at once", await crowd.together(port, count, rounds=1 if quick else 3))
        note("paced, 200 at once", await crowd.together(port, 200, per_s=_PER_S))
    with _serving(crowd.port, 1.0) as port:
        await crowd.together(port, 8)
        unloaded = note("paced, 8 at once", await crowd.together(port, 8, per_s=_PER_S))
        most = await _capacity(crowd, port, unloaded, note, seconds)
    pace, found = Pace(), list[Figures]()
    with _serving(crowd.port, Limits().load) as port:
        await crowd.together(port, 8)
        await crowd.together(port, 24, per_s=_PER_S)
        for number in range(_ROUNDS):
            figures = await crowd.offered(port, 3 * most.per_s, seconds)
            found.append(note(f"{3 * most.per_s} a second, round {number + 1}", figures))
    return [*head, *rows, "", _told(most, unloaded, found), "", pace.end()]


class Capacity(msgspec.Struct, frozen=True):
    """The most that comes whole in time when everything is admitted."""

    per_s: int
    """Answers that were asked for in a second."""
    goodput: float


async def _capacity(
    crowd: Crowd, port: int, unloaded: Figures, note: Callable[[str, Figures], Figures], seconds: float
) -> Capacity:
    """Ask for more answers a second, step by step, until tokens wait too long."""
    best = Capacity(1, 0.0)
    for per_s in range(4, 100):
        figures = note(f"{per_s} a second, none refused", await crowd.offered(port, per_s, seconds))
        if figures.p99_ms > 2 * unloaded.p99_ms or figures.cut:
            break
        best = Capacity(per_s, max(figures.goodput, best.goodput))
    return best


def _told(most: Capacity, unloaded: Figures, found: Sequence[Figures]) -> str:
    """Return what the rounds came to: the median, and each."""
    shares = [figures.goodput / most.goodput for figures in found]
    ratios = [figures.p99_ms / unloaded.p99_ms for figures in found]
    goodput = f"{statistics.median(shares):.0%} of it ({', '.join(f'{share:.0%}' for share in shares)})"
    p99 = f"{statistics.median(ratios):.1f} times the unloaded one ({', '.join(f'{ratio:.1f}' for ratio in ratios)})"
    capacity = f"{most.per_s} answers of {_TOKENS} tokens a second, {most.goodput:,.0f} tokens/s"
    told = f"Capacity: {capacity}. Offered three times as many: goodput {goodput}, p99 {p99}"
    return f"{told}, {sum(figures.cut for figures in found)} answers cut."


def main(given: list[str]) -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.crowd", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer answers")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here too")
    args = parser.parse_args(given)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        lines = runner.run(run(quick=args.quick))
    page = "\n".join(lines) + "\n"
    sys.stdout.write(page)
    if args.out is not None:
        args.out.write_text(page, "utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
