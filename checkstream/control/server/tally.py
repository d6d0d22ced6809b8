"""What nodes have counted, made comparable: what has come since the last report, and sums of such. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import zip_longest

import msgspec

from checkstream.control.attestation import Figures, Running

_PLAIN = ("exchanges", "refusals", "stops", "failures")
_YOUNG_S = 600
_MOST_SCORES = 1024
"""Classifiers and stages that are summed up; nodes with other models than each other have more than one of them."""
OTHER = "other"
"""In place of the names, or bundles, for which there is no room: what they count is not lost."""


class Tally(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Sums over nodes and time."""

    exchanges: int = 0
    refusals: int = 0
    stops: int = 0
    failures: int = 0
    times: dict[str, tuple[int, ...]] = {}
    """As `Figures.times`."""
    scores: dict[str, tuple[int, ...]] = {}
    """As `Figures.scores`."""

    @property
    def empty(self) -> bool:
        """Nothing has been counted."""
        plain = (self.exchanges, self.refusals, self.stops, self.failures)
        return not any((*plain, *_all(self.times.values()), *_all(self.scores.values())))


def tally_of(figures: Figures) -> Tally:
    """Return all that a run has counted."""
    return Tally(
        exchanges=figures.exchanges,
        refusals=figures.refusals,
        stops=figures.stops,
        failures=figures.failures,
        times=figures.times,
        scores=figures.scores,
    )


def since(before: Figures | None, now: Figures | None) -> Tally:
    """Return what has been counted between two reports of a node.

    A run that has begun since is counted from its beginning; so is one of which nothing was known before, if it is
    young: an older one may have run for months. What has fallen within a run can't have, and counts as begun anew.
    """
    if now is None or (before is None and now.age_s > _YOUNG_S):
        return Tally()
    whole = tally_of(now)
    if before is None or before.run != now.run:
        return whole
    found = less(whole, tally_of(before))
    fell = min(
        (*(getattr(found, name) for name in _PLAIN), *_all(found.times.values()), *_all(found.scores.values())),
        default=0,
    )
    return whole if fell < 0 else found


def counted_since(before: Running | None, now: Running) -> Iterator[tuple[str, Tally]]:
    """Yield what a node has counted since its last report under each of its bundles, by digest."""
    if now.bundle:
        yield now.bundle, since(None if before is None else before.figures, now.figures)
    if now.candidate is not None:
        earlier = None if before is None or before.candidate is None else before.candidate.figures
        yield now.candidate.wanted.bundle, since(earlier, now.candidate.figures)


def less(one: Tally, other: Tally) -> Tally:
    """Return what one has more than another; where it has less, that is negative."""
    return _combined(one, other, -1)


def highest(one: Tally, other: Tally) -> Tally:
    """Return of each count the higher one."""
    more = less(one, other)
    raised = Tally(
        **{name: max(0, getattr(more, name)) for name in _PLAIN},
        times={name: tuple(max(0, count) for count in counts) for name, counts in more.times.items()},
        scores={name: tuple(max(0, count) for count in counts) for name, counts in more.scores.items()},
    )
    return _combined(other, raised, 1)


def summed(tallies: Iterable[Tally]) -> Tally:
    """Return the sum."""
    total = Tally()
    for tally in tallies:
        total = _combined(total, tally, 1)
    return total


def _combined(one: Tally, other: Tally, sign: int) -> Tally:
    return Tally(
        **{name: getattr(one, name) + sign * getattr(other, name) for name in _PLAIN},
        times=_bins(one.times, other.times, sign),
        scores=_bins(one.scores, other.scores, sign),
    )


def _bins(one: dict[str, tuple[int, ...]], other: dict[str, tuple[int, ...]], sign: int) -> dict[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for name in dict.fromkeys((*one, *other)):
        counts = tuple(a + sign * b for a, b in zip_longest(one.get(name, ()), other.get(name, ()), fillvalue=0))
        if name != OTHER and len(found) < _MOST_SCORES:
            found[name] = counts
        else:
            found[OTHER] = tuple(a + b for a, b in zip_longest(found.get(OTHER, ()), counts, fillvalue=0))
    return found


def _all(counts: Iterable[tuple[int, ...]]) -> Iterable[int]:
    return (count for each in counts for count in each)
