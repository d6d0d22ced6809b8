"""What came of judging a released answer afresh: which rules should have fired, and where. Never a text. Pure."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

import msgspec

RESCORE = "rescore"
"""What the scorer is called beside the profiles of evidence."""

_MOST_RULES = 20


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that has left and should not have."""

    rule_id: str
    action: str
    """What would have been done to it."""
    confidence: float
    start: int
    """Where it stands in the released text, code points."""
    end: int
    triggers: tuple[str, ...]
    model: str
    """`name@version` of the model that has scored; empty: none."""


def cutoff_ms(violations: Sequence[Violation], ages: Sequence[tuple[int, float]]) -> float | None:
    """Return how long before its end a stopped answer's first violation had come.

    Args:
        violations: Found in it.
        ages: Where pieces of it began, ascending, and how long before the end each had come, seconds.
    """
    if not violations or not ages:
        return None
    first = min(each.start for each in violations)
    place = max(bisect_right([start for start, _ in ages], first) - 1, 0)
    return round(ages[place][1] * 1000, 3)


class Rescored(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one answer."""

    caller: str | None = None
    """Whose answer it is, as configured; null: callers have no names."""

    judged: bool
    """False: its prompt would be refused by now, or an exception can't be decided any more, so that nothing can be said
    of the answer."""
    violations: tuple[Violation, ...] = ()
    cutoff_ms: float | None = None
    """Of an answer that was stopped: how long before that the first of the violations had come; null: none had, or it
    was not stopped. Where text before it was edited it is about so long."""
    policies: tuple[str, ...] = ()
    """`name@version` of those that judged."""
    left_out: tuple[str, ...] = ()
    """Ids of rules that ask for what is not known any more: what the caller had said, or earlier requests."""

    @property
    def result(self) -> Literal["clean", "violation", "unjudged"]:
        """As metrics count it."""
        return "unjudged" if not self.judged else "violation" if self.violations else "clean"

    @property
    def rules(self) -> tuple[str, ...]:
        """Ids of the rules that fired, the first few of very many."""
        return tuple(sorted({each.rule_id for each in self.violations})[:_MOST_RULES])
