"""Trains the big encoder: on every source for the model that ships, without a fold's sources to measure the recipe."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import onnxruntime as ort
import torch

from models.training.encoder import Encoder, minilm_l6
from models.training.export import session
from models.training.fit import FitSettings, Progress, fit, text_loss
from models.training.graph import Shape, encoder_graph
from models.training.injection.material import Material
from models.training.injection.teach import Mix
from models.training.injection.windows import WINDOW

FROZEN_LAYERS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How a model is trained."""

    mix: Mix
    epochs: float
    rate: float = 1.2e-4
    seed: int = 1


SHIPPED_PLAN = Plan(mix=Mix(), epochs=1.5)
FOLD_PLAN = Plan(
    mix=Mix(attacks=3120, poisoned=1800, innocents=3600, clean=1320, pool_innocents=3120, source_cap=390), epochs=1.0
)
"""Less than what ships: three folds are to cost no more than the model itself."""


def shape_of(vocabulary: int) -> Shape:
    """Return the size of the big encoder."""
    return Shape(vocab=vocabulary, layers=6, hidden=384, heads=12, feed=1536, positions=WINDOW)


def trained(material: Material, fold: str | None, plan: Plan, work: Path) -> tuple[Encoder, Progress]:
    """Train an encoder without a fold's sources, or with all for the model that ships; takes up where it stopped."""
    torch.manual_seed(plan.seed)
    model = Encoder(shape_of(len(material.rows)), 1)
    model.start_from(minilm_l6(), material.rows)
    model.freeze(FROZEN_LAYERS)
    lesson = material.lesson(fold, plan.mix, plan.seed)
    settings = FitSettings(seed=plan.seed, epochs=plan.epochs, rate=plan.rate, batch_tokens=2048)
    progress = fit(model, lesson.epoch, text_loss, settings, checkpoint=work / f"{fold or 'shipped'}.pt")
    return model, progress


def opened(model: Encoder) -> ort.InferenceSession:
    """Open the INT8 graph of a model, which is what the figures are of."""
    return session(encoder_graph(model.weights(), model.shape, pooling="mean", level=True))
