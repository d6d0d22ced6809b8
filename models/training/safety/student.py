"""The student: a small encoder over windows of a text, started from a larger pretrained one.

The layers of MiniLM-L3 keep their attention whole, and of their feed-forward halves the neurons that weigh most. It
reads only what its gate doubts, so that its cost counts for a window in five.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import nn

from models.training.encoder import Encoder
from models.training.graph import Float, Shape
from models.training.safety.labels import LABELS
from models.training.safety.windows import LEARNT

VOCABULARY = 9216
"""Word pieces, beside the symbols."""

SYMBOLS = 384
"""Emoji and other symbols with a piece of their own."""


def student_shape(vocabulary: int = VOCABULARY, layers: int = 3, feed: int = 1152) -> Shape:
    """Return the size of a student 384 wide."""
    return Shape(vocab=vocabulary, layers=layers, hidden=384, heads=12, feed=feed, positions=LEARNT)


def narrowed(weights: Mapping[str, Float], layers: Sequence[int], feed: int) -> dict[str, Float]:
    """Take some layers of an encoder and, of each, the neurons of the feed-forward half that weigh most.

    Args:
        weights: named as `Encoder` names them.
        layers: which layers to take, lowest first.
        feed: neurons to keep in each.
    """
    result = {name: value for name, value in weights.items() if not name.startswith("layers.")}
    for number, layer in enumerate(layers):
        own = {
            name.removeprefix(f"layers.{layer}."): value
            for name, value in weights.items()
            if name.startswith(f"layers.{layer}.")
        }
        weight = np.linalg.norm(own["wide.weight"], axis=1) * np.linalg.norm(own["narrow.weight"], axis=0)
        kept = np.sort(np.argsort(-weight, kind="stable")[:feed])
        own["wide.weight"], own["wide.bias"] = own["wide.weight"][kept], own["wide.bias"][kept]
        own["narrow.weight"] = own["narrow.weight"][:, kept]
        result |= {f"layers.{number}.{name}": value for name, value in own.items()}
    return result


def new_student(
    shape: Shape, base: Mapping[str, Float], layers: Sequence[int], rows: NDArray[np.int64] | None = None
) -> Encoder:
    """Build a student that starts from layers of a pretrained encoder.

    Args:
        shape: the student's size.
        base: weights to start from; their width is the student's.
        layers: which of their layers, one for each of the student's.
        rows: which rows of their token table the student's vocabulary keeps.
    """
    model = Encoder(shape, len(LABELS))
    model.start_from(narrowed(base, layers, shape.feed), rows)
    nn.init.constant_(model.head.bias, -3.0)  # most windows do no harm
    return model
