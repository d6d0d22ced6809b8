"""A small encoder that learns MiniLM's sense of a text, and a head on it that names the domain.

The encoder sees no label: it learns to say what MiniLM says of prose, of lone words and of generated questions. The
head then is a linear model. Trained from labels alone, the same encoder learns each source's manner of writing, not its
domain, and fails on the next source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

from models.training import corpus
from models.training.domain.teacher import Teacher
from models.training.encoder import Encoder, prune_vocabulary
from models.training.fit import Example, FitSettings, Progress, fit, predict
from models.training.graph import Float, Shape

WINDOW, OVERLAP = 128, 32
"""Word pieces of a window, [CLS] and [SEP] among them, and what two neighbours share."""

PROSE = {
    "nli_conjnli": ("premise", 6000),
    "nli_paws_en": ("premise", 1500),
    "nli_scifact_rte": ("premise", 600),
    "nli_cad": ("premise", 1500),
    "ground_begin": ("premise", 2000),
    "ground_halueval_qa": ("premise", 500),
    "ground_faithdial_audit": ("premise", 300),
    "tox_civil_comments_annot": ("text", 4000),
    "tox_davidson": ("text", 1000),
    "out_gptfuzz_responses": ("text", 3000),
}
"""File, field and most texts of what is read without labels; none of it is measured."""
_LONGEST, _MOST_CHARS = 600, 4000
_LONE = (
    "What is {}?",
    "{}",
    "How do I deal with {} and {}?",
    "{}, {} and {}",
    "My friend told me about {}.",
    "{} or {}",
)


@dataclass(frozen=True, kw_only=True)
class Size:
    """How large the student is and how long it learns; the tests train a smaller one."""

    vocabulary: int = 20_000
    embedding: int = 64
    width: int = 128
    layers: int = 2
    epochs: float = 3.0
    rate: float = 2e-3

    @property
    def shape(self) -> Shape:
        """The encoder's size."""
        return Shape(
            vocab=self.vocabulary,
            layers=self.layers,
            hidden=self.width,
            heads=4,
            feed=2 * self.width,
            positions=WINDOW,
            embedding=self.embedding,
        )


@dataclass(frozen=True)
class Student:
    """An encoder with its tokenizer."""

    encoder: Encoder
    tokenizer: str
    """Content of `tokenizer.json`."""
    progress: Progress

    def vectors(self, texts: Sequence[str]) -> Float:
        """Return float32[text, width]: what the head is to learn from, the first window of each text."""
        reader = Tokenizer.from_str(self.tokenizer)
        return self._read([windows(reader, text[: 8 * WINDOW])[0] for text in texts])

    def windows(self, texts: Sequence[str]) -> Read:
        """Return every window of each text, as the proxy reads them."""
        reader = Tokenizer.from_str(self.tokenizer)
        cut = [windows(reader, text[:_MOST_CHARS]) for text in texts]
        owner = np.repeat(np.arange(len(texts)), [len(parts) for parts in cut])
        return Read(owner, self._read([window for parts in cut for window in parts]))

    def _read(self, cut: Sequence[list[int]]) -> Float:
        head, self.encoder.head = self.encoder.head, torch.nn.Identity()
        rows = np.stack(predict(self.encoder, [Example(window, np.zeros(1, np.float32)) for window in cut]))
        self.encoder.head = head
        return rows


class Read(NamedTuple):
    """Windows of some texts as the head sees them."""

    owner: NDArray[np.int64]
    """The text of each window."""
    vectors: Float
    """float32[window, width]."""


def windows(tokenizer: Tokenizer, text: str) -> list[list[int]]:
    """Return the ids of each window of a text; the first begins with it."""
    first, last = (tokenizer.encode(mark, add_special_tokens=False).ids[0] for mark in ("[CLS]", "[SEP]"))
    ids = tokenizer.encode(text, add_special_tokens=False).ids
    starts = range(0, max(1, len(ids) - OVERLAP), WINDOW - 2 - OVERLAP)
    return [[first, *ids[start : start + WINDOW - 2], last] for start in starts]


def prose(folder: Path, seed: int) -> list[str]:
    """Return unlabelled texts of the pool."""
    random, result = Random(seed), list[str]()
    for name, (field, most) in PROSE.items():
        texts = sorted({str(row[field])[:_LONGEST] for row in corpus.rows(folder, name)})
        random.shuffle(texts)
        result += texts[:most]
    return result


def lone_words(words: Sequence[str], count: int, random: Random) -> Iterator[str]:
    """Yield short texts of words that need not occur in any corpus."""
    for _ in range(count):
        form = random.choice(_LONE)
        yield form.format(*random.sample(words, form.count("{}")))


def _distilling(logits: Tensor, targets: Tensor) -> Tensor:
    near = 1 - functional.cosine_similarity(logits, targets)
    return ((logits - targets) ** 2).mean(1) + near


def distilled(texts: Sequence[str], teacher: Teacher, size: Size, seed: int, work: Path) -> Student:
    """Train a student on what the teacher makes of texts.

    Args:
        texts: unlabelled.
        teacher: whom to learn from.
        size: how large and how long.
        seed: of every choice.
        work: keeps the teacher's vectors and the state of the training, to take them up after a cut-off.
    """
    described, rows = prune_vocabulary(texts, size.vocabulary)
    reader = Tokenizer.from_str(described)
    targets = _main(teacher.texts(texts, work / "vectors.npz"), size.width)
    encoder = Encoder(size.shape, size.width, dropout=0.0)
    encoder.start_from({"tokens.weight": 0.3 * _main(teacher.pieces(rows.tolist()), size.embedding)})
    examples = [
        Example(windows(reader, text[: 8 * WINDOW])[0][:96], target)
        for text, target in zip(texts, targets, strict=True)
    ]
    settings = FitSettings(seed=seed, epochs=size.epochs, rate=size.rate, batch_tokens=4096)
    progress = fit(encoder, examples, _distilling, settings, checkpoint=work / "student.pt")
    return Student(encoder, described, progress)


def _main(vectors: Float, width: int) -> Float:
    """Return float32[text, width]: the main components, scaled as a whole."""
    centred = vectors - vectors.mean(axis=0)
    _, _, components = np.linalg.svd(centred[:20_000], full_matrices=False)
    reduced = centred @ components[:width].T
    return np.asarray(reduced / reduced.std(), np.float32)


def fit_head(
    vectors: Float, classes: NDArray[np.int64], weights: Sequence[float], count: int, decay: float = 2e-3
) -> tuple[Float, Float]:
    """Fit a linear head.

    Args:
        vectors: float32[text, width].
        classes: int64[text].
        weights: how much each text counts.
        count: classes that there are.
        decay: of the squared weights, for inputs of unit variance.

    Returns:
        weight [class, width] and bias [class].
    """
    mean, deviation = vectors.mean(axis=0), vectors.std(axis=0) + 1e-6
    x = torch.from_numpy((vectors - mean) / deviation)
    y, w = torch.from_numpy(classes), torch.tensor(weights)
    weight = torch.zeros(count, x.shape[1], requires_grad=True)
    bias = torch.zeros(count, requires_grad=True)
    optimiser = torch.optim.LBFGS([weight, bias], max_iter=300, line_search_fn="strong_wolfe")

    def loss() -> Tensor:
        optimiser.zero_grad()
        each = functional.cross_entropy(x @ weight.T + bias, y, reduction="none")
        value = (each * w).sum() / w.sum() + decay / 2 * (weight**2).sum()
        value.backward()
        return value

    optimiser.step(loss)
    scaled = weight.detach().numpy() / deviation
    return scaled.astype(np.float32), (bias.detach().numpy() - scaled @ mean).astype(np.float32)
