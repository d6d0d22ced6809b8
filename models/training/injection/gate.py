"""The gate: a small encoder that learns the big one's doubts, so that clean windows never reach the big one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import onnxruntime as ort
import torch
from numpy.typing import NDArray

from models.training.encoder import Encoder
from models.training.export import run, sigmoid
from models.training.fit import Example, FitSettings, Progress, fit, text_loss
from models.training.graph import Float, Shape, Weights
from models.training.injection.abroad import Abroad
from models.training.injection.kinds import Innocent, drawn
from models.training.injection.teach import Lesson, Mix
from models.training.injection.windows import WINDOW, Cutter

GATE_MIX = Mix(attacks=2600, poisoned=1500, innocents=4500, clean=2500, pool_innocents=8000, source_cap=400)
"""More of what is clean than the encoder learns from: that is what the gate is to know."""
KINDS: Mapping[str, int] = {
    "role-play": 1600,
    "games": 600,
    "role-play, composed": 400,
    "system prompts": 1500,
    "assistants": 2000,
    "documents": 2000,
    "documents on attacks": 500,
    "code and data": 800,
    "requests": 700,
    "prompts": 1200,
    "languages": 1500,
    "harmful questions": 300,
}
"""Kind of innocent texts -> of how many an epoch holds a window."""
LONG_DOCUMENTS = 300
"""Clean documents of many windows in an epoch."""


def gate_shape(vocabulary: int) -> Shape:
    """Return the gate's size; it reads the same windows as the encoder."""
    return Shape(vocab=vocabulary, layers=2, hidden=128, heads=4, feed=512, positions=WINDOW, activation="relu")


def projected(table: Float, width: int) -> Float:
    """Return the embeddings of a vocabulary in so many dimensions, those along which they differ most."""
    centred = table - table.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    flat: NDArray[np.float32] = (centred @ vectors[:, -width:]).astype(np.float32)
    scaled: Float = flat / np.float32(flat.std())
    return scaled


def windows(lesson: Lesson, epoch: int, documents: int = LONG_DOCUMENTS) -> list[Example]:
    """Return the windows of an epoch, and those of long clean documents, labelled by what they were made to be."""
    found = lesson.epoch(epoch)
    random = Random(lesson.seed * 1000 + epoch)
    for text in lesson.generator.long_documents(documents, random):
        cut = lesson.cutter.windows(lesson.cutter.pieces([text])[0])
        found += [Example(ids, np.zeros(1, np.float32)) for ids in random.sample(cut, min(len(cut), 6))]
    return found


def by_kind(texts: Sequence[Innocent], cutter: Cutter, random: Random) -> list[Example]:
    """Return a window of each innocent text that is drawn, letters that the vocabulary has no words of too."""
    chosen = drawn(texts, KINDS, random)
    cut = [cutter.windows(ids) for ids in cutter.pieces([text.text for text in chosen])]
    return [Example(random.choice(own), np.zeros(1, np.float32)) for own in cut]


def answered(teacher: ort.InferenceSession, examples: Sequence[Example], kept: Path) -> list[Example]:
    """Return the windows with the teacher's probabilities, which are asked once and kept in a file."""
    if not kept.exists():
        kept.parent.mkdir(parents=True, exist_ok=True)
        np.save(kept, sigmoid(np.array([row[0] for row in run(teacher, [one.ids for one in examples])], np.float32)))
    targets: Float = np.load(kept)
    return [Example(one.ids, targets[number : number + 1]) for number, one in enumerate(examples)]


def distilled(
    lesson: Lesson, teacher: ort.InferenceSession, table: Float, settings: FitSettings, work: Path, *, draws: int = 2
) -> tuple[Encoder, Progress]:
    """Train a gate in two turns: on the teacher's probabilities, then on more windows by their labels as well.

    The second turn is what fresh windows cost least for: a small gate knows windows by heart that it sees twice.

    Args:
        lesson: draws the texts.
        teacher: the big encoder's graph.
        table: the big encoder's embeddings, float32[piece, hidden].
        settings: of the first turn; the second one takes a pass over its windows at 0.6 of the rate.
        work: keeps the teacher's answers and the checkpoints.
        draws: epochs of the lesson that each turn takes; in the second, the teacher answers one more.

    Returns:
        The gate, and the learning curve of both turns.
    """
    shape = gate_shape(len(table))
    torch.manual_seed(settings.seed)
    gate = Encoder(shape, 1)
    with torch.no_grad():
        gate.tokens.weight.copy_(torch.from_numpy(projected(table, shape.hidden) * 0.05))
        gate.tokens.weight[0].zero_()
    first = [window for draw in range(draws) for window in windows(lesson, 100 + draw)]
    curve = fit(
        gate, answered(teacher, first, work / "teacher-1.npy"), text_loss, settings, checkpoint=work / "gate-1.pt"
    ).curve
    more = answered(teacher, windows(lesson, 200), work / "teacher-2.npy")
    more += [window for draw in range(draws) for window in windows(lesson, 300 + draw)]
    slower = replace(settings, epochs=1.0, rate=0.6 * settings.rate)
    done = curve[-1][0]
    further = fit(gate, more, text_loss, slower, checkpoint=work / "gate.pt").curve
    return gate, Progress([*curve, *((done + step, loss) for step, loss in further)])


def further(
    lesson: Lesson,
    abroad: Abroad,
    weights: Weights,
    settings: FitSettings,
    work: Path,
    *,
    innocents: Sequence[Innocent] = (),
    draws: int = 3,
) -> tuple[Encoder, Progress]:
    """Train a gate further: epochs of the lesson, with what is said in other languages, and innocent texts by kind.

    Args:
        lesson: draws the texts of the turns before, anew.
        abroad: draws those of other languages.
        weights: of the gate that goes on; its graph's own (`weights_of`) will do.
        settings: of the first draw; each further one takes 0.6 of the rate of the one before.
        work: keeps the checkpoints.
        innocents: of the part `train`, of sources that are learnt from; windows of each kind are learnt from as well.
        draws: how often windows are drawn, anew each time.
    """
    gate = Encoder(gate_shape(len(weights["tokens.weight"])), 1)
    gate.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    curve: list[tuple[int, float]] = []
    for draw in range(draws):
        kinds = by_kind(innocents, lesson.cutter, Random(lesson.seed * 1000 + 600 + draw))
        examples = [*windows(lesson, 400 + draw), *abroad.windows(lesson, 500 + draw), *kinds]
        slower = replace(settings, rate=settings.rate * 0.6**draw)
        done = curve[-1][0] if curve else 0
        told = fit(gate, examples, text_loss, slower, checkpoint=work / f"gate-abroad-{draw + 1}.pt").curve
        curve += [(done + step, loss) for step, loss in told]
    return gate, Progress(curve)
