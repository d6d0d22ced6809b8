"""A trained encoder -> the files that ship, their manifest entry, and the proof that INT8 decides alike."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime as ort
from numpy.typing import NDArray

from checkstream.scoring.saturation import saturates
from models.training.graph import Float, Shape, Weights, encoder_graph

MODELS = Path(__file__).resolve().parents[1]
"""The folder whose `manifest.json` names every model."""


@dataclass(frozen=True, slots=True)
class Parity:
    """How far INT8 is from float32 on one set of windows."""

    windows: int
    drift_mean: float
    """Mean absolute difference of the scores."""
    drift_p99: float
    flips: float
    """Share of windows that one of the two decides otherwise, at the thresholds that were given."""


def session(model: onnx.ModelProto | bytes) -> ort.InferenceSession:
    """Open a graph as the proxy does: one thread, no spinning, no slow fusion."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    if saturates():  # figures would depend on the machine
        options.add_session_config_entry("session.x64quantprecision", "1")
    data = model if isinstance(model, bytes) else model.SerializeToString()
    return ort.InferenceSession(
        data, options, providers=["CPUExecutionProvider"], disabled_optimizers=["SkipLayerNormFusion"]
    )


def run(
    graph: ort.InferenceSession, windows: Sequence[Sequence[int]], types: Sequence[Sequence[int]] | None = None
) -> list[Float]:
    """Return the logits of each window, run one by one as a quiet proxy does."""
    result: list[Float] = []
    for number, window in enumerate(windows):
        ids = np.array([window], np.int64)
        feed: dict[str, NDArray[np.int64]] = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        if types is not None:
            feed["token_type_ids"] = np.array([types[number]], np.int64)
        (logits,) = graph.run(["logits"], feed)
        result.append(np.asarray(logits, np.float32)[0])
    return result


def sigmoid(logits: Float) -> Float:
    """Return 1 / (1 + exp(-logits)), without overflow."""
    return (1 / (1 + np.exp(-np.clip(logits, -30, 30)))).astype(np.float32)


def softmax(logits: Float) -> Float:
    """Return shares of float32[..., class] that sum to 1."""
    raised = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=-1, keepdims=True), np.float32)


def parity(
    weights: Weights,
    shape: Shape,
    windows: Sequence[Sequence[int]],
    thresholds: Sequence[float],
    *,
    pooling: Literal["mean", "tokens"] = "mean",
    types: Sequence[Sequence[int]] | None = None,
    level: bool = False,
    activation: Callable[[Float], Float] = sigmoid,
) -> Parity:
    """Compare the INT8 graph with the float32 graph of the same weights.

    Args:
        weights: trained parameters, calibration folded in.
        shape: the encoder's size.
        windows: token ids of windows to compare on; one or more.
        thresholds: one a label.
        pooling: as in `encoder_graph`.
        types: token types of the windows, where the shape has them.
        level: as in `encoder_graph`.
        activation: logits -> what the thresholds are for.
    """
    pair = [session(encoder_graph(weights, shape, pooling=pooling, int8=int8, level=level)) for int8 in (True, False)]
    small, full = (np.concatenate([np.atleast_2d(activation(row)) for row in run(one, windows, types)]) for one in pair)
    drift = np.abs(small - full)
    limit = np.array(thresholds, np.float32)
    flips = ((small >= limit) != (full >= limit)).any(axis=1)
    return Parity(len(windows), float(drift.mean()), float(np.quantile(drift, 0.99)), float(flips.mean()))


def write_files(folder: Path, files: Mapping[str, bytes | str]) -> None:
    """Write the files of a model into its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def put_entry(entry: Mapping[str, object], roles: Mapping[str, str], models: Path = MODELS) -> None:
    """Put a model's entry into the manifest, in place of the one of its name, with the hashes of its files.

    Args:
        entry: every field of the entry but `files`.
        roles: role -> path of a file, relative to `models`.
        models: the folder of the manifest.
    """
    files: list[dict[str, str | int]] = []
    for role, path in roles.items():
        data = (models / path).read_bytes()
        files.append({"role": role, "path": path, "sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)})
    manifest_path = models / "manifest.json"
    known: list[Mapping[str, object]] = []
    if manifest_path.exists():
        known = json.loads(manifest_path.read_text())["models"]
    kept = [other for other in known if other["name"] != entry["name"]]
    ordered = sorted([*kept, {**entry, "files": files}], key=lambda other: str(other["name"]))
    manifest_path.write_text(json.dumps({"version": 1, "models": ordered}, indent=2) + "\n")
