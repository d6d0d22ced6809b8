"""What the budgets of errors of a fleet have been charged with lately, by what its nodes have counted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from checkstream.control.alerts.facts import Budget, Spent
from checkstream.control.server.counted import HOUR, sums
from checkstream.control.server.database import Session

_KINDS = ("rescored", "violated", "cutoff", "scored", "high")
_LATE_MS = 500.0
"""A stop that comes later than this behind the first violation that has left is late."""
_MINUTES, _HOURS = (5, 30, HOUR), (6, 72)

Counts = Sequence[tuple[int, str, int]]
"""First minute of a slot, name, count."""


def read_budgets(session: Session, fleet: str, now_ms: int) -> tuple[Budget, ...]:
    """Return the budgets of a fleet; part of a transaction."""
    minute = now_ms // 60_000
    hours = sums(session, fleet, HOUR, minute - max(_HOURS) * HOUR, _KINDS)
    minutes = sums(session, fleet, 1, minute - max(_MINUTES), _KINDS) if hours else []
    return tuple(budgets_of(fleet, minutes, hours, minute))


def budgets_of(subject: str, minutes: Counts, hours: Counts, now: int) -> Iterator[Budget]:
    """Yield the budgets of a fleet for which anything was judged in three days.

    Args:
        subject: Names the fleet.
        minutes: What was counted in each minute of the last hour.
        hours: In each hour of the last three days; the one in which a time begins is not in it.
        now: The minute that runs, since 1970; it is in every time.
    """
    windows = [
        *(_within(minutes, now - back) for back in _MINUTES),
        *(_within(hours, now - back * HOUR) for back in _HOURS),
    ]
    source: Literal["rescored", "grounding"] = "rescored" if windows[-1]["rescored"] else "grounding"
    violations = [_violations(window, source) for window in windows]
    cutoffs = [_cutoffs(window) for window in windows]
    if violations[-1].all:
        yield _budget(subject, "violations", source, violations)
    if cutoffs[-1].all:
        yield _budget(subject, "cutoff", "rescored", cutoffs)


def _budget(
    subject: str,
    of: Literal["violations", "cutoff"],
    source: Literal["rescored", "grounding"],
    windows: Sequence[Spent],
) -> Budget:
    minutes5, minutes30, hour, hours6, days3 = windows
    return Budget(
        subject=subject, of=of, source=source,
        minutes5=minutes5, minutes30=minutes30, hour=hour, hours6=hours6, days3=days3,
    )  # fmt: skip


def _within(counts: Counts, after: int) -> Counter[str]:
    """Return what was counted in the slots that begin after a minute, by name."""
    found: Counter[str] = Counter()
    for minute, name, count in counts:
        if minute > after:
            found[name] += count
    return found


def _violations(window: Mapping[str, int], source: Literal["rescored", "grounding"]) -> Spent:
    if source == "rescored":
        return Spent(window["violated"], window["rescored"])
    high, scored = (sum(n for name, n in window.items() if name.startswith(of)) for of in ("high:", "scored:"))
    return Spent(high, scored)


def _cutoffs(window: Mapping[str, int]) -> Spent:
    found = {name.partition(":")[2]: count for name, count in window.items() if name.startswith("cutoff:")}
    late = sum(count for bound, count in found.items() if not _in_time(bound))
    return Spent(late, sum(found.values()))


def _in_time(bound: str) -> bool:
    """Tell whether a time of at most this bound is in time; a node may have written anything."""
    return bound.isascii() and bound.isdigit() and len(bound) < 10 and int(bound) <= _LATE_MS
