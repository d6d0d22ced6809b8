"""A thread that reads windows, and what can be seen of it from outside: what it reads, and how long it works on that.

Work is CPU time of the thread. Time by the clock would count the core's other users, and call a detector broken because
the machine is busy (G32). INVARIANT: a window that was given to a reader is read once, or handed back, never both.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue

import msgspec

from checkstream.scoring.line import Line, Read, Waiting


class Job(msgspec.Struct, frozen=True, eq=False):
    """A window that a line has handed over."""

    line: Line
    entry: Waiting


class Done(msgspec.Struct, frozen=True, eq=False):
    """A job that has ended."""

    job: Job
    read: Read
    given_up: bool
    """Nobody waited for it any more."""


class Reader:
    """One thread; it ends when it is told to, or after the job at which it was given up."""

    def __init__(self, name: str, tell: Callable[[Done], None], ended: Callable[[], None]) -> None:
        """Start.

        Args:
            name: of the thread.
            tell: hears on the thread of every job that has ended.
            ended: hears on the thread that it ends, when it was told to.
        """
        self.reads: Job | None = None
        """What it is at."""
        self.died_of: BaseException | None = None
        """What has ended it; a model's exceptions don't, what is no `Exception` does."""
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._tell = tell
        self._ended = ended
        self._lock = threading.Lock()
        self._given_up = False
        self._began_s = 0.0
        # A daemon, so that a model that hangs for good can't keep the process from ending.
        self._thread = threading.Thread(target=self._run, name=f"score-{name}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """It runs, or ends as it was told to."""
        return self._thread.is_alive()

    def put(self, job: Job) -> None:
        """Give it a window."""
        self._jobs.put(job)

    def worked_s(self) -> float:
        """Return how long it has worked on what it reads; 0 where the system doesn't tell of other threads."""
        if self._thread.ident is None or not hasattr(time, "pthread_getcpuclockid"):
            return 0.0
        return time.clock_gettime(time.pthread_getcpuclockid(self._thread.ident)) - self._began_s

    def _run(self) -> None:
        try:
            self._work_off()
        except BaseException as error:  # noqa: BLE001 - the thread is over, whatever it was
            self.died_of = error.with_traceback(None)

    def _work_off(self) -> None:
        while (job := self._jobs.get()) is not None:
            self._began_s = time.thread_time()
            self.reads = job
            entry = job.entry
            read = Read(entry, None) if entry.asker.over else job.line.read(entry)
            with self._lock:
                self.reads = None
                given_up = self._given_up
            self._tell(Done(job, read, given_up))
            if given_up:
                return
        self._ended()

    def give_up(self, job: Job) -> list[Job] | None:
        """Leave it to itself, if it is still at `job`; return what else it was given. None: it has gone on."""
        with self._lock:
            if self.reads is not job:
                return None
            self._given_up = True
        rest: list[Job] = []
        with contextlib.suppress(Empty):
            while (other := self._jobs.get_nowait()) is not None:
                rest.append(other)
        return rest

    def end(self) -> None:
        """Have it end after what it has."""
        self._jobs.put(None)

    def join(self) -> None:
        """Wait for the thread, which has said that it ends."""
        self._thread.join()
