"""How far INT8 is from float32, and how often a text finds what it belongs to."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import msgspec
import numpy as np

from checkstream.scoring.embedding import Embedder
from models.training import corpus

SETS: Mapping[str, tuple[str, str, str]] = MappingProxyType(
    {
        "ground_halueval_qa": ("question", "grounded", "question -> the paragraphs that answer it"),
        "nli_scifact_rte": ("claim", "entailment", "scientific claim -> the sentences that support it"),
        "ground_bump": ("claim", "consistent", "summary of news -> its article, of 3 to 10 windows"),
    }
)
"""Set -> the key of what is sought with, the label of pairs that belong together, and what it is."""
_COMPARED_SETS = ("ground_begin", "ground_frank_valid", "nli_cad", "nli_paws_en", "nli_scifact_rte")
_COMPARED, _MOST = 60, 600
"""Texts of a set that INT8 and float32 are compared on, and queries of a task."""


class Task(msgspec.Struct, frozen=True):
    """Texts, and which passage belongs to each."""

    name: str
    about: str
    queries: Sequence[str]
    passages: Sequence[str]
    right: Sequence[int]
    """Of each query, the number of its passage."""


class Drift(msgspec.Struct, frozen=True):
    """How far two embedders of the same texts are apart."""

    texts: int
    cosine_mean: float
    """Between the two vectors of one text."""
    cosine_min: float
    pair_mean: float
    """Mean absolute difference of the cosine of two texts."""
    pair_p99: float


class Found(msgspec.Struct, frozen=True):
    """How often an embedder puts the right passage first, or among the first."""

    task: str
    about: str
    embedder: str
    queries: int
    passages: int
    first: float
    among_five: float
    reciprocal_rank: float
    """Mean of 1/rank, 0 from the eleventh on."""


def compared(folder: Path) -> list[str]:
    """Return texts of many kinds and lengths."""
    texts: list[str] = []
    for name in _COMPARED_SETS:
        own = list(dict.fromkeys(str(row[key]) for row in corpus.rows(folder, name) for key in ("premise", "claim")))
        texts += random.Random(0).sample(own, min(_COMPARED, len(own)))
    return texts


def tasks(folder: Path, sets: Mapping[str, tuple[str, str, str]]) -> list[Task]:
    """Return a task for each set: find the premise that a text belongs to among all premises of the set."""
    return [_task(folder, name, *said) for name, said in sets.items()]


def _task(folder: Path, name: str, key: str, label: str, about: str) -> Task:
    rows = [row for row in corpus.rows(folder, name) if row.get(key) and row["premise"]]
    passages = list(dict.fromkeys(str(row["premise"]) for row in rows))
    at = {passage: number for number, passage in enumerate(passages)}
    pairs = {str(row[key]): at[str(row["premise"])] for row in rows if row["label"] == label}
    chosen = random.Random(0).sample(sorted(pairs.items()), min(_MOST, len(pairs)))
    return Task(name, about, [query for query, _ in chosen], passages, [number for _, number in chosen])


def drift(texts: Sequence[str], one: Embedder, other: Embedder) -> Drift:
    """Compare two embedders."""
    first, second = (asyncio.run(embedder.embed(texts)) for embedder in (one, other))
    same = (first * second).sum(axis=1)
    pairs = np.abs(first @ first.T - second @ second.T)
    return Drift(
        len(texts), float(same.mean()), float(same.min()), float(pairs.mean()), float(np.quantile(pairs, 0.99))
    )


def retrieval(task: Task, embedder: Embedder) -> Found:
    """Rank the passages of a task for each of its queries; a tie counts against the embedder."""
    queries, passages = (asyncio.run(embedder.embed(texts)) for texts in (task.queries, task.passages))
    cosines = queries @ passages.T
    right = cosines[np.arange(len(queries)), task.right]
    ranks = (cosines >= right[:, None]).sum(axis=1)
    return Found(
        task=task.name,
        about=task.about,
        embedder=embedder.name,
        queries=len(queries),
        passages=len(passages),
        first=float((ranks <= 1).mean()),
        among_five=float((ranks <= 5).mean()),
        reciprocal_rank=float(np.where(ranks <= 10, 1 / ranks, 0).mean()),
    )
