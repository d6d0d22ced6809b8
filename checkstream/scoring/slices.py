"""Long jobs of the event loop, done in slices: texts are cut into windows while other streams go on.

A job is an iterator whose steps are short. Each job gets a step in its turn, so that a short text is cut at once
beside a long one; jobs for answers go first, and every turn of the loop does a step for prompts too.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Iterator
from typing import Final

SLICE_S: Final = 0.001
"""How long a turn of the loop may be used; the step that runs when it ends is finished."""


class Slices:
    """The jobs of one event loop."""

    def __init__(self) -> None:
        """Start idle."""
        self._answers: deque[Iterator[None]] = deque()
        self._prompts: deque[Iterator[None]] = deque()
        self._scheduled: asyncio.Handle | None = None

    def add(self, job: Iterator[None], *, ingress: bool) -> None:
        """Do a job: at once, as far as a slice goes, unless others of its kind are being done."""
        jobs = self._prompts if ingress else self._answers
        jobs.append(job)
        if len(jobs) == 1:
            self._work(jobs, time.monotonic() + SLICE_S)
        self._schedule()

    def _turn(self) -> None:
        self._scheduled = None
        until = time.monotonic() + SLICE_S
        self._work(self._answers, until)
        self._work(self._prompts, until)
        self._schedule()

    def _schedule(self) -> None:
        if self._scheduled is None and (self._answers or self._prompts):
            self._scheduled = asyncio.get_running_loop().call_soon(self._turn)

    @staticmethod
    def _work(jobs: deque[Iterator[None]], until: float) -> None:
        """Give each job a step in its turn, one at least."""
        done = object()
        while jobs:
            job = jobs.popleft()
            if next(job, done) is not done:
                jobs.append(job)
            if time.monotonic() >= until:
                return

    def close(self) -> None:
        """Give up what is not done."""
        if self._scheduled is not None:
            self._scheduled.cancel()
            self._scheduled = None
        self._answers.clear()
        self._prompts.clear()
