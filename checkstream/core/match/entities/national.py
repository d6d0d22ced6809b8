"""National numbers of the United States and the United Kingdom."""

from __future__ import annotations

from collections.abc import Sequence

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
    return whole_if(told and is_whole_number(text, start, end, mixed=announced), start, end)


def refine_nino(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Check the prefix of a National Insurance number. Source: HMRC manual NIM39110."""
    prefix = text[start : start + 2].upper()
    void = prefix in ("BG", "GB", "KN", "NK", "NT", "TN", "ZZ")
    return whole_if(not void and stands_alone(text, start, end) and not continues_number(text, start), start, end)


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
