"""What it costs to count one exchange: metrics and log lines of a streamed answer, without guard and sockets.

And what it costs to choose its bundle, where a share of the callers is answered by a candidate.

    python -m bench.counting

An exchange has `WRITES` writes to its caller, each of which had waited, and a classifier is asked for every fourth. CPU
time, the least and the median of rounds; and steps of the interpreter, which are the same in every run.
"""

from __future__ import annotations

import io
import itertools
import statistics
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from checkstream.core.commands import Observe, StreamRecord
from checkstream.listen import Who
from checkstream.proxy.candidate import Chosen, party_of
from checkstream.proxy.counts import Counted
from checkstream.telemetry.logs import open_log
from checkstream.telemetry.metrics import Metrics

WRITES = 8
_ROUNDS, _EXCHANGES = 40, 500


def exchange(writes: int = WRITES, *, candidate: bool = False) -> Callable[[], None]:
    """Return what counts one exchange, as the relay does; `candidate`: one that a candidate has decided."""
    counted = Counted(Metrics(), open_log("json", io.BytesIO(), level="error"))
    record = StreamRecord(
        surface="openai.chat", streaming=True, action="allow", outcome="complete", policies=("p@1",), program="0" * 64,
        scanned=("ingress:user", "midstream:content"), unscanned=(), detectors=("match",), findings=(), verdicts=(),
        degradations=(), upstream_failure=None, held_ms=20.0, prompt_chars=80, answer_chars=800, released_chars=800,
    )  # fmt: skip
    hold = Observe("hold_seconds", 0.02)

    def run() -> None:
        counts = counted.begun("stream", "chat", None, candidate=candidate)
        counts.forwarded()
        counts.upstream_answered(200)
        counts.observe(Observe("added_ttft_seconds", 0.01))
        for number in range(writes):
            counts.observe(hold)
            counts.wrote()
            if not number % 4:
                counts.judged(0.002, ingress=False)
        counts.observe(Observe("tokens_in", 20))
        counts.observe(Observe("tokens_out", 200))
        counts.recorded(record, "gpt-4o")
        counts.guarded(0.0004)
        counts.looked_up(asked=3, known=2)
        counts.ended(200)

    run()
    return run


def choice(callers: int) -> Callable[[], None]:
    """Return what chooses the bundle of one exchange, of so many callers in turn."""
    chosen, turns = Chosen(share=10, salt="0123456789abcdef"), itertools.cycle(range(callers))
    names = [Who(f"app-{number}", "10.0.0.1") for number in range(callers)]

    def run() -> None:
        chosen.has(party_of(names[next(turns)], None))

    return run


def timed(run: Callable[[], None]) -> tuple[float, float]:
    """Return what something takes of CPU time, in microseconds: the least of rounds, and the median."""
    found = []
    for _ in range(_ROUNDS):
        began = time.process_time()
        for _ in range(_EXCHANGES):
            run()
        found.append((time.process_time() - began) / _EXCHANGES * 1e6)
    return min(found), statistics.median(found)


def steps(run: Callable[[], None]) -> int:
    """Return how many instructions of the interpreter something takes."""
    taken = 0

    def trace(frame: FrameType, kind: str, _: Any) -> Any:
        nonlocal taken
        if kind == "call":
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
        taken += kind == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return taken


def main() -> None:
    """Print what it costs."""
    for what, run in (
        (f"an exchange of {WRITES} writes", exchange()),
        ("the same, decided by a candidate", exchange(candidate=True)),
        ("to choose its bundle, of callers who have asked before", choice(1000)),
        ("to choose its bundle, of others", choice(_ROUNDS * _EXCHANGES)),
    ):
        least, median = timed(run)
        print(f"{what}: {least:.2f} us at least, {median:.2f} in the median")
    write = (steps(exchange(WRITES + 400)) - steps(exchange(WRITES))) / 400
    print(f"steps of the interpreter: {steps(exchange())} an exchange, of which {write:.0f} a write")


if __name__ == "__main__":
    main()
