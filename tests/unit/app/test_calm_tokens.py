"""What a token of calm text costs the event loop of a whole proxy: nothing but the call in which its bytes are read.

Every way in which code of Python has a loop do something, now or later, is counted while a stream runs. The loop is
uvloop's own, and both ends of the stream are sockets in another thread.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import uvloop

from tests.token_by_token import Stream, beside_a_proxy, calm, patterns

_WARM, _TOKENS = 100, 200
_MOST, _MOST_A_SECOND = 20, 10
"""What a whole process asks of its loop meanwhile: timers of its own, such as that which looks at its memory."""


class Counting(uvloop.Loop):
    """Counts what it is asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()


def _counted(name: str) -> Any:
    """Return a method that counts, and does what it has to."""

    def method(self: Counting, *given: Any, **named: Any) -> Any:
        self.asked[name] += 1
        return getattr(uvloop.Loop, name)(self, *given, **named)

    return method


for _name in (
    "call_soon", "call_soon_threadsafe", "call_later", "call_at", "create_task", "create_future", "run_in_executor",
):  # fmt: skip
    setattr(Counting, _name, _counted(_name))


def test_a_token_asks_nothing_of_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    loop = Counting()

    def drive(stream: Stream, url: str) -> tuple[Counter[str], float]:
        stream.begin(url)
        stream.say(calm(_WARM))
        before, at_s, came = loop.asked.copy(), time.monotonic(), stream.events
        stream.say(calm(_TOKENS))
        found = loop.asked - before, time.monotonic() - at_s
        assert stream.events - came > _TOKENS / 2, "these words are held: others are needed here"
        stream.finish()
        return found

    found, seconds = beside_a_proxy(patterns(tmp_path), drive, lambda: loop)
    assert set(loop.asked) >= {"call_soon", "call_later", "create_task", "create_future"}, "the proxy runs on it"
    assert found.total() <= _MOST + seconds * _MOST_A_SECOND, found
