"""Which models there are: `manifest.json` of a models folder -> verified files -> typed descriptions.

A model file is input like any other. INVARIANT: no byte of a file is parsed before its SHA-256 equals the
manifest's, the bytes that were hashed are the bytes that are used, and nothing is ever unpickled. The
manifest itself is trusted as the installation is; what it names can't lead outside its folder.
"""

from __future__ import annotations

import enum
import hashlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

import msgspec

from checkstream.errors import ModelError

MAX_MANIFEST_BYTES = 1 << 20
MAX_FILE_BYTES = 1 << 29
"""512 MiB: no model that answers within a deadline on a CPU comes near it."""

_Name = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]{0,63}$")]


class ModelKind(enum.StrEnum):
    """How a model is run."""

    LEXICON = "lexicon"
    """A weighted lexicon; file role `lexicon`."""


class Threshold(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Where a label's score counts as a hit if a policy names no threshold of its own."""

    label: _Name
    score: Annotated[float, msgspec.Meta(gt=0, lt=1)]


class ModelFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One file of a model, as the manifest pins it."""

    role: _Name
    """What the file is to its kind of model (`lexicon`)."""
    path: Annotated[str, msgspec.Meta(min_length=1, max_length=255)]
    """Relative to the models folder, with `/`."""
    sha256: Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, msgspec.Meta(ge=1, le=MAX_FILE_BYTES)]


class ModelLimits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a model can take at once."""

    window_tokens: Annotated[int, msgspec.Meta(ge=8, le=65_536)]
    """Size of a window in the model's own tokens."""
    overlap_tokens: Annotated[int, msgspec.Meta(ge=0, le=4_096)] = 0
    """What two neighbouring windows of a long text share."""

    def __post_init__(self) -> None:
        """Refuse windows that don't advance."""
        if self.overlap_tokens * 2 > self.window_tokens:
            raise ValueError("`overlap_tokens` is more than half of `window_tokens`; lower it")


class ModelEntry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model, as the manifest describes it."""

    name: _Name
    """What policies and signals call it (`lexicon` in `lexicon.injection`)."""
    kind: ModelKind
    version: Annotated[str, msgspec.Meta(pattern=r"^\d+\.\d+\.\d+$")]
    licence: str
    card: str
    """The file that says what the model is, saw and can't do; relative to the models folder."""
    labels: Annotated[tuple[_Name, ...], msgspec.Meta(min_length=1, max_length=256)]
    """Names of the columns of its output, in order."""
    thresholds: tuple[Threshold, ...] = ()
    limits: ModelLimits
    calibrated: bool = False
    """Its scores are probabilities, and false-positive rates are known: `fpr` thresholds are allowed."""
    files: Annotated[tuple[ModelFile, ...], msgspec.Meta(min_length=1, max_length=32)]

    def __post_init__(self) -> None:
        """Refuse doubled labels and roles, and thresholds of unknown labels."""
        if len(set(self.labels)) != len(self.labels):
            raise ValueError(f"model `{self.name}` names a label twice; labels are unique")
        if len({file.role for file in self.files}) != len(self.files):
            raise ValueError(f"model `{self.name}` gives two files one role; roles are unique")
        for threshold in self.thresholds:
            if threshold.label not in self.labels:
                raise ValueError(f"model `{self.name}` has a threshold for `{threshold.label}`, which is not its label")


class Manifest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Every model of a folder."""

    version: Annotated[int, msgspec.Meta(ge=1, le=1)]
    """Of the manifest's form."""
    models: Annotated[tuple[ModelEntry, ...], msgspec.Meta(max_length=256)]

    def __post_init__(self) -> None:
        """Refuse doubled names."""
        if len({model.name for model in self.models}) != len(self.models):
            raise ValueError("two models share a name; names are unique")


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model whose files have been verified and read."""

    entry: ModelEntry
    contents: Mapping[str, bytes]
    """Role of a file -> its bytes, exactly those whose hash was checked."""

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
    data = _read_file(folder / "manifest.json", "manifest.json", MAX_MANIFEST_BYTES)
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
    data = _read_file(path, file.path, file.bytes)
    if len(data) != file.bytes:
        raise ModelError(
            f"file `{file.path}` has {len(data)} bytes, not {file.bytes} as the manifest says; reinstall it"
        )
    if hashlib.sha256(data).hexdigest() != file.sha256:
        raise ModelError(f"file `{file.path}` is not the one that the manifest pins (its sha256 differs); reinstall it")
    return data


def _read_file(path: Path, shown: str, limit: int) -> bytes:
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
