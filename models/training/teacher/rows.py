"""Labelled texts and pairs that a teacher learns from, or is measured on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from models.training.corpus import Part, normalised, shingles
from models.training.graph import Float

UNSURE = "[M]"
"""In a row's licence: somebody's memory says so. Nothing learns from such rows."""

_NEAR = 0.5
"""Share of its runs of five words that a near copy has in common with what it copies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A text, or a premise with a claim."""

    text: str
    """Read in windows."""
    target: Float
    """float32[label], 0..1, NaN where nobody said."""
    source: str
    part: Part
    claim: str | None = None
    """Stands in every window."""
    span: tuple[int, int] | None = None
    """Characters that make the text what it is: a window to learn from holds them."""
    weight: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What a teacher is for."""

    name: str
    labels: Sequence[str]
    rows: Callable[[Path, int, Collection[str]], Iterator[Row]]
    """Yields the rows of the pool's folder, for a seed. Sources that are left out come along, to be told from the
    others; nothing that the recipe writes is made of them."""
    caps: Mapping[str, int]
    """Source -> its rows at most."""
    cap: int
    """The same for a source that isn't named."""
    words: tuple[int, int] = (8, 60)
    """Words of a piece that is scored for students, at least and at most."""


@dataclass(frozen=True, slots=True)
class Split:
    """The rows of a task."""

    learnt: Sequence[Row]
    measured: Sequence[Row]
    """All of the sources that are left out, and what is of the part `test` of the others."""


def split(task: Task, folder: Path, seed: int, without: Collection[str] = (), most: int = 2000) -> Split:
    """Choose what a teacher learns from and what it is measured on, the same for the same seed.

    What is like a row of a source that is left out, or equals one that came before, is learnt from no more.

    Args:
        task: whose rows.
        folder: of the pool.
        seed: of every choice.
        without: sources that are left out.
        most: rows of a source that are measured.

    Raises:
        ValueError: there is no such source, nothing is left, or a row is broken.
    """
    found = list(task.rows(folder, seed, without))
    names = {row.source for row in found}
    strange = sorted(set(without) - names)
    if strange:
        raise ValueError(f"`{task.name}` has no source `{strange[0]}`; it has {', '.join(sorted(names))}")
    Random(seed).shuffle(found)
    withheld = {run for row in found if row.source in without for run in shingles(row.text)}
    known: set[str] = set()
    counts: dict[tuple[str, bool], int] = {}
    learnt, measured = list[Row](), list[Row]()
    for row in found:
        apart = row.source in without
        own, room = (
            (learnt, task.caps.get(row.source, task.cap)) if not apart and row.part == "train" else (measured, most)
        )
        key = normalised(f"{row.claim or ''}\n{row.text}") or row.text
        count = counts.get((row.source, own is learnt), 0)
        if (
            key in known
            or count >= room
            or np.isnan(row.target).all()
            or (own is measured and row.part == "dev" and not apart)
        ):
            continue
        if own is learnt and withheld and _near(row.text, withheld):
            continue
        known.add(key)
        counts[row.source, own is learnt] = count + 1
        own.append(row)
    if not learnt:
        raise ValueError(f"`{task.name}` has nothing left to learn from")
    return Split(learnt, measured)


def _near(text: str, withheld: Collection[int]) -> bool:
    runs = shingles(text)
    return sum(run in withheld for run in runs) >= _NEAR * len(runs)


def pieces(rows: Sequence[Row], words: tuple[int, int], random: Random) -> Iterator[Row]:
    """Yield a piece of each text, so many words long; of one with a span, a piece that holds it. Pairs stay whole."""
    for row in rows:
        starts = [
            at for at, sign in enumerate(row.text) if not sign.isspace() and (at == 0 or row.text[at - 1].isspace())
        ]
        if row.claim is not None or len(starts) <= words[0]:
            yield row
            continue
        size, ends = random.randint(*words), [*starts[1:], len(row.text)]
        low, high = 0, max(0, len(starts) - size)
        if row.span is not None:
            words_at = enumerate(zip(starts, ends, strict=True))
            inside = [number for number, (a, b) in words_at if a < row.span[1] and b > row.span[0]] or [0]
            size = max(size, inside[-1] - inside[0] + 1)
            high = max(0, min(inside[0], len(starts) - size))
            low = min(high, max(0, inside[-1] - size + 1))
        first = random.randint(low, high)
        text = row.text[starts[first] : ends[min(first + size, len(starts)) - 1]].rstrip()
        yield Row(text=text, target=row.target, source=row.source, part=row.part, weight=row.weight)
