"""Moments as RFC 3339 writes them: what says when, and nothing besides."""

from __future__ import annotations

from datetime import datetime
from typing import Final

MOMENT = "created_at"
"""The field in which servers say when an event was made; it is another in each."""
LONGEST_MOMENT = 40
"""Characters."""
_MOST_FIGURES = 9
"""Of a second's fraction, as Go prints it: more could be a number that says something else."""
_YEARS: Final = range(2000, 2100)
"""In which answers are made: the date of another may be a card's number."""


def is_moment(value: object) -> bool:
    """Tell whether a value is a moment, date and time and zone."""
    if not isinstance(value, str) or not value.isascii() or len(value) > LONGEST_MOMENT or value[10:11] != "T":
        return False
    head, dot, rest = value.partition(".")
    figures = rest.rstrip("Z").partition("+")[0].partition("-")[0]
    try:
        moment = datetime.fromisoformat(head + rest[len(figures) :] if dot else head)
    except ValueError:
        return False
    if moment.year not in _YEARS:
        return False
    return not dot or (figures.isdecimal() and len(figures) <= _MOST_FIGURES)
