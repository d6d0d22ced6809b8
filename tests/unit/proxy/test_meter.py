from __future__ import annotations

import asyncio
import itertools
import threading
import time

from checkstream.proxy.capacity import Capacity
from checkstream.proxy.meter import Meter


class Told(Capacity):
    """Remembers what it is told."""

    def __init__(self) -> None:
        super().__init__(0.9)
        self.told: list[tuple[float, float]] = []

    def measure(self, seconds: float, busy: float) -> None:
        self.told.append((seconds, busy))
        super().measure(seconds, busy)


async def test_g32_it_sees_how_busy_the_loop_is_and_stops_when_nothing_runs() -> None:
    capacity = Told()
    meter = Meter(capacity, lambda: 0.0, threading.get_native_id())
    load = meter.admit("a", wait_s=0.0, most_s=1.0)
    until = time.thread_time() + 0.1
    while time.thread_time() < until:
        pass
    while not capacity.told:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    seconds, busy = capacity.told[0]
    assert 0.1 / seconds * 0.9 <= busy <= 1.0
    load.end()
    while len(asyncio.all_tasks()) > 1 or len(capacity.told) < 2:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert len(capacity.told) == 2
    meter.close()


async def test_g32_it_sees_a_thread_that_is_busier_than_the_loop() -> None:
    capacity = Told()
    read_s = itertools.count(step=10.0)
    meter = Meter(capacity, lambda: next(read_s), threading.get_native_id())
    meter.admit("a", wait_s=0.0, most_s=1.0)
    while not capacity.told:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    assert capacity.told[0][1] == 1.0, "never more than all of it"
    meter.close()
