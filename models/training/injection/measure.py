"""Scores whole texts by the maximum over their windows, on the INT8 graph that ships, and shows the figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np
import onnxruntime as ort

from checkstream.evaluation.figures import Interval, auc, bootstrap, rate_at, recall_at_fpr
from models.training.export import run
from models.training.graph import Float
from models.training.injection.windows import GATE_WINDOW, OVERLAP, WINDOW, Cutter

Size = Literal["encoder", "gate"]

_SIZES: Mapping[Size, tuple[int, int]] = {"encoder": (WINDOW, OVERLAP), "gate": (GATE_WINDOW, OVERLAP // 2)}


def text_logits(graph: ort.InferenceSession, cutter: Cutter, texts: Sequence[str], size: Size = "encoder") -> Float:
    """Return the highest logit of any window of each text, float32[text].

    Args:
        graph: an open graph with one label.
        cutter: cuts the texts.
        texts: whole ones.
        size: whose windows to cut.
    """
    cut = [cutter.windows(ids, *_SIZES[size]) for ids in cutter.pieces(texts)]
    logits = iter(run(graph, [window for windows in cut for window in windows]))
    return np.array([max(float(next(logits)[0]) for _ in windows) for windows in cut], np.float32)


def figures(positives: Float, negatives: Float, rounds: int = 300) -> Mapping[str, Interval]:
    """Return the AUC and the recall at 1 % and 5 % false positives, with intervals."""
    return {
        "AUC": bootstrap(auc, positives, negatives, rounds=rounds),
        "recall at 1 %": bootstrap(lambda p, n: recall_at_fpr(p, n, 0.01), positives, negatives, rounds=rounds),
        "recall at 5 %": bootstrap(lambda p, n: recall_at_fpr(p, n, 0.05), positives, negatives, rounds=rounds),
    }


def by_group(scores: Float, groups: Sequence[str], threshold: float) -> Mapping[str, tuple[int, float]]:
    """Return how many texts each group has, and the share of them that fires."""
    names = np.array(groups)
    counts = {name: names == name for name in sorted(set(groups))}
    return {name: (int(chosen.sum()), rate_at(scores[chosen], threshold)) for name, chosen in counts.items()}


def shown(figure: Interval) -> str:
    """Write a figure with its interval."""
    return f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"
