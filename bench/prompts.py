"""What a prompt costs before the model sees it: by language and length, through the running proxy.

    python -m bench.prompts DATA_FOLDER [--texts N] [--sizes 4000,100000] [--out FILE]

`checkstream serve --upstream` runs as it is shipped, with its default policies; the model answers at once. DATA_FOLDER
holds gzipped JSON lines with prompts in many languages (`prompts_multilingual` and others); prompts of one language are
joined to texts of the length that is asked for, none of them twice, so that nothing is remembered. Code is Python's own
library. Wall time of one request after the other, from its first byte to the answer's last, and CPU time of the proxy.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import random
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import msgspec

from bench import proxy, report
from bench.report import table
from models.training.corpus import part_of

LANGUAGES: Mapping[str, str] = {
    "en": "English",
    "de": "German",
    "ru": "Russian",
    "zh": "Chinese",
    "ja": "Japanese",
    "ar": "Arabic",
    "es": "Spanish",
    "tr": "Turkish",
    "hi": "Hindi",
    "th": "Thai",
    "el": "Greek",
}
CODE = "Python code"
_FILES = ("prompts_multilingual", "prompts_oasst", "prompts_misc", "prompts_tasks")
_SAID = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}],
    }
).encode()
_ANSWER = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\nconnection: close\r\n\r\n" % len(_SAID)
    + _SAID
)


class Cost(msgspec.Struct, frozen=True):
    """Requests of one language and length."""

    language: str
    chars: int
    wall_ms: list[float]
    cpu_ms: list[float]
    statuses: dict[int, int]
    """Status -> how many; 400: the policy refused a prompt, falsely."""


def texts(folder: Path, size: int, count: int, seed: int = 1) -> dict[str, list[str]]:
    """Return so many texts of each language, each of `size` code points."""
    draw = random.Random(seed)
    prose: dict[str, list[str]] = {language: [] for language in LANGUAGES}
    for name in _FILES:
        with gzip.open(folder / f"{name}.jsonl.gz", "rb") as lines:
            for line in lines:
                row = json.loads(line)
                known = row["language"] in prose and row["kind"] == "prompt"
                if known and part_of(row["text"]) != "train":  # what the shipped models have learnt from is no test
                    prose[row["language"]].append(row["text"])
    found = {name: list(_runs(prose[language], size, count, draw)) for language, name in LANGUAGES.items()}
    library = Path(sysconfig.get_paths()["stdlib"])
    sources = [file.read_text("utf-8", "replace") for file in sorted(library.glob("*.py"))]
    return {**found, CODE: list(_runs(sources, size, count, draw))}


def _runs(parts: Sequence[str], size: int, count: int, draw: random.Random) -> Iterator[str]:
    for _ in range(count):
        taken: list[str] = []
        while sum(map(len, taken)) < size:
            part = draw.choice(parts)
            start = draw.randrange(len(part) - size) if len(part) > size else 0
            taken.append(part[start:])
        yield "\n\n".join(taken)[:size]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read a request and answer it; a connection may go away unused."""
    with suppress(asyncio.IncompleteReadError):
        await _message(reader)
        writer.write(_ANSWER)
    writer.close()


async def _message(reader: asyncio.StreamReader) -> bytes:
    """Read one message; return its first line."""
    head = await reader.readuntil(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            await reader.readexactly(int(line.partition(b":")[2]))
    return head.partition(b"\r\n")[0]


@contextmanager
def serving(model_port: int) -> Iterator[proxy.Proxy]:
    """Run `checkstream serve --upstream` as it is shipped."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log"
        url = f"http://127.0.0.1:{model_port}"
        ports = ["--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        with log.open("w") as stderr:
            process = subprocess.Popen(
                [sys.executable, "-m", "checkstream", "serve", "--upstream", url, *ports],
                stderr=stderr,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])},
            )
        try:
            yield proxy.Proxy(process, *proxy.ports(process, log))
        finally:
            process.terminate()
            process.wait()


async def _ask(port: int, text: str) -> int:
    """Send a prompt and read the answer; return its status."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}, ensure_ascii=False).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(head + b"content-length: %d\r\n\r\n" % len(body) + body)
        return int((await _message(reader)).split()[1])
    finally:
        writer.close()


async def run(folder: Path, sizes: Sequence[int], count: int) -> list[Cost]:
    """Measure every language at every length, taking turns, so that what the machine does besides hits all alike."""
    server = await asyncio.start_server(_answer, "127.0.0.1", 0)
    found: list[Cost] = []
    with serving(server.sockets[0].getsockname()[1]) as served:
        for size in sizes:
            turns = max(3, count if size <= 10_000 else count // 8)
            drawn = texts(folder, size, turns + 1)
            costs = {name: Cost(name, size, [], [], {}) for name in drawn}
            for number in range(turns + 1):
                for name, cost in costs.items():
                    cpu, began = served.cpu_s(), time.perf_counter()
                    status = await _ask(served.port, drawn[name][number])
                    wall = time.perf_counter() - began
                    if number:  # the first turn warms up
                        cost.wall_ms.append(wall * 1e3)
                        cost.cpu_ms.append((served.cpu_s() - cpu) * 1e3)
                        cost.statuses[status] = cost.statuses.get(status, 0) + 1
            found += costs.values()
    server.close()
    return found


def lines(found: Sequence[Cost]) -> list[str]:
    """Return the table as Markdown."""
    rows = []
    for cost in found:
        late = quantiles(cost.wall_ms, n=20)[-1] if len(cost.wall_ms) >= 20 else max(cost.wall_ms)
        told = ", ".join(f"{status}: {count}" for status, count in sorted(cost.statuses.items()))
        row = [f"{median(cost.cpu_ms):.0f}", f"{max(cost.cpu_ms):.0f}", f"{median(cost.wall_ms):.0f}", f"{late:.0f}"]
        rows.append([f"{cost.chars:,}", cost.language, *row, told])
    head = ("characters", "language", "CPU ms: median", "most", "wall ms: median", "p95", "statuses")
    return table(head, rows)


def main(given: Sequence[str]) -> int:
    """Measure, and print Markdown."""
    parser = argparse.ArgumentParser(prog="python -m bench.prompts", description=__doc__.split("\n")[0])
    parser.add_argument("data", type=Path, help="folder of gzipped JSON lines")
    parser.add_argument("--texts", type=int, default=24, help="of each language and length")
    parser.add_argument("--sizes", default="4000,100000", help="code points of a text")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the report here too")
    asked = parser.parse_args(given)
    sizes = [int(size) for size in asked.sizes.split(",")]
    found = asyncio.run(run(asked.data, sizes, asked.texts))
    body = ["# What a prompt costs, by language", "", f"Made by `python -m bench.prompts {asked.data}`.", ""]
    text = "\n".join([*body, *report.machine(), "", *lines(found)]) + "\n"
    sys.stdout.write(text)
    if asked.out is not None:
        asked.out.write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
