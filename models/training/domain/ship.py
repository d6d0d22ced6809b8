"""A trained domain model -> the files that ship, calibrated on texts that its head never saw."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
import numpy as np
import torch
from tokenizers import Tokenizer

from checkstream.evaluation.figures import rate_at
from checkstream.scoring import open_session, read_whole
from checkstream.scoring.catalog import Model
from checkstream.scoring.manifest import ModelEntry, ModelFile
from models.training import corpus
from models.training.calibrate import rates
from models.training.domain.data import CLASSES, Text
from models.training.domain.measure import Classes, Figures, classes_of, figures
from models.training.domain.student import OVERLAP, WINDOW, Student, windows
from models.training.export import MODELS, Parity, parity, put_entry, softmax, write_files
from models.training.graph import Float, encoder_graph

NAME = "domain"
VERSION = "1.1.0"
LABELS = CLASSES[1:]


class Held(msgspec.Struct, frozen=True):
    """What a threshold does on texts that nothing saw."""

    benign: int
    fires: float
    """Share of the texts of no domain that reach it."""
    texts: int
    recall: float
    """Share of the label's texts that reach it."""


class Shipped(msgspec.Struct, frozen=True):
    """Figures of the model that ships."""

    test: list[Figures]
    """On the test part of each source, whose other texts it learnt from, as the proxy reads them."""
    benign: int
    """Texts of no domain of the part `dev` that the thresholds keep to their rates on."""
    rates: list[dict[str, object]]
    held: list[Held]
    """What each of `rates` does on the part `test`, in order."""
    bytes: int
    windows: int
    drift_mean: float
    drift_p99: float
    flips: float
    """Share of windows that INT8 decides otherwise at the 1 % thresholds."""


def tempered(logits: Float, truths: np.ndarray) -> float:
    """Return the factor of the logits that makes probabilities most likely: classes weigh alike."""
    counts = np.bincount(truths, minlength=len(CLASSES))
    weight = 1.0 / counts[truths]
    best, lowest = 1.0, np.inf
    for factor in np.geomspace(0.3, 3.0, 60):
        scaled = logits * factor
        shares = scaled - np.logaddexp.reduce(scaled, axis=1, keepdims=True)
        loss = -float((weight * shares[np.arange(len(truths)), truths]).sum())
        if loss < lowest:
            best, lowest = float(factor), loss
    return best


def put_head(student: Student, weight: Float, bias: Float) -> None:
    """Give a student its head."""
    student.encoder.head = torch.nn.Linear(weight.shape[1], len(bias))
    with torch.no_grad():
        student.encoder.head.weight.copy_(torch.from_numpy(weight))
        student.encoder.head.bias.copy_(torch.from_numpy(bias))


def entry(found: Sequence[dict[str, object]]) -> dict[str, object]:
    """Return the manifest's entry but for its files."""
    return {
        "name": NAME,
        "kind": "sequence",
        "version": VERSION,
        "licence": "Apache-2.0",
        "card": f"{NAME}/CARD.md",
        "labels": list(LABELS),
        "columns": list(CLASSES),
        "activation": "softmax",
        "thresholds": [{"label": label, "score": 0.5} for label in LABELS],
        "rates": list(found),
        "limits": {"window_tokens": WINDOW, "overlap_tokens": OVERLAP},
        "calibrated": True,
    }


def ship(
    student: Student, benign: Mapping[corpus.Part, Sequence[Text]], test: Sequence[Text], models: Path = MODELS
) -> Shipped:
    """Export, calibrate and measure; writes `models/domain` and its manifest entry.

    Args:
        student: with its head, tempered.
        benign: texts of no domain that neither encoder nor head learnt from: of the part `dev` for the thresholds, of
            the part `test` to count what reaches them.
        test: texts of every class that nothing saw.
        models: the folder of the manifest.
    """
    weights, shape = student.encoder.weights(), student.encoder.shape
    graph = encoder_graph(weights, shape, pooling="mean").SerializeToString()
    write_files(models / NAME, {"model.onnx": graph, "tokenizer.json": student.tokenizer})
    scorer = open_session(_model(graph, student.tokenizer))
    quiet = {part: np.stack([read_whole(scorer, text.text).scores for text in benign[part]]) for part in benign}
    found = rates(quiet["dev"], LABELS)
    roles = {"graph": f"{NAME}/model.onnx", "tokenizer": f"{NAME}/tokenizer.json"}
    put_entry(entry(found), roles, models)
    scores = np.stack([read_whole(scorer, text.text).scores for text in test])
    guesses = np.where(scores.max(axis=1) >= 0.5, scores.argmax(axis=1) + 1, 0)
    sources = sorted({text.source for text in test})
    measured = []
    for source in sources:
        own = np.array([text.source == source for text in test])
        truths = classes_of([text for text in test if text.source == source])
        measured.append(figures(source, truths, guesses[own]))
    same = _parity(student, [text.text for text in test][:400], found)
    return Shipped(
        test=measured,
        benign=len(quiet["dev"]),
        rates=found,
        held=held(found, scores, classes_of(test), quiet["test"]),
        bytes=len(graph),
        windows=same.windows,
        drift_mean=same.drift_mean,
        drift_p99=same.drift_p99,
        flips=same.flips,
    )


def held(found: Sequence[dict[str, object]], scores: Float, truths: Classes, benign: Float) -> list[Held]:
    """Return what each threshold does.

    Args:
        found: the manifest's `rates`.
        scores: float32[text, label] of texts of every class.
        truths: int64[text], their columns.
        benign: float32[text, label] of texts of no domain.
    """
    result = []
    for rate in found:
        column, threshold = LABELS.index(str(rate["label"])), float(str(rate["threshold"]))
        own = scores[truths == column + 1, column]
        result.append(Held(len(benign), rate_at(benign[:, column], threshold), len(own), rate_at(own, threshold)))
    return result


def _model(graph: bytes, tokenizer: str) -> Model:
    files = (
        ModelFile(role="graph", path="model.onnx", sha256="0" * 64, bytes=len(graph)),
        ModelFile(role="tokenizer", path="tokenizer.json", sha256="0" * 64, bytes=len(tokenizer)),
    )
    return Model(
        entry=msgspec.convert({**entry(()), "files": msgspec.to_builtins(files)}, ModelEntry),
        contents={"graph": graph, "tokenizer": tokenizer.encode()},
    )


def _parity(student: Student, texts: Sequence[str], found: Sequence[dict[str, object]]) -> Parity:
    """Compare INT8 with float32 at the 1 % thresholds."""
    reader = Tokenizer.from_str(student.tokenizer)
    limits = {str(rate["label"]): float(str(rate["threshold"])) for rate in found if rate["fpr"] == 0.01}
    thresholds = [1.1, *(limits.get(label, 0.5) for label in LABELS)]
    parts = [windows(reader, text)[0] for text in texts]
    encoder = student.encoder
    return parity(encoder.weights(), encoder.shape, parts, thresholds, activation=softmax)
