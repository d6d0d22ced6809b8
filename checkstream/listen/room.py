"""Room of one kind, and who has how much of it. Pure: it decides, and waits for nobody.

INVARIANT: what all parties have together is never more than there is, but for what is `add`ed; and as long as there is
room at all, a party that has nothing gets some.
"""

from __future__ import annotations

_TIMES_LEFT = 3
"""A party may have as much as this, times what it leaves: alone three quarters, two of them three sevenths each. So
however many take what they can, something is left for the next (dynamic thresholds; Choudhury and Hahne, 1998)."""


class Room:
    """So many places or bytes, shared by parties."""

    def __init__(self, whole: int) -> None:
        """Start empty."""
        self.whole = whole
        self.taken = 0
        self._of: dict[str, int] = {}

    def of(self, party: str) -> int:
        """Return how much a party has."""
        return self._of.get(party, 0)

    def fits(self, party: str, amount: int = 1, most: int | None = None) -> bool:
        """Tell whether a party may have so much more.

        Args:
            party: Whoever asks.
            amount: How much.
            most: What it may have in all; None: its share of what there is.
        """
        left = self.whole - self.taken - amount
        if left < 0:
            return False
        has = self._of.get(party, 0)
        if most is not None:
            return has + amount <= most
        return not has or has + amount <= _TIMES_LEFT * left

    def add(self, party: str, amount: int = 1) -> None:
        """Count what a party has taken."""
        if amount:
            self.taken += amount
            self._of[party] = self._of.get(party, 0) + amount

    def give(self, party: str, amount: int = 1) -> None:
        """Count what a party has given back."""
        if amount:
            self.taken -= amount
            has = self._of[party] - amount
            if has:
                self._of[party] = has
            else:
                del self._of[party]
