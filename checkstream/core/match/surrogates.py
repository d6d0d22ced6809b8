"""The forms of surrogates: values that look real, stand for others, and are nobody's.

All but names come from what is reserved for examples: mail at example.com (RFC 2606), North American numbers 555-01xx,
addresses of the network for documentation (RFC 5737), cards of the issuer number that is for tests, and numbers of
social security that are never given (area 900 and above, group below 50). Names are common ones, put together anew,
and none is a word as well: who is called by one of two names is found by it in any letter case, so prices that rose
would be somebody's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.entity import SpanPair, glued_before, glued_behind, only_digits
from checkstream.core.match.names import words_of
from checkstream.core.match.patterns import Pattern

_FIRST: Final = """
en: Amy Brian Janet Derek Ellen Simon Gloria Howard Irene Neil Helen Ian Megan Nathan Lydia Keith Nora Scott Tracy
Julian Wendy Alan Beth Colin Paula Gavin Deborah Kevin Laura Marcus
de: Anke Bernd Carla Dieter Elke Gerd Heike Ingo Jutta Klaus Lotte Manfred Nicole Egon Petra Ralf Sabine Torsten Ina
Volker
fr: Aline Bruno Chantal Denis Fabienne Gilles Henri Isabelle Julien Laure Roland Nadine Odette Lucien Quentin Sylvie
Thierry Yves
es: Ana Beatriz Carlos Diego Elena Felipe Gonzalo Inés Jorge Silvia Ignacio Nuria Raquel Rafael Sergio Teresa Vicente
Ximena
"""
_LAST: Final = """
en: Abbott Barlow Crosby Danvers Ellison Fenwick Gilmore Harlow Ingram Jarvis Kendall Langley Maddox Nesbitt Osborne
Prescott Quimby Ramsey Sinclair Thornton Upshaw Vance Whitaker Yates
de: Albers Brandt Clausen Degener Ebert Fiebig Gerlach Hartwig Jansen Kessler Lorenz Mertens Nowak Otten Petersen
Reimann Siebert Thiel Ulrich Voigt
fr: Aubert Blanchet Carlier Delmas Evrard Fabre Gautier Humbert Jacquet Lacombe Montel Noiret Perrin Renaud Savary
Tessier Vasseur
es: Aguilar Benavides Cabrera Duarte Elizondo Figueroa Galindo Heredia Irigoyen Ledesma Molina Noriega Ortega Pacheco
Quiroga Riquelme Saavedra Velasco
"""
_FORMER: Final = """
Blanco Bruna Carol Carver Dalton Delgado Diana Dietrich Espinosa Fletcher Frank Franke Fuentes Gallego Garner Garnier
Heather Herrero Iglesias Jack Karen Keller Lacroix Leo Linda Lozano Lucía Manuel Marcel Marchand Mercer Navarro Norton
Olive Otto Pardo Parsons Pascal Pelletier Peter Pilar Quintana Robles Rose Salinas Sauvage Sawyer Seidel Underhill Ute
Victor Vogt
"""
"""Names that are words or brands as well: nobody gets them any more, and where a conversation keeps them they come
back."""


def _pools(table: str) -> Mapping[str, tuple[str, ...]]:
    """Return the names of a table by language: each begins with `xx:`."""
    pools: dict[str, list[str]] = {}
    for word in table.split():
        if word.endswith(":"):
            names = pools.setdefault(word[:-1], [])
        else:
            names.append(word)
    return MappingProxyType({language: tuple(names) for language, names in pools.items()})


FIRST: Final = _pools(_FIRST)
LAST: Final = _pools(_LAST)
KINDS: Final = frozenset({"PERSON", "EMAIL", "PHONE", "CREDIT_CARD", "US_SSN", "IP_ADDRESS"})
"""Kinds of values that have surrogates; all others get a label."""
CARDS: Final = "4000000"
"""What their numbers begin with."""
_VIEWS: Final = frozenset({"raw", "unescaped", "folded", "unmarked"})
_EVERY: Final = {word for pools in (FIRST, LAST) for pool in pools.values() for word in pool} | {*_FORMER.split()}
_WORDS: Final = "|".join(sorted(_EVERY, key=lambda word: (-len(word), word)))
_SEVERAL: Final = rf"(?:{_WORDS})(?:[\s\-]{{1,2}}(?:{_WORDS})){{0,2}}"
_ADDRESS: Final = r"[a-z]{2,12}\.[a-z]{2,12}@example\.(?:com|net|org)"
_PHONE: Final = r"(?:\+?1[ .\-]?)?\(?[2-9][0-9]{2}\)?[ .\-]{0,2}555[ .\-]?01[0-9]{2}"
_CARD: Final = r"4000[ \-]?000[0-9][ \-]?[0-9]{4}[ \-]?[0-9]{4}"
_SSN: Final = r"9[0-9]{2}[ \-]?[0-4][0-9][ \-]?[0-9]{4}"
_IP: Final = r"(?:192\.0\.2|198\.51\.100|203\.0\.113)\.[0-9]{1,3}"
_NETWORK: Final = compile_regex(rf"\A{_IP}\z")
_WORD: Final = compile_regex(rf"(?i)(?:{_WORDS})")


def surrogate_pattern(signal: int) -> Pattern:
    """Return what finds surrogates of all kinds, and whatever else has their forms."""
    regex = rf"(?i)(?:{_ADDRESS}|{_PHONE}|{_CARD}|{_SSN}|{_IP}|{_SEVERAL})"
    return Pattern(signal=signal, name="surrogate", regex=regex, refine=_refine, views=_VIEWS)


def _refine(text: str, start: int, end: int) -> Sequence[SpanPair]:
    return () if glued_before(text, start) or glued_behind(text, end) else ((start, end),)


def words_in(text: str, key: str) -> Sequence[SpanPair]:
    """Return where the words of a run of names stand, however they are parted; nothing where that can't be told.

    Args:
        text: The run as it is written: what parts its words may be escaped.
        key: By what it is known.
    """
    found = [(hit.start(), hit.end()) for hit in _WORD.finditer(text)]
    return found if " ".join(words_of(text[start:end]) for start, end in found) == key else ()


def surrogate_key(text: str) -> str:
    """Return by what a surrogate is known, in any letter case and with any signs within it."""
    plain = text.strip()
    if "@" in plain:
        return plain.casefold()
    if any(char.isalpha() for char in plain):
        return words_of(plain)
    if _NETWORK.search(plain):
        return plain
    digits = only_digits(plain)
    return digits[1:] if len(digits) == 11 and digits[0] == "1" else digits
