"""Precision, recall and F1 of spans. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random

from models.training.ner.marked import Span


@dataclass(frozen=True, slots=True)
class Counts:
    """Spans of one entity in a set of texts."""

    found: int = 0
    """What the model reports."""
    marked: int = 0
    """What the source marks."""
    strict: int = 0
    """Reported with exactly the marked bounds."""
    found_over: int = 0
    """Reported ones that share a character with a marked one."""
    marked_over: int = 0
    """Marked ones that share a character with a reported one."""

    def __add__(self, other: Counts) -> Counts:
        """Add two sets of texts."""
        return Counts(
            self.found + other.found,
            self.marked + other.marked,
            self.strict + other.strict,
            self.found_over + other.found_over,
            self.marked_over + other.marked_over,
        )

    def f1(self, *, overlap: bool = False) -> float:
        """Return the F1 of exact spans, or of spans that overlap; 0 where there are none."""
        if overlap:
            precision = self.found_over / self.found if self.found else 0.0
            recall = self.marked_over / self.marked if self.marked else 0.0
            return 2 * precision * recall / (precision + recall) if precision + recall else 0.0
        return 2 * self.strict / (self.found + self.marked) if self.found + self.marked else 0.0


def count(found: Iterable[Span], marked: Iterable[Span], entity: str) -> Counts:
    """Count one text's spans of one entity."""
    ours = [(span.start, span.end) for span in found if span.entity == entity]
    theirs = [(span.start, span.end) for span in marked if span.entity == entity]
    return Counts(
        len(ours),
        len(theirs),
        len(set(ours) & set(theirs)),
        sum(any(start < their_end and end > their_start for their_start, their_end in theirs) for start, end in ours),
        sum(any(start < our_end and end > our_start for our_start, our_end in ours) for start, end in theirs),
    )


def interval(texts: Sequence[Counts], seed: int, rounds: int = 300) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of the strict F1 over texts."""
    random = Random(seed)
    drawn = []
    for _ in range(rounds):
        sample = random.choices(texts, k=len(texts))
        strict = sum(text.strict for text in sample)
        total = sum(text.found + text.marked for text in sample)
        drawn.append(2 * strict / total if total else 0.0)
    drawn.sort()
    return drawn[int(0.025 * rounds)], drawn[int(0.975 * rounds)]
