"""What a model says of calm texts: histograms of its scores, one for each label and stage, as the running proxy asks.

A file of the model like its graph, so the manifest pins it. `python -m models.training.reference` writes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

import msgspec

from checkstream.errors import ModelError
from checkstream.scoring.catalog import Model
from checkstream.telemetry.drift import BINS, BOUNDS, Key

ROLE = "reference"
"""Of the file, in the manifest."""

_Count = Annotated[int, msgspec.Meta(ge=0, le=1 << 40)]


class Calm(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scores of one label at one stage."""

    label: str
    stage: Literal["ingress", "midstream"]
    counts: Annotated[tuple[_Count, ...], msgspec.Meta(min_length=BINS, max_length=BINS)]
    """How many scores are in each bin."""


class Reference(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The scores of one model."""

    version: Annotated[int, msgspec.Meta(ge=1, le=1)] = 1
    """Of the file's form."""
    bounds: tuple[float, ...] = BOUNDS
    """Of the bins."""
    histograms: tuple[Calm, ...]

    def __post_init__(self) -> None:
        """Refuse other bins, doubled and empty histograms."""
        if self.bounds != BOUNDS:
            raise ValueError("`bounds` are not those of this version; make the file anew")
        if len({(each.label, each.stage) for each in self.histograms}) != len(self.histograms):
            raise ValueError("two histograms are of one label and stage; keep one")
        for each in self.histograms:
            if not sum(each.counts):
                raise ValueError(f"there are no scores of `{each.label}` at `{each.stage}`; leave it out")


def reference_of(model: Model) -> Mapping[Key, tuple[int, ...]]:
    """Return what a model says of calm texts, by `model.label` and stage; empty: nobody knows.

    Raises:
        ModelError: its file is not of the form.
    """
    data = model.contents.get(ROLE)
    if data is None:
        return {}
    try:
        read = msgspec.json.decode(data, type=Reference)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ModelError(f"the reference of model `{model.name}` is not valid: {error}; reinstall it") from error
    for each in read.histograms:
        if each.label not in model.labels:
            raise ModelError(f"the reference of model `{model.name}` has `{each.label}`, which is not its label")
    return {(f"{model.name}.{each.label}", each.stage): each.counts for each in read.histograms}
