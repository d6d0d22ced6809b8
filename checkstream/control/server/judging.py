"""Do nodes do worse under a new bundle than under the one before? Pure.

A share of exchanges (those refused, stopped, failed) is too much where the lower end of its interval has more than
`ratio` times the odds of the upper end of the other's, and is more than `at_least`. Ends are Wilson's of 99.9 % (z =
3.29), of each side by itself, so that a share that is the same passes for worse in far less than one rollout of
thousands, although it is looked at again and again. Odds, since twice 60 % is nothing that a share can be.

How long things take is a share, too: of those that took longer than nineteen in twenty under the bundle before. How a
classifier scores is another matter: there the population stability index says whether its scores have changed.

Source: Wilson 1927; `telemetry.drift` for the index and from how many scores on it means something.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import accumulate

import msgspec

from checkstream.config.control import Health
from checkstream.control import wilson
from checkstream.control.server.tally import Tally
from checkstream.telemetry.drift import BINS, LEAST, psi

_Z = 3.29
_USUAL = 0.95
_SHARES = ("refusals", "stops", "failures")


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What the counts say."""

    worse: str = ""
    """In what the new bundle does worse; empty: in nothing that could be told."""
    enough: bool
    """There are exchanges enough, of both, to tell."""


def judged(health: Health, new: Tally, old: Tally) -> Judged:
    """Hold what nodes did under a new bundle against what they did under the one before."""
    enough = min(new.exchanges, old.exchanges) >= health.exchanges
    return Judged(worse=next(_worse(health, new, old), "") if enough else "", enough=enough)


def _worse(health: Health, new: Tally, old: Tally) -> Iterator[str]:
    for name in _SHARES:
        some, others = getattr(new, name), getattr(old, name)
        if too_much(health, some, new.exchanges, others, old.exchanges):
            yield f"{name}: {some} of {new.exchanges} exchanges; under the bundle before {others} of {old.exchanges}"
    for name, counts in new.times.items():
        before = old.times.get(name, ())
        if len(before) == len(counts) and min(sum(counts), sum(before)) >= health.exchanges:
            last = _usual(before)
            some, others = sum(counts[last + 1 :]), sum(before[last + 1 :])
            if too_much(health, some, sum(counts), others, sum(before)):
                share = f"{100 * some / sum(counts):.0f} % of {sum(counts)}"
                yield f"time of `{name}`: {share} take longer than nineteen in twenty did under the bundle before"
    for name, counts in new.scores.items():
        before, least = old.scores.get(name, ()), LEAST.get(name.rpartition(" ")[2], math.inf)
        if len(counts) == len(before) == BINS and min(sum(counts), sum(before)) >= least:
            found = psi(before, counts)
            if found > health.drift:
                yield f"scores of `{name}` have changed: their stability index is {found:.2f}"


def too_much(health: Health, some: int, of: int, others: int, of_others: int) -> bool:
    """Tell whether a share is more than it may be beside another's."""
    lower, upper = interval(some, of)[0], interval(others, of_others)[1]
    return lower > health.at_least and _odds(lower) > health.ratio * _odds(upper)


def interval(some: int, of: int) -> tuple[float, float]:
    """Return the ends between which a share is, as far as its count tells; of nothing it may be any."""
    return wilson.interval(some / of if of > 0 else 0.0, of, _Z)


def _odds(share: float) -> float:
    return math.inf if share >= 1 else share / (1 - share)


def _usual(counts: Sequence[int]) -> int:
    """Return the first bin up to whose end nineteen in twenty are."""
    total = sum(counts)
    return next(place for place, up_to in enumerate(accumulate(counts)) if up_to >= _USUAL * total)
