"""Which models the policies in force ask, opened once and kept while what they are made of stays the same."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from checkstream.config import Config, bundled
from checkstream.core.policy.classifiers import ClassifierLabel, Installed, ModelEntity
from checkstream.core.policy.program import Program
from checkstream.errors import ConfigError, Fault, ModelError
from checkstream.scoring.catalog import Model
from checkstream.scoring.manifest import ModelEntry
from checkstream.scoring.provenance import Described, load_described, lock_file
from checkstream.scoring.reference import reference_of
from checkstream.scoring.session import Session
from checkstream.telemetry.drift import Counts, Key


class _Described(Protocol):
    @property
    def entry(self) -> ModelEntry:
        """What the manifest says of a model."""


class OpenModel(msgspec.Struct, frozen=True, eq=False):
    """A model that is ready to run."""

    source: Described
    session: Session
    reference: Mapping[Key, Counts]
    """What it says of calm texts; empty: nobody knows."""

    @property
    def model(self) -> Model:
        """The model, without the bytes that it was loaded from."""
        return Model(entry=self.source.entry, contents={}, remote=self.source.remote)


def labels_of(models: Iterable[_Described]) -> tuple[Installed, ...]:
    """Return every label of every model and every entity that it finds, as policies know them."""
    labels: list[Installed] = []
    for entry in (model.entry for model in models):
        thresholds = {threshold.label: threshold.score for threshold in entry.thresholds}
        for label in entry.labels:
            rates = tuple((rate.fpr, rate.threshold) for rate in entry.rates if rate.label == label)
            labels.append(ClassifierLabel(f"{entry.name}.{label}", thresholds.get(label), rates))
        labels += [ModelEntity(kind.entity, entry.name, kind.threshold) for kind in entry.entities]
    return tuple(labels)


def asked(programs: Iterable[Program], described: Mapping[str, Described]) -> tuple[Described, ...]:
    """Return the models that programs ask, by name: no other is worth its memory."""
    names = {signal.classifier for program in programs for signal in program.signals}
    return tuple(described[name] for name in sorted(names & set(described)))


def files_of(config: Config) -> tuple[Path, ...]:
    """Return the files that say which models there are; a change of one is a change of the models."""
    own = () if config.models is None else (Path(config.models), lock_file(Path(config.models)))
    return (bundled("models") / "manifest.json", *own)


def open_models(
    wanted: Iterable[Described], known: Iterable[OpenModel], open_session: Callable[[Model], Session]
) -> tuple[OpenModel, ...]:
    """Verify and load models. Blocks on files and takes CPU time: not for the event loop.

    Args:
        wanted: the models.
        known: those that are open; one whose description is the same stays as it is.
        open_session: makes a verified model ready to run.

    Raises:
        ConfigError: a model can't be trusted, read or run.
    """
    opened = []
    for source in wanted:
        kept = [model for model in known if model.source == source]
        try:
            opened.append(kept[0] if kept else _opened(source, open_session))
        except ModelError as error:
            raise ConfigError((Fault(file=f"model {source.entry.name}", reason=str(error)),)) from error
    return tuple(opened)


def _opened(source: Described, open_session: Callable[[Model], Session]) -> OpenModel:
    model = load_described(source)
    return OpenModel(source, open_session(model), reference_of(model))
