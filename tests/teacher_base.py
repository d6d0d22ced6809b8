"""A tiny base of MPNet's kind with random weights, for tests of the recipe of teachers."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import pytest

from models.training.graph import Shape
from tests.teacher_pool import SPECIAL, WORDS, tokenizer
from tests.train_packages import TRAIN

if TYPE_CHECKING:
    from models.training.teacher.bases import Base

SHAPE = Shape(vocab=len(SPECIAL) + len(WORDS), layers=2, hidden=16, heads=2, feed=32, positions=320)


def named_as_mpnet(seed: int = 1) -> dict[str, np.ndarray]:
    """Return random weights under the names of MPNet's own files."""
    random, wide, feed = np.random.default_rng(seed), SHAPE.hidden, SHAPE.feed
    sizes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (SHAPE.vocab, wide),
        "embeddings.position_embeddings.weight": (SHAPE.positions + 2, wide),
        "encoder.relative_attention_bias.weight": (32, SHAPE.heads),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(SHAPE.layers):
        own = f"encoder.layer.{layer}"
        norms += [f"{own}.attention.LayerNorm", f"{own}.output.LayerNorm"]
        matrices = {f"attention.attn.{part}": (wide, wide) for part in "qkvo"}
        for name, (out, into) in {**matrices, "intermediate.dense": (feed, wide), "output.dense": (wide, feed)}.items():
            sizes |= {f"{own}.{name}.weight": (out, into), f"{own}.{name}.bias": (out,)}
    weights = {name: random.normal(scale=0.2, size=size).astype(np.float32) for name, size in sizes.items()}
    for name in norms:
        weights |= {f"{name}.weight": np.ones(wide, np.float32), f"{name}.bias": np.zeros(wide, np.float32)}
    return weights


def tiny_base() -> Base:
    """Return the base `tiny`; skips the test where the extra `train` is missing."""
    for package in ("torch", "safetensors", "onnx"):
        pytest.importorskip(package, reason=TRAIN)
    from safetensors.numpy import save

    from models.training.teacher.bases import Base, Files, mpnet_named
    from models.training.teacher.mpnet import Mpnet

    files = Files(save(named_as_mpnet()), tokenizer().encode())
    hashes = {name: hashlib.sha256(getattr(files, name)).hexdigest() for name in ("weights", "tokenizer")}
    return Base(name="tiny", shape=SHAPE, build=Mpnet, read=lambda: files, named=mpnet_named, sha256=hashes)
