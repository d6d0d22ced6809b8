"""Compares causal models that keep a state with encoders over windows: same texts, same teacher, same CPU a check."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn

from models.training.calibrate import platt
from models.training.encoder import Encoder
from models.training.export import session, sigmoid
from models.training.fit import Example, FitSettings, fit
from models.training.graph import Float, Shape, encoder_graph
from models.training.injection.gate import projected
from models.training.safety import figures
from models.training.safety.assemble import FOLDS, corpus, pool
from models.training.safety.causal import Causal, CausalShape, step_graph
from models.training.safety.checks import WORDS_A_CHECK
from models.training.safety.distil import harm_loss, plain_tokenizer, train_teacher
from models.training.safety.labels import LABELS, Text
from models.training.safety.measure import some
from models.training.safety.recipe import FOLD, Effort, Lesson, Trained, vocabulary
from models.training.safety.windows import LEARNT, WINDOW, ends

Figures = dict[str, Any]

PIECES_A_CHECK = 8
"""New word pieces of the check whose cost is measured."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A model of the comparison."""

    kind: str
    layers: int
    hidden: int
    epochs: float
    """So many that all candidates of one cost learn for about as long."""

    def build(self, rows: int) -> Encoder | Causal:
        """Return the model with random weights."""
        if self.kind == "encoder":
            shape = Shape(rows, self.layers, self.hidden, self.hidden // 32, 4 * self.hidden, LEARNT, activation="relu")
            return Encoder(shape, len(LABELS))
        size = {"layers": self.layers, "hidden": self.hidden, "embedding": min(256, self.hidden)}
        return Causal(CausalShape("gru" if self.kind == "gru" else "tcn", rows, **size))


CANDIDATES = (
    Candidate("encoder", 2, 128, 4.0),
    Candidate("gru", 1, 256, 4.0),
    Candidate("tcn", 4, 256, 4.0),
    Candidate("encoder", 4, 192, 2.0),
    Candidate("gru", 2, 384, 2.0),
    Candidate("tcn", 6, 512, 2.0),
)
"""Two costs, about 0.13 and 0.45 ms a check, with one of each kind."""


def compared(
    folder: Path,
    name: str,
    seed: int,
    work: Path,
    *,
    candidates: Sequence[Candidate] = CANDIDATES,
    effort: Effort = FOLD,
) -> Figures:
    """Train every candidate without the sources of a fold and measure it on them.

    Args:
        folder: of the pool.
        name: of the fold.
        seed: of every choice.
        work: where checkpoints are kept; the fold's teacher is taken from there if it has one.
        candidates: what to compare.
        effort: how much the teacher and they learn from.

    Returns:
        Of each candidate its cost, learning curve and figures.
    """
    parts = corpus(folder, seed, FOLDS[name])
    texts = parts["train"]
    described, rows, base = vocabulary(texts)
    tokenizer = plain_tokenizer(described)
    teacher, _ = train_teacher(texts, seed, share=effort.teacher_share, checkpoint=work / name / "teacher.pt")
    (work / name).mkdir(parents=True, exist_ok=True)
    lesson = Lesson(texts, tokenizer, teacher, effort.source_share)
    examples = lesson.windows(seed, effort.windows, work / name / "compared_scores.npy")
    unseen = some([text for text in pool(folder, seed) if text.source in FOLDS[name]], 600, seed)
    found: Figures = {"windows": len(examples), "candidates": {}}
    for candidate in candidates:
        table = base["tokens.weight"][rows]
        model, learnt = _trained(candidate, examples, table, seed, work / name)
        dev = parts["dev"][:1500]
        fits = _fits(_highest(model, [text.text for text in dev], tokenizer), dev)
        raw = _highest(model, [text.text for text in unseen], tokenizer)
        scores = sigmoid(np.stack([raw[:, at] * scale + shift for at, (scale, shift) in enumerate(fits)], axis=1))
        label = f"{candidate.kind} {candidate.layers} x {candidate.hidden}"
        pooled = figures.pooled(unseen, scores)
        found["candidates"][label] = {**learnt, "ms_a_check": cost_ms(model), **pooled}
    return found


def _trained(
    candidate: Candidate, examples: Sequence[Example], table: Float, seed: int, work: Path
) -> tuple[Encoder | Causal, Figures]:
    """Train a candidate; its embeddings start from the base's, in as many dimensions as it has."""
    torch.manual_seed(seed)
    model = candidate.build(len(table))
    with torch.no_grad():
        model.tokens.weight.copy_(torch.from_numpy(projected(table, model.tokens.embedding_dim) * 0.05))
        model.tokens.weight[0].zero_()
    nn.init.constant_(model.head.bias, -3.0)
    settings = FitSettings(seed=seed, epochs=candidate.epochs, rate=1e-3)
    began = time.process_time()
    kept = work / f"compared_{candidate.kind}_{candidate.layers}_{candidate.hidden}.pt"
    progress = fit(model, examples, harm_loss, settings, checkpoint=kept)
    minutes = (time.process_time() - began) / 60
    return model, {"epochs": candidate.epochs, "minutes": round(minutes, 1), "curve": progress.curve}


def _highest(model: Encoder | Causal, texts: Sequence[str], tokenizer: Tokenizer) -> Float:
    """Return the highest logit of each text's checks, float32[text, label], as a stream would make them."""
    encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
    ids = [encoding.ids or [1] for encoding in encodings]
    stops = [
        sorted({*found[WORDS_A_CHECK - 1 :: WORDS_A_CHECK], *found[-1:]}) or [1]
        for found in (ends(encoding) for encoding in encodings)
    ]
    order = sorted(range(len(ids)), key=lambda at: len(ids[at]))
    result = np.zeros((len(ids), len(LABELS)), np.float32)
    for first in range(0, len(order), 32):
        batch = order[first : first + 32]
        if isinstance(model, Causal):
            found = model.checks([ids[at] for at in batch], [stops[at] for at in batch], WINDOW)
            result[batch] = [own.max(axis=0) for own in found]
            continue
        windows = [ids[at][max(0, stop - WINDOW) : stop] for at in batch for stop in stops[at]]
        scores = Trained(model, "").logits(windows)
        counts = np.cumsum([0, *(len(stops[at]) for at in batch[:-1])])
        result[batch] = np.maximum.reduceat(scores, counts, axis=0)
    return result


def _fits(highest: Float, dev: Sequence[Text]) -> list[tuple[float, float]]:
    truths = np.stack([text.target[: len(LABELS)] for text in dev])
    known = ~np.isnan(truths)
    return [
        platt(highest[own, at], truths[own, at]) if own.sum() > 50 else (1.0, 0.0)
        for at, own in enumerate(known.T)
    ]  # fmt: skip


def cost_ms(model: Encoder | Causal, rounds: int = 1000) -> float:
    """Return the median time of a check of new word pieces on one core, in ms, as it would run."""
    if isinstance(model, Encoder):
        opened = session(encoder_graph(model.weights(), model.shape, pooling="mean").SerializeToString())
        feed: Mapping[str, Any] = {
            "input_ids": np.full((1, WINDOW), 9, np.int64), "attention_mask": np.ones((1, WINDOW), np.int64)
        }  # fmt: skip
    else:
        opened = session(step_graph(model, PIECES_A_CHECK))
        feed = {
            own.name: np.full(own.shape, 9, np.int64) if "int64" in own.type else np.zeros(own.shape, np.float32)
            for own in opened.get_inputs()
        }
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        opened.run(None, dict(feed))
        taken.append(time.perf_counter() - began)
    return round(float(np.median(taken[rounds // 10 :])) * 1e3, 3)
