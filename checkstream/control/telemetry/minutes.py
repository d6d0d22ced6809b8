"""Counts by minute and route: what exchanges of a minute came to together. Pure.

A name says what is counted, and all counts of one name add up:

==================== ===========================================================================================
`exchanges`          guarded exchanges
`passed`             requests that went through unguarded
`outcome:NAME`       exchanges that ended so (`complete`, `refused`, `stopped`, ...)
`action:NAME`        exchanges of which this was the strictest action
`degraded`           exchanges in which something was checked less, later or not at all
`rule:ID`            decisions of a rule that was enforced; `shadow:ID` of one that was only recorded
`confidence:ID`      millionths: the sum of the confidences of both; `confidence2:ID` of their squares
`kept_prompts`       decisions by which text of a prompt did not go on as it came; `kept_answers` of an answer
`scored:PROFILE`     answers that a profile of grounding judged; `high:PROFILE` those of a high risk, `risk:PROFILE` the
                     sum of the risks, thousandths
`held:MS`            exchanges of which released text was held longest for at most so many milliseconds, and longer
                     than the bound before; `held:inf` for longer than all
`held_us`            microseconds: the sum of these times
`rescored`           answers that were judged afresh; `violated` those of which something had left that rules keep,
                     `unjudged` those of which nothing could be said, which are not among the first
`cutoff:MS`          such answers that were stopped, by the time from the first violation that had left to the stop
`checked:MS`         exchanges that asked classifiers, by the longest time that an answer took, as above; `checked_us`
                     their sum
==================== ===========================================================================================
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from checkstream.audit.entries import PassEntry, RescoredEntry
from checkstream.control.telemetry.records import Counted, checked_of
from checkstream.core.terms import Stage, keeps_back

BOUNDS_MS = (0, 1, 2, 5, 10, 15, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000)
"""Bounds of the times that are told apart."""
HIGH = 70.0
"""From here on a risk is high, 0 to 100, whatever a route does about it: bands end at 34 and 69."""
_MILLION = 1_000_000


def moment_of(time: str) -> int | None:
    """Return a record's time in milliseconds since 1970; None: it is none."""
    try:
        moment = datetime.fromisoformat(time)
        return None if moment.tzinfo is None else max(int(moment.timestamp() * 1000), 0)
    except (ValueError, OverflowError):
        return None


def minute_of(time: str) -> int | None:
    """Return the minute of a record's time, since 1970; None: it is none."""
    moment = moment_of(time)
    return None if moment is None else moment // 60_000


class Minutes:
    """Adds up. Iterating gives `(minute, route, name, count)`, in their order."""

    def __init__(self) -> None:
        """Nothing has been counted."""
        self._counts: Counter[tuple[int, str, str]] = Counter()

    def add(self, minute: int, told: Counted) -> None:
        """Count an exchange, or an answer that was judged afresh."""
        for name, count in _counts(told).items():
            self._counts[minute, told.route, name] += count

    def __iter__(self) -> Iterator[tuple[int, str, str, int]]:
        return ((*key, count) for key, count in sorted(self._counts.items()) if count)


def _counts(told: Counted) -> Counter[str]:
    if isinstance(told, PassEntry):
        return Counter({"passed": 1})
    if isinstance(told, RescoredEntry):
        return _rescored(told)
    record = told.record
    counts = Counter({"exchanges": 1, f"outcome:{record.outcome}": 1, f"action:{record.action}": 1})
    counts["degraded"] = bool(record.degradations)
    counts[f"held:{bound_of(record.held_ms)}"] = 1
    counts["held_us"] = round(record.held_ms * 1000)
    if checked_ms := checked_of(record):
        counts[f"checked:{bound_of(checked_ms)}"] = 1
        counts["checked_us"] = round(checked_ms * 1000)
    for verdict in record.verdicts:
        counts[f"{'rule' if verdict.mode == 'enforce' else 'shadow'}:{verdict.rule_id}"] += 1
        if verdict.mode == "enforce" and keeps_back(verdict.action, verdict.stage):
            counts["kept_prompts" if verdict.stage is Stage.INGRESS else "kept_answers"] += 1
        counts[f"confidence:{verdict.rule_id}"] += round(verdict.confidence * _MILLION)
        counts[f"confidence2:{verdict.rule_id}"] += round(verdict.confidence**2 * _MILLION)
    listed = Counter(verdict.rule_id for verdict in record.verdicts)
    for rule, fired in record.fired.items():  # where the record doesn't list all
        counts[f"rule:{rule}"] += max(fired - listed[rule], 0)
    for profile, risk in record.risks.items():
        counts[f"scored:{profile}"] += 1
        counts[f"high:{profile}"] += risk >= HIGH
        counts[f"risk:{profile}"] += round(risk * 1000)
    return counts


def _rescored(told: RescoredEntry) -> Counter[str]:
    if told.result == "unjudged":
        return Counter({"unjudged": 1})
    counts = Counter({"rescored": 1, "violated": int(told.result == "violation")})
    if told.cutoff_ms is not None:
        counts[f"cutoff:{bound_of(told.cutoff_ms)}"] = 1
    return counts


def bound_of(ms: float) -> str:
    """Return the smallest bound that is not below a time."""
    place = bisect_left(BOUNDS_MS, ms)
    return str(BOUNDS_MS[place]) if place < len(BOUNDS_MS) else "inf"
