"""Overlapping windows over a sequence."""

from __future__ import annotations

from checkstream.core.terms import Span


def windows(count: int, size: int, overlap: int) -> list[Span]:
    """Return windows over `count` items: each `size` long, the last perhaps shorter, none inside the one before.

    Args:
        count: Items there are.
        size: Items of one window, at least 1.
        overlap: Items that a window shares with the one before, from 0 to less than `size`.

    Raises:
        ValueError: The sizes make no windows.
    """
    if size < 1 or not 0 <= overlap < size:
        raise ValueError(
            f"windows of `{size}` items can't share `{overlap}`: an overlap is at least 0 and below the size"
        )
    found: list[Span] = []
    start = 0
    while start < count and (not found or found[-1].end < count):
        found.append(Span(start, min(start + size, count)))
        start += size - overlap
    return found
