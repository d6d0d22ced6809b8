"""Trains the big encoder and measures it on the sources that it never saw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import onnxruntime as ort
import torch

from checkstream.evaluation.figures import Interval, rate_at, threshold_at_fpr
from models.training.corpus import RESTRICTED, rows
from models.training.encoder import Encoder, minilm_l6
from models.training.export import session
from models.training.fit import FitSettings, Progress, fit, text_loss
from models.training.graph import Float, Shape, encoder_graph
from models.training.injection import pool
from models.training.injection.generate import HELD_OUT, Generator
from models.training.injection.material import Material
from models.training.injection.measure import by_group, figures, text_logits
from models.training.injection.teach import Mix
from models.training.injection.windows import WINDOW, Cutter

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


class FoldFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What a model says to the sources that its training left out."""

    fold: str
    figures: dict[str, Interval]
    sources: dict[str, tuple[int, float]]
    """Source -> texts, recall at 1 %."""
    innocents: dict[str, tuple[int, float]]
    """Set -> texts, share that fires at the threshold of 1 %."""
    unseen_innocents: dict[str, tuple[int, float]]
    """Family of generated innocent texts that was left out -> the same."""
    generated: tuple[float, float]
    """Recall at 1 % of generated attacks, direct and planted: of the kind that was learnt, no proof of anything."""
    elsewhere: dict[str, tuple[int, float]]
    """Sets that no part of which is ever learnt -> texts, share that fires at the threshold of 1 %."""
    curve: list[tuple[int, float]]


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


def fold_figures(material: Material, fold: str, graph: ort.InferenceSession, progress: Progress) -> FoldFigures:
    """Measure a fold: its sources against innocent texts of the part `test` and clean documents."""
    cutter = material.cutter
    test = material.left_out(fold)
    innocents = [text for text in material.innocents if text.part == "test"]
    random = Random(77)
    generator = Generator(pool.slots(material.folder), pool.bodies(material.folder, "test"))
    clean = [text.text for text in generator.clean(300, random)]
    unseen = [text for text in generator.innocents(2500, random) if text.family in HELD_OUT[fold]][:600]
    positives = text_logits(graph, cutter, [text.text for text in test])
    negatives = text_logits(graph, cutter, [*(text.text for text in innocents), *clean])
    threshold = threshold_at_fpr(negatives, 0.01)
    found = text_logits(graph, cutter, [text.text for text in unseen])
    attacks = text_logits(graph, cutter, [text.text for text in generator.attacks(250, random)])
    planted = text_logits(graph, cutter, [text.text for text in generator.poisoned(250, random)])
    return FoldFigures(
        fold=fold,
        figures=dict(figures(positives, negatives)),
        sources=dict(by_group(positives, [text.source for text in test], threshold)),
        innocents=dict(
            by_group(negatives, [*(text.source for text in innocents), *["documents"] * len(clean)], threshold)
        ),
        unseen_innocents=dict(by_group(found, [text.family for text in unseen], threshold)),
        generated=(rate_at(attacks, threshold), rate_at(planted, threshold)),
        elsewhere=elsewhere(graph, cutter, material.folder, threshold),
        curve=progress.curve,
    )


def _sample(texts: Sequence[str], count: int) -> list[str]:
    return list(texts) if len(texts) <= count else Random(5).sample(list(texts), count)


def elsewhere(
    graph: ort.InferenceSession, cutter: Cutter, folder: Path, threshold: float, count: int = 500
) -> dict[str, tuple[int, float]]:
    """Return the share that fires of sets under other licences, which only ever measure."""
    sets: dict[str, list[str]] = {}
    for name in ("inj_neuralchemy", "inj_tensortrust", "benign_prompts_alpaca", "harm_prompts_nc"):
        for row in rows(folder / RESTRICTED, name, measuring=True):
            if row.get("kind") != "llm_output_prompt_leak":
                sets.setdefault(f"{name} {row['label']}" if name.startswith("inj") else name, []).append(
                    str(row["text"])
                )
    scores: dict[str, Float] = {name: text_logits(graph, cutter, _sample(texts, count)) for name, texts in sets.items()}
    return {name: (len(logits), float(np.mean(logits >= threshold))) for name, logits in scores.items()}
