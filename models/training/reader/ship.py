"""Trained weights -> the files that ship."""

from __future__ import annotations

from pathlib import Path

import msgspec

from checkstream.scoring.catalog import Model
from checkstream.scoring.manifest import ModelEntry, ModelFile
from checkstream.scoring.pairs import PairSession
from models.training.encoder import base_tokenizer
from models.training.export import MODELS, put_entry, write_files
from models.training.graph import Shape, Weights, encoder_graph
from models.training.reader.student import WINDOW

NAME = "reader"
VERSION = "1.0.0"
ENTRY: dict[str, object] = {
    "name": NAME,
    "kind": "pair",
    "version": VERSION,
    "licence": "Apache-2.0",
    "card": f"{NAME}/CARD.md",
    "labels": ["entailment", "contradiction"],
    "activation": "sigmoid",
    "limits": {"window_tokens": WINDOW, "overlap_tokens": 32},
}
"""The manifest's entry but for its files."""


def graph(weights: Weights, shape: Shape, *, int8: bool) -> bytes:
    """Return the graph: [CLS] evidence [SEP] claim [SEP] in, float32[batch, label] out."""
    data: bytes = encoder_graph(weights, shape, pooling="mean", int8=int8, level=True).SerializeToString()
    return data


def opened(described: bytes) -> PairSession:
    """Return a graph as `checkstream` runs it."""
    contents = {"graph": described, "tokenizer": base_tokenizer().read_bytes()}
    files = [ModelFile(role=role, path=role, sha256="0" * 64, bytes=len(data)) for role, data in contents.items()]
    entry = msgspec.convert({**ENTRY, "files": msgspec.to_builtins(files)}, ModelEntry)
    return PairSession(Model(entry=entry, contents=contents))


def ship(described: bytes, models: Path = MODELS) -> None:
    """Write the files and the manifest's entry."""
    write_files(models / NAME, {"model.onnx": described, "tokenizer.json": base_tokenizer().read_bytes()})
    put_entry(ENTRY, {"graph": f"{NAME}/model.onnx", "tokenizer": f"{NAME}/tokenizer.json"}, models)
