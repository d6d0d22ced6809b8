"""Histograms of what the event loop counts in: plain numbers of one thread, which are made metrics when they are read.

The library's own takes a lock and a walk over all buckets each time.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.metrics_core import HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

MAX_SERIES = 2_000
"""Most label combinations of one metric; further ones are counted as `other`."""


class Tally:
    """The values of one label combination."""

    __slots__ = ("_bounds", "_counts", "_sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        """Begin with nothing counted; `bounds` are the upper ends of all buckets but the last."""
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._sum = 0.0

    def observe(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self._sum += value

    @property
    def told(self) -> tuple[list[tuple[str, float]], float]:
        """Number of values up to the end of each bucket, and the sum of all values."""
        ends = map(floatToGoString, (*self._bounds, float("inf")))
        return list(zip(ends, map(float, accumulate(self._counts)), strict=True)), self._sum


class Tallies(Collector):
    """A histogram with labels. One thread counts; any may collect."""

    def __init__(self, name: str, told: str, labels: Sequence[str], bounds: Sequence[float]) -> None:
        """Begin with nothing counted.

        Args:
            name: Of the metric.
            told: What it is.
            labels: Their names.
            bounds: Upper ends of all buckets but the last.
        """
        self._head = name, told
        self._labels = tuple(labels)
        self._bounds = tuple(bounds)
        self._tallies: dict[tuple[str, ...], Tally] = {}

    def of(self, *values: str) -> Tally:
        """Return the values of these labels, in the order of the table.

        Raises:
            ValueError: not as many values as labels: a bug of the caller.
        """
        tally = self._tallies.get(values)
        if tally is None:
            if len(values) != len(self._labels):
                raise ValueError(f"{len(values)} label values for {len(self._labels)} labels")
            if len(self._tallies) >= MAX_SERIES:
                values = ("other",) * len(self._labels)
            tally = self._tallies.setdefault(values, Tally(self._bounds))
        return tally

    def collect(self) -> Iterator[HistogramMetricFamily]:
        """Yield what has been counted."""
        family = HistogramMetricFamily(*self._head, labels=self._labels)
        for values, tally in self._tallies.copy().items():  # in one step: others come while this goes on
            family.add_metric(values, *tally.told)
        yield family
