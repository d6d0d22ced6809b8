"""What the domain model is worth: on sources left out of its head's training, and on rows left out of what ships."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.training.domain.data import CLASSES, FOLDS, Text, weights
from models.training.domain.student import Read, fit_head
from models.training.graph import Float

Classes = NDArray[np.int64]

THRESHOLD = 0.5
"""Probability from which a window is of a domain."""
POOLED = "all left-out sources"
"""Name of their figures together."""
LABELLING = (*FOLDS[0], *FOLDS[1], "harm_prompts")
"""Sources that say of each text what it is about; prompts, comments and answers of the others are taken for none."""


class Figures(msgspec.Struct, frozen=True):
    """F1 of each class and their mean on one set."""

    name: str
    texts: int
    f1: dict[str, float]
    """Of classes that the set has, or that are named in it by mistake and then are 0."""
    macro: float
    """Mean over the classes that the set has."""
    interval: tuple[float, float] = (0.0, 0.0)
    """Bootstrap over texts, 95 %, of `macro`."""


def classes_of(texts: Sequence[Text]) -> Classes:
    """Return the column of each text's class."""
    return np.array([CLASSES.index(text.label) for text in texts], np.int64)


def f1_by_class(truths: Classes, guesses: Classes) -> dict[str, float]:
    """Return the F1 of every class that a set of texts has."""
    result: dict[str, float] = {}
    for column, label in enumerate(CLASSES):
        right = int(((truths == column) & (guesses == column)).sum())
        total = int((truths == column).sum() + (guesses == column).sum())
        if (truths == column).any():
            result[label] = 2 * right / total
    return result


def figures(name: str, truths: Classes, guesses: Classes, seed: int = 1, rounds: int = 200) -> Figures:
    """Return F1 with its bootstrap interval."""
    each = f1_by_class(truths, guesses)
    random, drawn = Random(seed), []
    for _ in range(rounds):
        sample = np.array(random.choices(range(len(truths)), k=len(truths)))
        again = f1_by_class(truths[sample], guesses[sample])
        drawn.append(sum(again.values()) / len(again))
    drawn.sort()
    macro = sum(each.values()) / len(each)
    return Figures(name, len(truths), each, macro, (drawn[int(0.025 * rounds)], drawn[int(0.975 * rounds)]))


def judged(read: Read, count: int, weight: Float, bias: Float) -> Classes:
    """Return the class of each text as the proxy decides it: a label that reaches one half in any window, or none.

    Args:
        read: the texts' windows.
        count: texts.
        weight: float32[class, width] of the head.
        bias: float32[class].
    """
    logits = read.vectors @ weight.T + bias
    shares = np.exp(logits - logits.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    highest = np.zeros((count, len(CLASSES)), np.float32)
    np.maximum.at(highest, read.owner, shares)
    labels = highest[:, 1:]
    return np.where(labels.max(axis=1) >= THRESHOLD, labels.argmax(axis=1) + 1, 0)


def left_out(pool: Sequence[Text], made: Sequence[Text], pooled: Read, made_vectors: Float) -> list[Figures]:
    """Train the head without each fold and measure on it; the encoder saw no text of any fold.

    Args:
        pool: labelled texts of the pool.
        made: generated and other texts that are always learnt from.
        pooled: windows of `pool`.
        made_vectors: float32[text, width] of `made`.

    Returns:
        Figures of each source, and at the end of all left-out texts together, and of those whose source labels
        domains: each judged by a head that never saw its source.
    """
    found: list[Figures] = []
    truths = classes_of(pool)
    guesses = np.zeros_like(truths)
    sources = np.array([text.source for text in pool])
    first = np.unique(pooled.owner, return_index=True)[1]
    for fold in FOLDS:
        inside = np.isin(sources, fold)
        learnt = [text for text, out in zip(pool, inside, strict=True) if not out] + list(made)
        rows = np.concatenate([pooled.vectors[first[~inside]], made_vectors])
        weight, bias = fit_head(rows, classes_of(learnt), weights(learnt), len(CLASSES))
        guesses[inside] = judged(pooled, len(pool), weight, bias)[inside]
        found += [figures(name, truths[sources == name], guesses[sources == name]) for name in fold]
    for name, names in ((POOLED, sum(FOLDS, ())), ("those that label domains", LABELLING)):
        own = np.isin(sources, names)
        found.append(figures(name, truths[own], guesses[own]))
    return found
