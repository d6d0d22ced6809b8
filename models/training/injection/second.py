"""Version 2.0: what shipped goes on learning, encoder and gate, and thresholds are set by kind of innocent texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import numpy as np

from checkstream.scoring import Model
from checkstream.scoring.catalog import read_manifest
from models.training.corpus import Part
from models.training.export import MODELS, put_entry, session, write_files
from models.training.fit import FitSettings
from models.training.graph import encoder_graph, weights_of
from models.training.injection import joint, kinds, pool, ship
from models.training.injection.abroad import Share
from models.training.injection.distil import Distillation, distilled
from models.training.injection.gate import further
from models.training.injection.material import Material
from models.training.injection.ship import GATE_MISSES, NAME, Pair, Trial, trial
from models.training.injection.teach import Mix

FOLDER = MODELS / NAME
GATE_MIX = Mix(attacks=1200, poisoned=800, innocents=1200, clean=500, pool_innocents=800, source_cap=150)
GATE_ABROAD = Share(runs=1500, clean=500, planted=900, native=1200)
GATE_SETTINGS = FitSettings(seed=43, epochs=1.0, rate=6e-4, batch_tokens=4096)
FINDS = 0.8
"""The encoder's score that counts as found where the gate's threshold is chosen: that of 1.5.0 at 1 %."""
KINDS: Mapping[str, int] = {
    "role-play": 700,
    "games": 600,
    "system prompts": 640,
    "assistants": 680,
    "documents": 900,
    "documents on attacks": 98,
    "code and data": 590,
    "requests": 600,
    "prompts": 900,
    "languages": 900,
    "harmful questions": 303,
}
"""Kind of innocent texts of the pool -> of how many thresholds are chosen. Composed texts are never measured on."""


class SecondFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How the turns went."""

    curve: list[tuple[int, float]]
    gate_curve: list[tuple[int, float]]
    gate_threshold: float


def by_kind(material: Material, part: Part, seed: int) -> Trial:
    """Return a part's texts to choose thresholds by: of the pool, generated ones, and innocent ones of every kind."""
    made = trial(material, part, seed)
    own = [text for text in kinds.innocents(material.folder) if text.part == part and not text.left_out]
    drawn = kinds.drawn(own, KINDS, Random(seed))
    groups = [group if group.startswith("generated") else "pool" for group in made.groups]
    return Trial(
        attacks=made.attacks,
        innocents=[*made.innocents, *(text.text for text in drawn)],
        groups=[*groups, *(text.kind for text in drawn)],
    )


def second(folder: Path, work: Path, base: Path = FOLDER) -> Model:
    """Train what ships further, set its thresholds, write it; takes up where it stopped.

    Args:
        folder: of the pool, which also has the teacher's scores.
        work: keeps checkpoints.
        base: folder of the encoder and the gate that go on.
    """
    tokenizer = (FOLDER / "tokenizer.json").read_text(encoding="utf-8")
    encoder, gate = ((base / name).read_bytes() for name in ("model.onnx", "gate.onnx"))
    material = Material.shipped(folder, tokenizer)
    held = Distillation.of(material, folder / "teacher" / "injection_pieces.jsonl.gz")
    model, progress = distilled(held, weights_of(encoder), work)
    lesson = replace(held.lesson, mix=GATE_MIX, seed=GATE_SETTINGS.seed)
    small, gate_progress = further(
        lesson,
        material.abroad("train", GATE_ABROAD),
        weights_of(gate),
        GATE_SETTINGS,
        work,
        innocents=held.innocents,
        draws=1,
    )
    graph = encoder_graph(model.weights(), model.shape, pooling="mean", level=True)
    gate_graph = encoder_graph(small.weights(), small.shape, pooling="mean")
    pair = Pair(session(graph), session(gate_graph), material)
    found = pair.held(trial(material, "dev", 21).attacks, FINDS)
    limit = round(float(np.quantile(found, GATE_MISSES)), 6)
    write_files(FOLDER, {"model.onnx": graph.SerializeToString(), "gate.onnx": gate_graph.SerializeToString()})
    (entry,) = [model for model in read_manifest(MODELS).models if model.name == NAME]
    rates: list[dict[str, object]] = [
        {"label": NAME, "fpr": rate.fpr, "threshold": rate.threshold} for rate in entry.rates
    ]
    put_entry(ship.entry(ship.Limits(rates, limit)), {file.role: file.path for file in entry.files})
    kept = SecondFigures(curve=progress.curve, gate_curve=gate_progress.curve, gate_threshold=limit)
    (work / "second.json").write_bytes(msgspec.json.format(msgspec.json.encode(kept)))
    return score_together(material)


def score_together(material: Material) -> Model:
    """Set thresholds and curves on texts of the part `dev`, and write them."""
    long = joint.long_texts(pool.prompts(material.folder, "dev"), Random(31))
    return joint.write(by_kind(material, "dev", 21), long)
