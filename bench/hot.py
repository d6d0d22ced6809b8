"""The hot path: CPU of the proxy for one token of calm English, beside nginx and beside another checkout, in turn.

    python -m bench.hot [--streams 50 200] [--saturated 8] [--mode guarded|default] [--rounds N] [--beside FOLDER]
                        [--ledger]

One token an event, 50 a second in each stream, then as fast as they are read. The proxies share a core and run in turn,
round by round; the load has another. Each figure is the median of the rounds; ratios bear a busy machine better than
figures do. Without nginx its rows are left out. `--ledger` says of which parts a token's cost is made (`ledger`).
"""

from __future__ import annotations

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import msgspec
import uvloop

from bench import ledger, report
from bench.load import Caller, Model
from bench.proxy import ROOT, serving
from bench.scenario import answer, event, request
from checkstream.bench import targets

_PATH = "/v1/chat/completions"
_PROMPT = "Tell me in a few paragraphs how a lighthouse works, please."
_TEXT = "benign.txt"
_PER_S = 50.0
_SETTLE_S = 0.3
_LEAST_SHARE = 0.005
_TOGETHER = 25
"""Streams that are begun at once."""


class _Measured(msgspec.Struct, frozen=True):
    name: str
    port: int
    pid: int
    cpu_s: Callable[[], float]
    rss_bytes: Callable[[], int]


class _Turn(msgspec.Struct, frozen=True):
    token_us: float
    tokens_s: float
    rss_mb: float


@asynccontextmanager
async def _running(model_port: int, beside: Path | None) -> AsyncIterator[list[_Measured]]:
    cores = sorted(os.sched_getaffinity(0))
    core, others = (cores[0], set(cores[1:])) if len(cores) > 1 else (None, set(cores))
    async with AsyncExitStack() as opened:
        found: list[_Measured] = []
        nginx = await opened.enter_async_context(targets.nginx(model_port, cores[:1] if core is not None else ()))
        if nginx is not None:
            cpu_s, rss = nginx.cpu_s, nginx.rss_bytes
            found.append(_Measured("nginx", nginx.place.port, 0, lambda: cpu_s() or 0.0, lambda: rss() or 0))
        trees = {"checkstream": ROOT}
        if beside is not None:
            trees = {"beside": beside, **trees}
        for name, root in trees.items():
            proxy = opened.enter_context(serving(model_port, core, others, root=root))
            found.append(_Measured(name, proxy.port, proxy.pid, proxy.cpu_s, proxy.rss_bytes))
        yield found


async def _turn(measured: _Measured, model: Model, mode: str, streams: int, window_s: float) -> _Turn:
    async with _load(measured, model, mode, streams) as tokens:
        cpu_s, before, start = measured.cpu_s(), tokens(), time.perf_counter()
        await asyncio.sleep(window_s)
        cpu_s, got, seconds = measured.cpu_s() - cpu_s, tokens() - before, time.perf_counter() - start
        return _Turn(cpu_s / max(got, 1) * 1e6, got / seconds, measured.rss_bytes() / 1e6)


async def _sampled(measured: _Measured, model: Model, mode: str, streams: int, window_s: float) -> ledger.Ledger | None:
    """Return the parts of what a token costs; None: nobody here can look."""
    async with _load(measured, model, mode, streams):
        cpu_s = measured.cpu_s()
        found = await ledger.sampled(measured.pid, window_s)
        return None if found is None else ledger.ledger(found, measured.cpu_s() - cpu_s)


@asynccontextmanager
async def _load(measured: _Measured, model: Model, mode: str, streams: int) -> AsyncIterator[Callable[[], int]]:
    """Have so many streams run; yields what says how many tokens have come."""
    loop = asyncio.get_running_loop()
    tokens = 0

    def count(more: int) -> None:
        nonlocal tokens
        tokens += more

    callers: list[Caller] = []

    async def begin() -> None:
        body = request(mode, _PROMPT)
        _, caller = await loop.create_connection(lambda: Caller(count, _PATH, body), "127.0.0.1", measured.port)
        callers.append(caller)
        await caller.heard_s(1)

    try:
        for at in range(0, streams, _TOGETHER):
            await asyncio.gather(*(begin() for _ in range(min(_TOGETHER, streams - at))))
        await asyncio.sleep(_SETTLE_S)
        yield lambda: tokens
    finally:
        model.finish()
        for caller in callers:
            caller.close()
        await asyncio.sleep(_SETTLE_S)


async def run(args: argparse.Namespace, say: Callable[[str], None]) -> None:
    """Measure, and say the table row by row."""
    said = [event({"content": text}) for text in answer(_TEXT)]
    say("| load | proxy | us a token | all rounds | against nginx | tokens/s | memory |")
    say("|---|---|---|---|---|---|---|")
    parts: list[str] = []
    loads = [(streams, _PER_S) for streams in args.streams] + [(streams, None) for streams in args.saturated]
    for streams, per_s in loads:
        model = Model(said, per_s)
        async with _running(await model.open(), args.beside) as found:
            turns: dict[str, list[_Turn]] = {each.name: [] for each in found}
            for each in found:
                await _turn(each, model, args.mode, 2, 0.3)
            for _ in range(args.rounds):
                for each in found:
                    turns[each.name].append(await _turn(each, model, args.mode, streams, args.window))
            book = await _sampled(found[-1], model, args.mode, streams, args.sampled) if args.ledger else None
        await model.close()
        load = f"{streams} x {per_s:.0f}/s" if per_s else f"{streams} at full speed"
        for row in _rows(load, turns):
            say(row)
        if book is not None:
            token_us = statistics.median(turn.token_us for turn in turns[found[-1].name])
            parts += _parts(f"{load}, {args.mode}", book, token_us)
    if args.ledger:
        for line in parts or ["", "There is no `py-spy` on the path: no ledger."]:
            say(line)


def _parts(load: str, book: ledger.Ledger, token_us: float) -> list[str]:
    """Return the ledger of one load, with what each part costs of a token."""
    rows = [
        [line.part, f"{line.share * token_us:.1f}", f"{line.share:.1%} ± {line.error:.1%}"]
        for line in book.lines
        if line.share >= _LEAST_SHARE
    ]
    told = f"{load}: {token_us:.1f} us a token, {book.samples} samples"
    return ["", *report.table([told, "us a token", "share"], rows)]


def _rows(load: str, turns: dict[str, list[_Turn]]) -> Sequence[str]:
    middle = {name: statistics.median(turn.token_us for turn in each) for name, each in turns.items()}
    rows = []
    for name, each in turns.items():
        every = ", ".join(f"{turn.token_us:.1f}" for turn in each)
        ratio = f"{middle[name] / middle['nginx']:.1f}x" if middle.get("nginx") else "-"
        speed = statistics.median(turn.tokens_s for turn in each)
        memory = statistics.median(turn.rss_mb for turn in each)
        rows.append(f"| {load} | {name} | {middle[name]:.1f} | {every} | {ratio} | {speed:,.0f} | {memory:.0f} MB |")
    return rows


def main(given: list[str]) -> int:
    """Measure what was asked for."""
    parser = argparse.ArgumentParser(prog="python -m bench.hot", description=__doc__)
    parser.add_argument("--streams", type=int, nargs="*", default=[50, 200])
    parser.add_argument("--saturated", type=int, nargs="*", default=[8])
    parser.add_argument("--mode", choices=("guarded", "default"), default="guarded")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--window", type=float, default=2.0)
    parser.add_argument("--ledger", action="store_true", help="what a token's cost is made of, with py-spy")
    parser.add_argument("--sampled", type=float, default=8.0, help="seconds that the ledger looks at each load")
    parser.add_argument(
        "--beside", type=lambda given: Path(given).resolve(), help="another checkout, to be measured in the same run"
    )
    args = parser.parse_args(given)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run(args, lambda line: print(line, flush=True)))
    print("", *report.machine(), sep="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
