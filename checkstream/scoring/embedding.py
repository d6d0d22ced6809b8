"""Vectors of texts: texts with like meanings lie close. One interface, and one embedder that needs no model.

Whoever searches or compares stands on `Embedder` alone. INVARIANT: a vector depends on its own text alone, and the same
text has the same vector always; so vectors that are stored can be compared with those that are asked for later, as
long as `name` is the same.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from checkstream.scoring.words import folded

_GRAM_CHARS = 3
_GRAM_WEIGHT = 0.7
"""What all letter groups of a word have together, beside the word itself with 1."""
_SHORT_CHARS, _SHORT_WEIGHT = 3, 0.3
"""Words so short say little in most languages, and weigh less."""


class Embedder(Protocol):
    """Makes vectors of texts."""

    @property
    def name(self) -> str:
        """Says which vectors these are; other vectors, another name (`minilm-l6-1.0.0`, `hashing-256`)."""

    @property
    def dimensions(self) -> int:
        """How long a vector is."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32[text, dimension], each row of length 1; all zeros for a text that holds nothing.

        Raises:
            ScoringError: no usable vectors came.
        """


class HashingEmbedder:
    """Words and their letter groups, hashed into places: deterministic, and alike where texts share words.

    For tests, and where no model may be used; it knows no meanings.

    Source: Weinberger et al. 2009, section 2 (signed hashing).
    """

    def __init__(self, dimensions: int = 256) -> None:
        """Make vectors of this length, at least 1."""
        self.dimensions = dimensions
        self.name = f"hashing-{dimensions}"

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32[text, dimension], each row of length 1; all zeros for a text without letters or digits."""
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in zip(rows, texts, strict=True):
            for feature, weight in _features(text):
                number = int.from_bytes(hashlib.blake2b(feature.encode(), digest_size=8).digest())
                row[(number >> 1) % self.dimensions] += weight if number & 1 else -weight
        return unit_rows(rows)


def unit_rows(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return float32[row, dimension] with every row of length 1; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _features(text: str) -> Iterator[tuple[str, float]]:
    """Yield the words of a text and their letter groups, with their weights."""
    spaced = "".join(sign if sign.isalnum() else " " for sign in folded(text.translate(_SURROGATES)))
    for word in spaced.split():
        weight = _SHORT_WEIGHT if len(word) <= _SHORT_CHARS else 1.0
        yield word, weight
        framed = f"<{word}>"
        grams = [framed[at : at + _GRAM_CHARS] for at in range(len(framed) - _GRAM_CHARS + 1)]
        for gram in grams:
            yield f"#{gram}", weight * _GRAM_WEIGHT / math.sqrt(len(grams))


_SURROGATES = dict.fromkeys(range(0xD800, 0xE000), " ")
