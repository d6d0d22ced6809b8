"""The two clocks of a store: one that never jumps, for leases and delays, and the wall's, for records and retention."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def wall_ms() -> int:
    """Return the time on the wall, milliseconds since 1970."""
    return int(datetime.now(UTC).timestamp() * 1000)


def boot_id() -> str:
    """Return what names this run of the machine; empty where the system doesn't tell."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, UnicodeError):
        return ""


class Clock(msgspec.Struct, frozen=True, kw_only=True):
    """Clocks as the processes of one machine share them."""

    elapsed: Callable[[], float] = time.monotonic
    """Seconds since about the machine's start. Nobody can set it, so a corrected wall clock neither takes a lease away
    nor keeps a job from being tried again."""
    wall_ms: Callable[[], int] = wall_ms
    boot: str = msgspec.field(default_factory=boot_id)
    """`elapsed` means nothing in another boot."""
