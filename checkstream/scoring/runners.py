"""When and where windows are read: slices of the event loop, or threads for answers, prompts and gates of prompts.

Nothing waits for a timer: a turn's windows are taken at its end. Pure Python stays on the loop, and so do gates, which
are over before a thread would have woken; what takes longer and releases the GIL runs on a thread (`reader`).

Source: measurements in the project's performance notes, sections 6 and 8.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable

from checkstream.scoring.line import Line, Waiting
from checkstream.scoring.reader import Done, Job, Reader
from checkstream.scoring.slices import SLICE_S

INGRESS_EVERY = 4
"""Under steady midstream load, every so many turns a slice of a prompt runs too, so that prompts don't starve."""

AHEAD_TOKENS, LEAST_TOKENS = 256, 32
"""So much is handed to a thread at once, every window counted as 32 at least: it must not stand still until the loop
turns, and what is handed over can't be overtaken by what comes later."""

_WATCH_S = 0.05
"""How often a look is taken whether a thread hangs, while it has work."""
_PROGRESS_S = 0.001
"""Work between two looks that shows that it doesn't."""


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
                line.deliver([line.read(entry)])
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
    slices of the others instead of for their windows, which are shorter. A thread that hangs is left to itself, and
    another one goes on with the rest.
    """

    def __init__(
        self, name: str, *, hang_s: float = 10.0, close_s: float = 5.0, free: Callable[[], bool] = lambda: True
    ) -> None:
        """Start the thread.

        Args:
            name: of the thread.
            hang_s: a window that is neither worked on nor ends for so long hangs.
            close_s: the most that `close` waits for a running window.
            free: it may take another window; asked on the loop.
        """
        self._free = free
        self._loop = asyncio.get_running_loop()
        self._name = name
        self._done: deque[Done] = deque()
        self._told = False
        """The loop knows that something was read and has not looked yet."""
        self._ahead = 0
        """Tokens that the thread has or will get."""
        self._given: dict[Job, None] = {}
        """What it has and has told nothing of, in the order in which it reads."""
        self._lines: deque[Line] = deque()
        self._scheduled: asyncio.Handle | None = None
        self._closing = False
        self._ended = asyncio.Event()
        self._close_s = close_s
        self._most_looks = max(1, round(hang_s / _WATCH_S))
        self._watching: asyncio.TimerHandle | None = None
        self._seen: Job | None = None
        """What was being read at the last look ..."""
        self._worked_s = 0.0
        """... how long it had been worked on then ..."""
        self._looks = 0
        """... and how many looks have found it so. Looks are counted, not seconds: a process that is stopped, or gets
        no core, takes none."""
        self._reader = Reader(name, self._tell, self._say_ended)

    def wake(self, line: Line) -> None:
        """Hand windows over at the end of this turn, as far as the thread has room; else as soon as it has."""
        line.apart = True
        if line not in self._lines:
            self._lines.append(line)
        if self._scheduled is None and self._ahead < AHEAD_TOKENS and not self._closing:
            self._scheduled = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = None
        while self._lines and self._ahead < AHEAD_TOKENS and not self._closing and self._free():
            line = self._lines.popleft()
            batch = line.form(1)
            if line.waiting:
                self._lines.append(line)
            for entry in batch:
                self._ahead += _weight(entry)
                job = Job(line, entry)
                self._given[job] = None
                self._reader.put(job)
        if self._ahead and self._watching is None and not self._closing:
            self._watching = self._loop.call_later(_WATCH_S, self._look)

    def _tell(self, done: Done) -> None:
        """Hear on the thread what came of a job: one call wakes the loop for all that is there when it looks."""
        self._done.append(done)
        if not self._told:
            self._told = True
            with contextlib.suppress(RuntimeError):  # the loop was closed under a window that ran past `close_s`
                self._loop.call_soon_threadsafe(self._deliver)

    def _say_ended(self) -> None:
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._ended.set)

    def _deliver(self) -> None:
        self._told = False  # before the look: what is read from now on is told again
        while self._done:
            done = self._done.popleft()
            if done.given_up:
                done.job.line.comes_back()
                continue
            del self._given[done.job]
            self._ahead -= _weight(done.job.entry)
            done.job.line.deliver((done.read,))
        self._flush()

    def _look(self) -> None:
        """Look whether the thread hangs: whether it has worked on a window for too long, or does nothing at it."""
        self._watching = None
        if not self._reader.alive and not self._closing:
            self._bury()
        job = self._reader.reads
        if job is not None:
            worked_s = self._reader.worked_s()
            if job is not self._seen or worked_s - self._worked_s > _PROGRESS_S:
                self._seen, self._worked_s, self._looks = job, worked_s, 0
            self._looks += 1
            if worked_s > job.entry.asker.allowed_s(job.entry.window) or self._looks > self._most_looks:
                self._replace(job)
        if self._ahead and not self._closing:
            self._watching = self._loop.call_later(_WATCH_S, self._look)

    def _replace(self, job: Job) -> None:
        """Go on with another thread."""
        rest = self._reader.give_up(job)
        if rest is None:
            return
        self._seen = None
        del self._given[job]
        self._ahead -= _weight(job.entry)
        self._reader = Reader(self._name, self._tell, self._say_ended)
        job.line.hangs(job.entry, [other.entry for other in rest if other.line is job.line])
        for other in rest:
            self._reader.put(other)

    def _bury(self) -> None:
        """Go on with another thread, since this one has died; what it had not begun is read there (G32)."""
        self._deliver()
        job, cause = self._reader.reads, self._reader.died_of
        self._seen = None
        self._reader = Reader(self._name, self._tell, self._say_ended)
        if job is not None:
            del self._given[job]
            self._ahead -= _weight(job.entry)
        for other in self._given:
            self._reader.put(other)
        if job is not None:
            job.line.breaks(job.entry, cause)

    async def close(self) -> None:
        """End the thread after its running window; give up on one that takes longer than `close_s`."""
        self._closing = True
        for handle in (self._scheduled, self._watching):
            if handle is not None:
                handle.cancel()
        self._scheduled = self._watching = None
        self._reader.end()
        try:
            async with asyncio.timeout(self._close_s):
                await self._ended.wait()
        except TimeoutError:
            return
        self._reader.join()  # it has said its last word: this returns at once


class PairRunner:
    """Reads lines on a thread, and on a spare one beside it while that is free."""

    def __init__(self, first: ThreadRunner, spare: ThreadRunner) -> None:
        """Use two threads that somebody else closes."""
        self._both = first, spare

    def wake(self, line: Line) -> None:
        """Let each take what it has room for."""
        for runner in self._both:
            runner.wake(line)

    async def close(self) -> None:
        """Do nothing: whoever made the threads closes them."""


def _weight(entry: Waiting) -> int:
    return max(entry.window.tokens, LEAST_TOKENS)
