"""The files that a policy's `allow` names, read from beside it."""

from __future__ import annotations

from pathlib import Path

from checkstream.config import read_file
from checkstream.core.policy.spares_syntax import list_name, wanted_files


def lists_beside(name: str, file: Path, content: bytes) -> list[tuple[str, Path, bytes]]:
    """Return the name for the compiler, the path and the content of each file; one that can't be read is left out.

    What is no regular file is not opened: a pipe that nobody writes to would never let go.

    Args:
        name: How the compiler's faults call the policy.
        file: Where it stands.
        content: What it says.
    """
    found: list[tuple[str, Path, bytes]] = []
    for path in wanted_files(name, content):
        beside = file.parent / path
        try:
            if not beside.is_file():
                continue
            found.append((list_name(name, path), beside, read_file(beside)))
        except OSError:
            continue  # the compiler says so, at the place where it is named
    return found
