"""National numbers of Germany, France, Spain and Italy, each with its check."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from checkstream.core.match.entities.checksums import (
    codice_fiscale_letter,
    dni_letter,
    icao_731,
    mod11_10,
    nir_key,
)
from checkstream.core.match.entities.entity import (
    GAP,
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
from checkstream.core.match.entities.labels import is_labelled, tight_label


def is_steuer_id(digits: str) -> bool:
    """Check eleven digits. Source: BZSt, "Steuerliche Identifikationsnummer", structure of 2007 and 2016.

    In the first ten digits exactly one digit stands twice, or three times but not in a row; the others once at most.
    """
    first = digits[:10]
    counts = sorted(Counter(first).values(), reverse=True)
    if first[0] == "0" or counts[0] not in (2, 3) or counts[1] != 1:
        return False
    return not any(digit * 3 in first for digit in set(first)) and mod11_10(digits)


def refine_de(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a tax id, or the number of an identity card with its check digit."""
    if not stands_alone(text, start, end) or continues_number(text, start) or before(text, start) == "+":
        return ()
    candidate = text[start:end]
    compact = "".join(candidate.split()).upper()
    if len(compact) == 11 and compact.isdigit():
        return whole_if(is_steuer_id(compact) and tight_label(text, start) not in ("phone", "account"), start, end)
    number = compact.rstrip("D")
    if len(number) != 10 or not icao_731(number[:9], number[9]):
        return ()
    # Letters among the first nine make a chance hit unlikely; else a word must say what the number is.
    telling = sum(char.isalpha() for char in number[:9]) >= 2 and candidate == candidate.upper()
    announced = is_labelled(text, start, "identity_card") or is_labelled(text, start, "passport")
    return whole_if(telling or announced, start, end)


def is_nir(number: str) -> bool:
    """Check fifteen characters of a NIR: sex, month, department, key. Source: INSEE, structure of the NIR."""
    month, department = int(number[3:5]), number[5:7]
    if not (1 <= month <= 12 or 20 <= month <= 42 or month >= 50):
        return False
    if department not in ("2A", "2B") and not 1 <= int(department) <= 99:
        return False
    return department != "96" and number[10:13] != "000" and nir_key(number[:13], number[13:])


def refine_fr(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a NIR with a right key."""
    compact = "".join(char for char in text[start:end].upper() if char.isalnum())
    alone = stands_alone(text, start, end) and not continues_number(text, start)
    return whole_if(alone and is_nir(compact), start, end)


def refine_es(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a DNI or NIE with a right letter; with a space before the letter only after a word that says so."""
    candidate = text[start:end].upper()
    if not stands_alone(text, start, end) or continues_number(text, start):
        return ()
    head = "XYZ".find(candidate[0])
    digits = (str(head) if head >= 0 else "") + only_digits(candidate)
    if len(digits) != 8 or dni_letter(int(digits)) != candidate[-1] or len(set(digits)) == 1:
        return ()
    return whole_if(" " not in candidate or is_labelled(text, start, "identity_card"), start, end)


# Digits of a codice fiscale may be replaced by letters when two people would share one (omocodia).
_OMOCODIA = str.maketrans("LMNPQRSTUV", "0123456789")
_DIGIT_PLACES = (6, 7, 9, 10, 12, 13, 14)


def refine_it(text: str, start: int, end: int) -> Sequence[SpanPair]:
    """Accept a codice fiscale with a right check letter and a day that exists."""
    compact = text[start:end].replace(" ", "").upper()
    if not stands_alone(text, start, end) or codice_fiscale_letter(compact[:15]) != compact[15]:
        return ()
    day = int(compact[9:11].translate(_OMOCODIA))
    return whole_if(1 <= day <= 31 or 41 <= day <= 71, start, end)


_GAP = f"{GAP}{{0,2}}"

DE_ID = Entity(
    name="DE_ID",
    regex=(
        WORD + r"(?:[0-9]{2} [0-9]{3} [0-9]{3} [0-9]{3}|[1-9][0-9]{10}"
        r"|[LMNPRTVWXYlmnprtvwxy][CFGHJKLMNPRTVWXYZcfghjklmnprtvwxyz0-9]{8} ?[0-9]D?|[0-9]{10}D)"
    ),
    refine=past_mark(refine_de),
    group="pii",
)
FR_ID = Entity(
    name="FR_ID",
    regex=(
        f"{WORD}[1-478]{_GAP}[0-9]{{2}}{_GAP}[0-9]{{2}}{_GAP}(?:[0-9]{{2}}|2[ABab]){_GAP}[0-9]{{3}}{_GAP}[0-9]{{3}}"
        f"{_GAP}[0-9]{{2}}"
    ),
    refine=past_mark(refine_fr),
    group="pii",
)
ES_ID = Entity(
    name="ES_ID",
    regex=WORD + r"(?:[0-9]{8}|[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}|[XYZxyz][ \-]?[0-9]{7})[ \-]?[A-HJ-NP-TV-Za-hj-np-tv-z]",
    refine=past_mark(refine_es),
    group="pii",
)
IT_ID = Entity(
    name="IT_ID",
    regex=(
        WORD + r"(?:[A-Z]{6}[0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2}[A-Z][0-9LMNP-V]{3}[A-Z]"
        r"|[a-z]{6}[0-9lmnp-v]{2}[abcdehlmprst][0-9lmnp-v]{2}[a-z][0-9lmnp-v]{3}[a-z]"
        r"|[A-Z]{3} [A-Z]{3} [0-9LMNP-V]{2}[ABCDEHLMPRST][0-9LMNP-V]{2} [A-Z][0-9LMNP-V]{3} ?[A-Z])"
    ),
    refine=past_mark(refine_it),
    group="pii",
)

ENTITIES = (DE_ID, FR_ID, ES_ID, IT_ID)
