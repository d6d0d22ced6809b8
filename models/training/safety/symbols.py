"""Gives emoji pieces of their own: the base's vocabulary has none, and in comments they carry the insult."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.training.graph import Float


def common_symbols(texts: Iterable[str], described: str, most: int) -> list[str]:
    """Return the symbols that a corpus uses most and a vocabulary lacks, commonest first."""
    known = json.loads(described)["model"]["vocab"]
    counts = Counter(
        sign for text in texts for sign in text if sign > "\u2000" and unicodedata.category(sign) in {"So", "Sk"}
    )
    named = [sign for sign, _ in counts.most_common() if sign not in known]
    return named[:most]


def with_symbols(described: str, symbols: Sequence[str]) -> str:
    """Return a `tokenizer.json` whose vocabulary goes on with these symbols."""
    content = json.loads(described)
    vocabulary = content["model"]["vocab"]
    for symbol in symbols:
        vocabulary[symbol] = len(vocabulary)
    return json.dumps(content, ensure_ascii=False)


def symbol_rows(symbols: Sequence[str], base: Tokenizer, table: Float) -> Float:
    """Return a row of each symbol, float32[symbol, hidden]: the mean of those of its name's words.

    Args:
        symbols: one character each.
        base: tokenizer of the table.
        table: float32[piece, hidden], the base's token embeddings.
    """
    ids: list[NDArray[np.int64]] = [
        np.array(base.encode(unicodedata.name(symbol).lower(), add_special_tokens=False).ids) for symbol in symbols
    ]
    return np.stack([table[own].mean(axis=0) for own in ids]).astype(np.float32)
