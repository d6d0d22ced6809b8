"""A trained entity model -> the graph, the tokenizer and the manifest entry that ship."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec
from tokenizers import Tokenizer

from checkstream.scoring.catalog import Model
from checkstream.scoring.manifest import ModelEntry, ModelFile
from models.training.export import MODELS, Parity, parity, put_entry, softmax, write_files
from models.training.graph import encoder_graph
from models.training.ner.encode import ENTITIES, OVERLAP, TAGS, WINDOW, windows_of, words_of
from models.training.ner.recipe import Trained

NAME = "ner"
VERSION = "1.0.0"


def entry() -> dict[str, object]:
    """Return the manifest's entry but for its files."""
    return {
        "name": NAME,
        "kind": "tokens",
        "version": VERSION,
        "licence": "Apache-2.0",
        "card": f"{NAME}/CARD.md",
        "labels": [],
        "columns": list(TAGS),
        "entities": [{"entity": entity, "threshold": 0.5} for entity in ENTITIES],
        "activation": "softmax",
        "token_types": "case",
        "limits": {"window_tokens": WINDOW, "overlap_tokens": OVERLAP},
    }


def loaded(trained: Trained) -> Model:
    """Return a trained model as the proxy loads it, without writing it."""
    graph = _graph(trained)
    files = (
        ModelFile(role="graph", path="model.onnx", sha256="0" * 64, bytes=len(graph)),
        ModelFile(role="tokenizer", path="tokenizer.json", sha256="0" * 64, bytes=len(trained.tokenizer)),
    )
    return Model(
        entry=msgspec.convert({**entry(), "files": msgspec.to_builtins(files)}, ModelEntry),
        contents={"graph": graph, "tokenizer": trained.tokenizer.encode()},
    )


def ship(trained: Trained, models: Path = MODELS) -> int:
    """Write `models/ner` and its manifest entry; returns the size of the graph in bytes."""
    graph = _graph(trained)
    write_files(models / NAME, {"model.onnx": graph, "tokenizer.json": trained.tokenizer})
    put_entry(entry(), {"graph": f"{NAME}/model.onnx", "tokenizer": f"{NAME}/tokenizer.json"}, models)
    return len(graph)


def agreement(trained: Trained, texts: Sequence[str]) -> Parity:
    """Compare INT8 with float32: a decision is whether a tag of a word piece reaches one half."""
    reader = Tokenizer.from_str(trained.tokenizer)
    windows = [window for text in texts for window in windows_of(reader, words_of(reader, text))]
    encoder = trained.encoder
    return parity(
        encoder.weights(),
        encoder.shape,
        [window.ids for window in windows],
        [0.5] * len(TAGS),
        pooling="tokens",
        types=[window.types for window in windows],
        activation=softmax,
    )


def _graph(trained: Trained) -> bytes:
    encoder = trained.encoder
    graph: bytes = encoder_graph(encoder.weights(), encoder.shape, pooling="tokens").SerializeToString()
    return graph
