"""How well found spans agree with those that people marked. Pure.

Counted twice: strictly (same start, end and kind) and by overlap (same kind, at least one character in common), since
annotators disagree about titles and punctuation more than about names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

Marked = tuple[int, int, str]
"""Start, end, kind."""


class SpanFigures(msgspec.Struct, frozen=True, kw_only=True):
    """How one kind of span was found."""

    kind: str
    gold: int
    found: int
    strict_precision: float
    strict_recall: float
    strict_f1: float
    overlap_precision: float
    overlap_recall: float
    overlap_f1: float


class KindCounts(msgspec.Struct, frozen=True):
    """How often spans of one kind were marked and found."""

    gold: int
    found: int
    strict: int
    gold_touched: int
    found_touching: int


class SpanCounts:
    """Counts over texts."""

    def __init__(self) -> None:
        """Start with nothing counted."""
        self._gold: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._strict: Counter[str] = Counter()
        self._gold_touched: Counter[str] = Counter()
        self._found_touching: Counter[str] = Counter()

    def add(self, gold: Iterable[Marked], found: Iterable[Marked]) -> None:
        """Count one text; of spans that stand twice in a list one counts."""
        marked, ours = sorted(set(gold)), sorted(set(found))
        self._gold.update(kind for _, _, kind in marked)
        self._found.update(kind for _, _, kind in ours)
        self._strict.update(kind for _, _, kind in set(marked) & set(ours))
        self._gold_touched.update(kind for start, end, kind in marked if _touched(start, end, kind, ours))
        self._found_touching.update(kind for start, end, kind in ours if _touched(start, end, kind, marked))

    def of(self, *kinds: str) -> KindCounts:
        """Return the counts of some kinds together."""
        counts = (self._gold, self._found, self._strict, self._gold_touched, self._found_touching)
        return KindCounts(*(sum(each[kind] for kind in kinds) for each in counts))

    def figures(self) -> tuple[SpanFigures, ...]:
        """Return the figures of each kind that anybody marked, by name, and of all of them together as `all`.

        What is found of other kinds can't be judged: that nobody marked them doesn't say that they aren't there.
        """
        kinds = sorted(self._gold)
        return (*(self._of(kind, [kind]) for kind in kinds), self._of("all", kinds))

    def _of(self, name: str, kinds: list[str]) -> SpanFigures:
        of = self.of(*kinds)
        return SpanFigures(
            kind=name,
            gold=of.gold,
            found=of.found,
            strict_precision=_share(of.strict, of.found),
            strict_recall=_share(of.strict, of.gold),
            strict_f1=_f1(_share(of.strict, of.found), _share(of.strict, of.gold)),
            overlap_precision=_share(of.found_touching, of.found),
            overlap_recall=_share(of.gold_touched, of.gold),
            overlap_f1=_f1(_share(of.found_touching, of.found), _share(of.gold_touched, of.gold)),
        )


def _touched(start: int, end: int, kind: str, others: list[Marked]) -> bool:
    return any(other == kind and left < end and start < right for left, right, other in others)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0


def _f1(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
