"""How often a rule was right, week by week. Pure.

Only what was drawn by chance counts: what people flag is flagged because it looks wrong. An item counts for all that it
was drawn from (by one over its share), so that a day with a small share weighs as much as one with a large.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from checkstream.control import wilson
from checkstream.control.review.judging import outcome
from checkstream.control.review.terms import Item, Word

WEEK_S = 7 * 86_400
_Z = 1.96


class Precision(msgspec.Struct, frozen=True, kw_only=True):
    """How often one rule, or all that one model has scored, was right in one week."""

    rule: str = ""
    """Empty: of a model."""
    model: str = ""
    """`name@version`; empty: of a rule."""
    week: int
    """Whole weeks since 1970-01-01."""
    reviewed: int
    """Items that are settled as right or wrong."""
    right: int
    unsure: int
    """Items that are settled as neither; they don't count."""
    value: float
    """Of all that fired, the share that was right; 0..1."""
    low: float
    high: float
    """Its 95 % interval."""


def precision(
    items: Iterable[Item], words: Mapping[str, Mapping[str, Word]], by: Literal["rule", "model"] = "rule"
) -> tuple[Precision, ...]:
    """Return the precision of each rule in each week that has items that are settled, sorted.

    Args:
        items: What was reviewed.
        words: Item -> person -> word.
        by: Of each rule, or of each model that has scored.
    """
    settled: dict[tuple[str, int], list[tuple[float, Word]]] = defaultdict(list)
    for item in items:
        word = outcome(words.get(item.id, {})).word
        if item.queue == "sampled" and word is not None and item.share > 0:
            settled[getattr(item, by), int(item.at_s // WEEK_S)].append((1 / item.share, word))
    found = (_of(by, name, week, counted) for (name, week), counted in sorted(settled.items()) if name)
    return tuple(each for each in found if each is not None)


def _of(by: str, name: str, week: int, counted: list[tuple[float, Word]]) -> Precision | None:
    told = [(weight, word == "right") for weight, word in counted if word != "unsure"]
    if not told:
        return None
    total = math.fsum(weight for weight, _ in told)
    value = math.fsum(weight for weight, right in told if right) / total
    # as many items of equal weight would say as much (Kish 1965)
    worth = total * total / math.fsum(weight * weight for weight, _ in told)
    low, high = wilson.interval(value, worth, _Z)
    return Precision(
        **{by: name},
        week=week,
        reviewed=len(told),
        right=sum(right for _, right in told),
        unsure=len(counted) - len(told),
        value=value,
        low=low,
        high=high,
    )
