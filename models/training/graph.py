"""Weights -> the ONNX graph that `serve` runs: dynamic INT8, built node by node.

A graph that an exporter writes runs 1.6 to 1.8 times slower than this one: its quantiser leaves biases outside the
matrix product and its optimiser fuses layer norms into a slow kernel. Here every projection is one
`DynamicQuantizeMatMul` with its bias, attention is spelled out, and token embeddings are INT8 rows with a scale
each. The same weights give a float32 graph (`int8=False`) for the parity check.

Inputs are named as Hugging Face exports name them, so that one session runs both: `input_ids`, `attention_mask` and,
where the shape has types, `token_type_ids`, int64[batch, token]; the output is `logits`, float32[batch, label] or
float32[batch, token, label].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Float = NDArray[np.float32]
Weights = Mapping[str, Float]
"""Names as in `encoder.Encoder.state_dict()`; matrices are [out, in], as torch keeps them."""

OPSET = 17
IR_VERSION = 10


@dataclass(frozen=True)
class Shape:
    """The size of an encoder."""

    vocab: int
    layers: int
    hidden: int
    heads: int
    feed: int
    """Width of the feed-forward layer."""
    positions: int
    embedding: int = 0
    """Width of the token embeddings where they are projected to `hidden`; 0: they are `hidden` wide."""
    activation: Literal["gelu", "relu"] = "gelu"
    types: int = 0
    """Kinds of word piece that `token_type_ids` tells apart (their case, say); 0: the graph has no such input."""


@dataclass
class _Graph:
    """A graph under construction: values by name, nodes in order."""

    int8: bool
    level: bool = False
    """Each token is brought to one magnitude before it is quantised."""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    values: list[onnx.TensorProto] = field(default_factory=list)
    count: int = 0

    def constant(self, name: str, value: NDArray[np.generic]) -> str:
        self.values.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def put(self, operator: str, *inputs: str, domain: str = "", **attributes: float | Sequence[int]) -> str:
        self.count += 1
        output = f"{operator.lower()}_{self.count}"
        node = helper.make_node(operator, list(inputs), [output], output, domain=domain)
        node.attribute.extend(helper.make_attribute(name, value) for name, value in attributes.items())
        self.nodes.append(node)
        return output

    def levelled(self, x: str) -> tuple[str, str | None]:
        """Divide each token by its highest magnitude, where the graph does so; also return what it was divided by."""
        if not self.level:
            return x, None
        peak = self.put("ReduceMax", self.put("Abs", x), axes=[-1], keepdims=1)
        peak = self.put("Max", peak, "least")  # a token may be all zeros
        return self.put("Div", x, peak), peak

    def linear(self, x: str, name: str, weights: Weights, peak: str | None = None) -> str:
        """Multiply by `name.weight`, and by the `peak` of `levelled`, and add `name.bias`; INT8: one scale a column."""
        matrix, bias = weights[f"{name}.weight"].T, weights[f"{name}.bias"]
        if not self.int8:
            product = self.put("MatMul", x, self.constant(f"{name}.weight", matrix))
            return self.put("Add", product, self.constant(f"{name}.bias", bias))
        scale = np.maximum(np.abs(matrix).max(axis=0), 1e-8) / 127
        quantised = np.clip(np.rint(matrix / scale), -127, 127).astype(np.int8)
        small = self.constant(f"{name}.weight", quantised), self.constant(f"{name}.scale", scale.astype(np.float32))
        added = self.constant(f"{name}.bias", bias)
        if peak is None:
            return self.put("DynamicQuantizeMatMul", x, *small, "", added, domain="com.microsoft")
        product = self.put("DynamicQuantizeMatMul", x, *small, domain="com.microsoft")
        return self.put("Add", self.put("Mul", product, peak), added)

    def norm(self, x: str, name: str, weights: Weights) -> str:
        scale = self.constant(f"{name}.weight", weights[f"{name}.weight"])
        bias = self.constant(f"{name}.bias", weights[f"{name}.bias"])
        return self.put("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def rows(self, ids: str, name: str, weights: Weights) -> str:
        """Look up embedding rows; INT8 with one scale a row."""
        table = weights[f"{name}.weight"]
        if not self.int8:
            return self.put("Gather", self.constant(f"{name}.weight", table), ids)
        scale = np.maximum(np.abs(table).max(axis=1, keepdims=True), 1e-8) / 127
        quantised = np.clip(np.rint(table / scale), -127, 127).astype(np.int8)
        row = self.put("Gather", self.constant(f"{name}.weight", quantised), ids)
        row = self.put("Cast", row, to=TensorProto.FLOAT)
        return self.put("Mul", row, self.put("Gather", self.constant(f"{name}.scale", scale.astype(np.float32)), ids))


def encoder_graph(
    weights: Weights, shape: Shape, *, pooling: Literal["mean", "tokens"], int8: bool = True, level: bool = False
) -> onnx.ModelProto:
    """Build the graph of a trained encoder with its head.

    Args:
        weights: trained parameters; `head.weight` is [label, hidden], and without one the states are the output.
        shape: the encoder's size.
        pooling: `mean` scores a text by the mean over its tokens, `tokens` scores every token.
        int8: quantise projections and embeddings; False gives the float32 reference.
        level: bring each token to one magnitude before it is quantised. One token that is ten times as large as the
            rest (the first or the last one, often) then costs the others no precision; a tenth slower.

    Returns:
        A checked model.
    """
    graph = _Graph(int8, int8 and level)
    named = {
        "zero": [0],
        "one": [1],
        "split": [0, 0, shape.heads, shape.hidden // shape.heads],
        "merge": [0, 0, shape.hidden],
        "mask_axes": [1, 2],
        **({"last": [-1], "token_axis": [1]} if pooling == "mean" else {}),
    }
    for name, value in named.items():
        graph.constant(name, np.array(value, np.int64))
    if graph.level:
        graph.constant("least", np.array(1e-6, np.float32))
    mask = graph.put("Cast", "attention_mask", to=TensorProto.FLOAT)
    absent = graph.put("Sub", graph.constant("one_float", np.array([1], np.float32)), mask)
    penalty = graph.put("Mul", absent, graph.constant("minus_large", np.array([-1e4], np.float32)))
    penalty = graph.put("Unsqueeze", penalty, "mask_axes")
    x = _embedded(graph, weights, shape)
    for layer in range(shape.layers):
        x = _layer(graph, x, penalty, at=f"layers.{layer}", weights=weights, shape=shape)
    if pooling == "mean":
        present = graph.put("Unsqueeze", mask, "last")
        total = graph.put("ReduceSum", graph.put("Mul", x, present), "token_axis", keepdims=0)
        x = graph.put("Div", total, graph.put("ReduceSum", present, "token_axis", keepdims=0))
    labels = shape.hidden
    if "head.weight" in weights:
        # The head stays in float32: it is small, and the scores are read from it.
        product = graph.put("MatMul", x, graph.constant("head.weight", weights["head.weight"].T))
        graph.put("Add", product, graph.constant("head.bias", weights["head.bias"]))
        labels = len(weights["head.bias"])
    graph.nodes[-1].output[0] = "logits"
    inputs = ["input_ids", "attention_mask", *(["token_type_ids"] if shape.types else [])]
    return _closed(graph, inputs, [*(["batch", "token"] if pooling == "tokens" else ["batch"]), labels])


def weights_of(graph: bytes) -> dict[str, Float]:
    """Return the weights of a graph that `encoder_graph` wrote, as near as INT8 keeps them: a training can go on."""
    read = onnx.load_model_from_string(graph).graph.initializer
    values = {value.name: numpy_helper.to_array(value) for value in read}
    found: dict[str, Float] = {}
    for name, value in values.items():
        part, _, kind = name.rpartition(".")
        if kind not in {"weight", "bias"}:
            continue
        scale = values.get(f"{part}.scale") if kind == "weight" else None
        whole = value.astype(np.float32) * (1 if scale is None else scale)
        turned = value.ndim == 2 and part not in {"tokens", "positions", "types"}  # a product's matrix stands [in, out]
        found[name] = np.ascontiguousarray(whole.T if turned else whole, np.float32)
    return found


def _embedded(graph: _Graph, weights: Weights, shape: Shape) -> str:
    """Put what each token is, where it stands and of which kind it is; it slices by the constants `zero` and `one`."""
    x = graph.rows("input_ids", "tokens", weights)
    if shape.embedding:
        x = graph.linear(x, "widen", weights)
    length = graph.put("Slice", graph.put("Shape", "input_ids"), "one", graph.constant("two", np.array([2], np.int64)))
    places = graph.constant("positions.weight", weights["positions.weight"])
    x = graph.put("Add", x, graph.put("Slice", places, "zero", length, "zero"))
    if shape.types:
        kinds = graph.constant("types.weight", weights["types.weight"])
        x = graph.put("Add", x, graph.put("Gather", kinds, "token_type_ids"))
    return graph.norm(x, "norm", weights)


def _closed(graph: _Graph, inputs: Sequence[str], logits: Sequence[str | int]) -> onnx.ModelProto:
    """Return the checked model of a graph whose inputs are int64[batch, token]; `logits` is the output's shape."""
    taken = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "token"]) for name in inputs]
    given = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, logits)]
    model = helper.make_model(
        helper.make_graph(graph.nodes, "encoder", taken, given, graph.values),
        producer_name="checkstream",
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(model)
    return model


def _layer(graph: _Graph, x: str, penalty: str, *, at: str, weights: Weights, shape: Shape) -> str:
    """Put one transformer layer; it reshapes by the constants `split` and `merge`."""
    even, peak = graph.levelled(x)
    query, key, value = (
        graph.put("Reshape", graph.linear(even, f"{at}.{part}", weights, peak), "split")
        for part in ("query", "key", "value")
    )
    query = graph.put("Transpose", query, perm=[0, 2, 1, 3])
    key = graph.put("Transpose", key, perm=[0, 2, 3, 1])
    value = graph.put("Transpose", value, perm=[0, 2, 1, 3])
    scores = graph.put("MatMul", query, key)
    factor = np.array((shape.hidden // shape.heads) ** -0.5, np.float32)
    scores = graph.put("Mul", scores, graph.constant(f"{at}.width", factor))
    attention = graph.put("Softmax", graph.put("Add", scores, penalty), axis=-1)
    mixed = graph.put("Transpose", graph.put("MatMul", attention, value), perm=[0, 2, 1, 3])
    mixed = graph.linear(graph.put("Reshape", mixed, "merge"), f"{at}.mix", weights)
    x = graph.norm(graph.put("Add", x, mixed), f"{at}.norm1", weights)
    even, peak = graph.levelled(x)
    wide = graph.linear(even, f"{at}.wide", weights, peak)
    wide = graph.put("Relu", wide) if shape.activation == "relu" else graph.put("Gelu", wide, domain="com.microsoft")
    even, peak = graph.levelled(wide)
    narrow = graph.linear(even, f"{at}.narrow", weights, peak)
    return graph.norm(graph.put("Add", x, narrow), f"{at}.norm2", weights)
