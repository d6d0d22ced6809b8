"""What policies may know of classifiers: their labels, and at which score a false-positive rate is met."""

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


def resolve(name: str, known: Sequence[ClassifierLabel]) -> tuple[ClassifierLabel, ...]:
    """Return the labels that a policy's `name` can mean: one when it is clear, none when it is unknown.

    A name is `model.label`, or a label that one classifier alone has, or a classifier that has one label alone.
    """
    exact = tuple(label for label in known if label.name == name)
    if exact:
        return exact
    return tuple(label for label in known if name in {label.model, label.name.partition(".")[2]})
