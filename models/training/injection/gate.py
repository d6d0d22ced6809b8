"""The gate: a small encoder that learns the big one's doubts, so that clean windows never reach the big one."""

from __future__ import annotations

from collections.abc import Sequence
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
from models.training.graph import Float, Shape
from models.training.injection.teach import Lesson
from models.training.injection.windows import FIRST, GATE_WINDOW, LAST


def gate_shape(vocabulary: int) -> Shape:
    """Return the gate's size."""
    return Shape(vocab=vocabulary, layers=2, hidden=128, heads=4, feed=512, positions=GATE_WINDOW, activation="relu")


def projected(table: Float, width: int) -> Float:
    """Return the embeddings of a vocabulary in so many dimensions, those along which they differ most."""
    centred = table - table.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    flat: NDArray[np.float32] = (centred @ vectors[:, -width:]).astype(np.float32)
    scaled: Float = flat / np.float32(flat.std())
    return scaled


def halves(windows: Sequence[Example], random: Random) -> list[list[int]]:
    """Return windows that fit the gate, cut from bigger ones: two of each that is too long."""
    room = GATE_WINDOW - 2
    found: list[list[int]] = []
    for window in windows:
        inner = list(window.ids[1:-1])
        if len(inner) <= room:
            found.append([FIRST, *inner, LAST])
            continue
        starts = (random.randrange(len(inner) - room + 1), random.choice((0, len(inner) - room)))
        found += [[FIRST, *inner[start : start + room], LAST] for start in starts]
    return found


def distilled(
    lesson: Lesson, teacher: ort.InferenceSession, table: Float, settings: FitSettings, work: Path, *, draws: int = 2
) -> tuple[Encoder, Progress]:
    """Train a gate on the teacher's probabilities of windows of the gate's size.

    Args:
        lesson: draws the texts.
        teacher: the big encoder's graph.
        table: the big encoder's embeddings, float32[piece, hidden].
        settings: how long to learn from the windows that were drawn.
        work: keeps the teacher's answers and the checkpoint.
        draws: epochs of the lesson to take windows from.
    """
    shape = gate_shape(len(table))
    torch.manual_seed(settings.seed)
    gate = Encoder(shape, 1)
    with torch.no_grad():
        gate.tokens.weight.copy_(torch.from_numpy(projected(table, shape.hidden) * 0.05))
        gate.tokens.weight[0].zero_()
    random = Random(settings.seed)
    windows = [window for draw in range(draws) for window in halves(lesson.epoch(100 + draw), random)]
    answers = work / f"teacher-{len(windows)}.npy"
    if not answers.exists():
        np.save(answers, sigmoid(np.array([row[0] for row in run(teacher, windows)], np.float32)))
    targets: Float = np.load(answers)
    examples = [Example(window, targets[number : number + 1]) for number, window in enumerate(windows)]
    progress = fit(gate, examples, text_loss, replace(settings), checkpoint=work / "gate.pt")
    return gate, progress
