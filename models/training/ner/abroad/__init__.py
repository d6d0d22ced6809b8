"""Sentences, places and organisations of other languages, and the texts that are generated of them.

A language has a bank, `LANGUAGE.txt`: sections of names (parted by semicolons) and of sentences (one a line) with the
slots of `prose`; `{PERSON.gen}` asks for a case. Sentences that are `left out` are never learnt from. Written for this
project from general knowledge, copied from no data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from random import Random

import msgspec

from models.training.ner import russian
from models.training.ner.generate import Cast, filled, joined
from models.training.ner.marked import Marked
from models.training.ner.prose import OTHERS

HOMES = {
    "de": "de_DE",
    "fr": "fr_FR",
    "es": "es_ES",
    "it": "it_IT",
    "pt": "pt_BR",
    "nl": "nl_NL",
    "ru": "ru_RU",
    "zh": "zh_CN",
    "ja": "ja_JP",
}
"""Language that is learnt -> locale of its names; English is in `generate`."""
UNLEARNT = {"ar": "ar_AA", "ko": "ko_KR", "hi": "hi_IN", "pl": "pl_PL", "tr": "tr_TR"}
"""Languages whose banks only measure."""
UNSPACED = frozenset({"zh", "ja"})
OWN = frozenset({"ru", "zh", "ja"})
"""Languages that write names, days and sums in their own way."""
_CASES: Mapping[str, russian.Case] = {case: case for case in russian.CASES}
_NAMELESS = 0.25
_LATIN = 0.08
"""Share of names in Latin letters in languages of other scripts."""
_FEMALE = frozenset({"Мэри", "Линь"})


class Bank(msgspec.Struct, frozen=True):
    """What is written for one language."""

    given: tuple[str, ...] = ()
    """Names of foreigners as the language writes them."""
    family: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    organizations: tuple[str, ...] = ()
    sentences: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()
    nameless: tuple[str, ...] = ()


@cache
def bank(language: str) -> Bank:
    """Return the bank of a language.

    Raises:
        FileNotFoundError: there is none.
        ValueError: a section is unknown.
    """
    found: dict[str, list[str]] = {}
    section: list[str] = []
    for line in files(__package__).joinpath(f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("# "):
            name = line[2:].replace(" ", "_")
            if name not in Bank.__struct_fields__:
                raise ValueError(f"`{language}.txt` has a section `{name}`; there are {Bank.__struct_fields__}")
            section = found.setdefault(name, [])
        elif section is found.get("sentences") or section is found.get("left_out") or section is found.get("nameless"):
            section.append(line.replace("\\n", "\n"))
        else:
            section += [part.strip() for part in line.split(";") if part.strip()]
    return Bank(**{name: tuple(lines) for name, lines in found.items()})


class Abroad(Cast):
    """Invents names of one language."""

    def __init__(self, language: str, random: Random) -> None:
        """Take every choice from `random`."""
        super().__init__(random)
        self._language, self._bank = language, bank(language)
        self._home = {**HOMES, **UNLEARNT}[language]
        self._own = self._of(self._home)

    def entity(self, slot: str, home: str | None) -> str:
        """Return a name for an entity's slot, in the case that it asks for."""
        kind, _, asked = slot.partition(".")
        if not asked:
            return super().entity(kind, home)
        if asked not in _CASES:
            raise ValueError(f"`{slot}` asks for case `{asked}`; there are {', '.join(_CASES)}")
        if kind == "LOC":
            return russian.place(self.place(home), _CASES[asked])
        return self._remembered(self._russian(kind, _CASES[asked]))

    def neutral(self, slot: str) -> str:
        """Return a filler that is no entity; dates and sums as the language writes them."""
        if self._language not in OWN:
            return super().neutral(slot)
        pick, number = self._random.choice, self._random.randint
        if slot == "date":
            day = (number(2016, 2027), number(1, 12), number(1, 28))
            own = "{2:02}.{1:02}.{0}" if self._language == "ru" else pick(("{0}年{1}月{2}日", "{0}/{1}/{2}"))
            return own.format(*day)
        if slot == "money":
            sign = {"ru": "{} руб.", "zh": "{}元", "ja": "{}円"}[self._language]
            return sign.format(number(100, 99_999))
        return super().neutral(slot)

    def person(self, home: str | None = None) -> str:
        """Return a person's name in one of the ways that the language writes them."""
        draw = self._random.random()
        if self._language in OWN and draw > _LATIN:
            return self._written("PERSON")
        if self._language in UNLEARNT and self._language not in {"pl", "tr"}:
            names = (str(self._own.first_name()), str(self._own.last_name()))
            return names[1] + names[0] if self._language == "ko" else " ".join(names)
        return super().person(home or self._home)

    def first(self, home: str | None = None) -> str:
        """Return a given name."""
        if self._language in OWN:
            return self._written("FIRST")
        return str(self._own.first_name()) if self._random.random() < 0.8 else super().first(home)

    def last(self, home: str | None = None) -> str:
        """Return a family name."""
        if self._language in OWN:
            return self._written("LAST")
        return str(self._own.last_name()) if self._random.random() < 0.8 else super().last(home)

    def place(self, home: str | None = None) -> str:
        """Return a place, mostly as the language writes it."""
        draw = self._random.random()
        if draw < 0.75 or self._language in UNLEARNT:
            return self._random.choice(self._bank.places)
        if self._language == "ru":
            return str(self._own.city_name())
        if self._language == "zh":
            return str(self._random.choice((self._own.city_name, self._own.province, self._own.city))())
        if self._language == "ja":
            return str(self._random.choice((self._own.city, self._own.prefecture, self._own.town))())
        return super().place(home or self._home).removeprefix("the ")

    def organization(self, home: str | None = None) -> str:
        """Return a company, authority, club, school or newspaper."""
        draw = self._random.random()
        if draw < 0.6 or self._language in UNLEARNT:
            return self._random.choice(self._bank.organizations)
        if draw < 0.75:
            return self._built()
        if self._language in OWN:
            made = str(self._own.company())
            return made if self._language != "ru" else made.rpartition("«")[2].rstrip("»")
        return super().organization(home or self._home).removeprefix("the ")

    def _built(self) -> str:
        """Return an organisation that is named after a place or a person."""
        place, last = self._random.choice(self._bank.places), self.last()
        forms = {
            "de": ("Universität {0}", "Stadtwerke {0}", "{1} GmbH", "{1} & Söhne", "Amtsgericht {0}"),
            "fr": ("Université de {0}", "Mairie de {0}", "Groupe {1}", "{1} et Fils", "Hôpital de {0}"),
            "es": ("Universidad de {0}", "Ayuntamiento de {0}", "Grupo {1}", "{1} e Hijos", "Hospital de {0}"),
            "it": ("Università di {0}", "Comune di {0}", "Gruppo {1}", "{1} S.p.A.", "Ospedale di {0}"),
            "pt": ("Universidade de {0}", "Prefeitura de {0}", "Grupo {1}", "{1} Ltda.", "Hospital de {0}"),
            "nl": ("Universiteit {0}", "Gemeente {0}", "{1} B.V.", "{1} en Zonen", "Ziekenhuis {0}"),
            "ru": ("Банк {0}", "Университет {0}", "{1} и партнёры", "Группа {1}", "ФК {0}"),
            "zh": ("{0}大学", "{0}银行", "{0}市政府", "{0}科技有限公司", "{0}人民医院", "{0}日报"),
            "ja": ("{0}大学", "{0}銀行", "{0}市役所", "{1}建設株式会社", "株式会社{1}", "{0}新聞", "{0}病院"),
        }
        return self._random.choice(forms[self._language]).format(place, last)

    def _written(self, kind: str) -> str:
        if self._language == "ru":
            return self._russian(kind, None)
        return self._chinese(kind) if self._language == "zh" else self._japanese(kind)

    def _chinese(self, kind: str) -> str:
        pick, foreign = self._random.choice, self._random.random() < 0.25
        if kind == "LAST":
            return pick(self._bank.family) if foreign else str(self._own.last_name())
        if kind == "FIRST":
            return pick(self._bank.given) if foreign else pick(("小", "老")) + str(self._own.last_name())
        if not foreign:
            return f"{self._own.last_name()}{self._own.first_name()}"
        return pick(self._bank.given) + pick("·・") + pick(self._bank.family)

    def _japanese(self, kind: str) -> str:
        pick, foreign, draw = self._random.choice, self._random.random() < 0.25, self._random.random()
        if kind == "LAST":
            return pick(self._bank.family) if foreign else str(self._own.last_name())
        if kind == "FIRST":
            own = self._own.first_name if draw < 0.6 else self._own.first_kana_name
            return pick(self._bank.given) if foreign else str(own())
        if foreign:
            return f"{pick(self._bank.given)}・{pick(self._bank.family)}"
        if draw < 0.1:
            return f"{self._own.last_kana_name()}{pick(('', ' '))}{self._own.first_kana_name()}"
        return f"{self._own.last_name()}{pick(('', '', '', ' '))}{self._own.first_name()}"

    def _russian(self, kind: str, case: russian.Case | None) -> str:
        pick, draw = self._random.choice, self._random.random()
        female = self._random.random() < 0.45
        sex = "female" if female else "male"
        names = [str(getattr(self._own, f"{part}_name_{sex}")()) for part in ("first", "middle", "last")]
        if self._random.random() < 0.25:
            names = [pick(self._bank.given), "", pick(self._bank.family)]
            female = names[0].endswith(("а", "я")) or names[0] in _FEMALE
        if case is not None:
            names[:2] = [russian.given(name, case) if name else "" for name in names[:2]]
            names[2] = russian.family(names[2], case, female=female)
        first, middle, last = names
        if kind != "PERSON":
            return first if kind == "FIRST" else last
        if draw < 0.12 and middle:
            return pick((f"{first[0]}. {middle[0]}. {last}", f"{first[0]}.{middle[0]}. {last}", f"{first[0]}. {last}"))
        if draw < 0.35 and middle:
            return pick((f"{first} {middle} {last}", f"{last} {first} {middle}", f"{first} {middle}"))
        return f"{first} {last}" if draw < 0.93 else f"{last} {first}"


def documents(language: str, count: int, random: Random, *, left_out: bool = False) -> Iterator[Marked]:
    """Yield generated texts of one language: one to four sentences, some without names.

    Args:
        language: of `HOMES` or `UNLEARNT`.
        count: texts.
        random: of every choice.
        left_out: of the sentences that are never learnt from, one each.
    """
    cast, own = Abroad(language, random), bank(language)
    home = {**HOMES, **UNLEARNT}[language]
    sentences: Sequence[str] = own.left_out if left_out else (*own.sentences, *OTHERS.get(home, ()))
    for _ in range(count):
        if left_out:
            yield filled(random.choice(sentences), cast, home)
            continue
        size = random.choice((1, 1, 2, 3, 4))
        forms = [random.choice(own.nameless if random.random() < _NAMELESS else sentences) for _ in range(size)]
        between = random.choice(("", "", "\n") if language in UNSPACED else (" ", " ", "\n", "\n\n"))
        yield joined([filled(form, cast, home) for form in forms], between)
