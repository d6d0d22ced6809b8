"""US_SSN: as it is printed, and behind a word that says so with whatever stands between its figures."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.entity import (
    WORD,
    Entity,
    SpanPair,
    continues_number,
    digit_groups,
    glued_before,
    glued_behind,
    only_digits,
    past_mark,
    whole_if,
)
from checkstream.core.match.entities.labels import is_labelled
from checkstream.core.match.entities.national import is_hyphened, is_whole_number

# Numbers that were printed in advertisements and never count. Source: SSA, "Myths and facts about the SSN".
_VOID_SSNS = frozenset({"078051120", "219099999"})
_FIGURES: Final = 9
_GAP = "[ \\t\\r\\n,.\\-/_'*\u00b7]{1,3}"
_PRINTED: Final = f"[0-9]{{3}}{_GAP}[0-9]{{2}}{_GAP}[0-9]{{4}}|[0-9]{{9}}"
_ANY: Final = "[^0-9]{0,12}"
_APART: Final = f"[0-9](?:{_ANY}[0-9]){{{_FIGURES - 1},{_FIGURES}}}"
"""Figures with any words or signs between; one more of them tells whether they stand alone."""
_AS_PRINTED: Final = compile_regex(_PRINTED)


def is_ssn(digits: str) -> bool:
    """Check area, group and serial of nine digits. Source: SSA POMS RM 10201.030 (randomised numbers)."""
    return digits < "9" and _is_ssn_form(digits)


def _is_ssn_form(digits: str) -> bool:
    """Check nine digits as `is_ssn` does, but that the areas 900 to 999 count too."""
    area, group, serial = digits[:3], digits[3:5], digits[5:]
    return (
        area not in ("000", "666")
        and group != "00"
        and serial != "0000"
        and digits not in _VOID_SSNS
        and len(set(digits)) > 1
    )


_TELLING = frozenset("-._'\u00b7")
"""Signs that stand between groups of three, two and four digits in nothing else; spaces, tabs, line ends, commas and
slashes do (columns of tables, paths)."""


def _is_told(text: str, start: int) -> bool:
    """Say whether the groups are set as nothing else is."""
    return text[start + 3] in _TELLING and text[start + 6] in _TELLING and text[start + 7] not in _TELLING


def refine_ssn(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Return the SSN that begins a candidate of any form."""
    if _AS_PRINTED.match(text, start) is None:
        return _refine_apart(text, start, end)
    return _refine_printed(text, start, end) or _refine_apart(text, start, end)


def _refine_printed(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept an SSN with hyphens, dots and the like; with spaces or none only after a word that says so.

    No SSN is issued in the areas 900 to 999, so made-up ones are written there: with hyphens they count as well.
    """
    digits = only_digits(text[start:end])
    if not _is_ssn_form(digits):
        return ()
    if not is_whole_number(text, start, end, named=True, mixed=end - start > _FIGURES and _is_told(text, start)):
        return ()
    told = is_hyphened(text, start) or (is_ssn(digits) and (_is_told(text, start) or is_labelled(text, start, "ssn")))
    return whole_if(told, start, end)


_SIZES: Final = frozenset({(1,) * _FIGURES, (3, 2, 4), (_FIGURES,)})
"""Of the groups in which people set it apart with anything between."""
_SIGN_SIZES: Final = frozenset({(3, 3, 3), (3, 6), (5, 4)})
"""Of those between which stand only signs: with words between they are two or three numbers."""


def _refine_apart(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept nine figures behind a word for an SSN, if they are all that stand so near to each other."""
    if not is_labelled(text, start, "ssn") or continues_number(text, start):
        return ()
    groups = digit_groups(text, start, end)
    gaps = [after[0] - before[1] for before, after in pairwise(groups)]
    if sum(stop - begin for begin, stop in groups) > _FIGURES:
        if groups[-1][1] - groups[-1][0] > 1 or gaps[-1] <= max(gaps[:-1], default=0):
            return ()
        groups.pop()
    elif "0" <= text[end : end + 1] <= "9":
        return ()
    stop = groups[-1][1]
    alone = not glued_before(text, start) and not glued_behind(text, stop)
    sizes = tuple(last - first for first, last in groups)
    known = sizes in _SIZES or (sizes in _SIGN_SIZES and not any(map(str.isalpha, text[start:stop])))
    return whole_if(alone and known and is_ssn(only_digits(text[start:stop])), start, stop)


_MAY_BEGIN: Final = compile_regex(r"(?:\b|_)(?:[0-9]{3}[\-._'\x{b7}]|[0-9]{0,3}\z)|(?i:s[os]|ns)")
"""Where one may stand that no word announces; and what is in each word that does."""


def skip_ssn(text: str, start: int, end: int) -> int:
    """Return where the next candidate may begin: what no word announces at its start, none does behind it."""
    if is_labelled(text, start, "ssn"):
        return start + 1
    hit = _MAY_BEGIN.search(text[start:end], 1 + (text[start] == "_"))
    return end if hit is None else start + hit.start()


US_SSN = Entity(
    name="US_SSN",
    regex=f"{WORD}(?:{_PRINTED}|{_APART})",
    refine=past_mark(refine_ssn),
    skip=skip_ssn,
    group="pii",
)

ENTITIES = (US_SSN,)
