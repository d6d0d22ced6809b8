"""Encoders as graphs: what quantisation costs."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest

from tests.train_packages import TRAIN

pytest.importorskip("onnx", reason=TRAIN)

from models.training.export import run, session
from models.training.graph import Float, Shape, encoder_graph

SHAPE = Shape(vocab=60, layers=2, hidden=32, heads=4, feed=64, positions=16)


def weights(*, outlier: bool = False, seed: int = 0) -> dict[str, Float]:
    """Draw weights; with an outlier, word piece 0 alone drives a neuron far above all others."""
    draw = np.random.default_rng(seed)

    def normal(*size: int) -> Float:
        return (draw.normal(size=size) * 0.3).astype(np.float32)

    found = {"tokens.weight": normal(60, 32), "positions.weight": normal(16, 32)}
    found |= {"head.weight": normal(2, 32), "head.bias": normal(2)}
    norms = ["norm", *(f"layers.{layer}.norm{half}" for layer in range(2) for half in (1, 2))]
    for name in norms:
        found |= {f"{name}.weight": np.ones(32, np.float32), f"{name}.bias": normal(32)}
    parts = {"query": (32, 32), "key": (32, 32), "value": (32, 32), "mix": (32, 32), "wide": (64, 32)}
    for layer in range(2):
        for part, size in {**parts, "narrow": (32, 64)}.items():
            found |= {f"layers.{layer}.{part}.weight": normal(*size), f"layers.{layer}.{part}.bias": normal(size[0])}
    if outlier:
        found["tokens.weight"][:, 31] = 0
        found["tokens.weight"][0, 31] = 8
        for layer in range(2):
            found[f"layers.{layer}.wide.weight"][0] = np.eye(32, dtype=np.float32)[31] * 60
            found[f"layers.{layer}.wide.bias"][0] = -120
            found[f"layers.{layer}.narrow.weight"][:, 0] /= 120
    return found


def drift(drawn: dict[str, Float], pooling: Literal["mean", "tokens"], *, level: bool) -> float:
    """Return how far INT8 is from float32 on the mean."""
    windows = [[0, *((number * 7 + at * 3) % 59 + 1 for at in range(12))] for number in range(40)]
    full = run(session(encoder_graph(drawn, SHAPE, pooling=pooling, int8=False)), windows)
    small = run(session(encoder_graph(drawn, SHAPE, pooling=pooling, level=level)), windows)
    return float(np.mean([np.abs(one - other).mean() for one, other in zip(full, small, strict=True)]))


@pytest.mark.parametrize("pooling", ["mean", "tokens"])
def test_a_token_that_stands_out_costs_the_others_no_precision_once_it_is_levelled(
    pooling: Literal["mean", "tokens"],
) -> None:
    drawn = weights(outlier=True)
    assert drift(drawn, pooling, level=True) < 0.7 * drift(drawn, pooling, level=False)


def test_levelling_costs_nothing_where_no_token_stands_out() -> None:
    drawn = weights()
    assert drift(drawn, "mean", level=True) < 1.3 * drift(drawn, "mean", level=False)


def test_a_token_of_zeros_can_be_levelled() -> None:
    drawn = weights()
    for name in drawn:
        if name.endswith(("norm.weight", "norm.bias", "norm1.weight", "norm1.bias")):
            drawn[name] = np.zeros_like(drawn[name])
    (found,) = run(session(encoder_graph(drawn, SHAPE, pooling="mean", level=True)), [[5, 6, 7]])
    assert np.isfinite(found).all()


def test_float32_is_the_same_graph_levelled_or_not() -> None:
    drawn = weights()
    plain, levelled = (encoder_graph(drawn, SHAPE, pooling="mean", int8=False, level=level) for level in (False, True))
    assert plain.SerializeToString() == levelled.SerializeToString()


def test_levelling_adds_no_weights() -> None:
    drawn = weights()
    plain, levelled = (encoder_graph(drawn, SHAPE, pooling="mean", level=level) for level in (False, True))
    sizes = [sum(len(value.raw_data) for value in model.graph.initializer) for model in (plain, levelled)]
    assert sizes[1] - sizes[0] == np.dtype(np.float32).itemsize
