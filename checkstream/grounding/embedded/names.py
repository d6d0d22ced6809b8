"""Names in a claim that its evidence does not have. Pure.

A name is a word with a capital letter that no sentence's start explains. In German every noun has one, and in headlines
every word: there capitals say nothing, and no name is looked for.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.grounding.embedded.reading import Reading, Word, found_stem

_GERMAN = frozenset(
    {
        "der",
        "die",
        "das",
        "und",
        "ist",
        "ein",
        "eine",
        "den",
        "dem",
        "nicht",
        "von",
        "mit",
        "wurde",
        "werden",
        "auf",
        "fur",
    }
)


def names(text: Reading) -> frozenset[int]:
    """Return which words of a sentence are names; its first word only if a name stands beside it."""
    words = text.words
    content = [word for word in words if not word.function and not word.digits]
    if sum(word.form in _GERMAN for word in words) >= 2 or (
        len(content) >= 5 and all(word.capitalised for word in content)
    ):
        return frozenset()
    return frozenset(at for at, word in enumerate(words) if _is_name(word) and (at > 0 or word.upper))


def opens_as_name(text: Reading) -> bool:
    """Tell whether the first word of a sentence may be a name: it would have a capital letter anyway."""
    return bool(text.words) and _is_name(text.words[0])


def displaced(claim: Reading, there: Reading) -> int | None:
    """Return a name of evidence that a claim does not have: what may stand there in place of the claim's; else None."""
    for at in sorted(names(there) | ({0} if opens_as_name(there) else set())):
        if found_stem(there.words[at].stem, claim)[0] is None:
            return at
    return None


def exchanged(claim: Reading, lacking: Sequence[int], there: Reading) -> bool:
    """Tell whether a name that only evidence has stands beside the same word as one that only the claim has.

    Args:
        claim: a sentence of the claim.
        lacking: its names that the evidence doesn't have, as numbers of words.
        there: the evidence.
    """
    names_there = names(there) | ({0} if opens_as_name(there) else set())
    strangers = [at for at in names_there if found_stem(there.words[at].stem, claim)[0] is None]
    return any(
        _stem_at(claim, at + step) == _stem_at(there, other + step) != ""
        for at in lacking
        for other in strangers
        for step in (-1, 1)
    )


def _stem_at(text: Reading, at: int) -> str:
    return text.words[at].stem if 0 <= at < len(text.words) else ""


def abbreviated(word: Word, there: Reading) -> bool:
    """Tell whether evidence spells out what a claim abbreviates: `USA`, `United States of America`."""
    if not word.upper or not 2 <= len(word.form) <= 6:
        return False
    lead = "".join(other.form[0] if other.capitalised else " " for other in there.words)
    led = "".join(other.form[0] for other in there.words if other.capitalised and not other.function)
    return word.form in lead or word.form in led


def _is_name(word: Word) -> bool:
    return word.capitalised and not word.function and not word.negator and not word.digits
