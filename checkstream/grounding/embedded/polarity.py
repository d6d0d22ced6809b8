"""Does evidence say a word, or its opposite? Negation, opposites, and prefixes that negate. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from checkstream.grounding.embedded.reading import Reading, stem
from checkstream.grounding.embedded.vocabulary import NEGATING_PREFIXES, OPPOSITES_WRITTEN

_CLAUSE = 4
"""Words so near are of one clause, as far as a denial reaches."""


def _opposites() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for group in OPPOSITES_WRITTEN.split():
        one, *others = (stem(word) for word in group.split("/"))
        for other in others:
            found.setdefault(one, set()).add(other)
            found.setdefault(other, set()).add(one)
    return MappingProxyType({word: frozenset(others) for word, others in found.items()})


_OPPOSITES = _opposites()


def turned(claim: Reading, at: int, there: Reading, places: Sequence[Sequence[int]]) -> bool:
    """Tell whether a word of a claim is negated and the same word of evidence never is, or the other way about.

    The same denial may stand elsewhere in its clause (`no refunds are given`, `refunds are not given`): then it also
    turns a word nearby that both have.

    Args:
        claim: the claim's words.
        at: the word.
        there: the evidence's words.
        places: of each word of the claim, where evidence has it.
    """
    own = places[at]
    if not own or any(there.negated[place] == claim.negated[at] for place in own):
        return False
    nearby = range(max(0, at - _CLAUSE), min(len(claim.words), at + _CLAUSE + 1))
    return not any(
        claim.negated[other] and any(there.negated[place] and _beside(place, own) for place in places[other])
        for other in nearby
        if other != at
    )


def _beside(place: int, others: Sequence[int]) -> bool:
    return any(abs(place - other) <= _CLAUSE for other in others)


def opposite(claim: Reading, at: int, there: Reading) -> int | None:
    """Return where evidence has the opposite of a word that it does not have itself; None: it has none."""
    word = claim.words[at]
    for other in _OPPOSITES.get(word.stem, ()):
        for place in there.places.get(other, ()):
            if there.negated[place] == claim.negated[at]:
                return place
    for place in _prefixed(word.stem, there):
        if there.negated[place] == claim.negated[at]:
            return place
    return None


def _prefixed(sought: str, there: Reading) -> Sequence[int]:
    """Return where evidence has a word that differs by a negating prefix alone."""
    for prefix in NEGATING_PREFIXES:
        shortest = 4 if prefix == "un" else 5  # `import` is no opposite of `port`
        if len(sought) >= shortest and prefix + sought in there.places:
            return there.places[prefix + sought]
        rest = sought.removeprefix(prefix)
        if rest != sought and len(rest) >= shortest and rest in there.places:
            return there.places[rest]
    return ()
