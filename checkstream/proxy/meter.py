"""Measures how busy the process is while it guards answers, and tells `Capacity`.

The busiest thread counts: the loop, or the one that reads answers. The loop is busy while it works, and while it could
work and has no core.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable

from checkstream.proxy.capacity import Capacity, Load

_EVERY_S = 0.25


class Meter:
    """Looks at the clocks of the process now and then, as long as something runs. Belongs to one event loop."""

    def __init__(self, capacity: Capacity, reading_s: Callable[[], float], thread: int) -> None:
        """Measure nothing yet; opens a file.

        Args:
            capacity: Is told.
            reading_s: Returns the CPU time that threads have spent on reading answers.
            thread: Number of the loop's thread, as the system has it.
        """
        self._capacity = capacity
        self._reading_s = reading_s
        self._schedule: int | None = None
        """Where the system says how long the thread has waited for a core; None: it doesn't."""
        with contextlib.suppress(OSError):
            self._schedule = os.open(f"/proc/self/task/{thread}/schedstat", os.O_RDONLY | os.O_CLOEXEC)
        self._looking: asyncio.TimerHandle | None = None
        self._at = self._loop_s = self._read_s = 0.0

    def admit(self, caller: str, *, wait_s: float, most_s: float) -> Load:
        """Admit an exchange, as `Capacity.admit` does, and measure while it runs."""
        load = self._capacity.admit(caller, wait_s=wait_s, most_s=most_s)
        if self._looking is None:
            self._note()
            self._looking = asyncio.get_running_loop().call_later(_EVERY_S, self._look)
        return load

    def _note(self) -> tuple[float, float]:
        """Note what the clocks say; return what has passed since the last time, and how long the busiest was busy."""
        at, loop_s, read_s = time.monotonic(), time.thread_time() + self._waited_s(), self._reading_s()
        passed_s = at - self._at
        busy_s = max(loop_s - self._loop_s, read_s - self._read_s)
        self._at, self._loop_s, self._read_s = at, loop_s, read_s
        return passed_s, busy_s

    def _look(self) -> None:
        passed_s, busy_s = self._note()
        self._capacity.measure(passed_s, min(max(busy_s / passed_s, 0.0), 1.0))
        self._looking = asyncio.get_running_loop().call_later(_EVERY_S, self._look) if len(self._capacity) else None

    def close(self) -> None:
        """Stop."""
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        if self._schedule is not None:
            os.close(self._schedule)
            self._schedule = None

    def _waited_s(self) -> float:
        """Return how long the thread has been ready to run and had no core; 0 where the system doesn't tell."""
        if self._schedule is None:
            return 0.0
        try:
            return int(os.pread(self._schedule, 100, 0).split()[1]) / 1e9  # the kernel's memory: it waits for no disk
        except (OSError, IndexError, ValueError):
            return 0.0
