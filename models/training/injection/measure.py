"""Scores whole texts by the maximum over their windows, on the INT8 graph that ships, and shows the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import Random

import numpy as np
import onnxruntime as ort

from checkstream.evaluation.figures import Interval, auc, bootstrap, rate_at, recall_at_fpr
from models.training.corpus import RESTRICTED, rows
from models.training.export import run
from models.training.graph import Float
from models.training.injection.windows import Cutter

Scored = Callable[[Sequence[str]], Float]
"""Whole texts -> float32[text], the highest score of any window of each: a logit, or what the proxy says."""


def window_logits(graph: ort.InferenceSession, cutter: Cutter, texts: Sequence[str]) -> list[Float]:
    """Return the logit of each window of each text, float32[window] a text.

    Args:
        graph: an open graph with one label, of the encoder or of the gate.
        cutter: cuts the texts.
        texts: whole ones.
    """
    cut = [cutter.windows(ids) for ids in cutter.pieces(texts)]
    logits = iter(run(graph, [window for windows in cut for window in windows]))
    return [np.array([next(logits)[0] for _ in windows], np.float32) for windows in cut]


def text_logits(graph: ort.InferenceSession, cutter: Cutter, texts: Sequence[str]) -> Float:
    """Return the highest logit of any window of each text, float32[text]; arguments as of `window_logits`."""
    return np.array([logits.max() for logits in window_logits(graph, cutter, texts)], np.float32)


def figures(positives: Float, negatives: Float, rounds: int = 300) -> Mapping[str, Interval]:
    """Return the AUC and the recall at 0.1 %, 1 % and 5 % false positives, with intervals."""
    return {
        "AUC": bootstrap(auc, positives, negatives, rounds=rounds),
        "recall at 0.1 %": bootstrap(lambda p, n: recall_at_fpr(p, n, 0.001), positives, negatives, rounds=rounds),
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


def elsewhere(score: Scored, folder: Path, threshold: float, count: int = 500) -> dict[str, tuple[int, float]]:
    """Return the share that fires of sets under other licences, which only ever measure.

    Args:
        score: of the model.
        folder: of the pool.
        threshold: from which score on a text fires.
        count: texts of a set at most.
    """
    sets = unlearnt(folder, count)
    scores = {name: score(texts) for name, texts in sets.items()}
    return {name: (len(found), rate_at(found, threshold)) for name, found in scores.items()}


def unlearnt(folder: Path, count: int = 500) -> dict[str, list[str]]:
    """Return so many texts of each set that only ever measures."""
    sets: dict[str, list[str]] = {}
    for name in ("inj_neuralchemy", "inj_tensortrust", "benign_prompts_alpaca", "harm_prompts_nc"):
        for row in rows(folder / RESTRICTED, name, measuring=True):
            if row.get("kind") != "llm_output_prompt_leak":
                sets.setdefault(f"{name} {row['label']}" if name.startswith("inj") else name, []).append(
                    str(row["text"])
                )
    return {name: _sample(texts, count) for name, texts in sets.items()}


def _sample(texts: Sequence[str], count: int) -> list[str]:
    return list(texts) if len(texts) <= count else Random(5).sample(list(texts), count)
