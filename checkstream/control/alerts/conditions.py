"""Which conditions hold: facts in, findings out. Pure.

Each condition asks for as many cases as it takes for chance not to make it hold: an alert that comes for nothing is
one that nobody reads the next time.

Source: the alerts of the requirements (high-risk spike, score drift, decision latency, chain, precision, budgets);
budgets over a month are watched by several windows at once, as in the Site Reliability Workbook, chapter 5, and as the
rules for Prometheus do (`deploy/prometheus`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from checkstream.control.alerts.facts import Budget, Chain, Facts, Node, Reviewed, Scores, Spent, Traffic

Kind = Literal[
    "high_risk_spike",
    "score_drift",
    "decision_latency",
    "chain_broken",
    "chain_silent",
    "node_refused",
    "node_stale",
    "node_astray",
    "precision_fall",
    "violations_burn_fast",
    "violations_burn_slow",
    "cutoff_burn_fast",
    "cutoff_burn_slow",
]
Severity = Literal["page", "ticket"]
"""page: somebody should look now; ticket: within the day."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """From where on a condition holds."""

    spike_ratio: float = 10.0
    """How many times its baseline the number of exchanges of high risk is in 5 minutes."""
    spike_least: int = 10
    """Fewer than these are no spike, whatever the baseline."""
    spike_windows: int = 12
    """5 minutes each, that a baseline is made of at least."""
    drift_sigma: float = 3.0
    """How many standard deviations of the hours before the mean score of an hour is away from their mean."""
    drift_hours: int = 24
    """Hours that such a standard deviation is made of at least."""
    drift_scores: int = 500
    """Scores that an hour counts from."""
    drift_floor: float = 0.005
    """The least that a deviation is taken for: beside hours that happen to be alike any other would be far off."""
    latency_least: int = 100
    """Decisions in 5 minutes that a 95th percentile is read from."""
    chain_silent_s: float = 180.0
    precision_points: float = 0.05
    """By how much a week's precision may be below that of the week before, 0..1."""
    precision_least: int = 50
    """Reviewed findings that each of the weeks needs."""
    violations_share: float = 0.001
    """Of the answers that were judged, so many may hold something that should not have left."""
    cutoff_share: float = 0.01
    """Of the stopped answers of which something had left, so many may have been stopped late."""
    burn_least: int = 10
    """Cases that a window of a budget counts from."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """A condition that holds now."""

    kind: Kind
    severity: Severity
    subject: str
    """What it holds for: a node, a route, a rule."""
    says: str
    """One sentence for people: what was seen, and beside it what was allowed. No text of callers or models."""

    @property
    def key(self) -> str:
        """Names it; two findings of one key are the same trouble."""
        return f"{self.kind}:{self.subject}"


def findings(facts: Facts, limits: Limits) -> tuple[Finding, ...]:
    """Return what holds now, sorted by key."""
    found = (
        *(finding for route in facts.traffic for finding in (spike(route, limits), latency(route, limits))),
        *(finding for budget in facts.budgets for finding in burns(budget, limits)),
        *(drift(scores, limits) for scores in facts.scores),
        *(finding for chain in facts.chains for finding in _of_chain(chain, limits)),
        *(finding for node in facts.nodes for finding in _of_node(node)),
        *(precision(reviewed, limits) for reviewed in facts.reviewed),
    )
    return tuple(sorted((finding for finding in found if finding is not None), key=lambda finding: finding.key))


def spike(route: Traffic, limits: Limits) -> Finding | None:
    """Tell whether high risks are many times as frequent as they were.

    The baseline is the mean of the windows before the last; one is added to their sum, so that a day without any does
    not make the first one infinitely many times as much.
    """
    *before, now = route.high_risk or (0,)
    if len(before) < limits.spike_windows or now < limits.spike_least:
        return None
    baseline = (sum(before) + 1) / len(before)
    if now <= limits.spike_ratio * baseline:
        return None
    says = (
        f"{now} exchanges of high risk in 5 minutes on {route.subject}, {now / baseline:.0f} times the baseline of "
        f"{baseline:.2g}; {limits.spike_ratio:g} times are the limit"
    )
    return Finding(kind="high_risk_spike", severity="page", subject=route.subject, says=says)


def latency(route: Traffic, limits: Limits) -> Finding | None:
    """Tell whether the 95th percentile of decisions is over the route's budget, as far as the bounds can tell."""
    reached = percentile(route.decision_ms, 0.95)
    total = sum(count for _, count in route.decision_ms)
    if total < limits.latency_least or reached is None or reached[0] < route.budget_ms:
        return None
    above, upto = reached
    took = f"more than {above:g} ms" if math.isinf(upto) else f"{above:g} to {upto:g} ms"
    says = f"95 % of decisions took {took} on {route.subject}; the budget is {route.budget_ms:g} ms"
    return Finding(kind="decision_latency", severity="ticket", subject=route.subject, says=says)


def percentile(histogram: Sequence[tuple[float, int]], share: float) -> tuple[float, float] | None:
    """Return the bounds between which a percentile lies: more than the first, at most the second. None: no cases.

    Args:
        histogram: Upper bounds, ascending, and how many cases each has for itself.
        share: 0..1, such as 0.95.
    """
    total = sum(count for _, count in histogram)
    seen, lower = 0, 0.0
    for bound, count in histogram:
        seen += count
        if total and seen >= share * total:
            return lower, bound
        lower = bound
    return None


def burns(budget: Budget, limits: Limits) -> Iterator[Finding]:
    """Tell whether a month's budget is being spent too fast.

    Fast is 2 % of it in an hour or 5 % in six, slow 10 % in three days. A short
    window within the long one ends the alert soon after the spending has ended.
    """
    share = limits.violations_share if budget.of == "violations" else limits.cutoff_share

    def over(spent: Spent, times: float) -> bool:
        return spent.all > 0 and spent.bad > times * share * spent.all

    def burnt(window: Spent, latest: Spent, times: float) -> bool:
        return window.all >= limits.burn_least and over(window, times) and over(latest, times)

    if burnt(budget.hour, budget.minutes5, 14.4):
        yield _burn(budget, "fast", budget.hour, "the last hour", share)
    elif burnt(budget.hours6, budget.minutes30, 6.0):
        yield _burn(budget, "fast", budget.hours6, "six hours", share)
    if burnt(budget.days3, budget.hours6, 1.0):
        yield _burn(budget, "slow", budget.days3, "three days", share)


def _burn(budget: Budget, pace: Literal["fast", "slow"], spent: Spent, time: str, share: float) -> Finding:
    fast = pace == "fast"
    if budget.of == "cutoff":
        kind: Kind = "cutoff_burn_fast" if fast else "cutoff_burn_slow"
        what = "answers that were judged again had let something out more than half a second before they were stopped"
    else:
        kind = "violations_burn_fast" if fast else "violations_burn_slow"
        what = (
            "answers that were judged again had let something out that rules keep"
            if budget.source == "rescored"
            else "answers are a high risk by what evidence says, and none was judged again"
        )
    gone = "in days" if fast else "before the month is over"
    says = (
        f"on {budget.subject} in {time} {spent.bad} of {spent.all} {what} ({spent.bad / spent.all:.2%}); "
        f"the objective is less than {share:.1%}, and at this rate the month's budget is gone {gone}"
    )
    return Finding(kind=kind, severity="page" if fast else "ticket", subject=budget.subject, says=says)


def drift(scores: Scores, limits: Limits) -> Finding | None:
    """Tell whether an hour's mean score is out of line with the hours before it, as a control chart does."""
    if not scores.hours or scores.hours[-1].count < limits.drift_scores:
        return None
    before = [hour.mean for hour in scores.hours[:-1] if hour.count >= limits.drift_scores]
    if len(before) < limits.drift_hours:
        return None
    mean = math.fsum(before) / len(before)
    variance = math.fsum((hour - mean) ** 2 for hour in before) / (len(before) - 1)
    deviation = max(math.sqrt(variance), limits.drift_floor)
    now = scores.hours[-1].mean
    away = abs(now - mean) / deviation
    if away <= limits.drift_sigma:
        return None
    says = (
        f"the mean score of {scores.subject} was {now:.3f} in the last hour and {mean:.3f} in the {len(before)} hours "
        f"before, {away:.1f} standard deviations away; {limits.drift_sigma:g} are the limit"
    )
    return Finding(kind="score_drift", severity="ticket", subject=scores.subject, says=says)


def _of_chain(chain: Chain, limits: Limits) -> Iterator[Finding]:
    if chain.broken:
        says = f"the audit chain {chain.subject} is broken: {chain.broken}"
        yield Finding(kind="chain_broken", severity="page", subject=chain.subject, says=says)
    elif chain.silent_s > limits.chain_silent_s:
        says = (
            f"nothing of the audit chain {chain.subject} has come for {_span(chain.silent_s)}, though its node serves"
        )
        yield Finding(kind="chain_silent", severity="page", subject=chain.subject, says=says)


def _of_node(node: Node) -> Iterator[Finding]:
    if node.refused:
        says = f"node {node.subject} is not let in: {node.refused}"
        yield Finding(kind="node_refused", severity="page", subject=node.subject, says=says)
    if node.unheard_s > node.stale_s:
        says = f"nothing was heard of node {node.subject} for {_span(node.unheard_s)}"
        yield Finding(kind="node_stale", severity="page", subject=node.subject, says=says)
    elif node.wanted and node.reported != node.wanted:
        has = node.reported or "no bundle"
        says = f"node {node.subject} has {has}, and is to have {node.wanted}"
        yield Finding(kind="node_astray", severity="ticket", subject=node.subject, says=says)


def precision(reviewed: Reviewed, limits: Limits) -> Finding | None:
    """Tell whether fewer findings of a rule were right than the week before."""
    if min(reviewed.all, reviewed.all_before) < limits.precision_least:
        return None
    before, now = reviewed.right_before / reviewed.all_before, reviewed.right / reviewed.all
    if before - now <= limits.precision_points:
        return None
    says = (
        f"of what {reviewed.subject} found, {now:.0%} was right this week ({reviewed.all} reviewed) and {before:.0%} "
        f"the week before ({reviewed.all_before}); {limits.precision_points:.0%} less is the limit"
    )
    return Finding(kind="precision_fall", severity="ticket", subject=reviewed.subject, says=says)


def _span(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.0f} hours"
