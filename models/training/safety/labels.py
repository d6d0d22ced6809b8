"""The ten labels, and texts with what is known of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Float = NDArray[np.float32]

HARMS = (
    "toxicity",
    "hate",
    "harassment",
    "sexual",
    "self_harm",
    "violence",
    "illegal_advice",
    "financial_crime",
    "regulated_advice",
)
"""What annotators and teachers speak of."""

PROMOTIONAL = "promotional"
"""Unbalanced financial promotion: no harm of the nine, and known of texts that this recipe writes alone."""

LABELS = (*HARMS, PROMOTIONAL)

ANY = len(LABELS)
"""Column of a target that says whether the text does any harm of the nine, whichever."""

OUTPUTS = (*LABELS, "any")
"""Columns of the model and of a target, in order."""

ABUSE = ("toxicity", "hate", "harassment")
CRIME = ("illegal_advice", "financial_crime", "violence")
RELATED: Mapping[str, tuple[str, ...]] = {
    "toxicity": (*ABUSE, "sexual", "violence"),
    "hate": (*ABUSE, "violence"),
    "harassment": (*ABUSE, "violence", "illegal_advice"),
    "sexual": ("toxicity", "harassment"),
    "self_harm": ("violence", "harassment"),
    "violence": (*CRIME, "toxicity", "harassment"),
    "illegal_advice": CRIME,
    "financial_crime": (*CRIME, PROMOTIONAL),
    "regulated_advice": (PROMOTIONAL,),
    PROMOTIONAL: ("financial_crime", "regulated_advice"),
}
"""Of a text that is known to do one harm, these others stay unknown; the rest it doesn't do."""

SURE = 0.9
"""How sure it is that a text written to do a harm does it: not as sure as what people have judged."""


@dataclass(frozen=True, slots=True)
class Text:
    """One text of the corpus."""

    text: str
    target: Float
    """float32[11]: the labels and `ANY`; 0..1, NaN where nobody said."""
    source: str
    """The set that it comes from; `generated ...` when this recipe wrote it."""
    group: str = ""
    """What must stay on one side of a split (the question of an answer); the text itself when empty."""
    weight: float = 1.0
    spans: Sequence[tuple[int, int]] | None = None
    """Character ranges that are the harm, where annotators marked them."""


def safe() -> Float:
    """Return the target of a text that does no harm."""
    return np.zeros(ANY + 1, np.float32)


def harmful(*labels: str, share: float = 1.0) -> Float:
    """Return the target of a text that does these harms; its relatives stay unknown.

    Args:
        labels: what it does; none: some harm, nobody said which.
        share: how sure, 0..1.
    """
    target = safe()
    if not labels:
        target[:] = np.nan
    for label in labels:
        for other in RELATED[label]:
            target[LABELS.index(other)] = np.nan
    for label in labels:
        target[LABELS.index(label)] = share
    target[ANY] = share
    return target


def known(**values: float) -> Float:
    """Return a target where only these labels are known; `any` is the last column, else the highest of them."""
    target = np.full(ANY + 1, np.nan, np.float32)
    for label, value in values.items():
        target[ANY if label == "any" else LABELS.index(label)] = value
    if "any" not in values and values and max(values.values()) >= 0.5:
        target[ANY] = max(values.values())
    return target
