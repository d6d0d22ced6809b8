"""`checkstream serve` with a classifier that fails, or is slow: `python -m tests.e2e.faulty_serve FAULT CONFIG`.

Everything but the model is the product: the process, its sockets, the scorer with its deadlines and breakers.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import uvloop

from checkstream.app import App
from checkstream.config import load_config
from checkstream.scoring.catalog import Model
from checkstream.scoring.session import Readings, Window

SLOW_S = 0.01
ASLEEP_S = 2.0


class FaultySession:
    """A model that fails in one way, or is only slow: `sleepy` waits, `busy` works, both for `SLOW_S` a window.

    `asleep` waits for so long that callers give up before.
    """

    gate = None

    def __init__(self, labels: int, fault: str) -> None:
        self._labels = labels
        self._fault = fault
        self.inline = fault not in {
            "hang",
            "sleepy",
            "busy",
            "asleep",
        }  # what takes long does it on a thread, as models do

    def cut(self, text: str, fresh_chars: int = 0) -> Sequence[Window]:
        return [Window(text[-fresh_chars:], max(1, len(text) // 4))]

    def run(self, windows: Sequence[Window]) -> Readings:
        if self._fault == "crash":
            raise RuntimeError("the model crashed")
        if self._fault in {"hang", "busy"}:
            until = time.thread_time() + (SLOW_S if self._fault == "busy" else 3600)
            while time.thread_time() < until:
                time.sleep(0)  # leaves the interpreter to others, as a model's native code does
        if self._fault in {"sleepy", "asleep"}:
            time.sleep(SLOW_S if self._fault == "sleepy" else ASLEEP_S)
        if self._fault in {"hang", "sleepy", "busy", "asleep"}:
            return Readings(np.zeros((len(windows), self._labels), np.float32))
        if self._fault == "nan":
            return Readings(np.full((len(windows), self._labels), np.nan, np.float32))
        if self._fault == "range":
            return Readings(np.full((len(windows), self._labels), 7.0, np.float32))
        return Readings(np.zeros((len(windows) + 1, self._labels), np.float32))  # shape: an answer too many


async def serve(fault: str, file: Path) -> None:
    def open_session(model: Model) -> FaultySession:
        return FaultySession(len(model.entry.labels), fault)

    async with App(lambda: load_config(file), config_file=file, open_session=open_session) as app:
        await app.run()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(sys.argv[1], Path(sys.argv[2])))
