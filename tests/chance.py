"""How often a law is tried: with some examples in each run of the tests, with all by night."""

from __future__ import annotations

from hypothesis import settings

BY_DAY = 40
"""Examples of a law that says no number."""


def examples(count: int) -> int:
    """Return with how many examples a law is tried that deserves so many: by day with two of five."""
    return count if settings().max_examples > BY_DAY else max(count * 2 // 5, 5)
