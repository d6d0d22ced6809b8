"""Files of metadata and of targets: read as what they should be, written whole or not at all."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import TypeVar

from tuf.api.exceptions import RepositoryError
from tuf.api.metadata import Metadata, Root, Snapshot, TargetFile, Targets, Timestamp
from tuf.api.serialization import DeserializationError

from checkstream.errors import BundleError

Kind = TypeVar("Kind", Root, Timestamp, Snapshot, Targets)


def hashed(target: TargetFile) -> str:
    """Return where the content of a target stands: its path, with the hash before the name."""
    folder, _, name = target.path.rpartition("/")
    return f"{folder}/{target.hashes['sha256']}.{name}"


def read_metadata(path: Path, type_: type[Kind]) -> Metadata[Kind] | None:
    """Return a file of metadata; None where there is none.

    Raises:
        BundleError: it can't be read, or is of another kind.
    """
    if not path.exists():
        return None
    try:
        metadata = Metadata.from_bytes(path.read_bytes())
    except (OSError, DeserializationError, RepositoryError) as error:
        raise BundleError(f"`{path}` can't be read: {error}; restore it from where it is published") from error
    if not isinstance(metadata.signed, type_):
        raise BundleError(f"`{path}` is of the kind `{metadata.signed.type}`; restore it from where it is published")
    return metadata


def write_whole(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all.

    Raises:
        BundleError: it can't be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise BundleError(f"can't write `{path}`: {(error.strerror or 'no reason given').lower()}") from error
