"""What was counted in the last hour: small sums, taken each few seconds, and the differences between them. Pure.

INVARIANT: what is kept is bounded by the time that it reaches back and by the number of counters, whatever comes.
"""

from __future__ import annotations

import itertools
import math
from array import array
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from checkstream.telemetry.totals import Figures

EVERY_S = 10.0
"""Between two sums."""
HOUR_S = 3600.0
SLOTS = 60
"""Into which an hour is cut for charts."""
NAMES = frozenset(
    {
        "checkstream_requests_total", "checkstream_exchanges_total", "checkstream_verdicts_total",
        "checkstream_degraded_total", "checkstream_unscanned_total", "checkstream_upstream_errors_total",
        "checkstream_added_ttft_seconds", "checkstream_hold_seconds", "checkstream_ingress_seconds",
        "checkstream_tokens_total", "checkstream_grounding_risk", "checkstream_grounding_high_total",
        "checkstream_jobs", "checkstream_job_events_total",
    }
)  # fmt: skip
"""The metrics that are looked at."""
_SUMMED_OVER = frozenset({"route", "model", "policy", "profile"})
"""Labels that no page tells apart; with them a few dozen routes would have more counters than are kept."""
_MOST = 5_000
"""Counters that are kept; more are not looked at."""

Key = tuple[str, tuple[tuple[str, str], ...]]
"""A sample's name, and its labels in their order."""


def keyed(figures: Figures) -> dict[Key, float]:
    """Return what was counted by name and those labels that are looked at, without the times when counting began."""
    found: dict[Key, float] = {}
    for family in figures:
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                key = sample.name, tuple(pair for pair in sample.labels if pair[0] not in _SUMMED_OVER)
                found[key] = found.get(key, 0.0) + sample.value
    return found


class Moved(msgspec.Struct, frozen=True):
    """By how much counters have moved in a time."""

    start: float
    """Seconds since 1970."""
    seconds: float
    by: Mapping[Key, float]

    def by_label(self, name: str, *labels: str) -> dict[tuple[str, ...], float]:
        """Return by how much a metric has moved, by some of its labels; what has not moved is left out."""
        found: dict[tuple[str, ...], float] = {}
        for (sample, given), value in self.by.items():
            if sample == name and value > 0:
                own = dict(given)
                key = tuple(own.get(label, "") for label in labels)
                found[key] = found.get(key, 0.0) + value
        return found

    def total(self, name: str, wanted: Callable[[Mapping[str, str]], bool] = lambda _: True) -> float:
        """Return by how much a metric has moved altogether, or what is wanted of it."""
        return sum(value for (sample, given), value in self.by.items() if sample == name and wanted(dict(given)))

    def quantiles(self, name: str, shares: Sequence[float]) -> Quantiles:
        """Return quantiles of a histogram over all its labels, as well as its bins tell them."""
        bins: dict[float, float] = {}
        for (sample, given), value in self.by.items():
            if sample == f"{name}_bucket":
                end = float(dict(given)["le"])
                bins[end] = bins.get(end, 0.0) + value
        found = tuple(quantile(sorted(bins.items()), share) for share in shares)
        return Quantiles(self.total(f"{name}_count"), found)


class Quantiles(msgspec.Struct, frozen=True):
    """Quantiles of what a histogram has counted."""

    count: float
    at: tuple[float | None, ...]
    """Beside each share; None: nothing was counted; infinite: it lies beyond the last bin."""


def quantile(bins: Sequence[tuple[float, float]], share: float) -> float | None:
    """Return a quantile of cumulated bins, taking values to lie evenly in each (as Prometheus does)."""
    total = bins[-1][1] if bins else 0.0
    if total <= 0:
        return None
    wanted, low, below = share * total, 0.0, 0.0
    for end, upto in bins:
        if upto >= wanted:
            inside = upto - below
            return end if math.isinf(end) or inside <= 0 else low + (end - low) * (wanted - below) / inside
        low, below = end, upto
    return math.inf


class Ring:
    """The sums of the last hour."""

    def __init__(self) -> None:
        """Begin with none."""
        self._places: dict[Key, int] = {}
        self._taken: deque[tuple[float, array[float]]] = deque()
        self._newest: dict[Key, float] = {}

    def take(self, at: float, totals: Mapping[Key, float]) -> None:
        """Keep the sums of a moment, seconds since 1970; what is older than an hour goes.

        A clock that was set back begins anew.
        """
        if self._taken and at <= self._taken[-1][0]:
            self._taken.clear()
        for key in totals:
            if key not in self._places and len(self._places) < _MOST:
                self._places[key] = len(self._places)
        row = array("d", bytes(8 * len(self._places)))
        for key, value in totals.items():
            if key in self._places:
                row[self._places[key]] = value
        self._taken.append((at, row))
        self._newest = dict(totals)
        while len(self._taken) > 1 and self._taken[1][0] <= at - HOUR_S:
            self._taken.popleft()

    def upto(self, at: float, totals: Mapping[Key, float]) -> Ring:
        """Return the same and a newest moment, for another thread: what is taken from here on does not change it."""
        copy = Ring()
        copy._places, copy._taken = dict(self._places), deque(self._taken)
        copy.take(at, totals)
        return copy

    @property
    def newest(self) -> Mapping[Key, float]:
        """The sums of the last moment: what gauges are now."""
        return self._newest

    def moved(self) -> Moved:
        """Return by how much all has moved since the first moment that is kept."""
        if not self._taken:
            return Moved(0.0, 0.0, {})
        return self._between(self._taken[0], self._taken[-1])

    def slots(self) -> Iterator[Moved]:
        """Yield the same in parts of equal numbers of moments, at most `SLOTS` of them and one that is not full.

        What has just begun is left out: from a second nobody can tell what a minute comes to.
        """
        step = max(1, round(HOUR_S / EVERY_S / SLOTS)) if len(self._taken) > SLOTS else 1
        rows = list(self._taken)[::-1][::step][::-1]  # so that the newest ends the last part
        for before, after in itertools.pairwise(rows):
            if after[0] - before[0] >= EVERY_S / 2:
                yield self._between(before, after)

    def _between(self, before: tuple[float, array[float]], after: tuple[float, array[float]]) -> Moved:
        was, now = before[1], after[1]
        by = {
            key: max(now[place] - (was[place] if place < len(was) else 0.0), 0.0)
            for key, place in self._places.items()
            if place < len(now)
        }
        return Moved(before[0], after[0] - before[0], by)
