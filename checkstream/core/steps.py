"""Work that can be interrupted: a generator that yields wherever a turn may end. Nothing depends on where it does."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TypeVar

Steps = Iterator[None]
"""Work that can be interrupted between its steps."""
Result = TypeVar("Result")


def done(steps: Generator[None, None, Result]) -> Result:
    """Do all of some steps at once, and return what they come to."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: Result = end.value
            return result
