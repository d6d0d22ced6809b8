"""Which language a text is likely in: by its script, and by the commonest words where the script has many languages.

A guess from a few hundred characters, for rules that treat languages apart. It is the same for equal text.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from types import MappingProxyType

UNDETERMINED = "und"
_LEAST_WORDS = 2
"""Common words of one language that a text must have before it is said to be in it."""
_WORDS = MappingProxyType(
    {
        "cs": "že se na je by jsem které jako ale pro který není také když tak",
        "da": "og det er ikke jeg af til den har på som med af være hvad",
        "de": "der die und das ist nicht ein ich zu den mit auf für sie eine wird auch",
        "en": "the and of to is that you it with for are this have not was what your can",
        "es": "que de el la los las una por con para está pero como más muy qué del",
        "fi": "ja on ei että se hän oli ole mutta kun niin myös joka ovat tämä voi",
        "fr": "le la les des est une que pour dans pas vous qui sur avec sont ce cette au",
        "hu": "hogy nem egy és az van meg csak már volt ez mint vagy is",
        "it": "che di il non per una sono con gli della anche più nel questo come è",
        "nl": "het een van niet dat zijn met voor aan ook maar wordt deze naar hebben",
        "no": "og det er ikke jeg av til den har på som med være hva hvordan",
        "pl": "nie się że jest na do to jak ale czy dla przez są tym ich może",
        "pt": "que não uma para com os as mais por dos são você está isso também muito",
        "ro": "și nu că este în la pentru din care mai sunt fi sau această",
        "sv": "och att det är inte jag som på för med den har till av om vad",
        "tr": "bir ve bu için ile çok ne var daha olarak gibi değil kadar ama",
    }
)
_LANGUAGES_OF: dict[str, tuple[str, ...]] = {}
for _language, _listed in _WORDS.items():
    for _word in _listed.split():
        _LANGUAGES_OF[_word] = (*_LANGUAGES_OF.get(_word, ()), _language)
_SCRIPTS = MappingProxyType(
    {
        "HIRAGANA": "ja",
        "KATAKANA": "ja",
        "HANGUL": "ko",
        "CJK": "zh",
        "CYRILLIC": "ru",
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
_LETTERS_OF = (("uk", "іїєґ"), ("fa", "پچژگ"))
"""Letters that tell a language from the one that its script stands for."""


def language_of(text: str) -> str:
    """Return the primary subtag of BCP 47 of the language that `text` is likely in; `und` when nothing says so."""
    scripts = Counter(_script(char) for char in text if char.isalpha() and not char.isascii())
    others = Counter({script: count for script, count in scripts.items() if script in _SCRIPTS})
    if others and sum(others.values()) * 2 >= sum(char.isalpha() for char in text):
        if others["HIRAGANA"] + others["KATAKANA"]:
            return "ja"
        language = _SCRIPTS[min(others, key=lambda script: (-others[script], script))]
        return next((other for other, letters in _LETTERS_OF if set(letters) & set(text.lower())), language)
    votes: Counter[str] = Counter()
    for word in "".join(char if char.isalpha() else " " for char in text.lower()).split():
        for language in _LANGUAGES_OF.get(word, ()):
            votes[language] += 1
    best = sorted(votes.items(), key=lambda vote: (-vote[1], vote[0]))[:2]
    if not best or best[0][1] < _LEAST_WORDS or (len(best) > 1 and best[1][1] == best[0][1]):
        return UNDETERMINED
    return best[0][0]


def _script(char: str) -> str:
    return unicodedata.name(char, "").partition(" ")[0]
