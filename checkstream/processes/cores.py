"""How many cores this process may use: what `workers: auto` means."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

MOST_WORKERS = 64
"""Processes of one parent: their sockets are handed over in one message."""
_CGROUPS = Path("/sys/fs/cgroup")


def workers_of(wanted: int | Literal["auto"]) -> int:
    """Return how many processes are to serve."""
    return wanted if wanted != "auto" else min(cores(), MOST_WORKERS)


def cores() -> int:
    """Return the cores that this process may run on, as far as its control groups let it use them; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return within(allowed, _quotas())


def within(allowed: int, quotas: Iterable[str]) -> int:
    """Return how many whole cores there are within what control groups allow.

    A part of a core is none: a process more than there are cores to run on is one that waits.

    Args:
        allowed: Cores that the process may run on.
        quotas: Contents of `cpu.max`: microseconds of CPU time in a period, or `max`, and the period.
    """
    for quota in quotas:
        parts = quota.split()
        if len(parts) == 2 and parts[0].isdecimal() and parts[1].isdecimal() and int(parts[1]):
            allowed = min(allowed, int(parts[0]) // int(parts[1]))
    return max(allowed, 1)


def _quotas() -> list[str]:
    """Return what the control groups of this process say, from its own up to the root."""
    found: list[str] = []
    with contextlib.suppress(OSError, StopIteration):
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
        own = next(line.split("::", 1)[1] for line in lines if line.startswith("0::")).strip("/")
        folder = _CGROUPS / own
        for each in (folder, *folder.parents):
            with contextlib.suppress(OSError):
                found.append((each / "cpu.max").read_text("ascii"))
            if each == _CGROUPS:
                break
    found += _quotas_v1()
    return found


def _quotas_v1() -> list[str]:
    """Return the same of the older kind of control groups, in its newer form."""
    folder = _CGROUPS / "cpu"
    try:
        quota = (folder / "cpu.cfs_quota_us").read_text("ascii").strip()
        period = (folder / "cpu.cfs_period_us").read_text("ascii").strip()
    except OSError:
        return []
    return [f"{quota} {period}"]
