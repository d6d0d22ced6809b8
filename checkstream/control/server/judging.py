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


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """How often something was so under a new bundle, beside how often it was so under the one before."""

    what: str
    """`refusals`, `stops`, `failures`, or ``time of `NAME` ``: took longer than nineteen in twenty did before."""
    some: int
    of: int
    others: int
    of_others: int
    too_much: bool


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """How much the scores of a classifier have changed."""

    name: str
    index: float | None
    """Population stability index; None: of too few scores it says nothing."""
    too_much: bool


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """What nodes did under a new bundle, beside what they did under the one before."""

    exchanges: int
    exchanges_before: int
    least: int
    """Fewer, of either, say nothing."""
    shares: tuple[Share, ...]
    drifts: tuple[Drift, ...]


def compared(health: Health, new: Tally, old: Tally) -> Compared:
    """Return all that is looked at."""
    return Compared(
        exchanges=new.exchanges,
        exchanges_before=old.exchanges,
        least=health.exchanges,
        shares=tuple(shares(health, new, old)),
        drifts=tuple(drifts(health, new, old)),
    )


def judged(health: Health, new: Tally, old: Tally) -> Judged:
    """Hold what nodes did under a new bundle against what they did under the one before."""
    enough = min(new.exchanges, old.exchanges) >= health.exchanges
    return Judged(worse=next(_worse(health, new, old), "") if enough else "", enough=enough)


def _worse(health: Health, new: Tally, old: Tally) -> Iterator[str]:
    for each in shares(health, new, old):
        if each.too_much and each.what in _SHARES:
            yield (
                f"{each.what}: {each.some} of {each.of} exchanges; "
                f"under the bundle before {each.others} of {each.of_others}"
            )
        elif each.too_much:
            share = f"{100 * each.some / each.of:.0f} % of {each.of}"
            yield f"{each.what}: {share} take longer than nineteen in twenty did under the bundle before"
    for drift in drifts(health, new, old):
        if drift.too_much:
            yield f"scores of `{drift.name}` have changed: their stability index is {drift.index:.2f}"


def shares(health: Health, new: Tally, old: Tally) -> Iterator[Share]:
    """Yield each share that is looked at; those of times, where there are enough."""
    for name in _SHARES:
        yield _share(health, name, (getattr(new, name), new.exchanges), (getattr(old, name), old.exchanges))
    for name, counts in new.times.items():
        before = old.times.get(name, ())
        if len(before) == len(counts) and min(sum(counts), sum(before)) >= health.exchanges:
            last = _usual(before)
            now, then = (sum(counts[last + 1 :]), sum(counts)), (sum(before[last + 1 :]), sum(before))
            yield _share(health, f"time of `{name}`", now, then)


def _share(health: Health, what: str, now: tuple[int, int], before: tuple[int, int]) -> Share:
    (some, of), (others, of_others) = now, before
    worse = too_much(health, some, of, others, of_others)
    return Share(what=what, some=some, of=of, others=others, of_others=of_others, too_much=worse)


def drifts(health: Health, new: Tally, old: Tally) -> Iterator[Drift]:
    """Yield how each classifier's scores have changed, of those that both have."""
    for name, counts in new.scores.items():
        before, least = old.scores.get(name, ()), LEAST.get(name.rpartition(" ")[2], math.inf)
        if len(counts) == len(before) == BINS:
            found = psi(before, counts) if min(sum(counts), sum(before)) >= least else None
            yield Drift(name=name, index=found, too_much=found is not None and found > health.drift)


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
