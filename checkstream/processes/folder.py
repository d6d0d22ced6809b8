"""A folder on disk for the processes of one parent, which nobody else reads: what is in it they map into memory."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import Final

_PREFIX: Final = "checkstream-graphs-"
_LOCK: Final = "lock"


class Folder:
    """It is there as long as the process that has made it runs."""

    def __init__(self) -> None:
        """Make it, readable for this user alone, and remove those of processes that were killed.

        Raises:
            OSError: it can't be made.
        """
        root = Path(tempfile.gettempdir())
        for stale in root.glob(f"{_PREFIX}*"):
            _remove_if_left(stale)
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)

    def close(self) -> None:
        """Remove it; who has mapped something of it keeps that."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def _remove_if_left(folder: Path) -> None:
    """Remove a folder of ours whose process has ended."""
    with contextlib.suppress(OSError):
        if folder.stat().st_uid != os.getuid() or folder.is_symlink():
            return
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
