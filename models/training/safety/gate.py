"""The gate: a tiny encoder that learns which windows the model might find something in, so that calm ones skip it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from models.training.encoder import Encoder
from models.training.fit import Example, FitSettings, fit, text_loss
from models.training.graph import Float, Shape
from models.training.injection.gate import projected

GATE_WINDOW = 32
"""Word pieces that the gate reads: the end of a window, which holds all that is new in a stream."""


def gate_shape(vocabulary: int, layers: int = 2) -> Shape:
    """Return the gate's size."""
    return Shape(
        vocab=vocabulary, layers=layers, hidden=128, heads=4, feed=512, positions=GATE_WINDOW, activation="relu"
    )


def doubt(logits: Float, limits: Float) -> Float:
    """Return how near some label is to its limit, float32[window]: 0.5 where one just reaches it.

    Args:
        logits: calibrated, float32[window, label].
        limits: a threshold of each label, as a probability.
    """
    edge = np.log(limits) - np.log1p(-limits)
    nearest = (logits - edge.astype(np.float32)).max(axis=1)
    return np.asarray(1 / (1 + np.exp(-np.clip(nearest, -30, 30))), np.float32)


def train_gate(
    windows: Sequence[Sequence[int]],
    doubts: Float,
    table: Float,
    *,
    seed: int,
    epochs: float,
    checkpoint: Path | None = None,
) -> Encoder:
    """Train a gate on the ends of windows.

    Args:
        windows: ids that the model has read.
        doubts: what it found, as `doubt` returns it.
        table: the model's embeddings, float32[piece, hidden].
        seed: of every choice.
        epochs: over the windows.
        checkpoint: where to keep the state.
    """
    shape = gate_shape(len(table))
    torch.manual_seed(seed)
    gate = Encoder(shape, 1)
    with torch.no_grad():
        gate.tokens.weight.copy_(torch.from_numpy(projected(table, shape.hidden) * 0.05))
        gate.tokens.weight[0].zero_()
    examples = [Example(ids[-GATE_WINDOW:], doubts[at : at + 1]) for at, ids in enumerate(windows)]
    settings = FitSettings(seed=seed, epochs=epochs, rate=1e-3, batch_tokens=2048)
    fit(gate, examples, text_loss, settings, checkpoint=checkpoint)
    return gate


def threshold(doubts: Sequence[Float], fires: Sequence[NDArray[np.bool_]], lost: float = 0.01) -> float:
    """Return the highest doubt that lets this share of the texts pass in which the model finds something.

    Args:
        doubts: of each text, float32[check], the gate's.
        fires: of each text, bool[check], what the model finds.
        lost: share of the texts with a finding.
    """
    best = np.array([own[fire].max() for own, fire in zip(doubts, fires, strict=True) if fire.any()], np.float32)
    if not len(best):
        return 0.5
    return float(np.clip(np.quantile(best, lost), 1e-4, 0.5))
