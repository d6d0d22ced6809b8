"""What a run came to: counts, and delays in histograms of high dynamic range. Pure."""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from hdrh.histogram import HdrHistogram

from checkstream.bench.scenario import Scenario
from checkstream.bench.told import Outcome, Told

_MOST_US = 120_000_000
_FIGURES = 3
LATE_MS = 10.0
"""A load generator that is later than this with one piece of a hundred was not the load that it says."""
QUANTILES = (50.0, 90.0, 99.0, 99.9)
OUTCOMES: tuple[Outcome, ...] = ("whole", "edited", "stopped", "refused", "denied", "left", "broken")


class Sample(msgspec.Struct, frozen=True):
    """The proxy's memory at a moment."""

    at_s: float
    """From the start of the run."""
    rss_bytes: int


class Spread(msgspec.Struct, frozen=True, kw_only=True):
    """A distribution."""

    count: int
    ms: Mapping[str, float]
    """Quantile, such as `p50` -> milliseconds."""
    curve: tuple[tuple[float, float], ...] = ()
    """(milliseconds, share at or below)."""

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Spread:
        """Return that of some times."""
        found = HdrHistogram(1, _MOST_US, _FIGURES)
        for each in seconds:
            found.record_value(min(max(int(each * 1e6), 1), _MOST_US))
        total = found.get_total_count()
        if not total:
            return cls(count=0, ms={})
        curve, below = [], 0
        for item in found.get_recorded_iterator():
            below += item.count_added_in_this_iter_step
            curve.append((item.value_iterated_to / 1000, below / total))
        ms = {f"p{quantile:g}": found.get_value_at_percentile(quantile) / 1000 for quantile in QUANTILES}
        return cls(count=total, ms={**ms, "max": found.get_max_value() / 1000}, curve=_thinned(curve))

    def at(self, quantile: str) -> float | None:
        """Return a quantile, milliseconds; None: there is nothing."""
        return self.ms.get(quantile)

    def within(self, share: float) -> float:
        """Return the time within which such a share is, 0..1, milliseconds, as far as the curve tells; there is one."""
        at = bisect_left(self.curve, share, key=lambda point: point[1])
        return self.curve[min(at, len(self.curve) - 1)][0]


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """One scenario through one target, once."""

    scenario: str
    target: str
    round: int
    outcomes: Mapping[str, int]
    seconds: float
    """From the first request to the last end."""
    tokens_per_s: float
    """Pieces of answers that came, whatever became of the answers."""
    first_text: Spread
    """From the request to the first text."""
    delay: Spread
    """Of each piece, from its writing by the model; the hold is part of it. None where the model is another's."""
    gap: Spread
    """Between a piece of text and the next."""
    late: Spread
    """How late the load generator was with requests and pieces, by its own schedule."""
    cpu_us: float | None = None
    """CPU time of the proxy for a piece, microseconds; None: it isn't on this machine."""
    memory: tuple[Sample, ...] = ()
    leaked: tuple[int, ...] = ()
    """Pieces that came behind the beginning of harm, of each answer; empty: there is no harm in them."""

    @property
    def is_late(self) -> bool:
        """The load was not what the scenario says: figures say more about the load generator than about the target."""
        return (self.late.at("p99") or 0.0) > LATE_MS


def sum_up(
    names: tuple[str, str, int],
    scenario: Scenario,
    answers: Sequence[Told],
    *,
    seconds: float,
    late_s: Iterable[float],
    cpu_s: float | None,
    memory: tuple[Sample, ...],
    own_model: bool,
) -> Run:
    """Return what a run came to.

    Args:
        names: Of the scenario and the target, and the round.
        scenario: What was asked for.
        answers: All that was.
        seconds: How long it took.
        late_s: How late the load was with each step.
        cpu_s: CPU time of the proxy.
        memory: Its memory.
        own_model: The answers came from this bench's model, so that it is known when each piece was written.
    """
    outcomes = Counter(answer.outcome() for answer in answers)
    pieces = sum(len(answer.heard) for answer in answers) if not own_model else _heard(answers)
    first = [answer.first_text_s() for answer in answers]
    harm = scenario.harm if own_model else None
    return Run(
        scenario=names[0],
        target=names[1],
        round=names[2],
        outcomes={name: outcomes[name] for name in OUTCOMES},
        seconds=seconds,
        tokens_per_s=pieces / seconds,
        first_text=Spread.of(each for each in first if each is not None),
        delay=Spread.of(delay for answer in answers for delay in answer.delays_s()) if own_model else Spread.of(()),
        gap=Spread.of(gap for answer in answers for gap in _gaps(answer)),
        late=Spread.of(late_s),
        cpu_us=None if cpu_s is None or not pieces else cpu_s / pieces * 1e6,
        memory=memory,
        leaked=() if harm is None else tuple(answer.leaked(harm) for answer in answers if answer.status == 200),
    )


def _heard(answers: Sequence[Told]) -> int:
    """Return how many pieces came, counted as the model made them: a proxy may send several as one."""
    return sum(round(len(each.text) * min(_share(each), 1.0)) for each in answers if each.heard)


def _share(answer: Told) -> float:
    return answer.heard[-1][0] / max(sum(map(len, answer.text)), 1)


def _gaps(answer: Told) -> Iterable[float]:
    times = [at_s for _, at_s in answer.heard]
    return (after - before for before, after in itertools.pairwise(times))


def _thinned(curve: Sequence[tuple[float, float]], most: int = 200) -> tuple[tuple[float, float], ...]:
    """Return a curve with so many points that it looks the same, its ends kept."""
    if len(curve) <= most:
        return tuple(curve)
    step = len(curve) / (most - 1)
    return (*(curve[int(at * step)] for at in range(most - 1)), curve[-1])
