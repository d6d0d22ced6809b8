"""Which models there are: `manifest.json` of a models folder -> verified files -> typed descriptions.

A model file is input like any other. INVARIANT: no byte of a file is parsed before its SHA-256 equals the
manifest's, the bytes that were hashed are the bytes that are used, and nothing is ever unpickled. The
manifest itself is trusted as the installation is; what it names can't lead outside its folder.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

import msgspec

from checkstream.config import RemoteSettings
from checkstream.errors import ModelError
from checkstream.scoring.manifest import Manifest, ModelEntry, ModelFile, ModelLimits

MAX_MANIFEST_BYTES = 1 << 20


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model whose files have been verified and read."""

    entry: ModelEntry
    contents: Mapping[str, bytes]
    """Role of a file -> its bytes, exactly those whose hash was checked."""
    remote: RemoteSettings | None = None
    """Of the kind `remote`: who answers for it."""
    shared: Path | None = None
    """Folder of the processes that serve as one, where its graphs are kept for all of them; None: this one is alone."""

    @property
    def name(self) -> str:
        """What policies call it."""
        return self.entry.name

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of its output, in order."""
        return self.entry.labels

    @property
    def limits(self) -> ModelLimits:
        """What it can take at once."""
        return self.entry.limits


def read_manifest(folder: Path) -> Manifest:
    """Read `manifest.json` of a models folder.

    Raises:
        ModelError: missing, too large, not JSON of the manifest's form, or it names what it may not.
    """
    data = read_regular_file(folder / "manifest.json", "manifest.json", MAX_MANIFEST_BYTES)
    try:
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"the manifest `manifest.json` is not valid: {error}; correct it or reinstall") from error


def load_model(folder: Path, entry: ModelEntry) -> Model:
    """Verify and read every file of one model.

    Raises:
        ModelError: a file is missing, leaves the folder, has another size or another hash.
    """
    return Model(entry=entry, contents={file.role: _verified(folder, entry.name, file) for file in entry.files})


def load_models(folder: Path, names: tuple[str, ...] | None = None) -> tuple[Model, ...]:
    """Verify and read models of a folder: those named, or all.

    Raises:
        ModelError: as `read_manifest` and `load_model`, or a name is not in the manifest.
    """
    entries = {entry.name: entry for entry in read_manifest(folder).models}
    wanted = tuple(entries) if names is None else names
    for name in wanted:
        if name not in entries:
            known = ", ".join(f"`{known}`" for known in entries) or "none"
            raise ModelError(f"there is no model `{name}`; the manifest has {known}")
    return tuple(load_model(folder, entries[name]) for name in wanted)


def _verified(folder: Path, model: str, file: ModelFile) -> bytes:
    parts = PurePosixPath(file.path)
    if parts.is_absolute() or ".." in parts.parts or "\\" in file.path or "\x00" in file.path or ":" in file.path:
        raise ModelError(f"model `{model}` names the file `{file.path}`; name one inside the models folder")
    root = folder.resolve()
    try:
        path = (root / parts).resolve()
    except (OSError, RuntimeError) as error:
        raise ModelError(f"file `{file.path}` of model `{model}` can't be followed; reinstall it") from error
    if not path.is_relative_to(root):
        raise ModelError(f"file `{file.path}` of model `{model}` leads outside the models folder; put it inside")
    data = read_regular_file(path, file.path, file.bytes)
    if len(data) != file.bytes:
        raise ModelError(
            f"file `{file.path}` has {len(data)} bytes, not {file.bytes} as the manifest says; reinstall it"
        )
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise ModelError(f"file `{file.path}` is not the one that the manifest pins (its sha256 differs); reinstall it")
    return data


def read_regular_file(path: Path, shown: str, limit: int) -> bytes:
    """Read a regular file of at most `limit` bytes; never waits on a pipe or device."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise ModelError(f"file `{shown}` can't be read: {error.strerror or 'no such file'}; reinstall it") from error
    about = os.fstat(descriptor)
    if not stat.S_ISREG(about.st_mode):
        os.close(descriptor)
        raise ModelError(f"`{shown}` is not a regular file; put the file itself there")
    with os.fdopen(descriptor, "rb") as file:
        if about.st_size > limit:
            raise ModelError(f"file `{shown}` has {about.st_size} bytes, more than the {limit} allowed; reinstall it")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise ModelError(f"file `{shown}` has more than the {limit} bytes allowed; reinstall it")
    return data
