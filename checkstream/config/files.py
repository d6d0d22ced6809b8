"""Files that settings and commands name, of the package or of their own."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import TypeAlias

import checkstream
from checkstream.core.policy.nodes import MAX_FILE_BYTES

Signature: TypeAlias = tuple[tuple[int, int, int] | None, ...]
"""What changes when one of some files does."""
BUILTIN = "builtin:"
"""Begins the names of policies that are shipped."""
BUNDLE = "bundle:"
"""Begins the names of programs of a signed bundle."""


def bundled(kind: str) -> Path:
    """Return the folder of what is shipped (`policies`, `models`): of the wheel, else of the source checkout."""
    package = Path(checkstream.__file__).resolve().parent
    shipped = package / "_data" / kind
    return shipped if shipped.is_dir() else package.parent / kind


def policy_file(reference: str) -> Path:
    """Return the file that an entry of a route's `policies` means."""
    if reference.startswith(BUILTIN):
        return bundled("policies") / reference.removeprefix(BUILTIN) / "policy.yaml"
    path = Path(reference)
    try:
        return path / "policy.yaml" if path.is_dir() else path
    except OSError:  # a name that no file can have: reading it will say so
        return path


def read_file(path: Path) -> bytes:
    """Return what stands in a file of settings, policies or cases; of a longer one enough to see that it is too long.

    Raises:
        OSError: it is not there, or can't be read.
    """
    with path.open("rb") as file:  # a device or a pipe need never end
        return file.read(MAX_FILE_BYTES + 1)


def signature(files: Iterable[Path]) -> Signature:
    """Return what changes when one of the files does. Blocks."""
    found: list[tuple[int, int, int] | None] = []
    for file in files:
        try:
            stat = file.stat()
        except OSError:
            found.append(None)
        else:
            found.append((stat.st_mtime_ns, stat.st_size, stat.st_ino))
    return tuple(found)


def advice_for(reference: str, otherwise: str) -> str:
    """Return what to write in place of a policy that is not there.

    Args:
        reference: What was written.
        otherwise: The advice where no pack of the package was meant.
    """
    if not reference.startswith(BUILTIN):
        is_folder = policy_file(reference) != Path(reference)
        return "the folder has no `policy.yaml`; name the file" if is_folder else otherwise
    names = sorted(file.parent.name for file in bundled("policies").glob("*/policy.yaml"))
    close = difflib.get_close_matches(reference.removeprefix(BUILTIN)[:100], names, n=1)
    return f"did you mean `{BUILTIN}{close[0]}`?" if close else f"shipped are {', '.join(names)}"
