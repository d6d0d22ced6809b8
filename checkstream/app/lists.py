"""The files that a policy's `allow` and `fingerprints` name, read from beside it."""

from __future__ import annotations

import mmap
import shutil
import tempfile
from pathlib import Path

from checkstream.config import read_file
from checkstream.core.match.fingerprints import MAGIC, MAX_BYTES
from checkstream.core.policy.spares_syntax import list_name, wanted_files


def lists_beside(name: str, file: Path, content: bytes) -> list[tuple[str, Path, bytes | memoryview]]:
    """Return the name for the compiler, the path and the content of each file; one that can't be read is left out.

    What is no regular file is not opened: a pipe that nobody writes to would never let go.

    Args:
        name: How the compiler's faults call the policy.
        file: Where it stands.
        content: What it says.
    """
    found: list[tuple[str, Path, bytes | memoryview]] = []
    for path in wanted_files(name, content):
        beside = file.parent / path
        try:
            if not beside.is_file():
                continue
            found.append((list_name(name, path), beside, given(beside)))
        except OSError:
            continue  # the compiler says so, at the place where it is named
    return found


def given(path: Path) -> bytes | memoryview:
    """Return what stands in a file; one of fingerprints, which may be large, as a copy of its own that is mapped.

    So it stays what it was, whatever becomes of the file: one that is cut short would end the process that maps it.

    Raises:
        OSError: it can't be read, or there is no room for the copy.
    """
    with path.open("rb") as file:
        if file.read(len(MAGIC)) != MAGIC or path.stat().st_size > MAX_BYTES:
            return read_file(path)
        with tempfile.TemporaryFile() as own:
            file.seek(0)
            shutil.copyfileobj(file, own)
            own.flush()
            return memoryview(mmap.mmap(own.fileno(), 0, access=mmap.ACCESS_READ))
