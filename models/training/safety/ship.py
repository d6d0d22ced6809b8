"""The files that ship: the calibrated model, the gate before it, their thresholds, and the entry of both."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from models.training.calibrate import rates
from models.training.corpus import Part, part_of
from models.training.export import MODELS, parity, put_entry, run, session, sigmoid, write_files
from models.training.graph import Float, encoder_graph
from models.training.safety.assemble import corpus
from models.training.safety.checks import Score, checked
from models.training.safety.distil import plain_tokenizer
from models.training.safety.gate import GATE_WINDOW, doubt, threshold, train_gate
from models.training.safety.labels import OUTPUTS, Text
from models.training.safety.recipe import (
    FULL,
    Effort,
    Trained,
    benign,
    calibrate,
    kinds,
    scorer,
    started,
    taught_on,
    train,
)
from models.training.safety.taught import added
from models.training.safety.windows import OVERLAP, WINDOW, sampled
from models.training.teacher.safety import UNSURE

NAME = "safety"
VERSION = "3.0.0"

CLEARED = 0.1
"""What a window that the gate clears can reach at most, as a share of the lowest threshold of its label."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """The model that ships, behind its gate, as the proxy runs the two."""

    tokenizer: Tokenizer
    model: Score
    gate: Score
    """Windows of any size -> float32[window, 1], the gate's doubt of their ends."""
    at: float
    """From this doubt on the model is asked."""
    ceiling: Float
    """float32[label]"""

    @classmethod
    def shipped(cls, models: Path = MODELS) -> Cascade:
        """Open the files of the manifest."""
        entries = json.loads((models / "manifest.json").read_text())["models"]
        entry = next(entry for entry in entries if entry["name"] == NAME)
        files = {file["role"]: (models / file["path"]).read_bytes() for file in entry["files"]}
        return cls(
            plain_tokenizer(files["tokenizer"].decode()),
            scorer(files["graph"]),
            gate_scorer(files["gate"]),
            float(entry["gate_threshold"]),
            ceilings([*entry["rates"], *({**row, "threshold": row["score"]} for row in entry["thresholds"])]),
        )

    def score(self, windows: Sequence[Sequence[int]]) -> Float:
        """Return float32[window, label]."""
        doubts = self.gate(windows)
        scores = np.asarray(doubts / self.at * self.ceiling, np.float32)
        asked = np.flatnonzero(doubts[:, 0] >= self.at).tolist()
        if asked:
            scores[asked] = self.model([windows[at] for at in asked])
        return scores


def gate_scorer(graph: bytes) -> Score:
    """Return how the gate reads windows: their ends, each run by itself."""
    opened = session(graph)

    def score(windows: Sequence[Sequence[int]]) -> Float:
        return sigmoid(np.stack(run(opened, [window[-GATE_WINDOW:] for window in windows])))

    return score


def ceilings(rows: Sequence[Mapping[str, Any]]) -> Float:
    """Return what a cleared window can reach at most, float32[label], by the thresholds of the labels."""
    lowest = [min(float(row["threshold"]) for row in rows if row["label"] == label) for label in OUTPUTS]
    return CLEARED * np.array(lowest, np.float32)


def strictest(found: Sequence[Sequence[Mapping[str, object]]]) -> list[Mapping[str, object]]:
    """Return the highest threshold of each label and rate: no kind of innocent text pays for another.

    Args:
        found: the manifest's `rates`, of all texts and of those of each kind that suffice.
    """
    highest: dict[tuple[str, float], Mapping[str, object]] = {}
    for row in (row for own in found for row in own):
        key = (str(row["label"]), float(str(row["fpr"])))
        if key not in highest or float(str(row["threshold"])) > float(str(highest[key]["threshold"])):
            highest[key] = row
    return list(highest.values())


def ship(
    trained: Trained,
    parts: Mapping[Part, Sequence[Text]],
    *,
    seed: int,
    effort: Effort,
    work: Path,
    models: Path = MODELS,
) -> dict[str, Any]:
    """Calibrate, quantise, compare with float32, train the gate, and write the files of both and their entry.

    Args:
        trained: the student.
        parts: the corpus; the gate learns from the model's opinion of `train`, `dev` calibrates.
        seed: of every choice.
        effort: how much to learn from.
        work: where checkpoints are kept.
        models: the folder of the manifest.

    Returns:
        Figures of the export: parity, thresholds, bytes, the gate.
    """
    dev = parts["dev"][: effort.dev_texts]
    weights, shape = calibrate(trained, dev), trained.model.shape
    graph = encoder_graph(weights, shape, pooling="mean").SerializeToString()
    score = scorer(graph)
    innocent = benign(parts["dev"])
    calm = [text.text for text in innocent]
    scores = np.stack([text.highest for text in checked(calm, trained.tokenizer, score)])
    found = strictest([rates(scores[own], OUTPUTS) for own in kinds(innocent)])
    limits = dict.fromkeys(OUTPUTS, 0.5)  # what is likelier than not, unless that alone would cost over 1 %
    by_rate: dict[float, dict[str, float]] = {}
    for row in found:
        by_rate.setdefault(float(str(row["fpr"])), {})[str(row["label"])] = float(str(row["threshold"]))
    for label, limit in by_rate.get(0.01, {}).items():
        limits[label] = max(0.5, limit)
    windows = [encoding.ids[-WINDOW:] for encoding in trained.tokenizer.encode_batch([t.text for t in dev[:1500]])]
    same = parity(weights, shape, [ids for ids in windows if ids], [limits[label] for label in OUTPUTS])
    gate, told = _gate(trained, parts["train"], score, by_rate.get(0.01, limits), seed=seed, effort=effort, work=work)
    at, figures = _gate_limit(trained, dev, score, gate_scorer(gate), by_rate or {0.01: limits})
    write_files(models / NAME, {"model.onnx": graph, "gate.onnx": gate, "tokenizer.json": trained.described})
    put_entry(
        {
            "name": NAME,
            "kind": "sequence",
            "version": VERSION,
            "licence": "Apache-2.0",
            "card": f"{NAME}/CARD.md",
            "labels": list(OUTPUTS),
            "activation": "sigmoid",
            "thresholds": [{"label": label, "score": limits[label]} for label in OUTPUTS],
            "rates": found,
            "gate_threshold": at,
            "limits": {"window_tokens": WINDOW, "overlap_tokens": OVERLAP, "gate_tokens": GATE_WINDOW},
            "calibrated": True,
        },
        {"graph": f"{NAME}/model.onnx", "gate": f"{NAME}/gate.onnx", "tokenizer": f"{NAME}/tokenizer.json"},
        models,
    )
    sizes = {name: (models / NAME / name).stat().st_size for name in ("model.onnx", "gate.onnx", "tokenizer.json")}
    return {
        "benign_dev_texts": len(calm),
        "parity": {"windows": same.windows, "mean": same.drift_mean, "p99": same.drift_p99, "flips": same.flips},
        "rates": found,
        "gate": {"threshold": at, "windows": told, **figures},
        "bytes": sizes,
    }


def _gate(
    trained: Trained,
    texts: Sequence[Text],
    score: Score,
    limits: Mapping[str, float],
    *,
    seed: int,
    effort: Effort,
    work: Path,
) -> tuple[bytes, int]:
    """Train the gate; return its graph and of how many windows."""
    windows = [list(window.ids) for window in sampled(texts, trained.tokenizer, WINDOW, Random(seed + 1))]
    Random(seed).shuffle(windows)
    windows = windows[: effort.gate_windows]
    kept = work / "gate_doubts.npy"
    if kept.exists():
        doubts: Float = np.load(kept, allow_pickle=False)
    else:
        scores = np.clip(score(windows).astype(np.float64), 1e-7, 1 - 1e-7)
        logits = (np.log(scores) - np.log1p(-scores)).astype(np.float32)
        doubts = doubt(logits, np.array([limits.get(label, 0.5) for label in OUTPUTS], np.float32))
        np.save(kept, doubts)
    table = trained.model.weights()["tokens.weight"]
    gate = train_gate(windows, doubts, table, seed=seed, epochs=effort.gate_epochs, checkpoint=work / "gate.pt")
    return encoder_graph(gate.weights(), gate.shape, pooling="mean").SerializeToString(), len(windows)


def _gate_limit(
    trained: Trained, dev: Sequence[Text], score: Score, gate: Score, limits: Mapping[float, Mapping[str, float]]
) -> tuple[float, dict[str, Any]]:
    """Return from which doubt on the model is asked, and what that costs and loses on dev texts."""
    texts = [text.text for text in dev]
    found, doubts = checked(texts, trained.tokenizer, score), checked(texts, trained.tokenizer, gate)
    rows = {rate: np.array([own.get(label, 0.5) for label in OUTPUTS], np.float32) for rate, own in limits.items()}
    fires = {
        rate: [np.asarray((text.scores >= row).any(axis=1)) for text in found]
        for rate, row in rows.items()
    }  # fmt: skip
    said = [text.scores[:, 0] for text in doubts]
    at = threshold(said, fires[0.01] if 0.01 in fires else next(iter(fires.values())))
    lost = {}
    for rate, own in fires.items():
        caught = [doubt_[fire].max() for doubt_, fire in zip(said, own, strict=True) if fire.any()]
        lost[f"{rate:.1%}"] = round(float(np.mean(np.array(caught) < at)), 4) if caught else None
    calm = {id(text) for text in benign(dev)}
    quiet = np.concatenate(
        [row for text, row in zip(dev, said, strict=True) if id(text) in calm] or [np.zeros(1, np.float32)]
    )
    return at, {"lost": lost, "doubted": round(float((quiet >= at).mean()), 4), "checks": len(quiet)}


def build(
    folder: Path, seed: int, work: Path, models: Path = MODELS, effort: Effort = FULL, *, start: Path | None = None
) -> dict[str, Any]:
    """Rebuild the model that ships.

    Args:
        folder: of the pool.
        seed: of every choice.
        work: where checkpoints are kept.
        models: where the model goes.
        effort: how much to learn from.
        start: a folder with the files of a student that the last passes start from; None: the passes before are made.
    """
    parts = corpus(folder, seed, UNSURE)
    if start is None:
        trained = train(parts, seed, effort, work / "all", more=corpus(folder, seed, UNSURE, wider=True)["train"])
    else:
        trained = started(start)
    dev = [*parts["dev"], *(text for text in added(folder) if part_of(text.group or text.text) == "dev")]
    Random(seed).shuffle(dev)
    parts = {**parts, "dev": dev}
    trained = taught_on(trained, parts["train"], folder, seed=seed, effort=effort, work=work / "all")
    found = ship(trained, parts, seed=seed, effort=effort, work=work / "all", models=models)
    write_files(work, {"export.json": json.dumps(found, indent=1)})
    return found
