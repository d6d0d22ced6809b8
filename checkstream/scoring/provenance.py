"""Where models come from: those that are shipped, and an operator's own, as its `models.yaml` and its lock pin them.

`models.yaml` says what is wanted, `models.lock.json` beside it what that was when it was last fetched, and
`models.files/` holds the files, each named by its hash. INVARIANT: of an operator's model nothing is loaded but the
bytes that the lock pins, and the lock is for what `models.yaml` says now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import msgspec

from checkstream.config import OwnModel, RemoteSettings, bundled, read_own_models
from checkstream.errors import ModelError
from checkstream.scoring.catalog import MAX_MANIFEST_BYTES, Model, load_model, read_manifest, read_regular_file
from checkstream.scoring.manifest import (
    Activation,
    EntityKind,
    ModelEntry,
    ModelFile,
    ModelKind,
    ModelLimits,
    Rate,
    Threshold,
)

NO_LABEL = "-"
"""Stands for a column whose scores nobody asked for."""
_BEGINNING = frozenset({"B", "S", "U"})
_INSIDE = frozenset({"I", "E", "L"})
"""Prefixes of tags (BIO, BIOES, BILOU) that begin an entity, and that go on with one."""


class PinnedModel(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one model was when it was fetched."""

    name: str
    origin: str
    """As `ModelSource.origin` says it."""
    names: dict[str, str]
    """Role -> name at the origin, as `OwnModel.files` says it."""
    columns: Annotated[tuple[Annotated[str, msgspec.Meta(max_length=64)], ...], msgspec.Meta(max_length=1024)]
    """Names of the columns of its output, in order, as its makers call them."""
    files: tuple[ModelFile, ...]
    """Relative to the folder of files."""


class Lock(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that was fetched for one `models.yaml`."""

    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1
    models: tuple[PinnedModel, ...] = ()


def lock_file(own: Path) -> Path:
    """Return where the lock of a `models.yaml` stands."""
    return own.parent / f"{own.stem}.lock.json"


def files_folder(own: Path) -> Path:
    """Return where the files of the models of a `models.yaml` are."""
    return own.parent / f"{own.stem}.files"


def read_lock(own: Path) -> Lock:
    """Return the lock of a `models.yaml`; an empty one when nothing was fetched yet.

    Raises:
        ModelError: it can't be read, or is none.
    """
    path = lock_file(own)
    if not path.exists():
        return Lock()
    data = read_regular_file(path, path.name, MAX_MANIFEST_BYTES)
    try:
        return msgspec.json.decode(data, type=Lock)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"the lock `{path.name}` is not valid: {error}; remove it and pull anew") from error


def installed_models(own: str | Path | None = None, names: Sequence[str] | None = None) -> tuple[Model, ...]:
    """Verify and read the models of an installation: those shipped, and those of an operator's `models.yaml`.

    An operator's model takes the place of a shipped one of the same name.

    Args:
        own: the `models.yaml`, if there is one.
        names: which ones; None: all.

    Raises:
        ConfigError: `models.yaml` holds faults.
        ModelError: a model is not pinned, or its files aren't those that were pinned; or there is none of a name.
    """
    entries = described_models(own)
    wanted = tuple(entries) if names is None else tuple(names)
    for name in wanted:
        if name not in entries:
            raise ModelError(f"there is no model `{name}`; known: {', '.join(entries) or 'none'}")
    return tuple(load_described(entries[name]) for name in wanted)


class Described(msgspec.Struct, frozen=True, kw_only=True):
    """A model that nothing has been loaded of yet."""

    entry: ModelEntry
    folder: Path
    """Where its files are."""
    origin: str
    """`shipped`, or where its operator had it from."""
    remote: RemoteSettings | None = None


def described_models(
    own: str | Path | None = None, *, unpinned: Callable[[OwnModel, ModelError], None] | None = None
) -> dict[str, Described]:
    """Return what an installation says of its models, by name, without opening one.

    Args:
        own: the `models.yaml`, if there is one.
        unpinned: hears of each model of it that is not pinned as it stands there, and is left out; None: that raises.

    Raises:
        ConfigError: `models.yaml` holds faults.
        ModelError: the manifest is not valid, or a model of `models.yaml` is not pinned as it stands there.
    """
    folder = bundled("models")
    shipped = {entry.name: entry for entry in read_manifest(folder).models}
    found = {name: Described(entry=entry, folder=folder, origin="shipped") for name, entry in shipped.items()}
    if own is None:
        return found
    file = Path(own)
    pins = {pin.name: pin for pin in read_lock(file).models}
    for model in read_own_models(file):
        if model.source is None:
            origin = "" if model.remote is None else f"remote:{model.remote.url}"
            entry = remote_entry(model, shipped.get(model.name))
        else:
            origin = model.source.origin
            try:
                pin = _pin_of(model, pins.get(model.name), file)
            except ModelError as error:
                if unpinned is None:
                    raise
                found.pop(model.name, None)
                unpinned(model, error)
                continue
            entry = own_entry(model, pin)
        found[model.name] = Described(entry=entry, folder=files_folder(file), origin=origin, remote=model.remote)
    return found


def load_described(model: Described) -> Model:
    """Verify and read every file of a model.

    Raises:
        ModelError: a file is missing, leaves the folder, has another size or another hash.
    """
    loaded = load_model(model.folder, model.entry)
    return loaded if model.remote is None else msgspec.structs.replace(loaded, remote=model.remote)


def _pin_of(model: OwnModel, pin: PinnedModel | None, file: Path) -> PinnedModel:
    advice = f"run `checkstream models pull --models {file.name}`"
    if pin is None:
        raise ModelError(f"model `{model.name}` is not pinned; {advice}")
    if not is_pin_of(model, pin):
        raise ModelError(f"model `{model.name}` has another source than the one that is pinned; {advice}")
    return pin


def is_pin_of(model: OwnModel, pin: PinnedModel) -> bool:
    """Tell whether a pin is for what `models.yaml` says."""
    return model.source is not None and (pin.origin, pin.names) == (model.source.origin, model.files)


def own_entry(model: OwnModel, pin: PinnedModel) -> ModelEntry:
    """Return an operator's model as the catalog describes models.

    Raises:
        ModelError: what `models.yaml` says of it doesn't fit what was fetched.
    """
    tokens = model.kind == "tokens"
    columns = _tags(model, pin.columns) if tokens else _columns(model, pin.columns)
    return _entry(
        model,
        columns=columns,
        labels=() if tokens else model.names,
        entities=_entities(model, model.names) if tokens else (),
        activation=Activation(model.activation or "softmax"),
        files=pin.files,
    )


def remote_entry(model: OwnModel, shipped: ModelEntry | None) -> ModelEntry:
    """Return a model that a service answers for; what isn't said of it is as with the shipped one of its name.

    Raises:
        ModelError: its labels are neither given nor those of a shipped model.
    """
    if model.names:
        upper = tuple(name for name in model.names if name.isupper())
        labels = tuple(name for name in model.names if not name.isupper())
        return _entry(model, labels=labels, entities=_entities(model, upper))
    if shipped is None:
        raise ModelError(f"model `{model.name}` has no `labels`, and no shipped model has its name; give them")
    told = _entry(model, labels=shipped.labels, entities=shipped.entities)
    thresholds, rates = (told.thresholds or shipped.thresholds), (told.rates or shipped.rates)
    return msgspec.structs.replace(told, thresholds=thresholds, rates=rates, calibrated=shipped.calibrated)


def _entry(
    model: OwnModel,
    *,
    labels: tuple[str, ...],
    entities: tuple[EntityKind, ...],
    columns: tuple[str, ...] = (),
    activation: Activation | None = None,
    files: tuple[ModelFile, ...] = (),
) -> ModelEntry:
    try:
        return ModelEntry(
            name=model.name,
            kind=ModelKind(model.kind),
            version=model.version,
            licence=model.licence,
            card="",
            labels=labels,
            columns=columns,
            entities=entities,
            activation=activation,
            thresholds=tuple(
                Threshold(label, score) for label, score in model.thresholds.items() if not label.isupper()
            ),
            rates=tuple(Rate(rate.label, rate.fpr, rate.threshold) for rate in model.rates),
            limits=ModelLimits(window_tokens=model.window_tokens, overlap_tokens=model.overlap_tokens),
            calibrated=bool(model.rates),
            files=files,
        )
    except ValueError as error:
        raise ModelError(f"model `{model.name}` can't be used: {error}") from error


def _entities(model: OwnModel, names: Sequence[str]) -> tuple[EntityKind, ...]:
    return tuple(EntityKind(name, model.thresholds.get(name, 0.5)) for name in names)


def _columns(model: OwnModel, columns: Sequence[str]) -> tuple[str, ...]:
    """Return our label of each column; every name that `labels` maps must be one of them."""
    _refuse_unknown(model, {*columns, *map(str, range(len(columns)))}, columns)
    return tuple(
        model.labels.get(column) or model.labels.get(str(position)) or NO_LABEL
        for position, column in enumerate(columns)
    )


def _tags(model: OwnModel, columns: Sequence[str]) -> tuple[str, ...]:
    """Return our tag of each column: `B-PERSON`, `I-PERSON`, or `O` for what is not asked for."""
    _refuse_unknown(model, {*columns, *(column.partition("-")[2] for column in columns)}, columns)
    return tuple(_tag(model.labels, column) for column in columns)


def _tag(labels: Mapping[str, str], column: str) -> str:
    prefix, _, kind = column.partition("-")
    if kind in labels and prefix in _BEGINNING | _INSIDE:
        return f"{'B' if prefix in _BEGINNING else 'I'}-{labels[kind]}"
    return f"I-{labels[column]}" if column in labels else "O"


def _refuse_unknown(model: OwnModel, known: set[str], columns: Sequence[str]) -> None:
    for name in model.labels:
        if name not in known:
            there = ", ".join(columns[:20])
            raise ModelError(f"`{name}` is no column of model `{model.name}`; correct `labels`, it has {there}")
