"""The training: teacher, student, calibration."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from models.training.calibrate import folded, platt
from models.training.corpus import Part
from models.training.encoder import Encoder, base_tokenizer, minilm_l3, prune_vocabulary
from models.training.export import run, session, sigmoid
from models.training.fit import Example, predict
from models.training.graph import Float, Weights, weights_of
from models.training.safety import taught
from models.training.safety.checks import Score, checked
from models.training.safety.distil import plain_tokenizer, teach, train_student, train_teacher
from models.training.safety.labels import ANY, OUTPUTS, Text
from models.training.safety.sources import is_harmful
from models.training.safety.student import SYMBOLS, VOCABULARY, new_student, student_shape
from models.training.safety.symbols import common_symbols, symbol_rows, with_symbols
from models.training.safety.windows import LEARNT, balanced, sampled

SECOND_SHARE = 0.7
"""Of the weights after the second pass in those that are kept; the rest are from before it.

The mean is steadier than either end: it raises fewer harmless texts above clear abuse.
"""


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
    second_windows: int = 160_000
    """Of its second pass, over more texts and anew cut; 0: there is none."""
    second_epochs: float = 1.5
    dev_texts: int = 6000
    """That calibrate it."""
    taught_windows: int = 150_000
    """Of its last pass, over what a teacher of `models/training/teacher` has scored; 0: there is none."""
    gate_windows: int = 80_000
    gate_epochs: float = 3.0


FULL = Effort(teacher_share=0.5)
FOLD = Effort(teacher_share=0.3, windows=26_000, second_windows=90_000, second_epochs=1.0)
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


def vocabulary(texts: Sequence[Text]) -> tuple[str, NDArray[np.int64], Weights]:
    """Choose the student's word pieces.

    Args:
        texts: to learn from.

    Returns:
        Its `tokenizer.json`, which rows of the token table it keeps, and pretrained weights with that table.
    """
    base = minilm_l3()
    words = [text.text for text in texts]
    described, rows = prune_vocabulary(words, VOCABULARY, special_tokens=False)
    symbols = common_symbols(words, described, SYMBOLS)
    if symbols:
        described = with_symbols(described, symbols)
        table = base["tokens.weight"]
        own = symbol_rows(symbols, plain_tokenizer(base_tokenizer().read_text()), table)
        base["tokens.weight"] = np.concatenate([table, own])
        rows = np.concatenate([rows, len(table) + np.arange(len(symbols))])
    return described, rows, base


def train(
    parts: Mapping[Part, Sequence[Text]],
    seed: int,
    effort: Effort,
    work: Path,
    *,
    more: Sequence[Text] = (),
    layers: Sequence[int] = (0, 1, 2),
    feed: int = 1152,
) -> Trained:
    """Train a teacher and its student; either goes on where it was cut off.

    Args:
        parts: the corpus; only its part `train` is learnt from.
        seed: of every choice.
        effort: how much to learn from.
        work: where checkpoints are kept; one folder for one training.
        more: texts of the student's second pass; none: those of the first.
        layers: of the pretrained encoder, which the student starts from.
        feed: neurons of each of the student's feed-forward halves.
    """
    texts = parts["train"]
    described, rows, base = vocabulary(texts)
    teacher = None
    if effort.teacher_share:
        teacher, _ = train_teacher(
            texts, seed, share=effort.teacher_share, epochs=effort.teacher_epochs, checkpoint=work / "teacher.pt"
        )
    trained = Trained(new_student(student_shape(len(rows), len(layers), feed), base, layers, rows), described)
    lesson = Lesson(texts, trained.tokenizer, teacher, effort.source_share)
    examples = lesson.windows(seed, effort.windows, work / "teacher_scores.npy")
    train_student(
        trained.model, examples, seed, epochs=effort.student_epochs, rate=3e-4, checkpoint=work / "student.pt"
    )
    if effort.second_windows:
        _second_pass(trained, replace(lesson, texts=more or texts), seed + 2, effort, work)
    return trained


def started(start: Path) -> Trained:
    """Return the student whose files lie in a folder: `model.onnx`, as near as INT8 keeps it, and `tokenizer.json`."""
    weights = weights_of((start / "model.onnx").read_bytes())
    labels, vocabulary_size = len(weights["head.bias"]), len(weights["tokens.weight"])
    model = Encoder(student_shape(vocabulary_size), labels)
    model.start_from(weights)
    return Trained(model, (start / "tokenizer.json").read_text())


def taught_on(
    trained: Trained,
    texts: Sequence[Text],
    folder: Path,
    *,
    seed: int,
    effort: Effort,
    work: Path,
    without: Collection[str] = (),
) -> Trained:
    """Return a student that has gone on to a teacher's pieces, with a column of its own for any harm.

    Args:
        trained: where it starts.
        texts: of the corpus, those to learn from.
        folder: of the pool.
        seed: of every choice.
        effort: how much to learn from.
        work: where checkpoints are kept.
        without: sources that are left out.
    """
    torch.manual_seed(seed)
    own = Trained(taught.widened(trained.model.weights(), trained.model.shape), trained.described)
    if effort.taught_windows:
        taught.learn(
            own.model,
            own.tokenizer,
            folder,
            texts,
            seed=seed,
            most=effort.taught_windows,
            work=work,
            without=without,
        )
    return own


@dataclass(frozen=True, slots=True)
class Lesson:
    """Texts with what is needed to learn from them."""

    texts: Sequence[Text]
    tokenizer: Tokenizer
    """The student's."""
    teacher: Encoder | None
    source_share: float
    """Of the windows, that come from one source at most."""

    def windows(self, seed: int, most: int, kept: Path) -> list[Example]:
        """Return windows as they are taught.

        Args:
            seed: of every choice.
            most: windows at most.
            kept: file of the teacher's scores; made when it isn't there.
        """
        random = Random(seed)
        windows = list(sampled(self.texts, self.tokenizer, LEARNT, random))
        random.shuffle(windows)
        windows = balanced(windows, self.texts, most, int(self.source_share * most))
        return teach(windows, self.texts, self.teacher, kept)


def _second_pass(trained: Trained, lesson: Lesson, seed: int, effort: Effort, work: Path) -> None:
    """Let a student go on, slower, over windows that it has not seen, and keep a mean of before and after."""
    first = {name: value.clone() for name, value in trained.model.state_dict().items()}
    examples = lesson.windows(seed, effort.second_windows, work / "second_scores.npy")
    train_student(trained.model, examples, seed, epochs=effort.second_epochs, rate=2e-4, checkpoint=work / "second.pt")
    last = trained.model.state_dict()
    trained.model.load_state_dict({name: torch.lerp(first[name], last[name], SECOND_SHARE) for name in first})


def calibrate(trained: Trained, dev: Sequence[Text]) -> Weights:
    """Fold calibration into the head: the highest score of a text's checks becomes a probability.

    Args:
        trained: the student.
        dev: texts that it did not learn from.

    Returns:
        Its weights with the calibrated head.
    """
    highest = np.stack([text.highest for text in checked([t.text for t in dev], trained.tokenizer, trained.logits)])
    truths = np.stack([text.target for text in dev])
    fits = []
    for column in range(len(OUTPUTS)):
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
    | {"generated explanation", "generated friendly", "generated account", "generated usage", "davidson rest"}
    | {"context_wiki", "decodingtrust", "fox", "hatexplain", "implicit_hate", "measuring_hate", "redditbias", "sbic"}
    | {"toxigen_human", "diasafety"}
)
"""Comments, whose labels of a thousandth are mostly mistakes, and retold abuse, which is measured by itself."""


_ANSWERS = frozenset({"gptfuzz", "refusals", "openai_rbr", "decodingtrust_answers", "fuzzyai", "latent_jailbreak"})
"""What models have answered to questions that ask for harm."""


def kinds(texts: Sequence[Text]) -> list[list[int]]:
    """Return the numbers of benign texts: of all, of answers to scary questions, and of the others."""
    scary = [number for number, text in enumerate(texts) if text.source in _ANSWERS]
    others = sorted({*range(len(texts))} - {*scary})
    return [own for own in ([*range(len(texts))], scary, others) if own]


def benign(texts: Sequence[Text]) -> list[Text]:
    """Return the texts that do no harm at all and that an assistant may well write, for thresholds."""
    return [text for text in texts if is_harmful(text) is False and text.source not in _NOT_SPOKEN]
