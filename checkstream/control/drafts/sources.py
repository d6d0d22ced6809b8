"""The folder of policies that drafts begin from. It is read, and never written to."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from checkstream.control.drafts.files import MOST_BYTES, Manifest, check_path, check_paths, digest_of
from checkstream.errors import ControlUnusable, FileUnreadable, RequestInvalid

_MOST_FILE = 64 << 20
"""Of a file that is no text: fingerprints, mostly."""
_MOST_ALL = 256 << 20
_MOST_SEEN = 20_000
"""Names that are looked at."""
_Signature = tuple[tuple[str, int, int, int], ...]


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a folder held at some time."""

    manifest: Manifest
    texts: Mapping[str, str]
    """Digest -> text, of the files that people can edit."""


def walked(folder: Path) -> list[str]:
    """Return the paths of the regular files of a folder and of all below it, hidden ones and links left out. Blocks.

    Raises:
        FileUnreadable: it can't be read, or holds more than any folder of policies.
    """
    found: list[str] = []
    seen = 0

    def fail(error: OSError) -> None:
        raise error

    try:
        for place, folders, files in os.walk(folder, onerror=fail):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            seen += len(folders) + len(files)
            if seen > _MOST_SEEN:
                raise FileUnreadable(
                    f"`{folder}` holds more than {_MOST_SEEN:,} files; name the folder of policies alone"
                )
            for name in files:
                path = Path(place, name)
                if not name.startswith(".") and stat.S_ISREG(path.lstat().st_mode):
                    found.append(path.relative_to(folder).as_posix())
    except OSError as error:
        reason = (error.strerror or "it can't be opened").lower()
        raise FileUnreadable(f"can't read the folder `{folder}`: {reason}") from error
    return sorted(found)


class Sources:
    """The folder, read anew when something in it has changed. Its methods block."""

    def __init__(self, folder: Path) -> None:
        """Read nothing yet."""
        self.folder = folder
        self._lock = threading.Lock()
        self._last: tuple[_Signature, Snapshot] | None = None

    def snapshot(self) -> Snapshot:
        """Return what the folder holds now.

        Raises:
            ControlUnusable: it can't be read, or holds what drafts can't.
        """
        with self._lock:
            try:
                paths = walked(self.folder)
                signature = tuple(self._signature(path) for path in paths)
                if self._last is None or self._last[0] != signature:
                    self._last = signature, self._read(paths)
            except (FileUnreadable, OSError) as error:
                raise ControlUnusable(f"the sources of policies can't be read: {error}") from error
            return self._last[1]

    def _signature(self, path: str) -> tuple[str, int, int, int]:
        found = (self.folder / path).lstat()
        return path, found.st_size, found.st_mtime_ns, found.st_ino

    def _read(self, paths: list[str]) -> Snapshot:
        manifest: Manifest = {}
        texts: dict[str, str] = {}
        total = 0
        try:
            check_paths(paths)
            for path in paths:
                check_path(path)
        except RequestInvalid as error:
            raise ControlUnusable(f"`policies.sources` can't be drafted on: {error}") from error
        for path in paths:
            content = self.content(path)
            total += len(content)
            if total > _MOST_ALL:
                raise ControlUnusable(
                    f"`policies.sources` holds more than {_MOST_ALL >> 20} MiB; name a smaller folder"
                )
            manifest[path] = digest_of(content)
            text = _text(content)
            if text is not None:
                texts[manifest[path]] = text
        return Snapshot(manifest=manifest, texts=texts)

    def content(self, path: str) -> bytes:
        """Return what stands in a file now.

        Raises:
            OSError: it can't be read.
            ControlUnusable: it is too large.
        """
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK  # a pipe that has come in its place need never end
        with os.fdopen(os.open(self.folder / path, flags), "rb") as file:
            content = file.read(_MOST_FILE + 1)
        if len(content) > _MOST_FILE:
            raise ControlUnusable(f"`{path}` of `policies.sources` has more than {_MOST_FILE >> 20} MiB")
        return content


def _text(content: bytes) -> str | None:
    """Return what people can edit; None: they can't."""
    if len(content) > MOST_BYTES or b"\0" in content:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return None
