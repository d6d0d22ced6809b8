"""National numbers of the United States and the United Kingdom."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.entities.checksums import nhs_mod11
from checkstream.core.match.entities.entity import (
    GAP,
    WORD,
    Entity,
    SpanPair,
    before,
    continues_number,
    glued_before,
    glued_behind,
    only_digits,
    parts_of,
    past_mark,
    stands_alone,
    whole_if,
)
from checkstream.core.match.entities.labels import is_labelled, nearest_label


def is_whole_number(text: str, start: int, end: int, *, named: bool = False, mixed: bool = False) -> bool:
    """Say whether the candidate is no part of a longer number, with one kind of gap throughout.

    `named`: a name may stand right before it, with an underscore between (`id_123-45-6789`). `mixed`: gaps may differ.
    """
    gaps = "".join(char if char > "9" or char < "0" else "0" for char in text[start:end]).split("0")
    return (
        (mixed or len({gap for gap in gaps if gap}) <= 1)
        and not glued_behind(text, end)
        and ((named and before(text, start) == "_") or not glued_before(text, start))
        and not continues_number(text, start)
        and text[end : end + 1] != "-"
    )


def is_itin(digits: str) -> bool:
    """Check nine digits. Source: IRS IRM 3.21.263.1.4: 9xx, group 50-65, 70-88, 90-92 or 94-99."""
    group = int(digits[3:5])
    return digits[0] == "9" and (50 <= group <= 65 or 70 <= group <= 88 or 90 <= group <= 92 or 94 <= group <= 99)


def is_hyphened(text: str, start: int) -> bool:
    """Say whether single hyphens stand between the groups of nine digits."""
    return text[start + 3] == "-" == text[start + 6]


def refine_itin(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept an ITIN with hyphens; with other gaps, several kinds of them or none only after a word that says so."""
    if not is_itin(only_digits(text[start:end])):
        return ()
    announced = is_labelled(text, start, "itin") or is_labelled(text, start, "ssn")
    told = announced or is_hyphened(text, start)
    return parts_of(text, start, end) if told and is_whole_number(text, start, end, mixed=announced) else ()


def refine_nino(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a National Insurance number as it is printed, or in parts behind the word for it.

    Source of the prefixes: HMRC manual NIM39110.
    """
    told = _NAMED.match(text, start, end)
    hit = _PARTS.search(text, told.end(), end) if told is not None else None
    start = hit.start() if hit is not None else start
    prefix = "".join(char for char in text[start:end] if char.isalpha())[:2].upper()
    alone = told is not None or (stands_alone(text, start, end) and not continues_number(text, start))
    return parts_of(text, start, end) if alone and prefix not in _VOID_PREFIXES else ()


def refine_nhs(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept ten digits with a right check digit, grouped 3-3-4 by spaces or announced by a word."""
    digits = only_digits(text[start:end])
    if not nhs_mod11(digits) or len(set(digits)) == 1:
        return ()
    # Telephone numbers share the 3-3-4 grouping, and one in eleven passes the check.
    label = nearest_label(text, start)[0]
    announced = label in ("nhs", "medical")
    set_so = text[start + 3] == " " == text[start + 7] and label not in ("phone", "other")
    return whole_if((announced or set_so) and is_whole_number(text, start, end, mixed=announced), start, end)


_BEHIND = f"{GAP}{{1,3}}[0-9]{{2}}{GAP}{{1,3}}[0-9]{{4}}"
_VOID_PREFIXES = frozenset({"BG", "GB", "KN", "NK", "NT", "TN", "ZZ"})
_NAME = r"(?i:\b(?:nino|national insurance|ni (?:number|no)))\b"
_FEW = "[^0-9A-Z]{0,16}"
_IN_PARTS = rf"\b[A-CEGHJ-PR-TW-Z][^0-9A-Za-z]{{0,8}}[A-CEGHJ-NPR-TW-Z]\b{_FEW}[0-9](?:{_FEW}[0-9]){{5}}{_FEW}\b[A-D]\b"
"""Capitals and figures with any words in small letters, or signs, between."""
_NAMED, _PARTS = compile_regex(_NAME), compile_regex(_IN_PARTS)
US_ITIN = Entity(
    name="US_ITIN",
    regex=f"{WORD}(?:9[0-9]{{2}}{_BEHIND}|9[0-9]{{8}})",
    refine=past_mark(refine_itin),
    group="pii",
)
UK_NINO = Entity(
    name="UK_NINO",
    regex=(
        rf"{WORD}[A-CEGHJ-PR-TW-Za-ceghj-pr-tw-z][A-CEGHJ-NPR-TW-Za-ceghj-npr-tw-z]"
        rf"(?:[0-9]{{6}}|(?:{GAP}{{1,3}}[0-9]{{2}}){{3}}|{GAP}{{1,3}}[0-9]{{6}}){GAP}{{0,3}}[A-Da-d]"
        rf"|{_NAME}[^0-9]{{0,32}}{_IN_PARTS}"
    ),
    refine=past_mark(refine_nino),
    group="pii",
)
UK_NHS = Entity(
    name="UK_NHS",
    regex=f"{WORD}[0-9]{{3}}{GAP}{{0,3}}[0-9]{{3}}{GAP}{{0,3}}[0-9]{{4}}",
    refine=past_mark(refine_nhs),
    group="pii",
)

ENTITIES = (US_ITIN, UK_NINO, UK_NHS)
