"""The student's last pass: windows of pieces that a teacher of `models/training/teacher` has scored.

Beside them it reads the promotions that this recipe writes, of which that teacher knows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random

import numpy as np
import re2
import torch
from tokenizers import Encoding, Tokenizer
from torch import Tensor
from torch.nn import functional

from models.training.corpus import part_of, rows, shingles
from models.training.encoder import Encoder
from models.training.export import sigmoid
from models.training.fit import Example, FitSettings, fit, predict
from models.training.graph import Shape, Weights
from models.training.safety.assemble import WIDER, cleaned, pool
from models.training.safety.labels import ANY, HARMS, LABELS, OUTPUTS, PROMOTIONAL, Float, Text
from models.training.safety.promotions import CALM_SOURCE, SOURCE
from models.training.safety.windows import LEARNT, WINDOW, ends, hard_targets, sampled
from models.training.teacher.safety import ADDED, UNSURE
from models.training.teacher.scores import Taught, read_texts

PIECES = Path("teacher/safety_pieces.jsonl.gz")
"""The scored pieces, in the pool's folder."""

MOST_OF_ONE = 9000
"""Pieces of a source at most."""

CAPS = {
    "benign_documents": 5000,
    "chat transcript": 3000,
    "command help": 1500,
    "table": 1500,
    "web article, event page": 3000,
    "project governance, meeting notes": 1500,
    "benign_docs": 1200,
    "context_wiki": 4000,
    "redditbias": 3000,
    "generated account": 2500,
}
"""The same for sources that are calm and long, or say little."""

CALM = 0.15
"""A piece whose scores stay below it is calm in all of its parts."""

_SELLS = re2.compile(
    r"(?i)guarante|risk[- ]?free|no risk|zero risk|can.?t lose|returns?\b|profits?\b|double your|invest|yield"
)
UNREAD = frozenset({"rtp"})
"""Sources of pieces whose licence nobody has read, beside those that the teacher's recipe leaves out."""

SOLD = frozenset({SOURCE, CALM_SOURCE})
"""Sources of the texts of which it is known whether they sell."""

_MEDQUAD = "MedQuAD"
_ANY_WEIGHT = 2.0
_NEAR = 0.5


def taught_loss(logits: Tensor, targets: Tensor) -> Tensor:
    """Return the mean cross entropy of each window, float32[batch], over what is known; any harm counts double."""
    known = ~torch.isnan(targets)
    loss = functional.binary_cross_entropy_with_logits(logits, torch.nan_to_num(targets), reduction="none") * known
    loss[:, ANY] = loss[:, ANY] * _ANY_WEIGHT
    return loss.sum(1) / len(OUTPUTS)


_ALSO = {"hh": ("hh-rlhf harmless-base",), "toxigen": ("toxigen_human",)}


def named(left_out: Collection[str]) -> frozenset[str]:
    """Return how the pieces call the sources that a fold leaves out; those of MedQuAD begin with its name."""
    found = {*left_out, *(name for source in left_out for name in _ALSO.get(source, ()))}
    return frozenset(found | ({_MEDQUAD} if "medquad" in left_out else set()))


def target_of(piece: Taught) -> Float:
    """Return what a piece is taught, float32[11]; whether it sells is unknown where it speaks of investing."""
    target = np.zeros(len(OUTPUTS), np.float32)
    target[: len(HARMS)] = piece.target[: len(HARMS)]
    target[ANY] = piece.target[len(HARMS)]
    if _SELLS.search(piece.text):
        target[LABELS.index(PROMOTIONAL)] = np.nan
    return target


def _left_out(source: str, without: Collection[str]) -> bool:
    return source in without or (_MEDQUAD in without and source.startswith(_MEDQUAD))


def pieces(folder: Path, random: Random, withheld: Collection[int], without: Collection[str] = ()) -> Iterator[Taught]:
    """Yield the pieces to learn from, in random order, no source above its limit.

    Args:
        folder: of the pool.
        random: of every choice.
        withheld: runs of words of texts that calibrate or are measured; what is like them is left out.
        without: sources that are left out.
    """
    found = [piece for piece in read_texts(folder / PIECES, len(HARMS) + 1) if not _left_out(piece.source, without)]
    random.shuffle(found)
    counts: dict[str, int] = {}
    for piece in found:
        source = piece.source
        if counts.get(source, 0) >= CAPS.get(source, MOST_OF_ONE):
            continue
        if not source.startswith("generated"):
            runs = shingles(piece.text)
            if sum(run in withheld for run in runs) >= _NEAR * len(runs):
                continue
        counts[source] = counts.get(source, 0) + 1
        yield piece


def spans(encoding: Encoding, calm: bool, random: Random) -> list[tuple[int, int]]:
    """Return which pieces of a text its windows hold: the whole where it fits, else as checks cut it.

    A calm text gives one window, or a beginning of one: all of its parts are as calm. Of another several are cut,
    to be told apart by `shared`.
    """
    stops = ends(encoding)
    if not stops:
        return []
    total = stops[-1]
    if calm:
        last = random.choice(stops) if total > WINDOW or (total > 10 and random.random() < 0.25) else total
        return [(max(0, last - WINDOW), last)]
    if total <= WINDOW or (total <= LEARNT and random.random() < 0.6):
        return [(0, total)]
    chosen = {total, *random.sample(stops, min(2, len(stops)))}
    return [(max(0, last - WINDOW), last) for last in sorted(chosen)]


def shared(target: Float, scores: Float) -> Float:
    """Return what each window of a piece is taught, float32[window, 11].

    The most suspicious window does what the whole does, the others in proportion.

    Args:
        target: of the whole piece, float32[11].
        scores: float32[window, 11], what a student says of the windows.
    """
    share = np.clip(scores / np.maximum(scores.max(axis=0), 1e-4), 0, 1)
    return np.asarray(target * share, np.float32)


def windows(
    found: Sequence[Taught], tokenizer: Tokenizer, score: Callable[[Sequence[Sequence[int]]], Float], random: Random
) -> list[Example]:
    """Return windows with what they are taught.

    Args:
        found: pieces with a teacher's scores.
        tokenizer: the student's.
        score: windows of ids -> float32[window, 11], a student's probabilities, which tell a piece's windows apart.
        random: of every choice.
    """
    made: list[Example] = []
    split: list[tuple[Float, list[list[int]]]] = []
    for start in range(0, len(found), 4096):
        some = found[start : start + 4096]
        encodings = tokenizer.encode_batch([piece.text for piece in some], add_special_tokens=False)
        for piece, encoding in zip(some, encodings, strict=True):
            target = target_of(piece)
            cut = spans(encoding, bool(piece.target.max() < CALM), random)
            ids = [encoding.ids[first:last] for first, last in cut]
            if len(ids) == 1:
                made.append(Example(ids[0], target))
            elif ids:
                split.append((target, ids))
    scores = score([own for _, ids in split for own in ids]) if split else np.zeros((0, len(OUTPUTS)), np.float32)
    first = 0
    for target, ids in split:
        own = shared(target, scores[first : first + len(ids)])
        first += len(ids)
        made += [Example(each, row) for each, row in zip(ids, own, strict=True)]
    random.shuffle(made)
    return made


def added(folder: Path) -> Iterator[Text]:
    """Yield the texts of the sets that the teacher learnt from beside the recipe's own."""
    for name, reader in ADDED.items():
        for row in rows(folder, name):
            text = reader({**row, "text": cleaned(str(row["text"]))})
            if text is not None and text.text.strip():
                yield text


def withheld_runs(folder: Path, seed: int) -> set[int]:
    """Return the runs of words of what calibrates or is measured: no piece of it may be learnt from."""
    found: set[int] = set()
    for text in chain(pool(folder, seed, WIDER), added(folder)):
        if part_of(text.group or text.text) != "train":
            found |= shingles(text.text)
    return found


def widened(weights: Weights, shape: Shape) -> Encoder:
    """Return an encoder with a column for each output that starts from one with a column for each harm, or label."""
    model = Encoder(shape, len(OUTPUTS))
    harms = len(HARMS)
    head = np.zeros((len(OUTPUTS), shape.hidden), np.float32)
    bias = np.full(len(OUTPUTS), -3, np.float32)
    head[:harms], bias[:harms] = weights["head.weight"][:harms], weights["head.bias"][:harms]
    head[ANY], bias[ANY] = head[:harms].mean(axis=0), -1.0
    model.start_from({**weights, "head.weight": head, "head.bias": bias})
    return model


def probabilities(model: Encoder, ids: Sequence[Sequence[int]]) -> Float:
    """Return what a student says of windows, float32[window, 11]."""
    nothing = np.zeros(len(OUTPUTS), np.float32)
    return sigmoid(np.stack(predict(model, [Example(row, nothing) for row in ids])))


def sold(texts: Sequence[Text], tokenizer: Tokenizer, random: Random) -> list[Example]:
    """Return windows of the texts of which it is known whether they sell."""
    own = [text for text in texts if text.source in SOLD]
    cut = list(sampled(own, tokenizer, WINDOW, random))
    return [Example(window.ids, target) for window, target in zip(cut, hard_targets(cut, own), strict=True)]


def learn(
    model: Encoder,
    tokenizer: Tokenizer,
    folder: Path,
    texts: Sequence[Text],
    *,
    seed: int,
    most: int,
    work: Path,
    without: Collection[str] = (),
) -> None:
    """Let a student of eleven outputs learn from the teacher's pieces, and what promotions are; it goes on.

    Args:
        model: `widened`; changed in place.
        tokenizer: its.
        folder: of the pool.
        texts: of the corpus, those to learn from.
        seed: of every choice.
        most: windows at most.
        work: where checkpoints are kept.
        without: sources that are left out.
    """
    random = Random(seed)
    apart = UNSURE | UNREAD | frozenset(without)
    found = list(pieces(folder, random, withheld_runs(folder, seed), apart))

    def first(ids: Sequence[Sequence[int]]) -> Float:
        scores = probabilities(model, ids)
        scores[:, ANY] = scores[:, : len(HARMS)].max(axis=1)
        return scores

    examples = windows(found, tokenizer, first, random) + sold(texts, tokenizer, Random(seed + 1))
    Random(seed).shuffle(examples)
    settings = FitSettings(seed=seed, epochs=1, rate=2e-4, batch_tokens=2048)
    fit(model, examples[:most], taught_loss, settings, checkpoint=work / "taught.pt")
