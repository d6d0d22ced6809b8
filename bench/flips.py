"""True sentences with one fact changed: a number, a date, a name, or whether it is so. Pure but for its draws.

Made from the sentences of documents, so that the untouched sentence is supported to the letter, and what catches a
changed one is that fact alone.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from checkstream.grounding.sentences import sentences

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_NAMES = (
    *("Berlin", "Maria Lopez", "Kenya", "Siemens", "Toronto", "David Miller", "Oxford", "Brazil", "Karen", "Nokia"),
    *("Helsinki", "Anna Weber", "Peru", "Toyota", "Dublin", "Samuel Reed", "Kyoto", "Norway", "Bosch", "Fatima"),
)
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,]\d+)*(?![\w])")
_YEAR = re.compile(r"\b(?:1[6-9]|20)\d\d\b")
_MONTH = re.compile("|".join(rf"\b{month}\b" for month in _MONTHS))
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
_VERB = r"\b(?:is|are|was|were|has|have|had|can|will|would|could|should|may|does|did|do)"
_SAID, _DENIED = re.compile(rf"{_VERB}\b(?! not\b)(?!n't)"), re.compile(rf"({_VERB}) not\b")
_NEAR_CHARS = 5
"""A month is a date where a digit stands so near."""


class Flip(NamedTuple):
    """A sentence and the same one with one fact changed."""

    kind: str
    passage: str
    true: str
    false: str


def number(text: str, draw: random.Random) -> str | None:
    """Change one digit of a number, not to 0; None where there is none."""
    found = list(_NUMBER.finditer(text))
    if not found:
        return None
    match = draw.choice(found)
    at = draw.choice([place for place in range(match.start(), match.end()) if text[place].isdigit()])
    digit = (int(text[at]) + draw.randint(1, 8)) % 10 or (9 if text[at] == "1" else 1)
    return None if str(digit) == text[at] else f"{text[:at]}{digit}{text[at + 1 :]}"


def date(text: str, draw: random.Random) -> str | None:
    """Change a month beside a digit, else a year."""
    months = [
        match
        for match in _MONTH.finditer(text)
        if any(sign.isdigit() for sign in text[max(0, match.start() - _NEAR_CHARS) : match.end() + _NEAR_CHARS])
    ]
    years = list(_YEAR.finditer(text))
    if not months and not years:
        return None
    match = draw.choice(months or years)
    if months:
        other = draw.choice([month for month in _MONTHS if month != match.group()])
    else:
        other = str(int(match.group()) + draw.choice([-7, -3, -1, 1, 2, 5, 11]))
    return text[: match.start()] + other + text[match.end() :]


def entity(text: str, draw: random.Random) -> str | None:
    """Put another name in the place of one inside the sentence."""
    found = [match for match in _NAME.finditer(text) if match.group() not in _MONTHS]
    if not found:
        return None
    match = draw.choice(found)
    other = draw.choice([name for name in _NAMES if name not in text])
    return text[: match.start()] + other + text[match.end() :]


def negation(text: str, draw: random.Random) -> str | None:
    """Take a `not` away, else put one behind a verb."""
    if denied := _DENIED.search(text):
        return text[: denied.end(1)] + text[denied.end() :]
    said = list(_SAID.finditer(text))
    if not said:
        return None
    match = draw.choice(said)
    return f"{text[: match.end()]} not{text[match.end() :]}"


KINDS: Mapping[str, Callable[[str, random.Random], str | None]] = MappingProxyType(
    {"number": number, "date": date, "entity": entity, "negation": negation}
)


def flips(passages: Sequence[str], seed: int) -> Iterator[Flip]:
    """Yield every kind of change that a sentence allows, of one sentence of each passage."""
    draw = random.Random(seed)
    for passage in passages:
        said = [passage[span.start : span.end] for span in sentences(passage)]
        fit = [
            text for text in said if 40 < len(text) < 260 and text[0].isupper() and text[-1] == "." and text.isascii()
        ]
        if not fit:
            continue
        true = draw.choice(fit)
        for kind, change in KINDS.items():
            false = change(true, draw)
            if false is not None:
                yield Flip(kind, passage, true, false)
