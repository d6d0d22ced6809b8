"""What a model says to the sources that its training left out: the encoder alone, and as the proxy runs it, gated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import msgspec
import numpy as np

from checkstream.evaluation.figures import Interval, rate_at, threshold_at_fpr
from checkstream.scoring import Model, open_session, read_whole
from models.training.encoder import Encoder
from models.training.export import session
from models.training.fit import FitSettings
from models.training.graph import Float, encoder_graph
from models.training.injection import pool
from models.training.injection.gate import GATE_MIX, distilled
from models.training.injection.generate import HELD_OUT, Generated, Generator
from models.training.injection.material import Material
from models.training.injection.measure import Scored, by_group, elsewhere, figures, text_logits
from models.training.injection.pool import Text
from models.training.injection.ship import Pair, limits_of, running, trial
from models.training.injection.train import opened

GATE_DRAWS = 1
"""Half of what the gate that ships learns from: three folds are to cost no more than the model itself."""


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


class GatedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """The same of an encoder behind a gate that was trained without the fold too."""

    found: FoldFigures
    """Its curve is the gate's."""
    threshold: float
    """Of the gate."""
    misses: float
    """Share of the fold's attacks that the encoder finds at 1 %, and whose every window that fires the gate clears."""
    doubts: float
    """Share of the negatives of which the gate doubts a window."""


@dataclass(frozen=True, slots=True)
class Exam:
    """What the models of a fold are measured on."""

    fold: str
    attacks: Sequence[Text]
    """Of the fold's sources."""
    innocents: Sequence[str]
    """Of the part `test`, and clean documents."""
    groups: Sequence[str]
    """Of the innocent texts: the set of each."""
    unseen: Sequence[Generated]
    """Of the families of innocent texts that the fold leaves out."""
    direct: Sequence[str]
    planted: Sequence[str]
    folder: Path
    """Of the pool."""

    @classmethod
    def of(cls, material: Material, fold: str) -> Exam:
        """Draw the texts of a fold."""
        innocents = [text for text in material.innocents if text.part == "test"]
        random = Random(77)
        generator = Generator(pool.slots(material.folder), pool.bodies(material.folder, "test"))
        clean = [text.text for text in generator.clean(300, random)]
        return cls(
            fold=fold,
            attacks=material.left_out(fold),
            innocents=[*(text.text for text in innocents), *clean],
            groups=[*(text.source for text in innocents), *["documents"] * len(clean)],
            unseen=[text for text in generator.innocents(2500, random) if text.family in HELD_OUT[fold]][:600],
            direct=[text.text for text in generator.attacks(250, random)],
            planted=[text.text for text in generator.poisoned(250, random)],
            folder=material.folder,
        )

    def taken(self, score: Scored, curve: list[tuple[int, float]]) -> FoldFigures:
        """Measure a model.

        Args:
            score: of the model.
            curve: how it was learnt.
        """
        positive, negative = score([text.text for text in self.attacks]), score(self.innocents)
        threshold = threshold_at_fpr(negative, 0.01)
        unseen = score([text.text for text in self.unseen])
        return FoldFigures(
            fold=self.fold,
            figures=dict(figures(positive, negative)),
            sources=dict(by_group(positive, [text.source for text in self.attacks], threshold)),
            innocents=dict(by_group(negative, self.groups, threshold)),
            unseen_innocents=dict(by_group(unseen, [text.family for text in self.unseen], threshold)),
            generated=(rate_at(score(self.direct), threshold), rate_at(score(self.planted), threshold)),
            elsewhere=elsewhere(score, self.folder, threshold),
            curve=curve,
        )


def alone(exam: Exam, material: Material, model: Encoder, curve: list[tuple[int, float]]) -> FoldFigures:
    """Measure an encoder by itself; every window reaches it."""
    graph = opened(model)
    return exam.taken(lambda texts: text_logits(graph, material.cutter, texts), curve)


def gated(exam: Exam, material: Material, model: Encoder, seed: int, work: Path) -> GatedFigures:
    """Train a gate without the fold, choose its threshold as the shipped one was, and measure as the proxy runs both.

    Args:
        exam: the fold's texts.
        material: what was read.
        model: the fold's encoder.
        seed: of every choice.
        work: keeps the gate's checkpoints.
    """
    lesson = material.lesson(exam.fold, GATE_MIX, seed)
    # The attacks of the part `dev` set the threshold: a gate that knew them would clear others sooner.
    lesson = replace(lesson, attacks=[text for text in lesson.attacks if text.part == "train"])
    settings = FitSettings(seed=seed, epochs=2.0, rate=2e-3, batch_tokens=4096)
    table = model.weights()["tokens.weight"]
    gate, progress = distilled(lesson, opened(model), table, settings, work / exam.fold, draws=GATE_DRAWS)
    return behind(exam, material, model, gate, progress.curve)


def behind(
    exam: Exam, material: Material, model: Encoder, gate: Encoder, curve: list[tuple[int, float]]
) -> GatedFigures:
    """Measure an encoder behind a gate.

    Args:
        exam: the fold's texts.
        material: what was read.
        model: the encoder.
        gate: what windows are shown first.
        curve: how the gate was learnt.
    """
    graphs = [
        encoder_graph(model.weights(), model.shape, pooling="mean", level=True),
        encoder_graph(gate.weights(), gate.shape, pooling="mean"),
    ]
    pair = Pair(session(graphs[0]), session(graphs[1]), material)
    limits = limits_of(pair, trial(material, "dev", 21, exam.fold))
    data = [graph.SerializeToString() for graph in graphs]
    found = exam.taken(scored(running(data[0], data[1], material.tokenizer, limits)), curve)
    threshold = threshold_at_fpr(pair.scores(exam.innocents), 0.01)
    held = pair.held([text.text for text in exam.attacks], threshold)
    return GatedFigures(
        found=found,
        threshold=limits.gate,
        misses=1 - rate_at(held, limits.gate),
        doubts=rate_at(pair.doubts(exam.innocents), limits.gate),
    )


def scored(model: Model) -> Scored:
    """Return what gives whole texts the proxy's scores of a model."""
    proxy = open_session(model)

    def score(texts: Sequence[str]) -> Float:
        return np.array([read_whole(proxy, text).scores[0] for text in texts], np.float32)

    return score
