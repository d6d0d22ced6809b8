"""A caller that leaves: the upstream's own socket tells when its request was cancelled (G21, 50 ms)."""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.e2e.harness import Llm, Proxy, RawCaller, until

PROMISED_MS = 50.0
ALLOWED_MS = float(os.environ.get("CHECKSTREAM_TEST_CANCEL_MS", "250"))
"""What a test allows: the promise, and room for a machine that runs other tests beside it."""
WORDS = {"content": "word " * 2000}
STATES: dict[str, dict[str, Any]] = {
    "before the headers": {"choices": [WORDS], "timing": {"headers_ms": 60_000}},
    "before the first byte": {"choices": [WORDS], "timing": {"first_byte_ms": 60_000}},
    "amid tokens": {"choices": [WORDS], "timing": {"token_ms": 5}},
    "in a silence": {"choices": [WORDS], "fault": {"kind": "stall", "after_events": 4}},
    "inside an event": {"choices": [WORDS], "fault": {"kind": "stall", "after_bytes": 700}},
    "while text is held": {
        "choices": [{"content": ["fine ", "x@example", ".co"] + ["m"] * 10}],
        "fault": {"kind": "stall", "after_events": 4},
    },
}


@pytest.mark.parametrize("reset", [False, True], ids=["fin", "rst"])
@pytest.mark.parametrize("state", STATES)
def test_g21_leaving_cancels_the_upstream(llm: Llm, proxy: Proxy, state: str, reset: bool) -> None:
    took = [_leave(llm, proxy, state, reset=reset, turn=turn) for turn in range(3)]
    sys.stdout.write(f"cancelled after {statistics.median(took):.1f} ms ({state})\n")
    # one slow turn is the machine's; a path that does not see the caller leave is slow every time
    assert min(took) < PROMISED_MS
    assert max(took) < max(ALLOWED_MS, PROMISED_MS)


def _leave(llm: Llm, proxy: Proxy, state: str, *, reset: bool, turn: int) -> float:
    model = llm.put(f"leave-{state}-{reset}-{turn}".replace(" ", "-"), STATES[state])
    caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": [{"role": "user", "content": "go"}]})
    llm.opened(model)
    if state in {"amid tokens", "in a silence", "inside an event", "while text is held"}:
        caller.read_until(b"assistant")
    left_ms = caller.leave(reset=reset)
    connection = llm.ended(model)
    assert connection["state"] == "closed_by_client"
    ended_ms: float = connection["ended_ms"]
    return ended_ms - left_ms


@pytest.mark.parametrize("state", ["before the headers", "before the first byte"])
def test_g21_leaving_cancels_a_whole_answer_too(llm: Llm, proxy: Proxy, state: str) -> None:
    model = llm.put(f"leave-whole-{state}".replace(" ", "-"), STATES[state])
    caller = RawCaller(proxy.url, {"model": model, "messages": [{"role": "user", "content": "go"}]})
    llm.opened(model)
    left_ms = caller.leave()
    connection = llm.ended(model)
    assert connection["state"] == "closed_by_client"
    assert connection["ended_ms"] - left_ms < ALLOWED_MS


def test_g07_a_stream_that_its_caller_left_is_recorded(llm: Llm, proxy: Proxy) -> None:
    model = llm.put("leave-recorded", STATES["amid tokens"])
    caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": [{"role": "user", "content": "go"}]})
    caller.read_until(b"word")
    head = caller.received.split(b"\r\n\r\n")[0].decode().lower()
    stream = next(line.split(": ")[1] for line in head.split("\r\n") if line.startswith("x-checkstream-stream"))
    caller.leave()
    assert "downstream_closed" in str(proxy.record(stream))


def test_g22_a_slow_caller_slows_the_upstream(llm: Llm, start: Callable[..., Proxy]) -> None:
    limits = {"answer_bytes": 1 << 30, "write_timeout_ms": 60_000}
    proxy = start(server={"limits": limits})
    model = llm.put("slow-caller", {"choices": [{"content": ["x" * 16_000 + " "], "repeat": 4000}]})
    caller = RawCaller(proxy.url, {"model": model, "stream": True, "messages": [{"role": "user", "content": "go"}]})
    caller.read_until(b"xxx")
    sizes: list[int] = []

    def steady() -> bool:
        sizes.append(llm.connections(model)[-1]["bytes_sent"])
        return len(sizes) > 40 and sizes[-1] == sizes[-40]

    until(steady, what="a pause of the upstream")
    assert sizes[-1] < 48_000_000  # of 64: what the sockets' buffers take, and no more
    caller.leave()
    assert llm.ended(model)["state"] == "closed_by_client"
