"""What came of judging a released answer afresh: which rules should have fired, and where. Never a text. Pure."""

from __future__ import annotations

import msgspec

RESCORE = "rescore"
"""What the scorer is called beside the profiles of evidence."""


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


class Rescored(msgspec.Struct, frozen=True, kw_only=True):
    """The report of one answer."""

    judged: bool
    """False: its prompt would be refused by now, so that nothing can be said of the answer."""
    violations: tuple[Violation, ...] = ()
    policies: tuple[str, ...] = ()
    """`name@version` of those that judged."""

    @property
    def result(self) -> str:
        """As metrics count it."""
        return "unjudged" if not self.judged else "violation" if self.violations else "clean"
