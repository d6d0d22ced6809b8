"""A progress bar on a terminal, for work that takes long; nothing anywhere else."""

from __future__ import annotations

import sys
import time
from collections.abc import Generator, Sequence
from typing import TypeVar

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
                filled = _WIDTH * done // len(items)
                sys.stderr.write(f"\r[{'#' * filled}{'.' * (_WIDTH - filled)}] {done}/{len(items)} {what} ")
                sys.stderr.flush()
                shown = True
            yield item
    finally:  # also when it is interrupted
        if shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
