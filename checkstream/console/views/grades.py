"""How well answers were grounded, and which models passed the gate, over time. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.console.views.overview import Chart, Line
from checkstream.console.views.quality import over_time
from checkstream.console.views.traffic import Asked, summed
from checkstream.control.server.counted import Scope, Slots
from checkstream.control.server.gate_runs import GateRunKept

MOST_RUNS = 200
_LINES = 2
"""Of a chart: more nobody can tell apart."""


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """What a profile of grounding said of answers."""

    name: str
    count: int
    mean: float
    """Risk, 0 to 100."""
    high: int


class Grades(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of answers and models."""

    asked: Asked
    target: str
    """The model whose runs are shown; empty: of all."""
    profiles: tuple[Profile, ...]
    risk: Chart | None
    runs: tuple[GateRunKept, ...]
    gate: Chart | None


def grades(asked: Asked, target: str, scope: Scope, slots: Slots, runs: Sequence[GateRunKept]) -> Grades:
    """Return the view; runs come with the newest first."""
    total = summed(slots)
    names = [name.partition(":")[2] for name in total if name.startswith("scored:")]
    profiles = [
        Profile(
            name=name,
            count=total[f"scored:{name}"],
            mean=total.get(f"risk:{name}", 0) / 1000 / total[f"scored:{name}"],
            high=total.get(f"high:{name}", 0),
        )
        for name in names
    ]
    profiles.sort(key=lambda each: (-each.count, each.name))
    points = [(each.run.begun, each.run.target, each.run.risk) for each in runs]
    return Grades(
        asked=asked,
        target=target,
        profiles=tuple(profiles),
        risk=_risk(scope, slots, [each.name for each in profiles[:_LINES]]),
        runs=tuple(runs),
        gate=over_time("Risk of models", "", points),
    )


def _risk(scope: Scope, slots: Slots, names: Sequence[str]) -> Chart | None:
    """Return the mean risk of each slot in which answers were judged; None: there is no line to be drawn."""
    at = sorted(place for place in slots if any(f"scored:{name}" in slots[place] for name in names))
    if len(at) < 2:
        return None

    def mean(place: int, name: str) -> float | None:
        count = slots[place].get(f"scored:{name}", 0)
        return round(slots[place].get(f"risk:{name}", 0) / 1000 / count, 3) if count else None

    lines = tuple(Line(name=name, values=tuple(mean(place, name) for place in at)) for name in names)
    ends = tuple((place + scope.step) * 60.0 for place in at)
    return Chart(title="Mean risk of answers", unit="of 100", at=ends, lines=lines)
