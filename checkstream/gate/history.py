"""What runs say together: the trend of a configuration, and two models side by side. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence

import msgspec

from checkstream.gate.report import REGRESSION, Report
from checkstream.gate.terms import Run

DEPLOYED = 100
"""Deployed runs of one configuration that its points are told from: as many as Elasticsearch gives of a bucket."""
NEWEST = DEPLOYED - 1
"""Runs of one configuration that its trend is drawn from: were all of them deployed, so was one before them."""


class TrendPoint(msgspec.Struct, frozen=True, kw_only=True):
    """A decided run, and how it stands to the last deployed one before it."""

    run_id: str
    begun: float
    target: str
    risk: float
    decision: str
    difference: float | None = None
    """Its risk less that of the last run of the configuration that was deployed before it, whatever its target; None:
    there was none, or more than `DEPLOYED` since then."""
    regression: bool = False


class ModelTotals(msgspec.Struct, frozen=True, kw_only=True):
    """What all decided runs of one model by one configuration came to."""

    target: str
    runs: int
    decisions: dict[str, int]
    """Runs by decision; those that never came are left out."""
    least_risk: float
    mean_risk: float
    most_risk: float
    total_claims: int
    supported: int
    weakly_supported: int
    unsupported: int


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one configuration in time."""

    config_hash: str
    points: tuple[TrendPoint, ...]
    """The newest runs, at most `NEWEST`, the oldest of them first."""
    slope: float | None
    """Change of risk from run to run of `points`, by least squares; None with fewer than two."""
    models: tuple[ModelTotals, ...] = ()
    """Its models side by side, by all of their runs: the lowest mean risk first."""


class ComparedClaims(msgspec.Struct, frozen=True, kw_only=True):
    """The answers of two models to one prompt."""

    prompt: str
    first: dict[str, int]
    """Claims by verdict."""
    second: dict[str, int]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Two runs side by side."""

    first: str
    """Target of the first run."""
    second: str
    risk: tuple[float, float]
    decision: tuple[str, str]
    difference: float
    """Risk of the second less that of the first."""
    comparable: bool
    """Both ran by the same configuration over the same documents."""
    prompts: tuple[ComparedClaims, ...]
    """Prompts that both were asked."""


def trends(runs: Sequence[Run], deployed: Sequence[Run], totals: Mapping[str, Sequence[ModelTotals]]) -> list[Trend]:
    """Return the trend of each configuration, the one that ran last first.

    Args:
        runs: in any order; undecided ones are left out.
        deployed: what they are told from, in any order.
        totals: of models, by hash of their configuration.
    """
    baselines: dict[str, list[Run]] = {}
    for run in sorted(deployed, key=_when):
        baselines.setdefault(run.config_hash, []).append(run)
    found: dict[str, list[TrendPoint]] = {}
    for run in sorted(runs, key=_when):
        if run.decision is not None and run.risk is not None:
            point = _point(run, run.decision, run.risk, baselines.get(run.config_hash, ()))
            found.setdefault(run.config_hash, []).append(point)
    ordered = sorted(found.items(), key=lambda item: -item[1][-1].begun)
    return [
        Trend(
            config_hash=name,
            points=tuple(points),
            slope=_slope(points),
            models=tuple(sorted(totals.get(name, ()), key=lambda model: (model.mean_risk, model.target))),
        )
        for name, points in ordered
    ]


def _point(run: Run, decision: str, risk: float, deployed: Sequence[Run]) -> TrendPoint:
    """Return a run as it stands to those that were deployed, the oldest of them first."""
    at = bisect_left(deployed, run.begun, key=lambda each: each.begun) - 1
    difference = None if at < 0 else round(risk - (deployed[at].risk or 0.0), 4)
    return TrendPoint(
        run_id=run.run_id,
        begun=run.begun,
        target=run.target,
        risk=risk,
        decision=decision,
        difference=difference,
        regression=difference is not None and (difference > REGRESSION or decision != "deploy"),
    )


def _when(run: Run) -> tuple[float, str]:
    return run.begun, run.run_id


def _slope(points: Sequence[TrendPoint]) -> float | None:
    if len(points) < 2:
        return None
    middle = (len(points) - 1) / 2
    mean = sum(point.risk for point in points) / len(points)
    over = sum((at - middle) * (point.risk - mean) for at, point in enumerate(points))
    return round(over / sum((at - middle) ** 2 for at in range(len(points))), 6)


def comparison(first: Report, second: Report) -> Comparison:
    """Hold two runs side by side, prompt by prompt where both were asked the same."""
    ours, theirs = _by_prompt(first), _by_prompt(second)
    return Comparison(
        first=first.target,
        second=second.target,
        risk=(first.score, second.score),
        decision=(first.decision, second.decision),
        difference=round(second.score - first.score, 4),
        comparable=(first.config_hash, first.snapshot) == (second.config_hash, second.snapshot),
        prompts=tuple(
            ComparedClaims(prompt=prompt, first=counts, second=theirs[prompt])
            for prompt, counts in ours.items()
            if prompt in theirs
        ),
    )


def _by_prompt(report: Report) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {prompt.text: {} for prompt in report.prompts}
    for detail in report.details:
        counts = found[detail.source_prompt]
        counts[detail.label.value] = counts.get(detail.label.value, 0) + 1
    return found
