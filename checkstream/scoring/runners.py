"""When and where windows are read: slices of the event loop, or threads for answers, prompts and gates of prompts.

Nothing waits for a timer: a turn's windows are taken at its end. Pure Python stays on the loop, and so do gates, which
are over before a thread would have woken; what takes longer and releases the GIL runs on a thread.

Source: measurements in the project's performance notes, sections 6 and 8.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from queue import SimpleQueue

from checkstream.scoring.line import Line, Waiting
from checkstream.scoring.outcomes import Outcome
from checkstream.scoring.slices import SLICE_S

INGRESS_EVERY = 4
"""Under steady midstream load, every so many turns a slice of a prompt runs too, so that prompts don't starve."""

AHEAD_TOKENS, LEAST_TOKENS = 256, 32
"""So much is handed to a thread at once, every window counted as 32 at least: it must not stand still until the loop
turns, and what is handed over can't be overtaken by what comes later."""


class LoopRunner:
    """Reads windows on the loop: one slice a turn, answers before prompts, then lets others run."""

    def __init__(self) -> None:
        """Start idle."""
        self._midstream: deque[Line] = deque()
        self._ingress: deque[Line] = deque()
        self._scheduled: asyncio.Handle | None = None
        self._passed_over = 0
        self._left_s = SLICE_S
        """What is left of this turn's slice."""

    def wake(self, line: Line) -> None:
        """Read windows of `line` at the end of this turn, or as soon as its turn comes; a brief one's at once.

        At once as far as the turn's slice goes: the asker's answer comes without a task, a future or a turn of the
        loop, which cost as much as reading does.
        """
        lines = self._ingress if line.ingress else self._midstream
        at_once = line.brief and not lines and self._left_s > 0
        if line not in lines:
            lines.append(line)
        if at_once:
            began = time.monotonic()
            self._slice(lines, began)
            self._left_s -= time.monotonic() - began
        self._schedule()

    def _turn(self) -> None:
        self._scheduled = None
        began = time.monotonic()
        prompts_starve = bool(self._ingress) and self._passed_over >= INGRESS_EVERY
        if self._midstream:
            self._slice(self._midstream, began + SLICE_S)
            self._passed_over += bool(self._ingress)
        if self._ingress and (prompts_starve or not self._midstream):
            self._slice(self._ingress, time.monotonic() + SLICE_S)
            self._passed_over = 0
        self._left_s = began + SLICE_S - time.monotonic()
        if self._midstream or self._ingress:
            self._schedule()

    def _schedule(self) -> None:
        if self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._turn)

    @staticmethod
    def _slice(lines: deque[Line], until: float) -> None:
        """Read windows one by one, one at least, until the slice is used up (a loop may cache its own clock)."""
        while lines:
            line = lines.popleft()
            batch = line.form(1)
            if line.waiting:
                lines.append(line)
            for entry in batch:
                line.deliver(batch, [line.read(entry.window)])
            if time.monotonic() >= until:
                return

    async def close(self) -> None:
        """Stop; what waits is failed by its lane."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        self._midstream.clear()
        self._ingress.clear()


class ThreadRunner:
    """Reads the windows of a lane's models on one thread, one at a time, each model in its turn.

    One thread for all of them, since they share the core: with a thread each, a check would wait for the scheduler's
    slices of the others instead of for their windows, which are shorter.
    """

    def __init__(self, name: str, *, close_s: float = 5.0) -> None:
        """Start the thread; `close_s` is the most that `close` waits for a running window."""
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[tuple[Line, Waiting] | None] = SimpleQueue()
        self._read: deque[tuple[Line, Waiting, Outcome | None]] = deque()
        self._told = False
        """The loop knows that something was read and has not looked yet."""
        self._ahead = 0
        """Tokens that the thread has or will get."""
        self._lines: deque[Line] = deque()
        self._scheduled: asyncio.Handle | None = None
        self._closing = False
        self._ended = asyncio.Event()
        self._close_s = close_s
        # A daemon, so that a model that hangs for good can't keep the process from ending.
        self._thread = threading.Thread(target=self._work_off, name=f"score-{name}", daemon=True)
        self._thread.start()

    def wake(self, line: Line) -> None:
        """Hand windows over at the end of this turn, as far as the thread has room; else as soon as it has."""
        if line not in self._lines:
            self._lines.append(line)
        if self._scheduled is None and self._ahead < AHEAD_TOKENS and not self._closing:
            self._scheduled = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = None
        while self._lines and self._ahead < AHEAD_TOKENS and not self._closing:
            line = self._lines.popleft()
            batch = line.form(1)
            if line.waiting:
                self._lines.append(line)
            for entry in batch:
                self._ahead += _weight(entry)
                self._work.put((line, entry))

    def _work_off(self) -> None:
        while (work := self._work.get()) is not None:
            line, entry = work
            outcome = None if entry.asker.over else line.read(entry.window)
            self._read.append((line, entry, outcome))
            # One call wakes the loop for all that has been read until it looks: each costs it a system call.
            if not self._told:
                self._told = True
                try:
                    self._loop.call_soon_threadsafe(self._deliver)
                except RuntimeError:  # the loop was closed under a window that ran past `close_s`
                    return
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set)

    def _deliver(self) -> None:
        self._told = False  # before the look: what is read from now on is told again
        while self._read:
            line, entry, outcome = self._read.popleft()
            self._ahead -= _weight(entry)
            line.deliver((entry,), (outcome,))
        self._flush()

    async def close(self) -> None:
        """End the thread after its running window; give up on one that takes longer than `close_s`."""
        self._closing = True
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        self._work.put(None)
        try:
            async with asyncio.timeout(self._close_s):
                await self._ended.wait()
        except TimeoutError:
            return
        self._thread.join()  # it has said its last word: this returns at once


def _weight(entry: Waiting) -> int:
    return max(entry.window.tokens, LEAST_TOKENS)
