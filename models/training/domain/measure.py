"""What the domain model is worth: on sources left out of its head's training, and on rows left out of what ships."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import msgspec
import numpy as np
from numpy.typing import NDArray

from models.training.domain.data import CLASSES, FOLDS, Text, weights
from models.training.domain.student import fit_head
from models.training.graph import Float

Classes = NDArray[np.int64]


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


def left_out(pool: Sequence[Text], made: Sequence[Text], vectors: Float, made_vectors: Float) -> list[Figures]:
    """Train the head without each fold and measure on it; the encoder saw no text of any fold.

    Args:
        pool: labelled texts of the pool.
        made: generated texts; always learnt from.
        vectors: float32[text, width] of `pool`.
        made_vectors: of `made`.

    Returns:
        Figures of each source, and at the end of all left-out texts together, each judged by a head that never saw
        its source.
    """
    found: list[Figures] = []
    all_truths: list[Classes] = []
    all_guesses: list[Classes] = []
    for fold in FOLDS:
        inside = np.array([text.source in fold for text in pool])
        learnt = [text for text, out in zip(pool, inside, strict=True) if not out] + list(made)
        rows = np.concatenate([vectors[~inside], made_vectors])
        weight, bias = fit_head(rows, classes_of(learnt), weights(learnt), len(CLASSES))
        for source in fold:
            own = np.array([text.source == source for text in pool])
            truths = classes_of([text for text, mine in zip(pool, own, strict=True) if mine])
            guesses = (vectors[own] @ weight.T + bias).argmax(axis=1)
            found.append(figures(source, truths, guesses))
            all_truths.append(truths)
            all_guesses.append(guesses)
    return [*found, figures("all left-out sources", np.concatenate(all_truths), np.concatenate(all_guesses))]
