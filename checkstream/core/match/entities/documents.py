"""What only the words before it tell from any other number: papers, patients, days of birth."""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.match.entities.dates import DATE_REGEX, is_birth_date
from checkstream.core.match.entities.entity import (
    WORD,
    Entity,
    SpanPair,
    before,
    continues_number,
    only_digits,
    past_mark,
    stands_alone,
    whole_if,
)
from checkstream.core.match.entities.labels import is_labelled, words_of


def _is_code(text: str, start: int, end: int, least_digits: int) -> bool:
    """Say whether the candidate is a code of its own with enough digits, and no part of a longer one."""
    if before(text, start) == "-" and start > 1 and text[start - 2].isalnum():
        return False
    digits = only_digits(text[start:end])
    return (
        len(digits) >= least_digits
        and len(set(digits)) > 1
        and stands_alone(text, start, end)
        and not continues_number(text, start)
    )


def refine_passport(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept 6 to 10 letters and digits after a word for passport."""
    return whole_if(_is_code(text, start, end, 4) and is_labelled(text, start, "passport"), start, end)


def refine_licence(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a code of 5 to 20 letters and digits after words for a driving licence, or marked `DL-`."""
    size = sum(char.isalnum() for char in text[start:end])
    announced = size >= 5 and _is_code(text, start, end, 4) and is_labelled(text, start, "licence")
    marked = text[start : start + 3].casefold() == "dl-" and _is_code(text, start, end, 5)
    return whole_if(announced or marked, start, end)


def refine_record(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a code that is itself marked `MRN-`, or that a word such as `patient id` announces."""
    candidate = text[start:end].casefold()
    if not _is_code(text, start, end, 4):
        return ()
    return whole_if(candidate.startswith("mrn") or is_labelled(text, start, "medical"), start, end)


def refine_birth(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a day that exists after a word for birth."""
    if not stands_alone(text, start, end) or continues_number(text, start):
        return ()
    return whole_if(is_birth_date(text[start:end]) and is_labelled(text, start, "birth", reach=48), start, end)


PASSPORT = Entity(
    name="PASSPORT",
    regex=WORD + r"[A-Za-z]{0,3}[ \-]?[0-9][A-Za-z0-9]{5,9}",
    refine=past_mark(refine_passport),
    lead=words_of("passport"),
    group="pii",
)
DRIVER_LICENSE = Entity(
    name="DRIVER_LICENSE",
    regex=(
        # The United Kingdom; then digits with a short prefix, digit groups, mixed codes (Germany), Washington.
        WORD + r"(?:[A-Za-z9]{5}[0-9]{6}[A-Za-z9]{2}[A-Za-z0-9]{3}(?: [0-9]{2})?"
        r"|[A-Za-z]{0,3}[ \-]?[A-Za-z]{0,2}[0-9]{4,14}[A-Za-z]{0,2}[0-9]{0,3}(?:-[0-9]{1,6}| [0-9]{3,6}){0,4}"
        r"|[A-Za-z]{0,3}-?[A-Za-z]?[0-9]{2,3}(?:[ \-][0-9]{2,6}){2,4}(?:-[0-9]{1,6})?"
        r"|[A-Za-z0-9][0-9]{2,3}[A-Za-z0-9]{5,9}"
        r"|[A-Za-z]{3,7}[0-9]{3}[A-Za-z]{2}[A-Za-z0-9]{2})"
    ),
    refine=past_mark(refine_licence),
    lead=words_of("licence") + "|_?[Dd][Ll]-",
    group="pii",
)
MEDICAL_RECORD_NUMBER = Entity(
    name="MEDICAL_RECORD_NUMBER",
    regex=(
        WORD + r"(?:[Mm][Rr][Nn]-?[A-Za-z]{0,2}|[A-Za-z]{0,4}-?)"
        r"(?:[0-9]{5,12}|[0-9]{2,4}(?:-[0-9]{2,8}){1,3})"
    ),
    refine=past_mark(refine_record),
    lead=words_of("medical") + "|_?[Mm][Rr][Nn]",
    group="pii",
)
DATE_OF_BIRTH = Entity(
    name="DATE_OF_BIRTH", regex=DATE_REGEX, refine=past_mark(refine_birth), lead=words_of("birth"), group="pii"
)

ENTITIES = (PASSPORT, DRIVER_LICENSE, DATE_OF_BIRTH, MEDICAL_RECORD_NUMBER)
