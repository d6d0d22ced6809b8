"""One list from several searches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Found = TypeVar("Found")

RANK_OFFSET = 60
"""The customary k of reciprocal rank fusion: how little a first place outweighs a second."""


def reciprocal_rank(lists: Sequence[Sequence[str]], k: int = RANK_OFFSET) -> list[tuple[str, float]]:
    """Return every id with the sum of 1 / (k + rank) over `lists`, best first, ties by id.

    Args:
        lists: Ids, best first; ranks count from 1, and an id counts once a list.
        k: How little a first place outweighs a second.
    """
    scores: dict[str, float] = {}
    for ranked in lists:
        for rank, id_ in enumerate(dict.fromkeys(ranked), start=1):
            scores[id_] = scores.get(id_, 0.0) + 1.0 / (k + rank)
    return sorted(scores.items(), key=lambda scored: (-scored[1], scored[0]))


def merged(
    keyword: Sequence[Found], vector: Sequence[Found], *, id_of: Callable[[Found], str], text_of: Callable[[Found], str]
) -> list[Found]:
    """Return what keywords found, then what vectors found; of equal ids or equal texts the first stays."""
    ids: set[str] = set()
    texts: set[str] = set()
    kept = []
    for found in (*keyword, *vector):
        text = " ".join(text_of(found).split())
        if id_of(found) not in ids and text not in texts:
            kept.append(found)
        ids.add(id_of(found))
        texts.add(text)
    return kept
