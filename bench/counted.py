"""The work of the core on one token and on one short whole answer: steps of the interpreter, and calls of C.

They are counted and not timed. Both are the same in every run on every machine, so a few percent more of them are a
regression and no noise. What a call in C costs is not seen: `core.py` times that. `kept.json` has the figures that
`tests/unit/bench/test_counted.py` holds the code to.

    python -m bench.counted [--write]
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec

from bench.policies import with_classifiers, with_scores
from bench.scenario import FIRST, answer, event, request
from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import Program
from checkstream.core.wire.surfaces import SURFACES

KEPT = Path(__file__).with_name("kept.json")
TOGETHER, WHOLE = "x25", "whole"
NAMES = tuple(f"{policies}{how}" for how in ("", f" {TOGETHER}", f" {WHOLE}") for policies in ("patterns", "default"))
_EVENTS, _WHOLE_CHARS = 280, 400
_PROMPT = "Tell me in a few paragraphs how a lighthouse works, please."
_READ = 25
"""Events of one read, where several come together."""
_WAITING = 1
"""Questions to classifiers that wait while the stream goes on."""
_PARTS: Mapping[str, str] = {
    "core/wire/": "decode",
    "core/match/tokens": "tokenise",
    "core/match/": "match",
    "core/channel/checks": "ask and score",
    "core/channel/answers": "ask and score",
    "core/exchange/checking": "ask and score",
    "core/channel/": "hold and decide",
    "core/policy/": "policy",
    "core/cel/": "policy",
    "core/exchange/ledger": "audit",
    "core/exchange/heard": "audit",
    "core/exchange/midstream/outbox": "let go and encode",
    "core/exchange/midstream/writer": "let go and encode",
    "core/exchange/midstream/order": "let go and encode",
    "core/exchange/leaving": "let go and encode",
    "core/": "the order of things",
}
"""Beginning of a module's path -> the part that it is of; the first that fits counts."""


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """What one event costs, or one whole answer."""

    steps: float
    """Instructions of the interpreter."""
    calls: float
    """Of functions in C."""
    parts: dict[str, float]
    """Part -> its steps."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """`kept.json`."""

    python: str
    """The steps of another version of Python are others."""
    counts: dict[str, Count]


def count(name: str) -> Count:
    """Count a calm answer, all of whose words have come before, through the core.

    Args:
        name: `patterns` (the default policies without classifiers) or `default` (all of them; scores are low); with
            `x25` behind it so many events come in each read; with `whole` it is all of an exchange whose answer is not
            streamed.
    """
    policies, _, together = name.partition(" ")
    source, labels = (with_classifiers(), ()) if policies == "patterns" else with_scores()
    program = compile_sources([("bench.yaml", source)], labels)
    known = [label.name for label in labels]
    made = (
        partial(_whole, program, known)
        if together == WHOLE
        else partial(_stream, program, known, _READ if together else 1)
    )
    made()[0]()
    run, events = made()
    steps: Counter[str] = Counter()
    calls = 0

    def trace(frame: FrameType, kind: str, _: Any) -> Any:
        if kind == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        elif kind == "opcode":
            steps[frame.f_code.co_filename] += 1
        return trace

    def profile(_: FrameType, kind: str, __: Any) -> None:
        nonlocal calls
        calls += kind == "c_call"

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(trace)
    sys.setprofile(profile)
    try:
        run()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    parts: Counter[str] = Counter()
    for path, found in steps.items():
        parts[next((part for start, part in _PARTS.items() if f"checkstream/{start}" in path), "")] += found
    parts.pop("", None)
    of_core = {part: round(found / events, 1) for part, found in parts.most_common()}
    return Count(steps=round(sum(parts.values()) / events, 1), calls=round(calls / events, 1), parts=of_core)


def _stream(program: Program, labels: Sequence[str], read: int) -> tuple[Callable[[], None], int]:
    """Return what takes an answer's events through a guard whose stream has begun, and how many they are."""
    guard = Guard(surface=SURFACES["openai.chat"], plan=Plan(program=program), digest=lambda _: "")
    asked: list[Score] = []

    def take(each: AnyEvent, now: float) -> None:
        asked.extend(command for command in guard.receive(each, now) if isinstance(command, Score))

    def scored(now: float, waiting: int) -> None:
        while len(asked) > waiting:
            take(Scored(asked.pop(0).ticket, dict.fromkeys(labels, 0.0)), now)

    take(RequestReceived(request("m", "hi")), 0.0)
    scored(0.1, 0)
    take(UpstreamOpened(200, streaming=True), 0.2)
    take(UpstreamBytes(FIRST), 0.3)
    said = answer("benign.txt")[:_EVENTS]
    told = [event({"content": text}) for text in said]
    events = [UpstreamBytes(b"".join(told[at : at + read])) for at in range(0, len(told), read)]

    def run() -> None:
        now = 1.0
        for each in events:
            now += 0.02
            take(each, now)
            scored(now, _WAITING)

    return run, len(told)


def _whole(program: Program, labels: Sequence[str]) -> tuple[Callable[[], None], int]:
    """Return what takes all of an exchange through a guard, whose short answer is not streamed; it is one event."""
    text = "".join(answer("benign.txt"))[:_WHOLE_CHARS]
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    body["usage"] = {"prompt_tokens": 10, "completion_tokens": 90, "total_tokens": 100}
    asked = {"model": "m", "messages": [{"role": "user", "content": _PROMPT}]}
    events: list[AnyEvent] = [RequestReceived(json.dumps(asked).encode()), UpstreamOpened(200, streaming=False)]
    events += [UpstreamBytes(json.dumps(body).encode()), UpstreamClosed()]

    def run() -> None:
        guard = Guard(surface=SURFACES["openai.chat"], plan=Plan(program=program), digest=lambda _: "")
        now, waiting = 1.0, deque(events)
        while waiting:
            now += 0.02
            scores = [each for each in guard.receive(waiting.popleft(), now) if isinstance(each, Score)]
            waiting.extendleft(Scored(each.ticket, dict.fromkeys(labels, 0.0)) for each in reversed(scores))

    return run, 1


def version() -> str:
    """Return the version of Python that steps are counted of."""
    return f"{sys.version_info.major}.{sys.version_info.minor}"


def kept() -> Kept:
    """Read `kept.json`."""
    return msgspec.json.decode(KEPT.read_bytes(), type=Kept)


def main(given: list[str]) -> int:
    """Print the ledger, or keep its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.counted", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep the figures in `kept.json`")
    args = parser.parse_args(given)
    counts = {name: count(name) for name in NAMES}
    sys.stdout.write("\n".join(lines(counts)) + "\n")
    if args.write:
        found = msgspec.json.encode(Kept(python=version(), counts=counts))
        KEPT.write_bytes(msgspec.json.format(found, indent=2) + b"\n")
    return 0


def section() -> list[str]:
    """Return the section of a report."""
    told = (
        "The default policies without classifiers (`patterns`), and with all of them (`default`), which answer before "
        "two questions wait. A calm answer whose words have come before, an event in each read, or 25 (`x25`); and all "
        "of an exchange whose answer of 400 characters is not streamed (`whole`). What a call in C costs is not seen."
    )
    return ["## One event through the guard, counted", "", told, "", *lines({name: count(name) for name in NAMES}), ""]


def lines(counts: Mapping[str, Count]) -> list[str]:
    """Return the ledger as a table."""
    names = list(dict.fromkeys(part for each in counts.values() for part in each.parts))
    rows = [["all", *(f"{each.steps:.0f}" for each in counts.values())]]
    rows += [[f"- {part}", *(f"{each.parts.get(part, 0.0):.0f}" for each in counts.values())] for part in names]
    rows.append(["calls of functions in C", *(f"{each.calls:.0f}" for each in counts.values())])
    head = [f"steps of the interpreter an event, Python {version()}", *counts]
    return [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
