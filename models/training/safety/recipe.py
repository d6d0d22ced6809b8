"""The training: teacher, student, calibration."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np
from tokenizers import Tokenizer

from models.training.calibrate import folded, platt
from models.training.corpus import Part
from models.training.encoder import Encoder, base_tokenizer, minilm_l3, prune_vocabulary
from models.training.export import run, session, sigmoid
from models.training.fit import Example, predict
from models.training.graph import Float, Weights
from models.training.safety.checks import Score, checked
from models.training.safety.distil import plain_tokenizer, teach, train_student, train_teacher
from models.training.safety.labels import ANY, LABELS, Text
from models.training.safety.sources import is_harmful
from models.training.safety.student import SYMBOLS, VOCABULARY, new_student, student_shape
from models.training.safety.symbols import common_symbols, symbol_rows, with_symbols
from models.training.safety.windows import LEARNT, balanced, sampled


@dataclass(frozen=True, slots=True)
class Effort:
    """How much a training learns from."""

    teacher_share: float = 1.0
    """Of the limits by source; 0: no teacher, the student learns from the texts' own labels."""
    teacher_epochs: float = 1.0
    windows: int = 36_000
    """That the student learns from."""
    source_share: float = 0.08
    """Of those windows, that come from one source at most."""
    student_epochs: float = 2.0
    dev_texts: int = 6000
    """That calibrate it."""
    gate_windows: int = 80_000
    gate_epochs: float = 3.0


FULL = Effort(teacher_share=0.5)
FOLD = Effort(teacher_share=0.3, windows=26_000)
"""A fold has a teacher of its own, and learns from less than what ships: it only measures, and a little low."""


@dataclass
class Trained:
    """A student with the tokenizer that feeds it."""

    model: Encoder
    described: str
    """Its `tokenizer.json`."""

    @property
    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer; it neither cuts nor pads."""
        return plain_tokenizer(self.described)

    def logits(self, windows: Sequence[Sequence[int]]) -> Float:
        """Return float32[window, label] of the float model."""
        nothing = np.zeros(ANY + 1, np.float32)
        return np.stack(predict(self.model, [Example(ids, nothing) for ids in windows]))


def train(
    parts: dict[Part, list[Text]],
    seed: int,
    effort: Effort,
    work: Path,
    *,
    layers: Sequence[int] = (0, 1, 2),
    feed: int = 1152,
) -> Trained:
    """Train a teacher and its student; either goes on where it was cut off.

    Args:
        parts: the corpus; only its part `train` is learnt from.
        seed: of every choice.
        effort: how much to learn from.
        work: where checkpoints are kept; one folder for one training.
        layers: of the pretrained encoder, which the student starts from.
        feed: neurons of each of the student's feed-forward halves.
    """
    texts = parts["train"]
    base = minilm_l3()
    described, rows = prune_vocabulary((text.text for text in texts), VOCABULARY, special_tokens=False)
    symbols = common_symbols((text.text for text in texts), described, SYMBOLS)
    if symbols:
        described = with_symbols(described, symbols)
        table = base["tokens.weight"]
        own = symbol_rows(symbols, plain_tokenizer(base_tokenizer().read_text()), table)
        base["tokens.weight"] = np.concatenate([table, own])
        rows = np.concatenate([rows, len(table) + np.arange(len(symbols))])
    teacher = None
    if effort.teacher_share:
        teacher, _ = train_teacher(
            texts, seed, share=effort.teacher_share, epochs=effort.teacher_epochs, checkpoint=work / "teacher.pt"
        )
    random = Random(seed)
    windows = list(sampled(texts, plain_tokenizer(described), LEARNT, random))
    random.shuffle(windows)
    windows = balanced(windows, texts, effort.windows, int(effort.source_share * effort.windows))
    examples = teach(windows, texts, teacher, work / "teacher_scores.npy")
    student = new_student(student_shape(len(rows), len(layers), feed), base, layers, rows)
    train_student(student, examples, seed, epochs=effort.student_epochs, rate=3e-4, checkpoint=work / "student.pt")
    return Trained(student, described)


def calibrate(trained: Trained, dev: Sequence[Text]) -> Weights:
    """Fold calibration into the head: the highest score of a text's checks becomes a probability.

    Args:
        trained: the student.
        dev: texts that it did not learn from.

    Returns:
        Its weights with the calibrated head.
    """
    highest = np.stack([text.highest for text in checked([t.text for t in dev], trained.tokenizer, trained.logits)])
    truths = np.stack([text.target[: len(LABELS)] for text in dev])
    fits = []
    for column in range(len(LABELS)):
        known = ~np.isnan(truths[:, column])
        fits.append(platt(highest[known, column], truths[known, column]) if known.sum() > 50 else (1.0, 0.0))
    weights = dict(trained.model.weights())
    weights["head.weight"], weights["head.bias"] = folded(weights["head.weight"], weights["head.bias"], fits)
    return weights


def scorer(graph: bytes) -> Score:
    """Return how a graph scores windows: calibrated probabilities, each window run by itself as the proxy runs it."""
    opened = session(graph)

    def score(windows: Sequence[Sequence[int]]) -> Float:
        return sigmoid(np.stack(run(opened, windows)))

    return score


_NOT_SPOKEN = frozenset(
    {"civil", "toxic_spans", "davidson", "edos", "hatemoji", "jigsaw", "madlibs", "stormfront", "toxigen", "hh", "btc"}
    | {"wnut17", "generated reported", "generated quoted", "generated mention", "generated retelling"}
    | {"generated explanation", "generated friendly"}
)
"""Comments, whose labels of a thousandth are mostly mistakes, and retold abuse, which is measured by itself."""


def benign(texts: Sequence[Text]) -> list[Text]:
    """Return the texts that do no harm at all and that an assistant may well write, for thresholds."""
    return [text for text in texts if is_harmful(text) is False and text.source not in _NOT_SPOKEN]
