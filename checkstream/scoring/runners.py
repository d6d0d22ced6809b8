"""When and where the batches of lanes run: slices on the event loop, or a thread for prompts and one for answers.

No batch waits for a timer: it is formed at the end of the turn of the loop in which its first entry came,
so whatever came in the same turn shares it, and under load batches grow by themselves while one runs.
Pure Python stays on the loop (in a thread it would hold the interpreter for milliseconds); a session that
releases the GIL runs on a thread, fed through a `SimpleQueue`.

Source: measurements in the project's performance notes, sections 6 and 8.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Sequence
from queue import SimpleQueue

from checkstream.scoring.batcher import Entry
from checkstream.scoring.lane import Lane, Outcome

SLICE_S = 0.001
"""How long inline sessions may hold the loop; the window that runs when it ends is finished."""

INGRESS_EVERY = 4
"""Under steady midstream load, every so many turns a slice of a prompt runs too, so that prompts don't starve."""


class LoopRunner:
    """Runs inline sessions on the loop: one slice a turn, answers before prompts, then lets others run."""

    def __init__(self) -> None:
        """Start idle."""
        self._midstream: deque[Lane] = deque()
        self._ingress: deque[Lane] = deque()
        self._scheduled: asyncio.Handle | None = None
        self._passed_over = 0

    def wake(self, lane: Lane) -> None:
        """Run a batch of `lane` at the end of this turn, or as soon as its turn comes."""
        lanes = self._ingress if lane.ingress else self._midstream
        if lane not in lanes:
            lanes.append(lane)
        self._schedule()

    def _turn(self) -> None:
        self._scheduled = None
        prompts_starve = bool(self._ingress) and self._passed_over >= INGRESS_EVERY
        if self._midstream:
            self._slice(self._midstream)
            self._passed_over += bool(self._ingress)
        if self._ingress and (prompts_starve or not self._midstream):
            self._slice(self._ingress)
            self._passed_over = 0
        if self._midstream or self._ingress:
            self._schedule()

    def _schedule(self) -> None:
        if self._scheduled is None:
            self._scheduled = asyncio.get_running_loop().call_soon(self._turn)

    @staticmethod
    def _slice(lanes: deque[Lane]) -> None:
        """Run windows one by one (pure Python gains nothing from a batch) until the slice is used up."""
        until = time.monotonic() + SLICE_S  # a loop may cache its own clock for a turn
        while lanes:
            lane = lanes.popleft()
            batch = lane.form(max_entries=1)
            if lane.waiting:
                lanes.append(lane)
            if batch:
                lane.deliver(batch, lane.run([batch[0].window]))
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
    """Runs the sessions of a lane's models on one thread, one batch at a time, each model in its turn.

    One thread for all of them, since they share the core: with a thread each, a check would wait for the scheduler's
    slices of the others instead of for their batches, which are shorter.
    """

    def __init__(self, name: str, *, close_s: float = 5.0) -> None:
        """Start the thread; `close_s` is the most that `close` waits for a running batch."""
        self._loop = asyncio.get_running_loop()
        self._work: SimpleQueue[tuple[Lane, list[Entry]] | None] = SimpleQueue()
        self._lanes: deque[Lane] = deque()
        self._scheduled: asyncio.Handle | None = None
        self._busy = False
        self._closing = False
        self._ended = asyncio.Event()
        self._close_s = close_s
        # A daemon, so that a model that hangs for good can't keep the process from ending.
        self._thread = threading.Thread(target=self._work_off, name=f"score-{name}", daemon=True)
        self._thread.start()

    def wake(self, lane: Lane) -> None:
        """Form a batch at the end of this turn, unless one runs: then as soon as its turn comes."""
        if lane not in self._lanes:
            self._lanes.append(lane)
        if not self._busy and self._scheduled is None and not self._closing:
            self._scheduled = self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._scheduled = None
        while self._lanes and not self._busy and not self._closing:
            lane = self._lanes.popleft()
            batch = lane.form()
            if lane.waiting:
                self._lanes.append(lane)
            if batch:
                self._busy = True
                self._work.put((lane, batch))

    def _work_off(self) -> None:
        while (work := self._work.get()) is not None:
            lane, batch = work
            outcomes = lane.run([entry.window for entry in batch])
            if not self._tell(lane, batch, outcomes):
                return
        self._tell(None, (), ())

    def _tell(self, lane: Lane | None, batch: Sequence[Entry], outcomes: Sequence[Outcome]) -> bool:
        try:
            self._loop.call_soon_threadsafe(self._done, lane, batch, outcomes)
        except RuntimeError:  # the loop was closed under a batch that ran past `close_s`
            return False
        return True

    def _done(self, lane: Lane | None, batch: Sequence[Entry], outcomes: Sequence[Outcome]) -> None:
        if lane is None:
            self._ended.set()
            return
        self._busy = False
        lane.deliver(batch, outcomes)
        self._flush()

    async def close(self) -> None:
        """End the thread after its running batch; give up on a batch that takes longer than `close_s`."""
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
