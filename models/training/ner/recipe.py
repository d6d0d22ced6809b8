"""Trains the entity model: marked texts -> four layers of an encoder that also see the case of words -> spans."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.training.encoder import Encoder, base_tokenizer, minilm_l6, prune_vocabulary
from models.training.fit import Example, FitSettings, Progress, fit, predict, token_loss
from models.training.graph import Float, Shape
from models.training.multilingual import e5_weights, pruned, word_rows
from models.training.ner.data import recased
from models.training.ner.encode import CASES, TAGS, WINDOW, marked_example, merged, spans_of, windows_of, words_of
from models.training.ner.marked import Marked, Span


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the model is and how long it learns; the tests train a smaller one."""

    base: Literal["minilm", "e5"] = "minilm"
    """What it starts from: all-MiniLM-L6-v2, or multilingual-e5-small."""
    vocabulary: int = 12_000
    signs: int = 7_000
    """Of e5's pieces: so many single signs, whether the texts have them or not."""
    layers: int = 4
    epochs: float = 1.0
    rate: float = 2e-4

    @property
    def shape(self) -> Shape:
        """The encoder's size."""
        return Shape(
            vocab=self.vocabulary, layers=self.layers, hidden=384, heads=12, feed=1536, positions=WINDOW, types=CASES
        )


ABROAD = Size(base="e5", vocabulary=34_000)
"""The model of ten languages."""


@dataclass(frozen=True)
class Trained:
    """A model with its tokenizer."""

    encoder: Encoder
    tokenizer: str
    """Content of `tokenizer.json`."""
    progress: Progress


def train(texts: Sequence[Marked], size: Size, seed: int, checkpoint: Path | None = None) -> Trained:
    """Train on marked texts.

    Args:
        texts: what to learn from.
        size: how large and how long.
        seed: of every choice.
        checkpoint: where to keep the state, to take it up after a cut-off.
    """
    described, rows = _vocabulary(texts, size, checkpoint)
    tokenizer = Tokenizer.from_str(described)
    encoder = Encoder(size.shape, len(TAGS), pooling="tokens", dropout=0.1)
    encoder.start_from(minilm_l6() if size.base == "minilm" else e5_weights(), rows)
    # Names that no text here has keep their place among those that some text has.
    encoder.freeze(0)
    random = Random(seed)
    examples = [
        Example(window.ids, target, types=window.types)
        for text in texts
        for window, target in marked_example(tokenizer, recased(text, random))
    ]
    settings = FitSettings(seed=seed, epochs=size.epochs, rate=size.rate, batch_tokens=2048)
    return Trained(encoder, described, fit(encoder, examples, token_loss, settings, checkpoint=checkpoint))


def _vocabulary(texts: Sequence[Marked], size: Size, checkpoint: Path | None) -> tuple[str, NDArray[np.int64]]:
    """Prune the vocabulary; a training that is taken up again keeps the one it began with."""
    kept = checkpoint.with_suffix(".tokenizer.json") if checkpoint is not None else None
    if kept is not None and kept.exists():
        described = kept.read_text()
        whole = word_rows() if size.base == "e5" else json.loads(base_tokenizer().read_text())["model"]["vocab"]
        return described, np.array([whole[piece] for piece in json.loads(described)["model"]["vocab"]], np.int64)
    words = (text.text for text in texts)
    if size.base == "e5":
        described, rows = pruned(words, size.vocabulary, size.signs)
    else:
        described, rows = prune_vocabulary(words, size.vocabulary)
    if kept is not None:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(described)
    return described, rows


def probabilities(trained: Trained, texts: Sequence[str]) -> list[Float]:
    """Return float32[word, tag] for each text."""
    tokenizer = Tokenizer.from_str(trained.tokenizer)
    split = [words_of(tokenizer, text) for text in texts]
    cut = [list(windows_of(tokenizer, words)) for words in split]
    examples = [Example(window.ids, [-100] * len(window.ids), types=window.types) for text in cut for window in text]
    logits = iter(predict(trained.encoder, examples))
    return [merged(words, text, [next(logits) for _ in text]) for words, text in zip(split, cut, strict=True)]


def find(trained: Trained, texts: Sequence[str]) -> list[tuple[Span, ...]]:
    """Return the spans of each text, with no threshold."""
    tokenizer = Tokenizer.from_str(trained.tokenizer)
    rows = probabilities(trained, texts)
    return [spans_of(words_of(tokenizer, text), shares) for text, shares in zip(texts, rows, strict=True)]
