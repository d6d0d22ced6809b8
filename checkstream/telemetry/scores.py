"""What classifiers have said of texts: counts of all scores, and of those of the last day.

Each score is counted once, in a number that only grows. What the day has is the difference to what stood there when it
began: once an hour the numbers are copied, and copies are kept for a day. INVARIANT: the memory is bounded by the
number of names, `MOST` at the most.
"""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Mapping

from checkstream.telemetry.drift import BINS, BOUNDS, Counts, Key

MOST = 500
"""Names of scores, each with its stage, that are counted apart: five kilobytes each. Others are counted as `other`."""
_HOUR_S = 3600.0
_HOURS = 24
_OTHER = "other"


class Tally:
    """All scores of one name."""

    __slots__ = ("counts", "sum")

    def __init__(self) -> None:
        """Begin with none."""
        self.counts = [0] * BINS
        self.sum = 0.0


class Scores:
    """Counts the scores of one process. One thread counts; any may ask what there is."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with none; `clock` gives seconds."""
        self._clock = clock
        self._hour = int(clock() // _HOUR_S)
        self._tallies: dict[str, dict[str, Tally]] = {"ingress": {}, "midstream": {}}
        self._before: dict[int, dict[Key, array[int]]] = {self._hour: {}}
        """Hour -> what had been counted when it began; the day has so many hours, the oldest first."""
        self._expected: Mapping[Key, Counts] = {}
        self._turning = threading.RLock()
        """Held while hours begin and end."""

    def count(self, scores: Mapping[str, float], stage: str) -> None:
        """Count what was said of one text, by `model.label`."""
        if self._clock() // _HOUR_S != self._hour:
            self._turn()
        tallies = self._tallies[stage]
        for name, score in scores.items():
            tally = tallies.get(name) or self._tally(name, stage)
            tally.counts[bisect_left(BOUNDS, score)] += 1
            tally.sum += score

    def _tally(self, name: str, stage: str) -> Tally:
        if sum(map(len, self._tallies.values())) >= MOST:
            name = _OTHER
        return self._tallies[stage].setdefault(name, Tally())

    def expect(self, reference: Mapping[Key, Counts]) -> None:
        """Say what scores are held against; the day of those begins anew for which that is not what it was."""
        if reference == self._expected:
            return
        with self._turning:
            self._turn()
            counted = self.total
            for key in (reference.keys() | self._expected.keys()) & counted.keys():
                if reference.get(key) != self._expected.get(key):
                    for before in self._before.values():
                        before[key] = array("Q", counted[key].counts)
            self._expected = reference

    def _turn(self) -> None:
        """Begin an hour, if it is one, and forget those that are not of its day."""
        with self._turning:
            now = int(self._clock() // _HOUR_S)
            if now == self._hour:
                return
            self._hour = now
            self._before[now] = {key: array("Q", tally.counts) for key, tally in self.total.items()}
            for hour in [hour for hour in self._before if hour <= now - _HOURS]:
                del self._before[hour]

    @property
    def total(self) -> dict[Key, Tally]:
        """All that was counted."""
        every = self._tallies.items()
        return {(name, stage): tally for stage, tallies in every for name, tally in tallies.copy().items()}

    @property
    def today(self) -> dict[Key, list[int]]:
        """What the last 24 hours have, the one that runs and 23 before it."""
        with self._turning:
            self._turn()
            begun = next(iter(self._before.values()))
        none = array("Q", bytes(8 * BINS))
        return {
            key: [now - before for now, before in zip(tally.counts, begun.get(key, none), strict=True)]
            for key, tally in self.total.items()
        }

    @property
    def reference(self) -> dict[Key, Counts]:
        """What the scores are held against, of those that have been counted."""
        expected = self._expected
        return {key: expected[key] for key in self.total if key in expected}
