"""Figures of a scoreboard out of scores, claims and spans. Pure.

Shares of texts that fire have Wilson's interval, which is none of a point where nothing fires; all else a bootstrap's
from a fixed seed. Every threshold of 1 % is one for all innocent sets of a label together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from checkstream.evaluation.board.described import Learnt, SetDescribed
from checkstream.evaluation.board.results import Figure, Threshold, rounded
from checkstream.evaluation.board.texts import digest
from checkstream.evaluation.claims import balanced_accuracy
from checkstream.evaluation.figures import Interval, Scores, auc, bootstrap, rate_at, recall_at_fpr, threshold_at_fpr
from checkstream.evaluation.spans import SpanCounts

RATE = 0.01
ROUNDS = 300
_Z = 1.959963984540054
"""Of a normal distribution, 95 % lie within so many deviations."""


class SetOf(msgspec.Struct, frozen=True, kw_only=True):
    """Which set figures are of."""

    model: str
    name: str
    described: SetDescribed
    learnt: Learnt
    harmful: bool
    texts: Sequence[str]

    def figure(self, label: str, figure: str, found: Interval, *, down: bool = False, n: int | None = None) -> Figure:
        """Return one figure of the set; `down`: the lower, the better."""
        return Figure(
            model=self.model,
            label=label,
            set=self.name,
            kind=self.described.kind,
            learnt=self.learnt,
            harmful=self.harmful,
            figure=figure,
            good="down" if down else "up",
            n=len(self.texts) if n is None else n,
            texts=digest(*self.texts)[:16],
            value=rounded(found.value),
            low=rounded(found.low),
            high=rounded(found.high),
        )


class Scored(msgspec.Struct, frozen=True):
    """Texts of a set, with what was said of each."""

    of: SetOf
    scores: Scores
    """float[text]"""
    fires: Mapping[str, NDArray[np.bool_]]
    """What a threshold is called that policies ask for -> whether a text reaches it, bool[text]."""


def wilson(hits: int, n: int) -> Interval:
    """Return a share with its 95 % interval.

    Raises:
        ValueError: there are no texts.

    Source: Wilson 1927; Brown, Cai and DasGupta 2001.
    """
    if n <= 0:
        raise ValueError("there are no texts; a share needs some")
    share, slack = hits / n, _Z * _Z / n
    middle = (share + slack / 2) / (1 + slack)
    half = _Z / (1 + slack) * ((share * (1 - share) + slack / 4) / n) ** 0.5
    return Interval(share, min(share, max(0.0, middle - half)), max(share, min(1.0, middle + half)))


def of_scores(model: str, label: str, sets: Sequence[Scored]) -> tuple[list[Figure], Threshold]:
    """Return the figures of a label on harmful and innocent sets; there is one of each at least."""
    innocent = np.concatenate([each.scores for each in sets if not each.of.harmful])
    threshold = threshold_at_fpr(innocent, RATE)
    found = []
    for each in sets:
        if each.of.harmful:
            area = bootstrap(auc, each.scores, innocent, rounds=ROUNDS)
            recall = bootstrap(partial(recall_at_fpr, fpr=RATE), each.scores, innocent, rounds=ROUNDS)
            found += [each.of.figure(label, "AUC", area), each.of.figure(label, "recall at 1 % of all", recall)]
        else:
            fired = int(np.sum(np.asarray(each.scores, np.float64) >= threshold))
            found.append(each.of.figure(label, "fires at 1 % of all", wilson(fired, len(each.scores)), down=True))
        for called, fires in each.fires.items():
            share = wilson(int(np.sum(fires)), len(fires))
            found.append(each.of.figure(label, f"fires at {called}", share, down=not each.of.harmful))
    return found, Threshold(model, label, rounded(threshold), len(innocent))


def of_claims(of: SetOf, supported: Scores, other: Scores) -> list[Figure]:
    """Return the figures of a verifier on a set of claims of both classes."""
    at_half = partial(balanced_accuracy, threshold=0.5)
    return [
        of.figure("", "AUC", bootstrap(auc, supported, other, rounds=ROUNDS)),
        of.figure("", "balanced accuracy", bootstrap(at_half, supported, other, rounds=ROUNDS)),
        of.figure("", "supported found", wilson(_from(supported, 0.5), len(supported)), n=len(supported)),
        of.figure("", "others let by", wilson(_from(other, 0.5), len(other)), down=True, n=len(other)),
    ]


def of_spans(of: SetOf, counts: Sequence[SpanCounts], kinds: Sequence[str]) -> list[Figure]:
    """Return F1 of each entity that is marked in a set.

    Args:
        of: the set.
        counts: of each text.
        kinds: what is looked for.
    """
    found = []
    for kind in sorted(kinds):
        told = [each.of(kind) for each in counts]
        marked = sum(each.gold for each in told)
        if not marked:
            continue
        strict = np.array([(each.strict, each.gold, each.found) for each in told], np.float64)
        overlap = np.array(
            [(each.gold_touched, each.found_touching, each.gold, each.found) for each in told], np.float64
        )
        found += [
            of.figure(kind, "F1, strict", bootstrap(_f1, strict, rounds=ROUNDS), n=marked),
            of.figure(kind, "F1, overlap", bootstrap(_f1_overlap, overlap, rounds=ROUNDS), n=marked),
        ]
    return found


def _from(scores: Scores, threshold: float) -> int:
    return round(rate_at(scores, threshold) * len(scores))


def _f1(counts: NDArray[np.floating[Any]]) -> float:
    strict, gold, found = counts.sum(axis=0).tolist()
    return 2 * strict / (gold + found) if gold + found else 0.0


def _f1_overlap(counts: NDArray[np.floating[Any]]) -> float:
    gold_touched, found_touching, gold, found = counts.sum(axis=0).tolist()
    recall = gold_touched / gold if gold else 0.0
    precision = found_touching / found if found else 0.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
