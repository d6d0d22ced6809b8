"""The way from the request path to the queue: a bounded buffer in memory, and a thread that writes it to the store.

`put` never waits: it is a choice and an append. The thread writes whatever has come together since its last commit, so
an exchange is accepted some milliseconds after its answer; what is still in the buffer when the process is killed was
never accepted, and is not counted as such. A store that fails is tried again while the buffer lasts.

The thread also brings back markers, so that to look one up is a look into memory.
"""

from __future__ import annotations

import collections
import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import msgspec

from checkstream.errors import JobInvalid, StoreFailed
from checkstream.jobs.clock import wall_ms
from checkstream.jobs.exchange import Exchange, scoring_jobs
from checkstream.jobs.room import Arrival, Full, Load, choose, freed
from checkstream.jobs.terms import Job, Marker, Queue

Dropped = Literal["buffer", "store", "invalid", "closing"]
"""Why jobs were never accepted: no room in memory, none in the store, too large to be a job, the process ended."""
_BATCH = 256
"""Exchanges of one commit."""
_STORE_RETRY_S = 1.0
_MARKERS = 1000


class FeederTold(Protocol):
    """Who wants to know what became of exchanges. Called on the feeder's thread, or on the caller's of `put`."""

    def accepted(self, jobs: Sequence[Job]) -> None:
        """Hear of jobs that the store has committed."""

    def dropped(self, why: Dropped, jobs: int) -> None:
        """Hear of jobs that were not accepted."""

    def evicted(self, jobs: int) -> None:
        """Hear of accepted jobs that had to make room, and are dead letters now."""

    def store_failed(self, error: StoreFailed) -> None:
        """Hear that the store can't be used; it is tried again."""


class FeederSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How much may wait in memory, and what happens beyond."""

    buffer: Load = Load(10_000, 67_108_864)
    """Exchanges, and characters in place of bytes."""
    full: Full = "drop_new"
    job_bytes: int = 1_048_576
    markers_s: float | None = None
    """How often markers are looked for; None: never."""


class _Waiting(msgspec.Struct, frozen=True):
    exchange: Exchange
    profiles: tuple[str, ...]
    size: int


class Feeder:
    """Feeds a queue. `put`, `take_marker` and `buffered` from any thread; close it once."""

    def __init__(
        self, queue: Queue, settings: FeederSettings, told: FeederTold, *, now_ms: Callable[[], int] = wall_ms
    ) -> None:
        """Start the thread, which alone uses `queue` from now on and closes it.

        Args:
            queue: Where jobs go.
            settings: The buffer's bounds.
            told: Hears what became of exchanges.
            now_ms: The wall clock.
        """
        self._queue = queue
        self._settings = settings
        self._told = told
        self._now_ms = now_ms
        self._waiting: collections.deque[_Waiting] = collections.deque()
        self._load = Load(0, 0)
        self._marked: dict[str, tuple[str, Marker]] = {}
        self._taken: list[str] = []
        self._place = ""
        self._changed = threading.Condition()
        self._closing = False
        self._thread = threading.Thread(target=self._work, name="jobs", daemon=True)
        self._thread.start()

    @property
    def buffered(self) -> int:
        """Exchanges that wait in memory."""
        return self._load.jobs

    def put(self, exchange: Exchange, profiles: Sequence[str]) -> bool:
        """Take an exchange to have it scored; return whether there was room in the buffer. Never waits for a disk."""
        waiting = _Waiting(exchange, tuple(profiles), exchange.characters)
        gone: list[_Waiting] = []
        with self._changed:
            arrival = Arrival(exchange.stream, waiting.size)
            choice = choose(self._settings.full, self._settings.buffer, self._load, [arrival])
            taken = choice.taken[0] and not self._closing
            if taken:
                for _ in range(freed(choice.excess, (one.size for one in self._waiting))):
                    gone.append(self._waiting.popleft())
                    self._load -= Load(1, gone[-1].size)
                self._waiting.append(waiting)
                self._load += Load(1, waiting.size)
                self._changed.notify()
        if not taken:
            gone.append(waiting)
        if gone:
            why: Dropped = "closing" if self._closing else "buffer"
            self._told.dropped(why, sum(len(one.profiles) for one in gone))
        return taken

    def take_marker(self, conversation: str) -> Marker | None:
        """Return the marker of a conversation, once."""
        found = self._marked.get(conversation)
        if found is None:
            return None
        with self._changed:
            self._marked.pop(conversation, None)
            self._taken.append(found[0])
            self._changed.notify()
        return found[1] if found[1].expires_ms > self._now_ms() else None

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what waits, for so long at most; what is left is dropped. Blocks."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join(timeout_s)
        with self._changed:
            left = sum(len(one.profiles) for one in self._waiting)
            self._waiting.clear()
            self._load = Load(0, 0)
        if left:
            self._told.dropped("closing", left)

    # --- the thread

    def _work(self) -> None:
        looked = -math.inf
        every_s = self._settings.markers_s
        while True:
            batch, taken, closing = self._next()
            try:
                self._feed(batch)
                self._forget(taken)
                if every_s is not None and time.monotonic() - looked >= every_s:
                    self._look()
                    looked = time.monotonic()
            except StoreFailed as error:
                self._told.store_failed(error)
                self._give_back(batch, taken)
                if closing:
                    break
            except Exception:  # noqa: BLE001 - one exchange that is a bug must not end the thread for all others
                self._told.dropped("invalid", sum(len(waiting.profiles) for waiting in batch))
            else:
                if closing and not self._waiting:
                    break
        self._queue.close()

    def _next(self) -> tuple[list[_Waiting], list[str], bool]:
        """Wait for something to do and return it, and whether the end has come."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._waiting or self._taken or self._closing, timeout=self._settings.markers_s
            )
            batch = [self._waiting.popleft() for _ in range(min(_BATCH, len(self._waiting)))]
            self._load -= Load(len(batch), sum(one.size for one in batch))
            taken, self._taken = self._taken, []
            return batch, taken, self._closing

    def _feed(self, batch: list[_Waiting]) -> None:
        """Write exchanges as jobs, and leave `batch` empty.

        Raises:
            StoreFailed: the store took none, or it isn't known; `batch` is as it was.
        """
        jobs: list[Job] = []
        for waiting in batch:
            try:
                jobs += scoring_jobs(waiting.exchange, waiting.profiles, self._now_ms(), self._settings.job_bytes)
            except JobInvalid:
                self._told.dropped("invalid", len(waiting.profiles))
        if jobs:
            admitted = self._queue.put(jobs)
            refused = set(admitted.refused)
            if refused:
                self._told.dropped("store", len(refused))
            if admitted.evicted:
                self._told.evicted(admitted.evicted)
            self._told.accepted([job for job in jobs if job.id not in refused])
        batch.clear()

    def _forget(self, taken: list[str]) -> None:
        """Forget markers that conversations were told of, and leave `taken` empty.

        Raises:
            StoreFailed: the store can't be used; `taken` holds those that are left.
        """
        while taken:
            self._queue.unmark(taken[-1])
            taken.pop()

    def _look(self) -> None:
        """Bring back new markers; the latest of a conversation counts.

        Raises:
            StoreFailed: the store can't be used.
        """
        now_ms = self._now_ms()
        found = self._queue.markers(self._place, _MARKERS)
        with self._changed:
            for place, marker in found:
                self._place = place
                self._marked[marker.conversation] = (place, marker)
            for key in [key for key, (_, marker) in self._marked.items() if marker.expires_ms <= now_ms]:
                del self._marked[key]

    def _give_back(self, batch: list[_Waiting], taken: list[str]) -> None:
        """Keep what could not be written, and wait a little."""
        with self._changed:
            self._waiting.extendleft(reversed(batch))
            self._load += Load(len(batch), sum(one.size for one in batch))
            self._taken += taken
            self._changed.wait_for(lambda: self._closing, _STORE_RETRY_S)
