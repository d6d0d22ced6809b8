"""Loading beside running streams: what one process shares among its threads is tuned so that no stream waits.

Threads take turns, and a garbage collection stops them all. Both are settings of the interpreter, so they are made
here, where the process is built, and nowhere below. So is how the system's allocator keeps what they share.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_TURN_S: Final = 0.0005
"""Longest that another thread keeps the event loop waiting for the interpreter, but for single calls into C."""

_DUE: Final = 10
"""A full collection is due after so many of young objects: the interpreter's own measure."""
_OVERDUE: Final = 1000
"""After so many it comes though streams run, since what fails on its way may leave cycles: minutes of load."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Names of glibc's (`malloc.h`)."""
_LARGE_BYTES: Final = 32 << 10
_LARGEST_BYTES: Final = 4 << 20
"""What glibc itself comes to, where pieces as large are given back."""


def settle() -> None:
    """Leave what has been built out of all later collections: walking it would stop every stream for tens of ms.

    What is dropped of it is still freed by its reference counts; only cycles in it would stay, and neither programs nor
    exchanges have any. So full collections have little to find, and wait for a moment without streams (`collect_due`).
    """
    gc.freeze()
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _OVERDUE)


def give_back() -> None:
    """Return to the system what loading took and freed, which glibc keeps; call it before streams run."""
    library = ctypes.CDLL(None)
    if hasattr(library, "malloc_trim"):
        library.malloc_trim(0)


@contextmanager
def large_apart() -> Iterator[None]:
    """Have all that is large come from the system by itself meanwhile: what nobody touches of it then takes no memory.

    Engines reserve for the worst that a text may be. From the memory that others have given back they would get pages
    that are in use already. Afterwards only the largest comes so, since the system has to clear each page first.
    """
    with_glibc = getattr(ctypes.CDLL(None), "mallopt", None)
    if with_glibc is not None:
        with_glibc(_MMAP_THRESHOLD, _LARGE_BYTES)
    try:
        yield
    finally:
        if with_glibc is not None:
            with_glibc(_MMAP_THRESHOLD, _LARGEST_BYTES)
            with_glibc(_TRIM_THRESHOLD, 2 * _LARGEST_BYTES)


def collect_due() -> None:
    """Collect fully if that is due; call it while no stream runs."""
    if gc.get_count()[2] >= _DUE:
        gc.collect()


@contextmanager
def short_turns() -> Iterator[None]:
    """Keep turns short meanwhile: another thread works beside the streams."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(min(before, _TURN_S))
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def beside_streams() -> Iterator[None]:
    """Load something large in another thread: short turns, and no collection until it is there."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        with short_turns():
            yield
            settle()
    finally:
        if collecting:
            gc.enable()
