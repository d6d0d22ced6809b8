"""The training from end to end: corpus, teacher, student, calibration, and the files that ship."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.training.calibrate import folded, platt, rates, threshold_at
from models.training.corpus import Part
from models.training.encoder import Encoder, base_tokenizer, minilm_l3, prune_vocabulary
from models.training.export import MODELS, parity, put_entry, run, session, sigmoid, write_files
from models.training.fit import Example, predict
from models.training.graph import Float, Weights, encoder_graph
from models.training.safety.assemble import corpus
from models.training.safety.checks import Score, checked
from models.training.safety.distil import plain_tokenizer, teach, train_student, train_teacher
from models.training.safety.labels import ANY, LABELS, Text
from models.training.safety.sources import is_harmful
from models.training.safety.student import SYMBOLS, VOCABULARY, new_student, student_shape
from models.training.safety.symbols import common_symbols, symbol_rows, with_symbols
from models.training.safety.windows import WINDOW, sampled

NAME = "safety"
VERSION = "1.0.0"


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a training learns from."""

    teacher_share: float = 1.0
    """Of the limits by source; 0: no teacher, the student learns from the texts' own labels."""
    teacher_epochs: float = 1.0
    windows: int = 64_000
    """That the student learns from."""
    student_epochs: float = 2.5
    dev_texts: int = 6000
    """That calibrate it."""


FULL = Effort(teacher_share=0.75)
FOLD = Effort(teacher_share=0, windows=26_000, student_epochs=2)
"""A fold learns from less and without a teacher: it only measures, and a little low."""


@dataclass
class Trained:
    """A student with the tokenizer that feeds it."""

    model: Encoder
    described: str
    """Its `tokenizer.json`."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer; it neither cuts nor pads."""
        return plain_tokenizer(self.described)

    def logits(self, windows: Sequence[Sequence[int]]) -> Float:
        """Return float32[window, label] of the float model."""
        nothing = np.zeros(ANY + 1, np.float32)
        return np.stack(predict(self.model, [Example(ids, nothing) for ids in windows]))


def train(
    parts: dict[Part, list[Text]],
    seed: int,
    effort: Effort,
    work: Path,
    *,
    layers: Sequence[int] = (0, 1),
    feed: int = 768,
) -> Trained:
    """Train a teacher and its student; either goes on where it was cut off.

    Args:
        parts: the corpus; only its part `train` is learnt from.
        seed: of every choice.
        effort: how much to learn from.
        work: where checkpoints are kept; one folder for one training.
        layers: of the pretrained encoder, which the student starts from.
        feed: neurons of each of the student's feed-forward halves.
    """
    texts = parts["train"]
    base = minilm_l3()
    described, rows = prune_vocabulary((text.text for text in texts), VOCABULARY, special_tokens=False)
    symbols = common_symbols((text.text for text in texts), described, SYMBOLS)
    if symbols:
        described = with_symbols(described, symbols)
        table = base["tokens.weight"]
        own = symbol_rows(symbols, plain_tokenizer(base_tokenizer().read_text()), table)
        base["tokens.weight"] = np.concatenate([table, own])
        rows = np.concatenate([rows, len(table) + np.arange(len(symbols))])
    teacher = None
    if effort.teacher_share:
        teacher, _ = train_teacher(
            texts, seed, share=effort.teacher_share, epochs=effort.teacher_epochs, checkpoint=work / "teacher.pt"
        )
    random = Random(seed)
    windows = list(sampled(texts, plain_tokenizer(described), WINDOW, random))
    random.shuffle(windows)
    examples = teach(windows[: effort.windows], texts, teacher, work / "teacher_scores.npy")
    student = new_student(student_shape(len(rows), len(layers), feed), base, layers, rows)
    train_student(student, examples, seed, epochs=effort.student_epochs, rate=3e-4, checkpoint=work / "student.pt")
    return Trained(student, described)


def calibrate(trained: Trained, dev: Sequence[Text]) -> Weights:
    """Fold calibration into the head: the highest score of a text's checks becomes a probability.

    Args:
        trained: the student.
        dev: texts that it did not learn from.

    Returns:
        Its weights with the calibrated head.
    """
    highest = np.stack([text.highest for text in checked([t.text for t in dev], trained.tokenizer, trained.logits)])
    truths = np.stack([text.target[: len(LABELS)] for text in dev])
    fits = []
    for column in range(len(LABELS)):
        known = ~np.isnan(truths[:, column])
        fits.append(platt(highest[known, column], truths[known, column]) if known.sum() > 50 else (1.0, 0.0))
    weights = dict(trained.model.weights())
    weights["head.weight"], weights["head.bias"] = folded(weights["head.weight"], weights["head.bias"], fits)
    return weights


def scorer(graph: bytes) -> Score:
    """Return how a graph scores windows: calibrated probabilities, each window run by itself as the proxy runs it."""
    opened = session(graph)

    def score(windows: Sequence[Sequence[int]]) -> Float:
        return sigmoid(np.stack(run(opened, windows)))

    return score


def benign(texts: Sequence[Text]) -> list[Text]:
    """Return the texts that do no harm at all, for thresholds: what an assistant may well say, and calm comments."""
    return [
        text
        for text in texts
        if is_harmful(text) is False and text.source not in {"edos", "hatemoji", "hh", "btc", "wnut17"}
    ]


def ship(trained: Trained, dev: Sequence[Text], models: Path = MODELS) -> dict[str, Any]:
    """Calibrate, quantise, compare with float32, and write the files of the model and its entry.

    Args:
        trained: the student.
        dev: texts that it did not learn from.
        models: the folder of the manifest.

    Returns:
        Figures of the export: parity, thresholds, bytes.
    """
    weights, shape = calibrate(trained, dev), trained.model.shape
    graph = encoder_graph(weights, shape, pooling="mean").SerializeToString()
    score = scorer(graph)
    calm = [text.text for text in benign(dev)]
    scores = np.stack([text.highest for text in checked(calm, trained.tokenizer, score)])
    found = rates(scores, LABELS)
    limits = dict.fromkeys(LABELS, 0.5)  # what is likelier than not, unless that alone would cost over 1 %
    for row in found:
        if row["fpr"] == 0.01:
            limits[str(row["label"])] = max(0.5, float(str(row["threshold"])))
    windows = _windows(trained.tokenizer, [text.text for text in dev[:1500]])
    same = parity(weights, shape, windows, [limits[label] for label in LABELS])
    write_files(models / NAME, {"model.onnx": graph, "tokenizer.json": trained.described})
    put_entry(
        {
            "name": NAME,
            "kind": "sequence",
            "version": VERSION,
            "licence": "Apache-2.0",
            "card": f"{NAME}/CARD.md",
            "labels": list(LABELS),
            "activation": "sigmoid",
            "thresholds": [{"label": label, "score": limits[label]} for label in LABELS],
            "rates": found,
            "limits": {"window_tokens": WINDOW, "overlap_tokens": WINDOW // 2},
            "calibrated": True,
        },
        {"graph": f"{NAME}/model.onnx", "tokenizer": f"{NAME}/tokenizer.json"},
        models,
    )
    whole = np.asarray(scores.max(axis=1), np.float32)
    anything = {str(rate): threshold_at(whole, rate) for rate in (0.05, 0.01, 0.001)}
    return {
        "benign_dev_texts": len(calm),
        "parity": {"windows": same.windows, "mean": same.drift_mean, "p99": same.drift_p99, "flips": same.flips},
        "any_harm_thresholds": anything,
        "rates": found,
        "bytes": {"model.onnx": len(graph), "tokenizer.json": len(trained.described.encode())},
    }


def _windows(tokenizer: Tokenizer, texts: Sequence[str]) -> list[list[int]]:
    """Return the last window of each text."""
    return [encoding.ids[-WINDOW:] for encoding in tokenizer.encode_batch(list(texts)) if encoding.ids]


def build(folder: Path, seed: int, work: Path, models: Path = MODELS, effort: Effort = FULL) -> dict[str, Any]:
    """Rebuild the model that ships.

    Args:
        folder: of the pool.
        seed: of every choice.
        work: where checkpoints are kept.
        models: where the model goes.
        effort: how much to learn from.
    """
    parts = corpus(folder, seed)
    trained = train(parts, seed, effort, work / "all")
    found = ship(trained, parts["dev"][: effort.dev_texts], models)
    write_files(work, {"export.json": json.dumps(found, indent=1)})
    return found
