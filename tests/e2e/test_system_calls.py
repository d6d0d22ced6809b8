"""What a token of calm text costs the operating system: the process wakes once, reads once and writes once.

Counted from outside, in `/proc`: every `read` and `write` of the process, also of what its threads wake each other
with, and how often its loop has gone to sleep. A busy machine makes these numbers smaller, where it lets tokens come
together, and never greater.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import msgspec
import pytest

from tests.e2e.harness import Proxy, config, running
from tests.token_by_token import Stream, calm, patterns

_WARM, _TOKENS = 100, 400
_REST_S = 0.002
"""Between two tokens: whoever has the process wake once more for the first has it wake then."""
_BESIDE_A_TOKEN = 0.25
"""Of a call: far below the one more that a task, a queue between threads or a second write would cost."""
_BESIDE_A_SECOND = 20
"""Calls of what the process does anyway, such as looking at its memory."""


class Calls(msgspec.Struct, frozen=True):
    """What a process has asked of the system since it began."""

    at_s: float
    reads: int
    writes: int
    sleeps: int

    @classmethod
    def of(cls, pid: int) -> Calls:
        """Look at a process whose event loop runs in its main thread."""
        process = Path(f"/proc/{pid}")
        said = (process / "io").read_text() + (process / "task" / str(pid) / "status").read_text()
        found = dict(line.split(":", 1) for line in said.splitlines())
        sleeps = int(found["voluntary_ctxt_switches"])
        return cls(time.monotonic(), int(found["syscr"]), int(found["syscw"]), sleeps)


def test_a_token_is_one_read_one_write_and_one_wake_up(tmp_path: Path) -> None:
    if not Path("/proc/self/io").exists():
        pytest.skip(f"nothing here ({sys.platform}) counts the system calls of a process: there is no /proc/PID/io")
    with Stream() as stream:
        settings = config(f"http://127.0.0.1:{stream.port}", tmp_path, [patterns(tmp_path)])
        with running(Proxy(settings, tmp_path)) as proxy:
            stream.begin(proxy.url)
            stream.say(calm(_WARM))
            before, came = Calls.of(proxy.popen.pid), stream.events
            stream.say(calm(_TOKENS), rest_s=_REST_S)
            after, came = Calls.of(proxy.popen.pid), stream.events - came
            stream.finish()
    most = _TOKENS * (1 + _BESIDE_A_TOKEN) + (after.at_s - before.at_s) * _BESIDE_A_SECOND
    assert came > _TOKENS / 2, "these words are held: others are needed here"
    assert _TOKENS / 2 < after.reads - before.reads <= most
    assert _TOKENS / 2 < after.writes - before.writes <= most
    assert after.sleeps - before.sleeps <= most
