"""How much of a claim's sentence a stretch of evidence says: shared words in order, numbers, names, polarity. Pure.

The score falls with each word that the evidence lacks, with neighbours that it has elsewhere, and once more for what
makes a claim false rather than unproved. Words weigh alike but for function words: weights counted from the evidence
would let irrelevant passages move a score. The constants are set by reasoning, and so that one changed fact in an
otherwise literal sentence of twenty words falls below `SUPPORTED`; figures hardly move when they do.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise

import msgspec

from checkstream.grounding.embedded import names, numbers, polarity
from checkstream.grounding.embedded.numbers import Quantity
from checkstream.grounding.embedded.reading import Reading, Word, found_stem, reading

SUPPORTED = 0.7
"""From this share on a claim counts as said."""
_FUNCTION_WEIGHT = 0.1
_ORDER = 0.35
"""What the order of words decides; the rest is whether they are there."""
_NEAR = 4
"""Words that are neighbours in the claim stand at most so far apart in the evidence."""
_PLACES = 16
"""Of a word that stands in a stretch again and again, so many places are looked at."""
_LONE = 0.7
"""The order of words none of which has its neighbour."""
_ALONE = 0.1
"""The order of a claim with one plain word: many texts have it, and may say anything with it."""


class Conflict(StrEnum):
    """What makes a claim false, or worse than unproved."""

    NUMBER = "number"
    NAME = "name"
    NEGATION = "negation"
    OPPOSITE = "opposite"


_FACTOR = {Conflict.NUMBER: 0.5, Conflict.NAME: 0.65, Conflict.NEGATION: 0.5, Conflict.OPPOSITE: 0.6}
_LIKE = 0.5
"""A word with less than this is not there."""
_ABSENT = 0.6
"""Evidence has nothing like a number of the claim."""
_ELSEWHERE = 0.9
"""A name stands in the passage, not in the stretch: pronouns carry it over."""


class Found(msgspec.Struct, frozen=True):
    """Something that speaks against a claim."""

    conflict: Conflict
    said: str
    """The claim's words."""
    there: str = ""
    """The evidence's words, if it has others in their place."""
    exchanged: bool = False
    """Of a name: both stand beside the same word."""


class Sentence(msgspec.Struct, frozen=True, eq=False):
    """A sentence of a claim, or a stretch of evidence, ready to be compared."""

    text: str
    """The text that offsets are in."""
    read: Reading
    quantities: Sequence[Quantity]

    @property
    def weight(self) -> float:
        """How much it says."""
        return sum(weight(word) for word in self.read.words)


class Coverage(msgspec.Struct, frozen=True, eq=False):
    """What a stretch of evidence says of a sentence of a claim."""

    score: float
    """0 to 1; from `SUPPORTED` on it is said."""
    found: tuple[Found, ...] = ()
    missing: tuple[str, ...] = ()
    """Words of the claim that it lacks."""
    matched: tuple[int, ...] = ()
    """Its own words that are the claim's."""


def prepared(text: str, words: Sequence[Word]) -> Sentence:
    """Make words of a text ready to be compared."""
    return Sentence(text, reading(text, words), numbers.quantities(text, words))


def weight(word: Word) -> float:
    """Return how much a word says."""
    return _FUNCTION_WEIGHT if word.function or word.negator else 1.0


class _Aligned(msgspec.Struct, frozen=True, eq=False):
    """Where evidence has each word of a claim."""

    places: list[Sequence[int]]
    """Empty where it has none."""
    strength: list[float]
    found: list[Found]
    factor: float


def coverage(claim: Sentence, there: Sentence, passage: Reading) -> Coverage:
    """Compare a sentence of a claim with a stretch of a passage.

    Args:
        claim: the sentence.
        there: the stretch.
        passage: all of the passage.
    """
    aligned = _aligned(claim, there)
    found, factor = list(aligned.found), aligned.factor
    for finding, penalty in (_names(claim, there, passage, aligned), _polarity(claim, there, aligned)):
        found += finding
        factor *= penalty
    total = said = 0.0
    missing: list[str] = []
    for word, strength in zip(claim.read.words, aligned.strength, strict=True):
        total += weight(word)
        said += weight(word) * strength
        if strength < _LIKE and weight(word) == 1:
            missing.append(claim.text[word.start : word.end])
    if not total:
        return Coverage(0.0)
    score = said / total * (1 - _ORDER + _ORDER * _order(claim.read, there.read, aligned.places)) * factor
    matched = {place for places in aligned.places for place in places}
    return Coverage(score, tuple(found), tuple(missing), tuple(sorted(matched)))


def _aligned(claim: Sentence, there: Sentence) -> _Aligned:
    places: list[Sequence[int]] = []
    strengths: list[float] = []
    for word in claim.read.words:
        other, strength = found_stem(word.stem, there.read)
        if other is None and names.abbreviated(word, there.read):
            strength = 1.0
        places.append(() if other is None else there.read.places[other][:_PLACES])
        strengths.append(strength)
    found: list[Found] = []
    factor = 1.0
    for said in claim.quantities:
        equal = next((other for other in there.quantities if numbers.agree(said, other)), None)
        inside = range(said.first, said.last + 1)
        if equal is not None:
            for at in inside:
                places[at], strengths[at] = (min(equal.first + at - said.first, equal.last),), 1.0
            continue
        if said.weak:
            continue
        for at in inside:
            if claim.read.words[at].digits or at == said.first:
                places[at], strengths[at] = (), 0.0
        other_number = _other(said, claim, there)
        factor *= _ABSENT if other_number is None else _FACTOR[Conflict.NUMBER]
        shown = "" if other_number is None else _shown(there, other_number)
        found.append(Found(Conflict.NUMBER, _shown(claim, said), shown))
    return _Aligned(places, strengths, found, max(factor, _FACTOR[Conflict.NUMBER] ** 2))


def _other(said: Quantity, claim: Sentence, there: Sentence) -> Quantity | None:
    """Return a number of evidence that says something else of the same kind, and is none of the claim's."""
    return next(
        (
            other
            for other in there.quantities
            if numbers.alike(said, other) and not any(numbers.agree(each, other) for each in claim.quantities)
        ),
        None,
    )


def _shown(sentence: Sentence, quantity: Quantity) -> str:
    words = sentence.read.words
    negative = any(value < 0 for value in quantity.values)
    return sentence.text[words[quantity.first].start - negative : words[quantity.last].end]


def _names(claim: Sentence, there: Sentence, passage: Reading, aligned: _Aligned) -> tuple[list[Found], float]:
    """Return names that the stretch lacks, and what they leave of the score."""
    lacking = [at for at in sorted(names.names(claim.read)) if not aligned.strength[at]]
    unproved = not aligned.strength[:1] or aligned.strength[0]
    if not unproved and 0 not in lacking and names.opens_as_name(claim.read):
        lacking = [0, *lacking] if names.displaced(claim.read, there.read) is not None else lacking
    if not lacking:
        return [], 1.0
    other = names.displaced(claim.read, there.read)
    if other is None and all(claim.read.words[at].stem in passage.places for at in lacking):
        return [], _ELSEWHERE
    shown = "" if other is None else _word(there, other)
    factor = _FACTOR[Conflict.NAME] ** min(len(lacking), 2)
    exchanged = other is not None and names.exchanged(claim.read, lacking, there.read)
    return [Found(Conflict.NAME, _word(claim, lacking[0]), shown, exchanged)], factor


def _polarity(claim: Sentence, there: Sentence, aligned: _Aligned) -> tuple[list[Found], float]:
    """Return a word that evidence negates where the claim does not, or whose opposite it has, and what is left."""
    for at, word in enumerate(claim.read.words):
        if weight(word) < 1:
            continue
        if polarity.turned(claim.read, at, there.read, aligned.places):
            return [Found(Conflict.NEGATION, _word(claim, at), _word(there, aligned.places[at][0]))], _FACTOR[
                Conflict.NEGATION
            ]
    for at, word in enumerate(claim.read.words):
        place = None if aligned.strength[at] or word.negator else polarity.opposite(claim.read, at, there.read)
        if place is not None:
            return [Found(Conflict.OPPOSITE, _word(claim, at), _word(there, place))], _FACTOR[Conflict.OPPOSITE]
    return [], 1.0


def _word(sentence: Sentence, at: int) -> str:
    word = sentence.read.words[at]
    return sentence.text[word.start : word.end]


def _order(claim: Reading, evidence: Reading, places: Sequence[Sequence[int]]) -> float:
    """Return the share of neighbouring words of a claim that stand in this order, and near, in evidence too."""
    content = [there for word, there in zip(claim.words, places, strict=True) if weight(word) == 1]
    known = [(before, after) for before, after in pairwise(content) if before and after]
    if known:
        return _kept(known)
    if len(content) > 1:
        return _LONE
    if len(places) > 1:  # one word that says something: the little words around it have to be there too
        return max(_ALONE, _kept([*pairwise(places)]))
    # A name or a number says something by itself; a name is one in evidence too, where no sentence begins with it.
    lone = claim.words[0]
    named = lone.capitalised and any(place and evidence.words[place].capitalised for place in places[0])
    return 1.0 if lone.digits or named else _ALONE


def _kept(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> float:
    return sum(any(0 <= after - before <= _NEAR for before in one for after in other) for one, other in pairs) / len(
        pairs
    )
