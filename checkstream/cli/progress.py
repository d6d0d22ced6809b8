"""How far work is that takes long, on a terminal; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from typing import Self, TypeVar

_T = TypeVar("_T")
_AFTER_S = 0.5
_WIDTH = 30


def progress(items: Sequence[_T], what: str) -> Generator[_T, None, None]:
    """Yield `items`; on a terminal show how far they are, once that has taken half a second."""
    begun = time.monotonic()
    shown = False
    try:
        for done, item in enumerate(items):
            if sys.stderr.isatty() and time.monotonic() - begun > _AFTER_S:
                sys.stderr.write(f"\r{_bar(done / len(items))} {done}/{len(items)} {what} ")
                sys.stderr.flush()
                shown = True
            yield item
    finally:  # also when it is interrupted
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()


def _bar(share: float) -> str:
    filled = int(_WIDTH * share)
    return f"[{'#' * filled}{'.' * (_WIDTH - filled)}]"


class Counter:
    """A line on a terminal that says what is being done; cleaned when it is over. Use as a context manager."""

    def __enter__(self) -> Self:
        """Show nothing yet."""
        self._shown = False
        return self

    def show(self, words: str, share: float | None = None) -> None:
        """Show how far the work is, in place of what was shown before.

        Args:
            words: What is being done.
            share: Of the work that is done, 0..1; None: nobody knows how much there is.
        """
        if sys.stderr.isatty():
            bar = "" if share is None else f"{_bar(share)} "
            sys.stderr.write(f"\r\x1b[K{bar}{words}")
            sys.stderr.flush()
            self._shown = True

    def __exit__(self, *_: object) -> None:
        """Clean the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
