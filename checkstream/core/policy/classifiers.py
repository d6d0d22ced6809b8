"""What policies may know of models: labels with their calibrated thresholds, and the entities that they find."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class ClassifierLabel(msgspec.Struct, frozen=True):
    """One score that a classifier gives."""

    name: str
    """`model.label`."""
    threshold: float | None = None
    """From where on the score counts when a policy gives neither `threshold` nor `fpr`."""
    calibration: tuple[tuple[float, float], ...] = ()
    """Pairs (false-positive rate on benign whole texts, threshold that keeps to it); empty: not calibrated."""

    @property
    def model(self) -> str:
        """Name of the classifier, without the label."""
        return self.name.partition(".")[0]

    def threshold_at(self, fpr: float) -> float | None:
        """Return the threshold of the largest calibrated rate that is not above `fpr`; None when none is.

        Never interpolates, so that a rule fires on no more benign texts than its policy asks for.
        """
        fitting = [pair for pair in self.calibration if pair[0] <= fpr]
        return max(fitting)[1] if fitting else None


class ModelEntity(msgspec.Struct, frozen=True):
    """One kind of entity that a model finds in a text."""

    name: str
    """`PERSON`, ..."""
    model: str
    """Name of the model."""
    threshold: float = 0.0
    """From where on the score of what it finds counts."""


Installed = ClassifierLabel | ModelEntity
"""What a model that is installed can say of a text."""


def labels_of(known: Sequence[Installed]) -> tuple[ClassifierLabel, ...]:
    """Return those that are labels."""
    return tuple(each for each in known if isinstance(each, ClassifierLabel))


def resolve(name: str, known: Sequence[Installed]) -> tuple[ClassifierLabel, ...]:
    """Return the labels that a policy's `name` can mean: one when it is clear, none when it is unknown.

    A name is `model.label`, or a label that one classifier alone has, or a classifier that has one label alone.
    """
    labels = labels_of(known)
    exact = tuple(label for label in labels if label.name == name)
    if exact:
        return exact
    return tuple(label for label in labels if name in {label.model, label.name.partition(".")[2]})


def resolve_entity(name: str, known: Sequence[Installed]) -> tuple[ModelEntity, ...]:
    """Return the entities of models that a policy's `name` can mean: `model.ENTITY`, or an entity's name alone."""
    return tuple(
        each for each in known if isinstance(each, ModelEntity) and name in {each.name, f"{each.model}.{each.name}"}
    )
