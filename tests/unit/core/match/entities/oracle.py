"""A plain search over whole text: leftmost candidates, and the rule by which the search resumes."""

from __future__ import annotations

import re

from checkstream.core.match.entities import Entity
from checkstream.core.match.entities.entity import LEFT_CHARS


def find_all(entity: Entity, text: str) -> tuple[tuple[int, int], ...]:
    """Return all spans of `entity`; its validator sees no more of `text` than a stream would show it."""
    pattern = re.compile(entity.regex, re.ASCII)  # RE2: `\b` looks at ASCII words
    spans: list[tuple[int, int]] = []
    at = 0
    while (match := pattern.search(text, at)) is not None:
        start, end = match.span()
        left = max(0, start - LEFT_CHARS)
        found = [(left + a, left + b) for a, b in entity.refine(text[left : end + 1], start - left, end - left)]
        spans += found
        at = found[-1][1] if found else start + 1
    return tuple(spans)
