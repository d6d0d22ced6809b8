"""Reckons the figures of the card from scores of whole texts and of their checks. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from checkstream.evaluation.figures import auc, bootstrap, rate_at, recall_at_fpr, threshold_at_fpr
from models.training.safety.checks import Checked
from models.training.safety.labels import ANY, HARMS, LABELS, Float, Text
from models.training.safety.sources import is_harmful

Figures = dict[str, Any]
"""JSON of figures."""

ROUNDS = 200
"""Draws of an interval."""

HOLDS = (0, 8, 16, 32, 64)
"""Word pieces that a stream holds back, of the leak curve."""


def any_harm(scores: Float) -> Float:
    """Return the score of any harm, float32[row]; of a model without one, the highest of the nine harms."""
    return np.asarray(scores[:, ANY] if scores.shape[1] > ANY else scores[:, : len(HARMS)].max(axis=1), np.float32)


def _spoken(interval: Any) -> list[float]:
    return [round(interval.value, 4), round(interval.low, 4), round(interval.high, 4)]


def separation(positives: Float, negatives: Float) -> Figures:
    """Return AUC and recall at 5 and 1 % false positives of one pool, each with its 95 % interval."""
    return {
        "positives": len(positives),
        "negatives": len(negatives),
        "auc": _spoken(bootstrap(auc, positives, negatives, rounds=ROUNDS)),
        "recall_5": _spoken(bootstrap(lambda p, n: recall_at_fpr(p, n, 0.05), positives, negatives, rounds=ROUNDS)),
        "recall_1": _spoken(bootstrap(lambda p, n: recall_at_fpr(p, n, 0.01), positives, negatives, rounds=ROUNDS)),
    }


def pooled(texts: Sequence[Text], scores: Float) -> Figures:
    """Return how well texts that do any harm stand apart, with one threshold over all sources, and source by source.

    Args:
        texts: of left-out sources; those of which nobody knows are not counted.
        scores: float32[text, label].
    """
    highest = any_harm(scores)
    verdicts = [is_harmful(text) for text in texts]
    positive = np.array([verdict is True for verdict in verdicts])
    negative = np.array([verdict is False for verdict in verdicts])
    found = separation(highest[positive], highest[negative])
    limits = {rate: threshold_at_fpr(highest[negative], rate) for rate in (0.05, 0.01)}
    sources = np.array([text.source for text in texts])
    found["sources"] = {}
    for source in sorted(set(sources)):
        own = sources == source
        rows: Figures = {}
        if (own & positive).any():
            rows["recall"] = {str(rate): round(rate_at(highest[own & positive], at), 4) for rate, at in limits.items()}
        if (own & negative).any():
            rows["flagged"] = {str(rate): round(rate_at(highest[own & negative], at), 4) for rate, at in limits.items()}
        if (own & positive).sum() > 20 and (own & negative).sum() > 20:
            rows["auc"] = round(auc(highest[own & positive], highest[own & negative]), 4)
        rows["texts"] = [int((own & positive).sum()), int((own & negative).sum())]
        found["sources"][source] = rows
    return found


def by_label(texts: Sequence[Text], scores: Float) -> Figures:
    """Return the AUC of each label over the texts of which it is known."""
    truths = np.stack([text.target[: len(LABELS)] for text in texts])
    found: Figures = {}
    for column, label in enumerate(LABELS):
        positive, negative = truths[:, column] >= 0.5, truths[:, column] <= 0.1
        if positive.sum() >= 20 and negative.sum() >= 20:
            interval = bootstrap(auc, scores[positive, column], scores[negative, column], rounds=ROUNDS)
            counts = {"positives": int(positive.sum()), "negatives": int(negative.sum())}
            found[label] = {"auc": _spoken(interval), **counts}
    return found


def flagged(scores: Float, limits: Mapping[str, float]) -> Figures:
    """Return the share of texts that any label fires on, at each threshold of any harm."""
    return {"texts": len(scores), **{name: round(rate_at(any_harm(scores), at), 4) for name, at in limits.items()}}


def by_rates(groups: Mapping[str, Float], rates: Sequence[Mapping[str, Any]]) -> Figures:
    """Return the share of texts on which a harm reaches its own threshold, as policies with `fpr:` decide.

    Args:
        groups: name -> float32[text, label].
        rates: calibration of the labels, as the manifest has it.
    """
    found: Figures = {name: {"texts": len(scores)} for name, scores in groups.items()}
    for rate in sorted({float(row["fpr"]) for row in rates}, reverse=True):
        own = {row["label"]: float(row["threshold"]) for row in rates if float(row["fpr"]) == rate}
        limits = np.array([own.get(label, 1.0) for label in HARMS], np.float32)
        for name, scores in groups.items():
            found[name][f"{rate:.1%}"] = round(float((scores[:, : len(HARMS)] >= limits).any(axis=1).mean()), 4)
    return found


def of_label(groups: Mapping[str, Float], label: str, rates: Sequence[Mapping[str, Any]]) -> Figures:
    """Return the share of texts on which one label reaches its thresholds.

    Args:
        groups: name -> float32[text, label].
        label: whose.
        rates: calibration of the labels, as the manifest has it.
    """
    own = {f"{float(row['fpr']):.1%}": float(row["threshold"]) for row in rates if row["label"] == label}
    return {
        name: {
            "texts": len(scores),
            **{rate: round(rate_at(scores[:, LABELS.index(label)], at), 4) for rate, at in own.items()},
        }
        for name, scores in groups.items()
    }


def streaming(answers: Sequence[Checked], limits: Mapping[str, float]) -> Figures:
    """Return when harmful answers are decided, and how much of them is out by then.

    Args:
        answers: checks of harmful answers.
        limits: name -> threshold of any harm.
    """
    found: Figures = {}
    totals = np.array([answer.pieces[-1] for answer in answers])
    for name, limit in limits.items():
        hits = [np.flatnonzero(any_harm(answer.scores) >= limit) for answer in answers]
        caught = np.array([len(hit) > 0 for hit in hits])
        at = np.array([answer.pieces[hit[0]] if len(hit) else 0 for answer, hit in zip(answers, hits, strict=True)])
        shares = at[caught] / totals[caught] if caught.any() else np.zeros(0)
        found[name] = {
            "answers": len(answers),
            "caught": round(float(caught.mean()), 4),
            "decided_by_30_percent": round(float((shares <= 0.3).mean()), 4) if len(shares) else None,
            "median_pieces_at_decision": float(np.median(at[caught])) if caught.any() else None,
            "leak": {
                str(hold): {
                    "nothing": round(float((at[caught] <= hold).mean()), 4) if caught.any() else None,
                    "median": float(np.median(np.maximum(at[caught] - hold, 0))) if caught.any() else None,
                    "mean": round(float(np.maximum(at[caught] - hold, 0).mean()), 1) if caught.any() else None,
                }
                for hold in HOLDS
            },
        }
    return found


def agreement(streamed: Float, whole: Float) -> Figures:
    """Return how far the score at the end of a stream is from that of the whole text, any harm."""
    difference = np.abs(any_harm(streamed) - any_harm(whole))
    return {
        "texts": len(difference),
        "mean": round(float(difference.mean()), 4),
        "within_0.02": round(float((difference <= 0.02).mean()), 4),
    }
