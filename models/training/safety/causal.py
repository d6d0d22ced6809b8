"""Causal models that keep a state in each stream, to compare with an encoder over windows: a GRU and a TCN.

Both score a check by the mean over the last pieces' states, as the encoder does over its window; between two checks a
stream keeps what they need, so that a check costs its new pieces alone. `step_graph` is that check in ONNX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn import functional

from models.training.graph import IR_VERSION, OPSET, Float
from models.training.safety.labels import LABELS

TAPS = 3
"""Places that each layer of a TCN looks at: its own and two before it, further apart from layer to layer."""


@dataclass(frozen=True, slots=True)
class CausalShape:
    """The size of a causal model."""

    kind: Literal["gru", "tcn"]
    vocab: int
    layers: int
    hidden: int
    embedding: int


class Causal(nn.Module):
    """Token ids in, label logits of the whole window out; `states` and `head` are what a stream uses."""

    def __init__(self, shape: CausalShape, dropout: float = 0.1) -> None:
        """Build a model with torch's usual start values."""
        super().__init__()
        self.shape = shape
        self.dropout = dropout
        self.tokens = nn.Embedding(shape.vocab, shape.embedding, padding_idx=0)
        self.widen = nn.Linear(shape.embedding, shape.hidden)
        if shape.kind == "gru":
            self.gru = nn.GRU(shape.hidden, shape.hidden, shape.layers, batch_first=True)
        else:
            self.mixes = nn.ModuleList(nn.Linear(TAPS * shape.hidden, shape.hidden) for _ in range(shape.layers))
            self.norms = nn.ModuleList(nn.LayerNorm(shape.hidden) for _ in range(shape.layers))
        self.head = nn.Linear(shape.hidden, len(LABELS))

    def states(self, ids: Tensor) -> Tensor:
        """Return float32[batch, token, hidden], each of what stands before it alone."""
        x = functional.dropout(self.widen(self.tokens(ids)), self.dropout, self.training)
        if self.shape.kind == "gru":
            with torch.autocast("cpu", enabled=False):
                found: Tensor = self.gru(x.float())[0]
            return found
        for layer, (mix, norm) in enumerate(zip(self.mixes, self.norms, strict=True)):
            before = functional.pad(x, (0, 0, (TAPS - 1) << layer, 0))
            seen = torch.cat([before[:, tap << layer :][:, : x.shape[1]] for tap in range(TAPS)], dim=-1)
            x = norm(x + functional.dropout(functional.relu(mix(seen)), self.dropout, self.training))
        return x

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return logits, float32[batch, label]; `mask` is int64[batch, token], 1 where a token is."""
        x, present = self.states(ids), mask[:, :, None].float()
        logits: Tensor = self.head((x * present).sum(1) / present.sum(1))
        return logits

    def checks(self, texts: Sequence[Sequence[int]], stops: Sequence[Sequence[int]], window: int) -> list[Float]:
        """Return the logits of the checks of streams, float32[check, label] of each.

        Args:
            texts: ids of whole texts.
            stops: of each text, how many pieces its checks have read.
            window: pieces whose states a check takes the mean of, at most.
        """
        self.eval()
        longest = max(map(len, texts))
        with torch.no_grad():
            x = self.states(torch.tensor([[*ids, *[0] * (longest - len(ids))] for ids in texts])).double()
            sums = torch.cat([torch.zeros_like(x[:, :1]), x.cumsum(1)], dim=1)
            found: list[Float] = []
            for own, at in zip(sums, stops, strict=True):
                stop = torch.tensor(at)
                first = (stop - window).clamp(min=0)
                found.append(self.head(((own[stop] - own[first]) / (stop - first)[:, None]).float()).numpy())
        return found


def step_graph(model: Causal, pieces: int) -> bytes:
    """Build the ONNX graph of one check: new ids and the state of the stream in, logits and the new state out.

    `kept_sum` is the sum of the states that stay in the window of which the mean is taken, `share` one over its size.

    A TCN's matrices are INT8 as the encoder's are; the runtime has no INT8 GRU, so that one stays float32.

    Args:
        model: trained.
        pieces: new word pieces of a check.
    """
    graph = _Step({name: value.detach().float().numpy() for name, value in model.state_dict().items()})
    x = graph.put("Gather", graph.constant("tokens", graph.weights["tokens.weight"]), "input_ids")
    x = graph.linear(x, "widen")
    inputs = [("input_ids", TensorProto.INT64, [1, pieces])]
    outputs: list[tuple[str, list[int]]] = []
    for layer in range(model.shape.layers):
        kept, made = f"state_{layer}", f"new_state_{layer}"
        if model.shape.kind == "gru":
            x = graph.gru(x, layer, kept, made)
            size = [1, 1, model.shape.hidden]
        else:
            x = graph.mixed(x, layer, pieces, kept, made)
            size = [1, (TAPS - 1) << layer, model.shape.hidden]
        inputs.append((kept, TensorProto.FLOAT, size))
        outputs.append((made, size))
    # Of its window the stream keeps the states, and hands in the sum of those that stay in it.
    total = graph.put("ReduceSum", x, graph.constant("pieces_axis", np.array([1], np.int64)), keepdims=0)
    mean = graph.put("Mul", graph.put("Add", total, "kept_sum"), "share")
    own = (graph.constant(f"head.{kind}", graph.weights[f"head.{kind}"]) for kind in ("weight", "bias"))
    graph.put("Gemm", mean, *own, transB=1, output="logits")
    graph.put("Identity", x, output="states")
    inputs += [("kept_sum", TensorProto.FLOAT, [1, model.shape.hidden]), ("share", TensorProto.FLOAT, [1])]
    outputs += [("logits", [1, len(LABELS)]), ("states", [1, pieces, model.shape.hidden])]
    made_graph = helper.make_graph(
        graph.nodes,
        "check",
        [helper.make_tensor_value_info(name, kind, size) for name, kind, size in inputs],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, size) for name, size in outputs],
        graph.values,
    )
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("com.microsoft", 1)]
    described = helper.make_model(made_graph, opset_imports=opsets, ir_version=IR_VERSION)
    onnx.checker.check_model(described)
    return bytes(described.SerializeToString())


class _Step:
    """A graph under construction."""

    def __init__(self, weights: dict[str, Float]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.values: list[onnx.TensorProto] = []

    def constant(self, name: str, value: np.typing.NDArray[np.generic]) -> str:
        if name not in {known.name for known in self.values}:
            self.values.append(numpy_helper.from_array(np.ascontiguousarray(value), name))
        return name

    def put(self, operator: str, *inputs: str, output: str = "", domain: str = "", **attributes: object) -> str:
        name = output or f"{operator.lower()}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, list(inputs), [name], domain=domain, **attributes))
        return name

    def linear(self, x: str, name: str) -> str:
        matrix, bias = self.weights[f"{name}.weight"].T, self.weights[f"{name}.bias"]
        scale = np.maximum(np.abs(matrix).max(axis=0), 1e-8) / 127
        small = np.clip(np.rint(matrix / scale), -127, 127).astype(np.int8)
        own = [(f"{name}.w", small), (f"{name}.s", scale.astype(np.float32)), (f"{name}.b", bias)]
        weight, factor, added = (self.constant(*each) for each in own)
        return self.put("DynamicQuantizeMatMul", x, weight, factor, "", added, domain="com.microsoft")

    def mixed(self, x: str, layer: int, pieces: int, kept: str, made: str) -> str:
        reach = (TAPS - 1) << layer
        wide = self.put("Concat", kept, x, axis=1)
        axis = self.constant("token_axis", np.array([1], np.int64))

        def part(start: int, size: int, output: str = "") -> str:
            ends = [self.constant(f"at_{at}", np.array([at], np.int64)) for at in (start, start + size)]
            return self.put("Slice", wide, *ends, axis, output=output)

        part(pieces, reach, made)
        seen = self.put("Concat", *(part(tap << layer, pieces) for tap in range(TAPS)), axis=2)
        added = self.put("Add", x, self.put("Relu", self.linear(seen, f"mixes.{layer}")))
        scale, bias = (
            self.constant(f"norm_{layer}.{kind}", self.weights[f"norms.{layer}.{kind}"]) for kind in ("weight", "bias")
        )
        return self.put("LayerNormalization", added, scale, bias, axis=-1, epsilon=1e-5)

    def gru(self, x: str, layer: int, kept: str, made: str) -> str:
        def gates(name: str) -> Float:
            reset, update, new = np.split(self.weights[name], 3)  # torch's order; ONNX has update first
            return np.concatenate([update, reset, new])

        own = [gates(f"gru.{kind}_{part}_l{layer}") for kind in ("weight", "bias") for part in ("ih", "hh")]
        table = {f"w_{layer}": own[0], f"r_{layer}": own[1], f"b_{layer}": np.concatenate(own[2:])}
        names = [self.constant(name, value[None]) for name, value in table.items()]
        hidden, found = own[1].shape[1], f"gru_{layer}"
        turned = self.put("Transpose", x, perm=[1, 0, 2])
        self.nodes.append(
            helper.make_node(
                "GRU", [turned, *names, "", kept], [found, made], hidden_size=hidden, linear_before_reset=1
            )
        )
        flat = self.put("Squeeze", found, self.constant("direction", np.array([1], np.int64)))
        return self.put("Transpose", flat, perm=[1, 0, 2])
