"""Pretrained weights -> the files that ship."""

from __future__ import annotations

from pathlib import Path

import msgspec

from checkstream.scoring.catalog import Model
from checkstream.scoring.manifest import ModelEntry, ModelFile
from checkstream.scoring.sentence_encoder import SentenceEncoder
from models.training.encoder import base_tokenizer, minilm_l6
from models.training.export import MODELS, put_entry, write_files
from models.training.graph import Shape, encoder_graph

NAME = "embedding"
VERSION = "1.0.0"
WINDOW = 256
"""What the model was made for; it has positions for 512."""
SHAPE = Shape(vocab=30_522, layers=6, hidden=384, heads=12, feed=1536, positions=512)
ENTRY: dict[str, object] = {
    "name": NAME,
    "kind": "embedding",
    "version": VERSION,
    "licence": "Apache-2.0",
    "card": f"{NAME}/CARD.md",
    "labels": [],
    "dimensions": SHAPE.hidden,
    "limits": {"window_tokens": WINDOW},
}
"""The manifest's entry but for its files."""


def graph(*, int8: bool) -> bytes:
    """Return the graph: token ids in, float32[batch, token, dimension] out, before any pooling."""
    data: bytes = encoder_graph(minilm_l6(), SHAPE, pooling="tokens", int8=int8, level=True).SerializeToString()
    return data


def encoder(*, int8: bool) -> SentenceEncoder:
    """Return the model as `checkstream` runs it, in INT8 or in float32."""
    contents = {"graph": graph(int8=int8), "tokenizer": base_tokenizer().read_bytes()}
    files = [ModelFile(role=role, path=role, sha256="0" * 64, bytes=len(data)) for role, data in contents.items()]
    entry = msgspec.convert({**ENTRY, "files": msgspec.to_builtins(files)}, ModelEntry)
    return SentenceEncoder(Model(entry=entry, contents=contents))


def ship(models: Path = MODELS) -> None:
    """Write the files and the manifest's entry."""
    files = {"model.onnx": graph(int8=True), "tokenizer.json": base_tokenizer().read_bytes()}
    write_files(models / NAME, files)
    put_entry(ENTRY, {"graph": f"{NAME}/model.onnx", "tokenizer": f"{NAME}/tokenizer.json"}, models)
