"""How much of what an answer says that somebody has: `Acme has 5,000 employees` -> {acme}, 5000, `employee`."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkstream.core.match.regex import TextRegex
from checkstream.core.terms import Span

_NUMBER = TextRegex(
    r"(?i)(?:[$€£₪¥]\s?)?\b\d{1,3}(?:,\d{3})+(?:\.\d+)?(?:\s?(?:thousand|million|billion|trillion|bn|m|k)\b)?"
    r"|(?:[$€£₪¥]\s?)?\b\d{1,15}(?:\.\d{1,9})?(?:\s?(?:thousand|million|billion|trillion|bn|m|k)\b)?"
)
_SCALES = {"thousand": 1e3, "k": 1e3, "million": 1e6, "m": 1e6, "billion": 1e9, "bn": 1e9, "trillion": 1e12}
_YEAR = TextRegex(r"\b(?:1[5-9]|20)\d\d\b")
_CHANGE = TextRegex(
    r"(?i)\b(?:rose|risen|rise|rises|grew|grown|grow|grows|fell|fallen|fall|falls|dropp?(?:ed|s)?|increas(?:e|ed|es|ing)|"
    r"decreas(?:e|ed|es|ing)|declin(?:e|ed|es|ing)|doubled|tripled|expanded|between|from|by|up to|at least|at most|"
    r"over|under|more than|less than|fewer than|per)\b|\d\s?[-–]\s?\d"
)
_PRESENT = frozenset(
    {"has", "have", "is", "are", "employs", "costs", "weighs", "measures", "contains", "holds", "owns", "totals"}
)
_PAST = frozenset(
    {"had", "was", "were", "employed", "cost", "weighed", "measured", "contained", "held", "owned", "totalled"}
)
_EMPTY = frozenset(
    {
        "the",
        "a",
        "an",
        "about",
        "around",
        "approximately",
        "roughly",
        "nearly",
        "almost",
        "exactly",
        "only",
        "just",
        "currently",
    }
    | {"now", "also", "still", "already", "today", "in", "of", "total", "some"}
)
_PRONOUNS = frozenset({"it", "they", "he", "she", "we", "i", "you"})
_NO_UNIT = frozenset(
    {"and", "or", "but", "in", "on", "at", "of", "to", "for", "as", "with", "by", "per", "is", "are", "was", "were"}
)
_SCOPE = TextRegex(
    r"(?i)\b(?:in|at|for|on|within|among|outside|per|with|without|if|when) [^\s.,;:!?]+(?: [^\s.,;:!?]+)?"
    r"|\b(?:worldwide|globally|nationwide|locally|abroad|online|overall)\b"
)
_WHOLE = frozenset({"in total", "in all", "in fact", "overall", "at present", "at the moment"})
"""They bound nothing."""
_MOST_SCOPE = 80
"""Characters behind a value that may bound it."""


class Quantity(msgspec.Struct, frozen=True, kw_only=True):
    """A value of one subject."""

    subject: frozenset[str]
    """Words before the verb."""
    unit: str
    """What is counted, in the singular, with its currency or percent sign; may be empty."""
    tense: str
    """`past` or `present`: what was need not be what is."""
    years: frozenset[str]
    """Years that the sentence names."""
    scope: str
    """Where, for whom or when it holds: `in Berlin`; empty where nothing bounds it."""
    value: float


def quantities(answer: str, sentences: Sequence[Span]) -> list[Quantity]:
    """Return the values that sentences give their subjects; years, ranges, bounds and changes are none."""
    found: list[Quantity] = []
    subject: frozenset[str] = frozenset()
    for span in sentences:
        sentence = answer[span.start : span.end]
        own, verb_end, tense = _subject(sentence)
        if own and (not subject or not own <= _PRONOUNS):
            subject = own
        if not tense or not subject or _CHANGE.found_in(sentence):
            continue
        years = frozenset(sentence[place.start : place.end] for place in _YEAR.spans(sentence))
        for place in _NUMBER.spans(sentence):
            text = sentence[place.start : place.end]
            if place.start < verb_end or text in years:
                continue
            unit = _unit(text, sentence[place.end : place.end + 40])
            scope = _scope(sentence[place.end :])
            found.append(
                Quantity(subject=subject, unit=unit, tense=tense, years=years, scope=scope, value=_value(text))
            )
    return found


def _subject(sentence: str) -> tuple[frozenset[str], int, str]:
    """Return the words before the first verb that gives a value, where that verb ends, and its tense."""
    at = 0
    words: list[str] = []
    for word in sentence.split(None, 30)[:30]:
        at = sentence.index(word, at) + len(word)
        bare = word.strip(".,;:!?\"'()*").casefold()
        if bare in _PRESENT or bare in _PAST:
            return frozenset(words) - _EMPTY, at, "past" if bare in _PAST else "present"
        words.append(bare)
    return frozenset(), 0, ""


def _unit(number: str, behind: str) -> str:
    """Return what is counted: sign of a currency or percent, and the word behind, in the singular."""
    sign = number[0] if not number[0].isdigit() else ""
    bare = behind.lstrip()
    if bare[:1] == "%":
        return sign + "%"
    word = bare.split(None, 1)[0].strip(".,;:!?\"'()*").casefold() if bare and behind[:1] in " \u00a0-" else ""
    if not word[:1].isalpha() or word in _NO_UNIT:
        return sign
    return sign + (word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word)


def _scope(behind: str) -> str:
    """Return what bounds a value, from the words behind it."""
    first = next(iter(_SCOPE.spans(behind[:_MOST_SCOPE])), None)
    found = "" if first is None else behind[first.start : first.end].casefold()
    return "" if found in _WHOLE else found


def _value(number: str) -> float:
    digits = "".join(char for char in number if char.isdigit() or char == ".")
    word = "".join(char for char in number if char.isalpha()).casefold()
    return float(digits) * _SCALES.get(word, 1.0)
