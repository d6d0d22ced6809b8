"""The gate's third turn: trains it further on other languages, sets its threshold, and says what that changes.

The encoder stays as it is, and so do the thresholds of the manifest: a gate only decides what reaches it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import msgspec
import numpy as np
import onnxruntime as ort
from numpy.typing import NDArray

from checkstream.evaluation.figures import auc, rate_at
from checkstream.scoring.catalog import read_manifest
from checkstream.scoring.gated import CLEARED, FOREIGN
from checkstream.scoring.tokenizer import Tokenizer
from models.training.export import MODELS, put_entry, session, sigmoid
from models.training.fit import FitSettings
from models.training.graph import Float, encoder_graph, weights_of
from models.training.injection import ship
from models.training.injection.abroad import Abroad
from models.training.injection.gate import GATE_MIX, further
from models.training.injection.generate import LANGUAGES
from models.training.injection.joint import encoder_rates
from models.training.injection.material import Material
from models.training.injection.measure import figures, window_logits
from models.training.injection.ship import GATE_ABOVE, GATE_MISSES, NAME

FOLDER = MODELS / NAME
SETTINGS = FitSettings(seed=7, epochs=1.0, rate=8e-4, batch_tokens=4096)
PROMPT_CHARS = 4_000
_PROMPTS = 6
"""Long prompts of each language."""
_NATIVE = 25
"""Attacks in each language of the banks."""


class Language(msgspec.Struct, frozen=True, kw_only=True):
    """Innocent prompts of one language, of the part `test`, joined to `PROMPT_CHARS` characters."""

    windows: float
    """Of a prompt, in the mean."""
    doubted: float
    most: int
    """Windows of a prompt that the gate doubted."""
    fires: tuple[float, float]
    """Share of the prompts that fire at 1 % and at 0.1 %."""


class GateFigures(msgspec.Struct, frozen=True, kw_only=True):
    """What encoder and gate do together."""

    threshold: float
    recall: tuple[float, float, float]
    """Of English attacks of the part `test` at the thresholds of 5, 1 and 0.1 %."""
    false: tuple[float, float, float]
    """Share of innocent texts of the part `test` that fires at them."""
    auc: float
    misses: float
    """Share of the attacks that the encoder finds at 1 %, and whose every window that fires the gate clears."""
    doubts: float
    doubts_prompts: float
    native: dict[str, float]
    """AUC, and recall at false-positive rates, of attacks in other languages against innocent prose of them."""
    native_recall: tuple[float, float, float]
    """The same attacks at the thresholds of the manifest, whatever fires besides."""
    languages: dict[str, Language]
    curve: list[tuple[int, float]]


class Told:
    """Windows of texts under encoder and gate; what the encoder says is asked once."""

    def __init__(self, material: Material, encoder: bytes, texts: Mapping[str, Sequence[str]]) -> None:
        """Ask the encoder about sets of texts."""
        self._material = material
        self._texts = texts
        graph = session(encoder)
        self._foreign = Tokenizer(material.tokenizer.encode()).foreign()
        self._encoder = {name: self._asked(graph, own) for name, own in texts.items()}
        self._limits = {name: [self._limit(ids) for ids in material.cutter.pieces(own)] for name, own in texts.items()}

    def _asked(self, graph: ort.InferenceSession, texts: Sequence[str]) -> list[Float]:
        return [sigmoid(row) for row in window_logits(graph, self._material.cutter, texts)]

    def _limit(self, ids: Sequence[int]) -> Float:
        """Return the least threshold of each window of a text, float32[window].

        Short windows are always read, those of letters that the vocabulary has no words of never.
        """
        windows = self._material.cutter.windows(ids)
        short = np.array([len(window) <= GATE_ABOVE for window in windows])
        foreign = np.array([self._foreign[window].mean() >= FOREIGN for window in windows])
        return np.where(short, -np.inf, np.where(foreign, np.inf, 0.0)).astype(np.float32)

    def doubts(self, gate: bytes) -> dict[str, list[Float]]:
        """Return what a gate says of each window."""
        graph = session(gate)
        return {name: self._asked(graph, own) for name, own in self._texts.items()}

    def held(self, doubts: Mapping[str, Sequence[Float]], name: str, fires: float) -> Float:
        """Return the gate's highest doubt in the windows that fire, of each text that has any."""
        pairs = zip(doubts[name], self._encoder[name], strict=True)
        return np.array([row[said >= fires].max() for row, said in pairs if (said >= fires).any()], np.float32)

    def read(self, doubts: Mapping[str, Sequence[Float]], name: str, threshold: float) -> list[NDArray[np.bool_]]:
        """Return which windows of each text the encoder reads: bool[window]."""
        pairs = zip(doubts[name], self._limits[name], strict=True)
        return [row >= np.where(limit < 0, limit, np.maximum(limit, threshold)) for row, limit in pairs]

    def scores(self, doubts: Mapping[str, Sequence[Float]], name: str, threshold: float, ceiling: float) -> Float:
        """Return the highest score of each text as the proxy gives it; of a cleared window no more than `ceiling`."""
        rows = zip(self.read(doubts, name, threshold), doubts[name], self._encoder[name], strict=True)
        return np.array([np.where(read, said, ceiling * row).max() for read, row, said in rows], np.float32)


def regate(folder: Path, work: Path) -> tuple[GateFigures, GateFigures]:
    """Train the gate that ships further, write it and its threshold; return the figures before and after."""
    tokenizer = (FOLDER / "tokenizer.json").read_text(encoding="utf-8")
    encoder, before = ((FOLDER / name).read_bytes() for name in ("model.onnx", "gate.onnx"))
    material = Material.shipped(folder, tokenizer)
    lesson = replace(material.lesson(None, GATE_MIX, SETTINGS.seed), seed=SETTINGS.seed)
    gate, progress = further(lesson, material.abroad("train"), weights_of(before), SETTINGS, work)
    after = encoder_graph(gate.weights(), gate.shape, pooling="mean").SerializeToString()
    (entry,) = [model for model in read_manifest(MODELS).models if model.name == NAME]
    told = Told(material, encoder, _texts(material))
    limits = ship.Limits(encoder_rates(entry), entry.gate_threshold or 0.0)
    old = _figures(told, told.doubts(before), limits, [])
    doubts = told.doubts(after)
    limits = replace(limits, gate=threshold_of(told, doubts, limits.default))
    (FOLDER / "gate.onnx").write_bytes(after)
    roles = {file.role: file.path for file in entry.files}
    put_entry(ship.entry(limits), roles)
    return old, _figures(told, doubts, limits, progress.curve)


def threshold_of(told: Told, doubts: Mapping[str, Sequence[Float]], fires: float) -> float:
    """Return the gate's threshold: of what the encoder finds on dev texts at 1 %, it may clear `GATE_MISSES`."""
    return round(float(np.quantile(told.held(doubts, "dev attacks", fires), GATE_MISSES)), 6)


def _texts(material: Material) -> dict[str, list[str]]:
    dev, test = ship.trial(material, "dev", 21), ship.trial(material, "test", 22)
    abroad, random = material.abroad("test"), Random(3)
    asked = [text for text, group in zip(test.innocents, test.groups, strict=True) if group.startswith(_ASKED)]
    found = {"dev attacks": [*dev.attacks], "attacks": [*test.attacks], "innocents": [*test.innocents]}
    found |= {"prompts": asked, "native": _native(abroad, random), "prose": _prose(abroad, random)}
    for language in abroad.prose:
        runs = [abroad.run(language, PROMPT_CHARS, random)[:PROMPT_CHARS] for _ in range(_PROMPTS)]
        found[f"long {language}"] = runs
    return found


_ASKED = ("benign/", "domain_")
"""What users ask: no documents, nothing generated to be hard."""


def _native(abroad: Abroad, random: Random) -> list[str]:
    return [abroad.native(language, random).text for language in LANGUAGES for _ in range(_NATIVE)]


def _prose(abroad: Abroad, random: Random) -> list[str]:
    """Return innocent prose of the languages of the attacks, and as long as they are."""
    known = [language for language in LANGUAGES if language in abroad.prose]
    return [abroad.run(language, random.choice((60, 300, 600)), random) for language in known for _ in range(40)]


def _figures(
    told: Told, doubts: Mapping[str, Sequence[Float]], limits: ship.Limits, curve: list[tuple[int, float]]
) -> GateFigures:
    at = [float(str(rate["threshold"])) for rate in limits.rates]
    scores = {name: told.scores(doubts, name, limits.gate, min(at) * CLEARED) for name in doubts}
    languages = {}
    for name in (name for name in doubts if name.startswith("long ")):
        hot = [int(row.sum()) for row in told.read(doubts, name, limits.gate)]
        languages[name.removeprefix("long ")] = Language(
            windows=float(np.mean([len(row) for row in doubts[name]])),
            doubted=float(np.mean(hot)),
            most=max(hot),
            fires=(rate_at(scores[name], at[1]), rate_at(scores[name], at[2])),
        )
    peaks = {name: np.array([row.max() for row in doubts[name]], np.float32) for name in ("innocents", "prompts")}
    found = figures(scores["native"], scores["prose"])
    return GateFigures(
        threshold=limits.gate,
        recall=_three(scores["attacks"], at),
        false=_three(scores["innocents"], at),
        auc=auc(scores["attacks"], scores["innocents"]),
        misses=1 - rate_at(told.held(doubts, "attacks", limits.default), limits.gate),
        doubts=rate_at(peaks["innocents"], limits.gate),
        doubts_prompts=rate_at(peaks["prompts"], limits.gate),
        native={name: figure.value for name, figure in found.items()},
        native_recall=_three(scores["native"], at),
        languages=languages,
        curve=curve,
    )


def _three(scores: Float, at: Sequence[float]) -> tuple[float, float, float]:
    first, second, third = (rate_at(scores, threshold) for threshold in at)
    return first, second, third
