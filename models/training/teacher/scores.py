"""Scores of teachers, written for students and read by them.

Of texts a file of gzip JSON lines, `{"text", "source", "scores": [...]}`, or `"score"` where there is one label. Of
pairs an `.npz`: one array a pair file of the pool, int16[row, label] in that file's order, -1 where nothing may be
learnt. Scores are thousandths, 0..1000.
"""

from __future__ import annotations

import gzip
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import orjson
from numpy.typing import NDArray

from models.training.export import sigmoid
from models.training.graph import Float
from models.training.teacher import claims
from models.training.teacher.rows import Row

Scores = NDArray[np.int16]

_NOT_SCORED = -1


class Taught(NamedTuple):
    """A text, or a premise with a claim, and what a teacher says of it."""

    text: str
    claim: str | None
    source: str
    target: Float
    """float32[label], 0..1."""


def thousandths(logits: Float) -> Scores:
    """Return logits as scores."""
    return np.rint(1000 * sigmoid(logits)).astype(np.int16)


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(path.name + ".part")
    beside.write_bytes(data)
    beside.replace(path)


def write_texts(path: Path, rows: Sequence[Row], scores: Scores) -> None:
    """Write texts with their scores; the same ones give the same bytes."""
    lines = []
    for row, own in zip(rows, scores.tolist(), strict=True):
        said = {"score": own[0]} if len(own) == 1 else {"scores": own}
        claim = {} if row.claim is None else {"claim": row.claim}
        lines.append(orjson.dumps({"text": row.text, **claim, "source": row.source, **said}) + b"\n")
    _write(path, gzip.compress(b"".join(lines), mtime=0))


def write_pairs(path: Path, scores: Mapping[str, Scores]) -> None:
    """Write the scores of pair files."""
    held = io.BytesIO()
    np.savez_compressed(held, allow_pickle=False, **scores)
    _write(path, held.getvalue())


def read_texts(path: Path, labels: int) -> Iterator[Taught]:
    """Yield the texts of a file.

    Args:
        path: of the file.
        labels: how many scores each text has.

    Raises:
        ValueError: a line is broken; it says which.
    """
    with gzip.open(path, "rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = orjson.loads(line)
                said = row["scores"] if "scores" in row else [row["score"]]
                text, claim, source = row["text"], row.get("claim"), row.get("source", "")
            except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError) as broken:
                raise ValueError(f"line {number} of `{path}` is no text with scores: {broken!r}") from broken
            whole = isinstance(said, list) and all(type(score) is int and 0 <= score <= 1000 for score in said)
            if not whole or len(said) != labels or not isinstance(text, str) or not isinstance(claim, str | None):
                raise ValueError(f"line {number} of `{path}` is no text with {labels} scores of 0 to 1000")
            yield Taught(text, claim, str(source), np.array(said, np.float32) / np.float32(1000))


def read_pairs(path: Path, folder: Path) -> Iterator[Taught]:
    """Yield the pairs that a file has scores of, and that may be learnt from.

    Args:
        path: of the scores.
        folder: of the pool.

    Raises:
        FileNotFoundError: there are scores of a pair file that the pool doesn't have.
        ValueError: scores don't fit their pair file.
    """
    try:
        kept = np.load(path, allow_pickle=False)
    except (ValueError, OSError, EOFError) as broken:
        if isinstance(broken, FileNotFoundError):
            raise
        raise ValueError(f"`{path}` holds no scores: {broken}") from broken
    with kept:
        for name in kept.files:
            scores, pairs = kept[name], list(claims.pairs(folder, name))
            if scores.shape != (len(pairs), len(claims.LABELS)) or scores.dtype != np.int16:
                raise ValueError(f"`{path}` has {scores.dtype}{scores.shape} for the {len(pairs)} pairs of `{name}`")
            if scores.size and not (scores.min() >= _NOT_SCORED and scores.max() <= 1000):
                raise ValueError(f"`{path}` has scores of `{name}` that are not -1 to 1000")
            for row, own in zip(pairs, scores, strict=True):
                if row is not None and (own >= 0).all():
                    yield Taught(row.text, row.claim, name, own.astype(np.float32) / np.float32(1000))


def not_scored(count: int) -> Scores:
    """Return the scores of pairs that nothing may be learnt from."""
    return np.full((count, len(claims.LABELS)), _NOT_SCORED, np.int16)
