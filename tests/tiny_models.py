"""Small models with random weights, built by the recipe's own graph: for tests of what loads and runs them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import yaml
from tokenizers import Tokenizer, processors

from checkstream.scoring.catalog import Model
from checkstream.scoring.manifest import Activation, EntityKind, ModelEntry, ModelFile, ModelKind, ModelLimits
from models.training.graph import Float, Shape, encoder_graph
from tests.tiny_tokenizers import wordpiece

VOCABULARY: int = Tokenizer.from_str(wordpiece().decode()).get_vocab_size()


def weights(shape: Shape, columns: int, seed: int = 0) -> dict[str, Float]:
    """Return random weights under the names of a trained encoder."""
    random = np.random.default_rng(seed)
    matrices = {"head": (columns, shape.hidden)}
    norms = ["norm"]
    for layer in range(shape.layers):
        at = f"layers.{layer}"
        matrices |= {f"{at}.{part}": (shape.hidden, shape.hidden) for part in ("query", "key", "value", "mix")}
        matrices |= {f"{at}.wide": (shape.feed, shape.hidden), f"{at}.narrow": (shape.hidden, shape.feed)}
        norms += [f"{at}.norm1", f"{at}.norm2"]
    made: dict[str, Float] = {
        "tokens.weight": random.standard_normal((shape.vocab, shape.hidden), np.float32),
        "positions.weight": random.standard_normal((shape.positions, shape.hidden), np.float32) * np.float32(0.25),
        "types.weight": random.standard_normal((max(shape.types, 1), shape.hidden), np.float32),
    }
    for name, (height, width) in matrices.items():
        made[f"{name}.weight"] = random.standard_normal((height, width), np.float32) * np.float32(2 / np.sqrt(width))
        made[f"{name}.bias"] = np.zeros(height, np.float32)
    for name in norms:
        made |= {
            f"{name}.weight": np.ones(shape.hidden, np.float32),
            f"{name}.bias": np.zeros(shape.hidden, np.float32),
        }
    return made


def graph(
    columns: int,
    *,
    pooling: Literal["mean", "tokens"] = "mean",
    positions: int = 64,
    types: int = 0,
    seed: int = 0,
    vocabulary: int = VOCABULARY,
    changed: Mapping[str, Float] | None = None,
) -> bytes:
    """Return a graph of one layer; `changed` replaces some of its weights."""
    shape = Shape(vocabulary, layers=1, hidden=16, heads=2, feed=32, positions=positions, types=types)
    model = encoder_graph({**weights(shape, columns, seed), **(changed or {})}, shape, pooling=pooling)
    data: bytes = model.SerializeToString()
    return data


def encoder(seed: int = 0, changed: Mapping[str, Float] | None = None) -> bytes:
    """Return a graph of one layer without a head: float32[batch, token, 16]; `changed` replaces some of its weights."""
    shape = Shape(VOCABULARY, layers=1, hidden=16, heads=2, feed=32, positions=64)
    bare = {name: value for name, value in weights(shape, 1, seed).items() if not name.startswith("head.")}
    data: bytes = encoder_graph({**bare, **(changed or {})}, shape, pooling="tokens", level=True).SerializeToString()
    return data


def pair_tokenizer(pair: str = "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1") -> bytes:
    """Return a tokenizer that frames pairs, by default as BERT's does."""
    library = Tokenizer.from_str(wordpiece().decode())
    library.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair=pair, special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return library.to_str().encode()


def embedding(contents: Mapping[str, bytes], *, dimensions: int = 16, window_tokens: int = 32) -> Model:
    """Return a model that gives vectors, as if its files had been verified."""
    return model(
        contents,
        kind=ModelKind.EMBEDDING,
        labels=(),
        activation=None,
        window_tokens=window_tokens,
        overlap_tokens=0,
        dimensions=dimensions,
    )


def model(
    contents: Mapping[str, bytes],
    *,
    kind: ModelKind = ModelKind.SEQUENCE,
    labels: Sequence[str] = ("toxicity", "hate"),
    window_tokens: int = 32,
    overlap_tokens: int = 8,
    gate_tokens: int = 16,
    gate_above_tokens: int = 0,
    activation: Activation | None = Activation.SIGMOID,
    entities: Sequence[EntityKind] = (),
    columns: Sequence[str] = (),
    **more: object,
) -> Model:
    """Return a model with this content, as if its files had been verified."""
    entry = ModelEntry(
        name="tiny",
        kind=kind,
        version="1.0.0",
        licence="none",
        card="none",
        labels=tuple(labels),
        limits=ModelLimits(
            window_tokens=window_tokens,
            overlap_tokens=overlap_tokens,
            gate_tokens=gate_tokens,
            gate_above_tokens=gate_above_tokens,
        ),
        files=tuple(ModelFile(role=role, path=role, sha256="0" * 64, bytes=1) for role in contents),
        activation=activation,
        entities=tuple(entities),
        columns=tuple(columns),
        **more,  # type: ignore[arg-type]
    )
    return Model(entry=entry, contents=contents)


def own_pairs(folder: Path) -> Path:
    """Write a `models.yaml` with a model of pairs, `nli`, still to be pulled; return the file."""
    (folder / "model.onnx").write_bytes(graph(3, types=2))
    (folder / "tokenizer.json").write_bytes(pair_tokenizer())
    named = {"0": "CONTRADICTION", "1": "ENTAILMENT", "2": "NEUTRAL"}
    (folder / "config.json").write_text(json.dumps({"id2label": named}))
    nli = {
        "name": "nli",
        "kind": "pair",
        "source": {"path": "."},
        "activation": "softmax",
        "labels": {name: name.lower() for name in named.values()},
        "window_tokens": 32,
        "overlap_tokens": 4,
    }
    file = folder / "models.yaml"
    file.write_text(yaml.safe_dump({"models": [nli]}))
    return file
