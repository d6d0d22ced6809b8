"""Cases of Russian names, by simple rules: what people are called in letters and news. Pure.

The rules are those of school grammars; names that they don't fit (a fleeting vowel, an unusual stress) come out as
people misspell them. Words that don't change are left as they are.
"""

from __future__ import annotations

from typing import Literal

Case = Literal["gen", "dat", "acc", "ins", "pre"]
"""Genitive, dative, accusative, instrumental, prepositional."""

_HUSHED = "жшчщц"
_NEVER_Y = "гкхжшчщ"
_ENDINGS: dict[str, tuple[str, str, str, str, str]] = {
    "ий": ("ия", "ию", "ия", "ием", "ии"),
    "й": ("я", "ю", "я", "ем", "е"),
    "ь": ("я", "ю", "я", "ем", "е"),
    "ия": ("ии", "ии", "ию", "ией", "ии"),
    "я": ("и", "е", "ю", "ей", "е"),
    "а": ("ы", "е", "у", "ой", "е"),
}
_SOFT_FEMALE = ("и", "и", "ь", "ью", "и")
_MALE = ("а", "у", "а", "ом", "е")
_FAMILY_MALE = ("а", "у", "а", "ым", "е")
_FAMILY_FEMALE = ("ой", "ой", "у", "ой", "ой")
_ADJECTIVE = ("ого", "ому", "ого", "ым", "ом")
_ADJECTIVE_FEMALE = ("ой", "ой", "ую", "ой", "ой")
CASES: tuple[Case, ...] = ("gen", "dat", "acc", "ins", "pre")
_KEEPS_SIGN = frozenset({"Казань", "Тверь", "Пермь", "Сибирь", "Рязань", "Астрахань", "Любовь", "Линь"})
"""Feminine words in a soft sign; the others here are masculine."""


def given(name: str, case: Case) -> str:
    """Return a given name or a father's name in a case."""
    return _noun(name, CASES.index(case), animate=True)


def family(name: str, case: Case, *, female: bool) -> str:
    """Return a family name in a case."""
    number = CASES.index(case)
    if female and name.endswith(("ова", "ева", "ёва", "ина", "ына")):
        return name[:-1] + _FAMILY_FEMALE[number]
    if name.endswith("ая"):
        return name[:-2] + _ADJECTIVE_FEMALE[number]
    if name.endswith(("ий", "ый", "ой")) and not female:
        return _adjective(name, number)
    if name.endswith(("их", "ых")):
        return name
    if name.endswith(("ов", "ев", "ёв", "ин", "ын")) and not female:
        return name + _FAMILY_MALE[number]
    if female and name[-1] not in "ая":
        return name
    return _noun(name, number, animate=True)


def place(name: str, case: Case) -> str:
    """Return a place in a case; of several words each is put into it."""
    number, words = CASES.index(case), name.split(" ")
    if len(words) == 1:
        return _noun(name, number, animate=False)
    changed: list[str] = []
    for word in words:
        if word.endswith("ая"):
            changed.append(word[:-2] + _ADJECTIVE_FEMALE[number])
        elif word.endswith(("ий", "ый")):
            changed.append(word if case == "acc" else _adjective(word, number))
        else:
            changed.append(_noun(word, number, animate=False))
    return " ".join(changed)


def _adjective(word: str, number: int) -> str:
    soft = word.endswith("ний")
    ending = _ADJECTIVE[number]
    if soft or (word[-3] in _NEVER_Y and ending == "ым"):
        ending = {"ого": "его", "ому": "ему", "ом": "ем", "ым": "им"}[ending] if soft else "им"
    return word[:-2] + ending


def _noun(word: str, number: int, *, animate: bool) -> str:
    """Decline a noun; `number` is the place of the case in `CASES`."""
    if word.isupper() or word[-1] not in "бвгджзйклмнпрстфхцчшщьая":
        return word
    if CASES[number] == "acc" and not animate and word[-1] not in "ая":
        return word
    if word in _KEEPS_SIGN:
        return word[:-1] + _SOFT_FEMALE[number]
    for ending, endings in _ENDINGS.items():
        if word.endswith(ending):
            stem, changed = word.removesuffix(ending), endings[number]
            if changed == "ы" and stem[-1:] in _NEVER_Y:
                changed = "и"
            if changed == "ой" and stem[-1:] in _HUSHED:
                changed = "ей"
            return stem + changed
    changed = _MALE[number]
    return word + ("ем" if changed == "ом" and word[-1] in _HUSHED else changed)
