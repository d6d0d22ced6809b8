"""A trained encoder and its gate -> calibrated files, thresholds, manifest entry, and what the card says of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import onnxruntime as ort

from checkstream.evaluation.figures import Interval, expected_calibration_error, rate_at
from checkstream.scoring.catalog import Model
from checkstream.scoring.manifest import ModelEntry, ModelFile
from models.training import calibrate, export
from models.training.corpus import Part
from models.training.encoder import Encoder
from models.training.export import Parity, put_entry, session, sigmoid, write_files
from models.training.graph import Float, Weights, encoder_graph
from models.training.injection import pool
from models.training.injection.generate import Generator
from models.training.injection.material import Material
from models.training.injection.measure import by_group, elsewhere, figures, text_logits, window_logits
from models.training.injection.pool import FOLDS
from models.training.injection.train import opened
from models.training.injection.windows import OVERLAP, WINDOW

NAME = "injection"
VERSION = "2.0.0"
_ROLES = {"graph": "model.onnx", "gate": "gate.onnx", "tokenizer": "tokenizer.json"}
"""Role of a file -> its name."""
GATE_ABOVE = 12
"""Windows of so many pieces or fewer go to the encoder: what the gate clears of them, it clears for want of words."""
GATE_MISSES = 0.0075
"""Share of what the encoder finds on dev texts at 1 % that the gate may clear; the limit on unseen texts is 2 %. It was
0.015 before the gate's third turn, which has the room: attacks of unseen kinds are cleared more often than these."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Texts of one part to calibrate on or to measure with."""

    attacks: Sequence[str]
    innocents: Sequence[str]
    groups: Sequence[str]
    """Of the innocent texts: the set of each."""


class ShippedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What the model that ships does on texts of the part `test`, of sources that it knows."""

    figures: dict[str, Interval]
    innocents: dict[str, tuple[int, float]]
    elsewhere: dict[str, tuple[int, float]]
    rates: list[dict[str, float]]
    calibration_error: float
    drift: float
    flips: float
    gate_threshold: float
    gate_misses: float
    """Share of the attacks that the encoder finds at 1 %, and whose every window that fires the gate clears."""
    gate_doubts: float
    """Share of innocent texts of which the gate doubts a window."""
    gate_doubts_prompts: float
    """The same of what users ask (no documents, nothing generated to be hard)."""
    curve: list[tuple[int, float]]
    gate_curve: list[tuple[int, float]]


def trial(material: Material, part: Part, seed: int, fold: str | None = None) -> Trial:
    """Return texts of a part: from the pool without a fold's sources, and generated around bodies of that part."""
    random = Random(seed)
    withheld = [text.text for text in material.left_out(fold)] if fold is not None else []
    generator = Generator(pool.slots(material.folder, withheld), pool.bodies(material.folder, part))
    sources = FOLDS[fold] if fold is not None else ()
    attacks = [text.text for text in material.attacks if text.part == part and text.source not in sources]
    attacks += [text.text for text in (*generator.attacks(500, random), *generator.poisoned(400, random))]
    known = [text for text in material.innocents if text.part == part]
    hard = [text.text for text in generator.innocents(700, random)]
    clean = [text.text for text in generator.clean(500, random)]
    return Trial(
        attacks,
        [*(text.text for text in known), *hard, *clean],
        [
            *(text.source for text in known),
            *["generated: innocent"] * len(hard),
            *["generated: documents"] * len(clean),
        ],
    )


def calibrated(model: Encoder, material: Material, dev: Trial) -> Weights:
    """Return the weights with a head whose sigmoid is a probability on dev texts."""
    graph = opened(model)
    attacks = text_logits(graph, material.cutter, dev.attacks)
    innocents = text_logits(graph, material.cutter, dev.innocents)
    truths = np.concatenate([np.ones(len(attacks)), np.zeros(len(innocents))]).astype(np.float32)
    fit = calibrate.platt(np.concatenate([attacks, innocents]), truths)
    weights = model.weights()
    weights["head.weight"], weights["head.bias"] = calibrate.folded(weights["head.weight"], weights["head.bias"], [fit])
    return weights


@dataclass(frozen=True, slots=True)
class Limits:
    """From which scores on the model acts."""

    rates: list[dict[str, object]]
    """As in the manifest."""
    gate: float

    @property
    def default(self) -> float:
        """The threshold at 1 % false positives."""
        return next(float(str(rate["threshold"])) for rate in self.rates if rate["fpr"] == 0.01)


@dataclass(frozen=True, slots=True)
class Pair:
    """The two graphs that decide together."""

    encoder: ort.InferenceSession
    gate: ort.InferenceSession
    material: Material

    def scores(self, texts: Sequence[str]) -> Float:
        """Return the encoder's probability of each text."""
        return sigmoid(text_logits(self.encoder, self.material.cutter, texts))

    def doubts(self, texts: Sequence[str]) -> Float:
        """Return the gate's probability of each text."""
        return sigmoid(text_logits(self.gate, self.material.cutter, texts))

    def held(self, texts: Sequence[str], threshold: float) -> Float:
        """Return the gate's highest probability of the windows that fire, of each text that has any."""
        cutter = self.material.cutter
        fires = [sigmoid(row) >= threshold for row in window_logits(self.encoder, cutter, texts)]
        doubts = [sigmoid(row) for row in window_logits(self.gate, cutter, texts)]
        return np.array([row[hot].max() for row, hot in zip(doubts, fires, strict=True) if hot.any()], np.float32)


def ship(
    material: Material, model: Encoder, gate: Encoder, curves: Sequence[list[tuple[int, float]]]
) -> ShippedFigures:
    """Calibrate, export and measure; writes the files and the manifest entry.

    Args:
        material: what was read.
        model: the trained encoder.
        gate: its gate.
        curves: learning curves of the two.
    """
    dev, test = trial(material, "dev", 21), trial(material, "test", 22)
    weights = calibrated(model, material, dev)
    graph = encoder_graph(weights, model.shape, pooling="mean", level=True)
    gate_graph = encoder_graph(gate.weights(), gate.shape, pooling="mean")
    pair = Pair(session(graph), session(gate_graph), material)
    limits = limits_of(pair, dev)
    same = _parity(weights, model, material, test, limits.default)
    files: dict[str, bytes | str] = {
        "model.onnx": graph.SerializeToString(),
        "gate.onnx": gate_graph.SerializeToString(),
        "tokenizer.json": material.tokenizer,
    }
    _write(files, limits)
    return _measured(pair, test, limits, same, curves)


def limits_of(pair: Pair, dev: Trial) -> Limits:
    """Return the thresholds of an encoder at its false-positive rates, and of its gate by what that may clear."""
    rates = calibrate.rates(pair.scores(dev.innocents)[:, None], [NAME])
    held = pair.held(dev.attacks, Limits(rates, 0.0).default)
    return Limits(rates, round(float(np.quantile(held, GATE_MISSES)), 6))


def _parity(weights: Weights, model: Encoder, material: Material, test: Trial, threshold: float) -> Parity:
    random = Random(1)
    texts = [text for half in (test.attacks, test.innocents) for text in random.sample(half, min(1200, len(half)))]
    windows = [material.cutter.windows(ids)[0] for ids in material.cutter.pieces(texts)]
    return export.parity(weights, model.shape, windows, [threshold], level=True)


def _measured(
    pair: Pair, test: Trial, limits: Limits, same: Parity, curves: Sequence[list[tuple[int, float]]]
) -> ShippedFigures:
    threshold = limits.default
    attacks, innocents = pair.scores(test.attacks), pair.scores(test.innocents)
    doubts = pair.doubts(test.innocents)
    asked = np.array([group.startswith(("benign/", "domain_")) for group in test.groups])
    return ShippedFigures(
        figures=dict(figures(attacks, innocents)),
        innocents=dict(by_group(innocents, test.groups, threshold)),
        elsewhere=elsewhere(pair.scores, pair.material.folder, threshold),
        rates=[{"fpr": float(str(rate["fpr"])), "threshold": float(str(rate["threshold"]))} for rate in limits.rates],
        calibration_error=expected_calibration_error(attacks, innocents),
        drift=same.drift_mean,
        flips=same.flips,
        gate_threshold=limits.gate,
        gate_misses=1 - rate_at(pair.held(test.attacks, threshold), limits.gate),
        gate_doubts=rate_at(doubts, limits.gate),
        gate_doubts_prompts=rate_at(doubts[asked], limits.gate),
        curve=curves[0],
        gate_curve=curves[1],
    )


def entry(limits: Limits) -> dict[str, object]:
    """Return the manifest's entry but for its files."""
    return {
        "name": NAME,
        "kind": "sequence",
        "version": VERSION,
        "licence": "Apache-2.0",
        "card": f"{NAME}/CARD.md",
        "labels": [NAME],
        "activation": "sigmoid",
        "thresholds": [{"label": NAME, "score": round(limits.default, 6)}],
        "rates": limits.rates,
        "gate_threshold": limits.gate,
        "limits": {
            "window_tokens": WINDOW,
            "overlap_tokens": OVERLAP,
            "gate_tokens": WINDOW,
            "gate_above_tokens": GATE_ABOVE,
        },
        "calibrated": True,
    }


def running(graph: bytes, gate: bytes, tokenizer: str, limits: Limits) -> Model:
    """Return a model as the proxy opens it, its files in memory."""
    contents = {"graph": graph, "gate": gate, "tokenizer": tokenizer.encode()}
    files = [
        ModelFile(role=role, path=_ROLES[role], sha256="0" * 64, bytes=len(data)) for role, data in contents.items()
    ]
    described = {**entry(limits), "files": msgspec.to_builtins(files)}
    return Model(entry=msgspec.convert(described, ModelEntry), contents=contents)


def _write(files: Mapping[str, bytes | str], limits: Limits, models: Path = export.MODELS) -> None:
    write_files(models / NAME, files)
    put_entry(entry(limits), {role: f"{NAME}/{file}" for role, file in _ROLES.items()}, models)
