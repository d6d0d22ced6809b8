"""What is known of a fleet when its alerts are looked at. Values only; whoever has a store of them makes these."""

from __future__ import annotations

from typing import Literal

import msgspec


class Traffic(msgspec.Struct, frozen=True, kw_only=True):
    """The exchanges of one fleet."""

    subject: str
    """Names the fleet."""
    high_risk: tuple[int, ...]
    """Exchanges that were refused or stopped, for each 5 minutes that lie before now, oldest first."""
    decision_ms: tuple[tuple[float, int], ...]
    """Decisions of the last 5 minutes: upper bounds in milliseconds, ascending, the last infinite, each with how
    many took as long as that and longer than the bound before."""
    budget_ms: float
    """How long 95 % of decisions may take."""


class Spent(msgspec.Struct, frozen=True):
    """What a budget of errors has been charged with for some time."""

    bad: int
    """Cases that were not to be."""
    all: int


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What a fleet may miss of an objective, and what it has missed lately. Each time ends now."""

    subject: str
    """Names the fleet."""
    of: Literal["violations", "cutoff"]
    """violations: answers that have left with something that should not have; cutoff: stopped answers whose first
    violation had left half a second before the stop."""
    source: Literal["rescored", "grounding"]
    """rescored: a sample that was judged afresh; grounding: answers that were held against evidence."""
    minutes5: Spent
    minutes30: Spent
    hour: Spent
    hours6: Spent
    days3: Spent


class ScoreHour(msgspec.Struct, frozen=True):
    """The scores that one classifier gave in one hour."""

    count: int
    mean: float
    """0..1; of no meaning where `count` is 0."""


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """What one classifier says, hour by hour."""

    subject: str
    """Names it, such as `shop/injection.injection/ingress`."""
    hours: tuple[ScoreHour, ...]
    """Whole hours, oldest first; the last is the one that is held against those before."""


class Chain(msgspec.Struct, frozen=True, kw_only=True):
    """One audit chain, as it arrives."""

    subject: str
    """Node and chain, such as `eu-1/20261129081500ab12cd`."""
    broken: str = ""
    """Why it is no chain any more; empty: it is."""
    silent_s: float
    """Since its last record or signed head, while its node said that it serves."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """One node, as it was last heard of."""

    subject: str
    unheard_s: float
    """Since its last attestation."""
    stale_s: float
    """How long that may be."""
    wanted: str
    """The bundle that it is to have; empty: any."""
    reported: str
    """The bundle that it has; empty: none."""
    refused: str = ""
    """Why it is not let in; empty: it is."""


class Reviewed(msgspec.Struct, frozen=True, kw_only=True):
    """What people said in review of what one rule or model had found, in two weeks that follow each other."""

    subject: str
    right_before: int
    all_before: int
    right: int
    all: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that the conditions look at."""

    traffic: tuple[Traffic, ...] = ()
    budgets: tuple[Budget, ...] = ()
    scores: tuple[Scores, ...] = ()
    chains: tuple[Chain, ...] = ()
    nodes: tuple[Node, ...] = ()
    reviewed: tuple[Reviewed, ...] = ()
