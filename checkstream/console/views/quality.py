"""What scored answers and runs of the gate came to. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec

from checkstream.console.totals import Ring
from checkstream.console.views.overview import Chart, Counted, Line
from checkstream.control.telemetry.minutes import HIGH
from checkstream.jobs.terms import Result

if TYPE_CHECKING:  # the gate is large, and most have no runs
    from checkstream.gate.terms import Run

_LINES = 2
"""Of a chart: more nobody can tell apart."""


class Scorer(msgspec.Struct, frozen=True, kw_only=True):
    """What one scorer said of answers."""

    name: str
    count: int
    high: int
    mean: float


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of answers and models."""

    scored: tuple[str, ...]
    """Routes of which answers are scored."""
    jobs: tuple[Counted, ...]
    """Background jobs by where they are."""
    scorers: tuple[Scorer, ...]
    results: tuple[Result, ...]
    risk: Chart | None
    runs: tuple[Run, ...]
    gate: Chart | None
    faults: tuple[str, ...]
    """What could not be read."""


def quality(
    ring: Ring, scored: Sequence[str], results: Sequence[Result], runs: Sequence[Run], faults: Sequence[str]
) -> Quality:
    """Return the view; results and runs come with the newest first."""
    jobs = [
        (dict(labels)["state"], value) for (name, labels), value in ring.newest.items() if name == "checkstream_jobs"
    ]
    return Quality(
        scored=tuple(scored),
        jobs=tuple(Counted(what=state, count=value) for state, value in sorted(jobs)),
        scorers=tuple(_scorers(results)),
        results=tuple(result for result in results if result.risk >= HIGH)[:30],
        risk=over_time("Risk of scored answers", "of 100", [(r.at_ms / 1000, r.scorer, r.risk) for r in results]),
        runs=tuple(runs[:30]),
        gate=over_time("Risk of models", "", [(r.begun, r.target, r.risk) for r in runs if r.risk is not None]),
        faults=tuple(faults),
    )


def _scorers(results: Iterable[Result]) -> list[Scorer]:
    risks: dict[str, list[float]] = {}
    for result in results:
        risks.setdefault(f"{result.scorer}@{result.version}", []).append(result.risk)
    return [
        Scorer(name=name, count=len(all_), high=sum(each >= HIGH for each in all_), mean=sum(all_) / len(all_))
        for name, all_ in sorted(risks.items())
    ]


def over_time(title: str, unit: str, points: Sequence[tuple[float, str, float]]) -> Chart | None:
    """Return the points of the most frequent names as lines, oldest first; None: there is no line to be drawn."""
    names = [name for _, name, _ in points]
    most = sorted(dict.fromkeys(names), key=lambda name: (-names.count(name), name))[:_LINES]
    kept = sorted((at, name, value) for at, name, value in points if name in most)
    if len(kept) < 2:
        return None
    lines = tuple(Line(name=each, values=tuple(v if name == each else None for _, name, v in kept)) for each in most)
    return Chart(title=title, unit=unit, at=tuple(at for at, _, _ in kept), lines=lines)
