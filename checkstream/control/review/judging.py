"""What people's words on an item come to, and how far people agree at all. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Literal

import msgspec

from checkstream.control.review.terms import Label, Word

NEEDED = 2
"""People who say the same."""

State = Literal["open", "settled", "contested"]
"""open: fewer than two have looked; settled: two say the same, and more than say anything else; contested: neither."""


class Outcome(msgspec.Struct, frozen=True):
    """What an item has come to."""

    state: State
    word: Word | None = None
    """What it is settled as."""
    people: int = 0


class Agreement(msgspec.Struct, frozen=True):
    """How far people agree on what more than one of them has looked at."""

    pairs: int
    """Pairs of words on one item."""
    share: float
    """Of them that are the same, 0..1."""
    kappa: float
    """Scott's pi over all pairs: 1 where all agree, 0 where they agree as often as chance would make them."""


def last_words(labels: Iterable[Label]) -> dict[str, dict[str, Word]]:
    """Return what each person last said of each item: item -> person -> word."""
    found: dict[str, dict[str, Word]] = defaultdict(dict)
    for label in sorted(labels, key=lambda label: label.at_s):
        found[label.item][label.by] = label.word
    return dict(found)


def outcome(words: Mapping[str, Word]) -> Outcome:
    """Return what the words of different people on one item come to.

    Args:
        words: Person -> word.
    """
    if len(words) < NEEDED:
        return Outcome("open", people=len(words))
    (first, most), *others = Counter(words.values()).most_common()
    if most < NEEDED or (others and others[0][1] == most):
        return Outcome("contested", people=len(words))
    return Outcome("settled", first, len(words))


def agreement(words: Iterable[Mapping[str, Word]]) -> Agreement:
    """Return how far people agree; 0 pairs where no two have looked at the same.

    Args:
        words: Of each item, person -> word.

    Source: Scott 1955, "Reliability of content analysis"; people are many and differ by item, so no person has a
        distribution of their own as in Cohen's kappa.
    """
    pairs: Sequence[tuple[Word, Word]] = [
        pair for said in words for pair in combinations([said[person] for person in sorted(said)], 2)
    ]
    if not pairs:
        return Agreement(0, 0.0, 0.0)
    same = sum(first == second for first, second in pairs) / len(pairs)
    each = Counter(word for pair in pairs for word in pair)
    chance = sum((count / (2 * len(pairs))) ** 2 for count in each.values())
    return Agreement(len(pairs), same, 1.0 if chance == 1.0 else (same - chance) / (1 - chance))
