"""Gathers what the entity model learns from: generated, silver and labelled texts, all or without some sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from models.training import corpus
from models.training.ner.data import SOURCES, plain, read, silver
from models.training.ner.generate import documents
from models.training.ner.marked import Marked, read_marked, write_marked
from models.training.ner.silver import label
from models.training.ner.silver import posts as silver_posts
from models.training.ner.silver import prose as silver_prose
from models.training.ner.social import posts

FOLDS = {"pii": ("pii_anon_dev", "pii_anon_extra"), "social": ("pii_ner_btc", "pii_ner_wnut17_train")}
"""Sources that are left out together."""


class Amounts(NamedTuple):
    """How many texts of each origin, at most."""

    generated: int = 10_000
    silver: int = 6_500
    pii: int = 3_000
    btc: int = 7_400
    wnut17: int = 3_400
    posts: int = 7_500
    """Marked prose rewritten as posts."""
    comments: int = 6_250
    """Posts and comments that the teacher marked."""

    def scaled(self, share: float) -> Amounts:
        """Return a share of each."""
        return Amounts(*(int(amount * share) for amount in self))


SHIPPED = Amounts()
FOLD = Amounts().scaled(0.4)
"""What a fold learns from: it is to cost less than half of what ships."""
PASSAGES = 2500
"""Silver passages a source."""


def silver_texts(folder: Path, work: Path, seed: int) -> list[Marked]:
    """Return the teacher's texts, labelled once and kept in `work`."""
    path = work / "silver.jsonl"
    if not path.exists():
        write_marked(path, label(silver_prose(folder, PASSAGES, seed)))
    return list(read_marked(path))


def comments(folder: Path, work: Path, seed: int) -> list[Marked]:
    """Return posts and comments of the pool as the teacher marks them, kept in `work`."""
    path = work / "comments.jsonl"
    if not path.exists():
        write_marked(path, label(silver_posts(folder, seed)))
    return list(map(plain, read_marked(path)))


def learnt(folder: Path, work: Path, amounts: Amounts, seed: int, left_out: Sequence[str] = ()) -> list[Marked]:
    """Return training texts in random order.

    Args:
        folder: the pool.
        work: keeps the silver labels.
        amounts: how many of each origin.
        seed: of every choice.
        left_out: files of the pool of which nothing is to be learnt; of the others the train part is.
    """
    texts = list(documents(amounts.generated, Random(seed)))
    prose = silver(_some(silver_texts(folder, work, seed), amounts.silver, seed), Random(seed + 1))
    texts += [*prose, *posts(prose, amounts.posts, Random(seed + 10))]
    texts += _some(comments(folder, work, seed), amounts.comments, seed)
    for group in ("pii", "btc", "wnut17"):
        known = [
            text
            for name, own in SOURCES.items()
            if own == group and name not in left_out
            for text, _ in read(folder, name)
            if corpus.part_of(text.text) == "train"
        ]
        texts += _some(known, getattr(amounts, group), seed)
    Random(seed).shuffle(texts)
    return texts


def _some(texts: Sequence[Marked], most: int, seed: int) -> list[Marked]:
    return Random(seed).sample(texts, min(most, len(texts)))
