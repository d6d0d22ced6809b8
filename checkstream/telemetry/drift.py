"""How far the scores of one day are from those that a classifier was calibrated on. Pure.

A histogram is a count for each bin of `BOUNDS`: all scores up to the first bound, those above it up to the second, and
so on; the last bin has what is above the last bound. The population stability index (PSI) adds up over the bins how
much of the scores has come or gone, and by which factor; the Kolmogorov-Smirnov distance (KS) is the widest gap between
the two distributions, which is exact at the bounds of the bins.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from types import MappingProxyType

import msgspec

_LOW = (0.00001, 0.00003, 0.0001, 0.0003, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05)
BOUNDS = (*_LOW, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)
"""Upper ends of all bins but the last, which has none. Near 0, where innocent texts are, each is two or three
times the one before."""
BINS = len(BOUNDS) + 1
FLOOR = 0.0001
"""A bin that has less than this share of the scores counts as if it had it: else one score in a bin that the reference
lacks would be infinitely far away."""
LEAST: Mapping[str, int] = MappingProxyType({"ingress": 500, "midstream": 2000})
"""Stage -> from how many scores on there is a figure. Checks of one answer are alike, so more of them are needed."""
MOVED = 0.1
CHANGED = 0.25
"""From which PSI on scores have `moved`, and `changed`, as is usual."""

Key = tuple[str, str]
"""Whose scores: `model.label`, and the stage (`ingress`, `midstream`)."""
Counts = Sequence[float]
"""A number of scores for each bin; `BINS` of them."""


class Drift(msgspec.Struct, frozen=True):
    """How far two histograms are from each other."""

    psi: float
    """0 and up; 0: they are alike."""
    ks: float
    """0 to 1."""


def bin_of(score: float) -> int:
    """Return the number of the bin of a score."""
    return bisect_left(BOUNDS, score)


def psi(reference: Counts, today: Counts) -> float:
    """Return the population stability index of two histograms that have scores; it is the same both ways round."""
    pairs = zip(_shares(reference), _shares(today), strict=True)
    floored = ((max(was, FLOOR), max(now, FLOOR)) for was, now in pairs)
    return math.fsum((now - was) * math.log(now / was) for was, now in floored)


def ks(reference: Counts, today: Counts) -> float:
    """Return the widest gap between the cumulative shares of two histograms that have scores."""
    pairs = zip(accumulate(_shares(reference)), accumulate(_shares(today)), strict=True)
    return min(1.0, max(abs(was - now) for was, now in pairs))


def _shares(counts: Counts) -> list[float]:
    total = math.fsum(counts)
    return [count / total for count in counts]


def drifts(reference: Mapping[Key, Counts], today: Mapping[Key, Counts]) -> dict[Key, Drift]:
    """Return how far each histogram is from its reference, where both have scores enough to tell."""
    return {
        key: Drift(psi(reference[key], counts), ks(reference[key], counts))
        for key, counts in today.items()
        if min(sum(reference.get(key, ())), sum(counts)) >= LEAST.get(key[1], math.inf)
    }


def cumulated(counts: Counts) -> list[tuple[str, float]]:
    """Return a histogram as metrics have it: (upper end of a bin, number of scores up to it)."""
    return list(zip(_ENDS, accumulate(counts), strict=True))


def histograms(samples: Iterable[tuple[Mapping[str, str], float]]) -> dict[Key, list[float]]:
    """Read histograms from samples of metrics, as `cumulated` gives them.

    Args:
        samples: Labels (`classifier`, `stage`, `le`) and value of each.

    Returns:
        Those that are whole; others, such as those of a version with other bins, are left out.
    """
    found: dict[Key, dict[str, float]] = {}
    for labels, value in samples:
        key = labels.get("classifier", ""), labels.get("stage", "")
        found.setdefault(key, {})[labels.get("le", "")] = value
    return {key: counts for key, ends in found.items() if (counts := _counts(ends)) is not None}


def _counts(ends: Mapping[str, float]) -> list[float] | None:
    """Return the numbers of scores in the bins, from those up to their ends; None: it is no such histogram."""
    if ends.keys() != set(_ENDS) or not all(map(math.isfinite, ends.values())):
        return None
    sums = [0.0, *(ends[end] for end in _ENDS)]
    counts = [more - less for less, more in pairwise(sums)]
    return counts if min(counts) >= 0 else None


_ENDS = (*map(repr, BOUNDS), "+Inf")
"""Upper ends of the bins, as metrics write them."""
