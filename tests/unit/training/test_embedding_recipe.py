"""The embedding model is the package's weights and nothing else; its figures are counted rightly."""

import gzip
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from checkstream.config import bundled
from checkstream.scoring.catalog import read_manifest
from models.training.embedding.measure import Task, drift, retrieval, tasks
from tests.train_packages import TRAIN


class Table:
    """An embedder that looks vectors up."""

    name = "table"
    dimensions = 2

    def __init__(self, vectors: dict[str, tuple[float, float]]) -> None:
        self._vectors = vectors

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([self._vectors[text] for text in texts], np.float32)


def test_ranks_are_counted_and_a_tie_counts_against_the_embedder() -> None:
    table = Table({"q": (1, 0), "r": (0, 1), "best": (1, 0), "near": (0.6, 0.8), "far": (0, -1), "twin": (1, 0)})
    found = retrieval(Task("t", "", ["q", "r"], ["best", "near", "far"], [0, 2]), table)
    assert (found.first, found.among_five) == (0.5, 1.0)
    assert found.reciprocal_rank == pytest.approx((1 + 1 / 3) / 2)
    tied = retrieval(Task("t", "", ["q"], ["best", "twin"], [0]), table)
    assert (tied.first, tied.reciprocal_rank) == (0.0, 0.5)


def test_drift_is_of_each_text_with_itself_and_of_all_pairs() -> None:
    one, other = Table({"a": (1, 0), "b": (0, 1)}), Table({"a": (1, 0), "b": (0.6, 0.8)})
    found = drift(["a", "b"], one, other)
    assert found.texts == 2
    assert found.cosine_min == pytest.approx(0.8)
    assert found.cosine_mean == pytest.approx(0.9)
    assert found.pair_mean == pytest.approx(0.3)


def test_a_task_is_made_of_pairs_that_belong_together(tmp_path: Path) -> None:
    rows = [
        {"premise": "p1", "claim": "c1", "label": "entailment"},
        {"premise": "p2", "claim": "c2", "label": "other"},
        {"premise": "p1", "claim": "c3", "label": "entailment"},
        {"premise": "p3", "claim": "", "label": "entailment"},
    ]
    with gzip.open(tmp_path / "s.jsonl.gz", "wt") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    (task,) = tasks(tmp_path, {"s": ("claim", "entailment", "about")})
    assert list(task.passages) == ["p1", "p2"]
    assert sorted(zip(task.queries, task.right, strict=True)) == [("c1", 0), ("c3", 0)]


def test_the_recipe_gives_the_bytes_that_ship() -> None:
    for package in ("torch", "onnx", "safetensors"):
        pytest.importorskip(package, reason=TRAIN)
    from models.training.embedding.ship import graph

    (entry,) = [model for model in read_manifest(bundled("models")).models if model.name == "embedding"]
    pinned = {file.role: file.sha256 for file in entry.files}
    assert hashlib.sha256(graph(int8=True)).hexdigest() == pinned["graph"]
