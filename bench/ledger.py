"""What one token costs the proxy, by part: a sampling profiler looks which Python code runs while a load runs.

py-spy (`pip install py-spy`; looked for on the path) notes the stack of whoever holds the interpreter's lock, so many
times a second. A sample counts for the innermost frame whose file or function has a part of its own below. What the
process has used besides is outside of Python: the system's and the event loop's (waiting, reading, timers), and the
products of classifiers, for which the runtime gives the lock back; it is the CPU time of the process less that of the
samples. Times are shares of a token's cost as it was measured in the same run
without the profiler, which slows what it looks at. A process that waits for its core counts where it stands: where the
machine has other work, the share of the system comes out too low, and those of the others are as they are among each
other. Of n samples a share has a standard error of `sqrt(p (1 - p) / n)`.
"""

from __future__ import annotations

import asyncio
import math
import re
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

RATE = 200
"""Samples a second: each stops the process for a moment."""
OUTSIDE = "outside of Python: loop, system, products of models"
OTHER = "other"
_FRAME = re.compile(r"^(?P<name>.*) \((?P<file>[^()]*?)(?::\d+)?\)$")
FUNCTIONS = {("checkstream/proxy/relay.py", "Exchange._flush"): "write"}
PARTS = (
    ("checkstream/listen/", "accept: sockets, room"),
    ("checkstream/proxy/request.py", "accept: sockets, room"),
    ("checkstream/proxy/counts.py", "metrics and logs"),
    ("checkstream/telemetry/", "metrics and logs"),
    ("checkstream/audit/", "audit"),
    ("checkstream/proxy/trail.py", "audit"),
    ("checkstream/sealed/", "what is remembered"),
    ("checkstream/proxy/conversations.py", "what is remembered"),
    ("checkstream/proxy/", "shell: bytes to the guard, commands"),
    ("checkstream/scoring/tokenizer", "classifiers: tokenise"),
    ("checkstream/scoring/windows.py", "classifiers: tokenise"),
    ("tokenizers/", "classifiers: tokenise"),
    ("checkstream/scoring/", "classifiers: score"),
    ("onnxruntime/", "classifiers: score"),
    ("checkstream/core/match/", "match: patterns, words"),
    ("checkstream/core/wire/", "decode: events, JSON"),
    ("checkstream/core/exchange/incoming.py", "decode: events, JSON"),
    ("checkstream/core/exchange/midstream/blocks.py", "decode: events, JSON"),
    ("checkstream/core/policy/", "policy: rules, conditions"),
    ("checkstream/core/cel/", "policy: rules, conditions"),
    ("checkstream/core/channel/", "hold and judge"),
    ("checkstream/core/exchange/midstream/outbox.py", "encode: what leaves"),
    ("checkstream/core/exchange/midstream/writer.py", "encode: what leaves"),
    ("checkstream/core/exchange/midstream/rendering.py", "encode: what leaves"),
    ("checkstream/core/exchange/leaving.py", "encode: what leaves"),
    ("checkstream/core/exchange/midstream/order.py", "encode: what leaves"),
    ("checkstream/core/", "guard: states, course"),
    ("checkstream/app/", "process: timers of its own"),
    ("checkstream/processes/", "process: timers of its own"),
    ("aiohttp/", "accept: sockets, room"),
)
"""Path of a file, or a folder -> what it is a part of; the first that fits."""


class Line(msgspec.Struct, frozen=True):
    """One part of what a token costs."""

    part: str
    share: float
    error: float
    """Standard error of the share."""


class Ledger(msgspec.Struct, frozen=True):
    """What a token costs, part by part."""

    lines: tuple[Line, ...]
    samples: int


def part_of(stack: str) -> str:
    """Return the part that a stack counts for: frames `name (file:line)`, outermost first, `;` between them."""
    for frame in reversed(stack.split(";")):
        found = _FRAME.match(frame)
        if found is None:
            continue
        name, file = found["name"], found["file"]
        for (place, function), part in FUNCTIONS.items():
            if function == name and file.endswith(place):
                return part
        for place, part in PARTS:
            if place in file:
                return part
    return OTHER


def counted(raw: Iterable[str]) -> Counter[str]:
    """Return how many samples each part has, of py-spy's raw lines: a stack and how often it was met."""
    found: Counter[str] = Counter()
    for line in raw:
        stack, _, count = line.rstrip("\n").rpartition(" ")
        if stack and count.isdecimal():
            found[part_of(stack)] += int(count)
    return found


def ledger(samples: Mapping[str, int], cpu_s: float, rate: int = RATE) -> Ledger:
    """Return what each part's samples come to, of the CPU time that the process has used meanwhile.

    Args:
        samples: Of each part.
        cpu_s: CPU time of the process while they were taken.
        rate: Samples a second.
    """
    taken = sum(samples.values())
    whole = max(cpu_s * rate, float(taken))
    counts = {**samples, OUTSIDE: whole - taken}
    lines = []
    for part, count in sorted(counts.items(), key=lambda each: -each[1]):
        share = count / whole if whole else 0.0
        lines.append(Line(part, share, math.sqrt(share * (1 - share) / whole) if whole else 0.0))
    return Ledger(tuple(lines), taken)


async def sampled(pid: int, seconds: float) -> Counter[str] | None:
    """Look at a process for so long, and return how many samples each part has; None: nobody here can look.

    Raises:
        RuntimeError: the profiler has failed.
    """
    program = shutil.which("py-spy")
    if program is None:
        return None
    with TemporaryDirectory() as folder:
        out = Path(folder) / "raw"
        given = ("record", "--gil", "--format", "raw", "--rate", str(RATE), "--duration", str(math.ceil(seconds)))
        process = await asyncio.create_subprocess_exec(
            program, *given, "--pid", str(pid), "--output", str(out),
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, said = await process.communicate()
        if process.returncode or not out.exists():
            raise RuntimeError(f"py-spy can't look at the proxy: {said.decode(errors='replace').strip()}")
        return counted(out.read_text("utf-8").splitlines())
