"""Which language a text is likely in: by its script, and by its runs of letters where a script has many languages.

A guess from some two hundred characters, for rules and holds that treat languages apart. It is the same for equal text.

A run of one, two or three letters speaks for each language that has it among its commonest, the more so the commoner it
is there. A language is told when it leads by more than chance would have it lead; else nothing is said.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType

from checkstream.core.match.language_profiles import PROFILES

UNDETERMINED = "und"
_SCRIPTS = MappingProxyType(
    {
        "HIRAGANA": "ja",
        "KATAKANA": "ja",
        "HANGUL": "ko",
        "CJK": "zh",
        "GREEK": "el",
        "ARABIC": "ar",
        "HEBREW": "he",
        "DEVANAGARI": "hi",
        "THAI": "th",
        "ARMENIAN": "hy",
        "GEORGIAN": "ka",
        "BENGALI": "bn",
        "TAMIL": "ta",
    }
)
_LETTERS_OF = MappingProxyType({"ar": (("ur", "ٹڈڑںے"), ("fa", "پچژگیک"))})
"""Letters that tell a language from the one that its script stands for."""
LANGUAGES = frozenset(
    (
        *_SCRIPTS.values(),
        *(language for languages in PROFILES.values() for language in languages),
        *(language for others in _LETTERS_OF.values() for language, _ in others),
    )
)
"""Every language that can be told."""
_RARE = (400, 1000, 1000)
"""Rank, by length, from which on a run would say nothing."""
_STEADY = 10
"""Added to ranks, so that the very commonest don't count for much more than others."""
_LEAD = 3.0
"""How far the language that is told must lead: of ten texts of 64 letters that get an answer, one is wrong."""
_LEAST_A_RUN = 0.9
"""What each run must say for the language on average: letters that form no words of it say less."""


def _weights(profiles: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[tuple[str, float], ...]]:
    """Return, by run, the languages that it speaks for and how much."""
    found: dict[str, tuple[tuple[str, float], ...]] = {}
    for language, lengths in profiles.items():
        for size, (runs, rare) in enumerate(zip(lengths, _RARE, strict=True), 1):
            for rank in range(len(runs) // size):
                run = runs[rank * size : (rank + 1) * size]
                found[run] = (*found.get(run, ()), (language, math.log(rare / (rank + _STEADY))))
    return MappingProxyType(found)


_WEIGHTS = MappingProxyType({script.upper(): _weights(profiles) for script, profiles in PROFILES.items()})


def language_of(text: str) -> str:
    """Return the primary subtag of BCP 47 of the language that `text` is likely in; `und` when nothing says so."""
    scripts = Counter(_script(char) for char in text if char.isalpha())
    known = {script: count for script, count in scripts.items() if script in _SCRIPTS or script in _WEIGHTS}
    if not known:
        return UNDETERMINED
    if 2 * (known.get("HIRAGANA", 0) + known.get("KATAKANA", 0) + known.get("CJK", 0)) >= scripts.total():
        return "zh" if "HIRAGANA" not in known and "KATAKANA" not in known else "ja"
    script = min(known, key=lambda script: (-known[script], script))
    if 2 * known[script] < scripts.total():
        return UNDETERMINED
    if script in _WEIGHTS:
        return _told(text, _WEIGHTS[script])
    language = _SCRIPTS[script]
    letters = set(text)
    return next((other for other, own in _LETTERS_OF.get(language, ()) if letters.intersection(own)), language)


def _told(text: str, weights: Mapping[str, tuple[tuple[str, float], ...]]) -> str:
    """Return the language that the runs of a text speak for."""
    said: dict[str, float] = {}
    count = 0
    for run in _runs(text):
        count += 1
        for language, weight in weights.get(run, ()):
            said[language] = said.get(language, 0.0) + weight
    first, second = (*sorted(said.items(), key=lambda item: (-item[1], item[0])), ("", 0.0), ("", 0.0))[:2]
    if first[1] - second[1] < _LEAD or first[1] < _LEAST_A_RUN * count:
        return UNDETERMINED
    return first[0]


def _runs(text: str) -> Iterable[str]:
    """Yield all runs of one to three letters, with `_` for the edges of words."""
    words = "".join(char if char.isalpha() else " " for char in text.lower()).split()
    for word in words:
        edged = f"_{word}_"
        yield from word
        for size in (2, 3):
            yield from (edged[start : start + size] for start in range(len(edged) - size + 1))


def _script(char: str) -> str:
    return "LATIN" if char.isascii() else unicodedata.name(char, "").partition(" ")[0]
