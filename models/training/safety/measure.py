"""Measures: folds of left-out sources, the model that ships on rows it never saw, and sets that only measure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from checkstream.evaluation.figures import rate_at, threshold_at_fpr
from models.training.export import MODELS
from models.training.graph import encoder_graph
from models.training.safety import figures, probe, promotions, taught
from models.training.safety.assemble import FOLDS, cleaned, corpus, pool
from models.training.safety.checks import Checked, Score, checked, whole
from models.training.safety.figures import Figures, any_harm
from models.training.safety.labels import ANY, PROMOTIONAL, Float, Text
from models.training.safety.recipe import FOLD, Effort, benign, calibrate, scorer, taught_on, train
from models.training.safety.ship import Cascade
from models.training.safety.sources import MEASURES, is_harmful, texts

HARD = (
    "generated reported",
    "generated quoted",
    "generated mention",
    "generated retelling",
    "generated explanation",
    "generated account",
    "generated usage",
    "generated innocent",
    "generated friendly",
    "generated guide",
)
"""The words of harm, quoted, reported, told, explained or reclaimed."""

SAFE_ANSWERS = ("refusals", "generated refusal", "generated safe answer", "generated completion")


def _highest(found: Sequence[Checked]) -> Float:
    return np.stack([text.highest for text in found])


def some(found: Sequence[Text], most: int, seed: int) -> list[Text]:
    """Return at most so many texts of each source, drawn at random."""
    kept: list[Text] = []
    for source in sorted({text.source for text in found}):
        own = [text for text in found if text.source == source]
        kept += Random(seed).sample(own, min(most, len(own)))
    return kept


def measured_fold(
    folder: Path, name: str, seed: int, work: Path, *, effort: Effort = FOLD, most: int = 1000
) -> Figures:
    """Train without some sources and measure on them.

    Args:
        folder: of the pool.
        name: of the fold.
        seed: of every choice.
        work: where checkpoints are kept.
        effort: how much to learn from.
        most: texts of one source at most.
    """
    left_out = FOLDS[name]
    parts = corpus(folder, seed, left_out)
    more = corpus(folder, seed, left_out, wider=True)["train"]
    trained = train(parts, seed, effort, work / name, more=more)
    written = [text for part in corpus(folder, seed).values() for text in part if text.source in left_out & {*HARD}]
    # Of the rest what people wrote: abuse that a generator put a frame around keeps its source.
    unseen = some([*written, *(text for text in pool(folder, seed) if text.source in left_out)], most, seed)
    trained = taught_on(
        trained, parts["train"], folder, seed=seed, effort=effort, work=work / name, without=taught.named(left_out)
    )
    weights = calibrate(trained, parts["dev"][: effort.dev_texts // 2])
    score = scorer(encoder_graph(weights, trained.model.shape, pooling="mean").SerializeToString())
    answers = checked([text.text for text in unseen], trained.tokenizer, score)
    scores = _highest(answers)
    natural = np.array([text.source not in HARD for text in unseen])
    own = [text for text, counts in zip(unseen, natural, strict=True) if counts]
    found = figures.pooled(own, scores[natural])
    found["labels"] = figures.by_label(own, scores[natural])
    calm = any_harm(scores[np.array([is_harmful(text) is False for text in unseen]) & natural])
    limits = {"5%": threshold_at_fpr(calm, 0.05), "1%": threshold_at_fpr(calm, 0.01)}
    found["hard"] = {
        source: figures.flagged(scores[np.array([text.source == source for text in unseen])], limits)
        for source in HARD
        if source in left_out
    }
    if "gptfuzz" in left_out:
        found["answers"] = _answers(unseen, answers)
    return found


def _answers(unseen: Sequence[Text], found: Sequence[Checked]) -> Figures:
    """Return how harmful answers stand apart from refusals and safe answers, and when they are decided."""
    verdicts = [is_harmful(text) if text.source in {"gptfuzz", "refusals"} else None for text in unseen]
    bad = [answer for answer, verdict in zip(found, verdicts, strict=True) if verdict is True]
    good = [answer for answer, verdict in zip(found, verdicts, strict=True) if verdict is False]
    calm = any_harm(_highest(good))
    limits = {"5%": threshold_at_fpr(calm, 0.05), "1%": threshold_at_fpr(calm, 0.01)}
    return {
        **figures.separation(any_harm(_highest(bad)), calm),
        "streaming": figures.streaming(bad, limits),
    }


def measured_model(
    folder: Path, seed: int, limits: Mapping[str, float], rates: Sequence[Mapping[str, Any]], models: Path = MODELS
) -> Figures:
    """Measure the model that ships, on rows it never saw.

    Args:
        folder: of the pool.
        seed: of the corpus that it was trained on.
        limits: name -> threshold of any harm.
        rates: calibration of the labels.
        models: the folder of the manifest.
    """
    shipped = Cascade.shipped(models)
    tokenizer, score = shipped.tokenizer, shipped.score
    test = some(corpus(folder, seed)["test"], 700, seed)
    answers = checked([text.text for text in test], tokenizer, score)
    scores = _highest(answers)
    natural = np.array([not text.source.startswith("generated") for text in test])
    own = [text for text, counts in zip(test, natural, strict=True) if counts]
    found: Figures = {"natural": figures.pooled(own, scores[natural]), "labels": figures.by_label(test, scores)}
    sources = np.array([text.source for text in test])
    found["hard"] = {source: figures.flagged(scores[sources == source], limits) for source in (*HARD, *SAFE_ANSWERS)}
    found["probe"] = figures.flagged(_highest(checked(probe.INNOCENT, tokenizer, score)), limits)
    found["probe_harmful"] = figures.flagged(_highest(checked(probe.HARMFUL, tokenizer, score)), limits)
    found["answers"] = _answers(test, answers)
    calm = [text.text for text in benign(test)][:1500]
    found["whole"] = figures.agreement(_highest(checked(calm, tokenizer, score)), whole(calm, tokenizer, score))
    verdicts = np.array([is_harmful(text) is True for text in test])
    groups = {
        "GPTFuzz answers, harmful": scores[(sources == "gptfuzz") & verdicts],
        "GPTFuzz answers, harmless": scores[(sources == "gptfuzz") & ~verdicts],
        "harmful texts": scores[natural & verdicts],
        "innocent texts": scores[natural & np.array([is_harmful(text) is False for text in test])],
        "written by hand, harmful": _highest(checked(probe.HARMFUL, tokenizer, score)),
        "written by hand, innocent": _highest(checked(probe.INNOCENT, tokenizer, score)),
    }
    found["policy"] = figures.by_rates(groups, rates)
    sellers: dict[str, Sequence[str]] = {
        "promotions written by hand": probe.PROMOTIONAL,
        "written by hand, balanced": probe.BALANCED,
        "generated promotions, claims unseen": [text.text for text in test if text.source == promotions.SOURCE],
        "generated look-alikes": [text.text for text in test if text.source == promotions.CALM_SOURCE],
    }
    sold = {name: _highest(checked(said, tokenizer, score)) for name, said in sellers.items() if said}
    found["promotions"] = figures.of_label(sold, PROMOTIONAL, rates)
    found["measures"] = _measures(folder, tokenizer, score, limits)
    return found


def _measures(
    folder: Path, tokenizer: Tokenizer, score: Score, limits: Mapping[str, float], most: int = 1200
) -> Figures:
    """Return the figures of the sets that only measure."""
    found: Figures = {}
    for name, reader in MEASURES.items():
        own = [replace(text, text=cleaned(text.text)) for text in texts(folder, name, reader, measuring=True)]
        own = Random(0).sample(own, min(most, len(own)))
        answers = checked([text.text for text in own], tokenizer, score)
        scores = any_harm(_highest(answers))
        bad = np.array([text.target[ANY] >= 0.5 for text in own])
        row: Figures = {"flagged": {limit: round(rate_at(scores[~bad], at), 4) for limit, at in limits.items()}}
        if bad.any():
            row |= figures.separation(scores[bad], scores[~bad])
            row["recall"] = {limit: round(rate_at(scores[bad], at), 4) for limit, at in limits.items()}
        if "saferlhf" in name:
            row["streaming"] = figures.streaming([a for a, harm in zip(answers, bad, strict=True) if harm], limits)
        found[name] = row
    return found
