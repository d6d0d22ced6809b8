"""What the entities found by pattern are worth: against a source's labels, and against values known to be right.

pii-anon invents its values: card numbers and IBANs with any check digits, social security numbers that no office
issues, telephone numbers that no plan has. What a validator rightly refuses then counts as missed, and what the source
forgot to mark as false. So every entity is told twice: as labelled, and among values that pass the public rule of their
kind, where the text does not call them something else. The rules are written here again, on their own.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from pathlib import Path
from random import Random
from types import MappingProxyType

import msgspec

from checkstream.evaluation.reading import PatternReader
from models.training import corpus
from models.training.ner import patterned
from models.training.ner.figures import Counts, count
from models.training.ner.marked import Marked, Span

SOURCES = ("pii_anon_dev", "pii_anon_extra")
LABELS = MappingProxyType(
    {
        "EMAIL_ADDRESS": "EMAIL",
        "PHONE_NUMBER": "PHONE",
        "SOCIAL_SECURITY_NUMBER": "US_SSN",
        "IP_ADDRESS": "IP_ADDRESS",
        "MAC_ADDRESS": "MAC_ADDRESS",
        "CREDIT_CARD_NUMBER": "CREDIT_CARD",
        "IBAN": "IBAN",
        "BANK_ACCOUNT_NUMBER": "BANK_ACCOUNT",
        "DATE_OF_BIRTH": "DATE_OF_BIRTH",
        "MEDICAL_RECORD_NUMBER": "MEDICAL_RECORD_NUMBER",
        "PASSPORT_NUMBER": "PASSPORT",
    }
)
"""Labels of pii-anon -> entities found by pattern."""
CALLED_ELSE = ("admitted on ", "\nID: ", "Record shows ")
"""Words right before a marked value that say it is something else, or nothing of what it is."""
_NEAR = 16
_SELF_EVIDENT = frozenset({"EMAIL", "PHONE", "IP_ADDRESS", "MAC_ADDRESS", "CREDIT_CARD", "IBAN"})
"""What a value shows by its form alone: one that passes its rule is one, marked or not."""


class Structured(msgspec.Struct, frozen=True):
    """One entity found by pattern, on one set of texts."""

    entity: str
    marked: int
    precision: float
    recall: float
    f1: float
    refused: int = 0
    """Marked values that fail the public rule of their kind."""
    renamed: int = 0
    """Marked values that the text calls something else, or nothing."""
    unmarked: int = 0
    """Values found by pattern that pass the rule and that the source forgot to mark."""
    f1_valid: float = 0.0
    """Without all these."""


def _digits(value: str) -> str:
    return re.sub(r"\D", "", value)


def _is_card(value: str) -> bool:
    doubled = [int(digit) * (1 + place % 2) for place, digit in enumerate(reversed(_digits(value)))]
    return sum(number // 10 + number % 10 for number in doubled) % 10 == 0


def _is_iban(value: str) -> bool:
    compact = re.sub(r"[ -]", "", value).upper()
    turned = compact[4:] + compact[:4]
    shaped = 15 <= len(compact) <= 34 and turned.isalnum()
    return shaped and int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1


def _is_ssn(value: str) -> bool:
    area, group, serial = _digits(value)[:3], _digits(value)[3:5], _digits(value)[5:]
    return area not in {"000", "666"} and area < "900" and group != "00" and serial != "0000"


def _is_phone(value: str) -> bool:
    """North American numbers by their plan: ten digits, area and exchange from 2 on; others by length (E.164)."""
    digits = _digits(value)
    if value.lstrip().startswith("+1") or not value.lstrip().startswith("+"):
        return bool(re.fullmatch(r"1?[2-9]\d{2}[2-9]\d{6}", digits))
    return 7 <= len(digits) <= 15


def _is_address(value: str) -> bool:
    try:
        ipaddress.ip_address(value)
    except ValueError:
        return False
    return True


def _is_day(value: str) -> bool:
    """Dates in the order of ISO 8601 by the calendar; any other form counts."""
    if not (found := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", value)):
        return True
    try:
        date(*map(int, found.groups()))
    except ValueError:
        return False
    return True


RULES: Mapping[str, Callable[[str], bool]] = MappingProxyType(
    {
        "CREDIT_CARD": _is_card,  # ISO/IEC 7812-1, annex B
        "IBAN": _is_iban,  # ISO 13616-1
        "US_SSN": _is_ssn,  # SSA POMS RM 10201.030
        "PHONE": _is_phone,  # ITU-T E.164; ATIS-0300051
        "IP_ADDRESS": _is_address,
        "MAC_ADDRESS": lambda value: len(re.sub(r"[^0-9A-Fa-f]", "", value)) in {12, 16},
        "EMAIL": lambda value: bool(re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s.]+", value)),
        "DATE_OF_BIRTH": _is_day,
    }
)
"""Public rule of each kind that has one."""


def _passes(entity: str, value: str) -> bool:
    return entity not in RULES or RULES[entity](value)


def labelled(folder: Path, most: int, seed: int) -> list[Structured]:
    """Measure on pii-anon's English texts without disguise, against its labels and among valid values."""
    rows = [
        row
        for file in SOURCES
        for row in corpus.rows(folder, file)
        if row["language"] == "en" and not row.get("adversarial")
    ]
    return figures(_known(row) for row in Random(seed).sample(rows, min(most, len(rows))))


def generated(count: int, seed: int) -> list[Structured]:
    """Measure on generated prose with valid values of ten locales among lookalikes, `count` texts a locale."""
    return figures(text for _, text in patterned.texts(count, seed))


def _known(row: Mapping[str, object]) -> Marked:
    marks = row["spans"] if isinstance(row["spans"], list) else []
    spans = (Span(mark["start"], mark["end"], LABELS[mark["label"]]) for mark in marks if mark["label"] in LABELS)
    return Marked(str(row["text"]), tuple(spans))


def figures(texts: Iterable[Marked]) -> list[Structured]:
    """Return precision, recall and F1 of every entity of `LABELS`, spans with both bounds right."""
    reader = PatternReader()
    raw = dict.fromkeys(LABELS.values(), Counts())
    valid = dict.fromkeys(LABELS.values(), Counts())
    refused, renamed, unmarked = (dict.fromkeys(LABELS.values(), 0) for _ in range(3))
    for text in texts:
        found = [Span(hit.start, hit.end, hit.entity) for hit in reader.read(text.text).entities]
        wrong = {span for span in text.spans if not _passes(span.entity, text.text[span.start : span.end])}
        else_ = {
            span
            for span in text.spans
            if span.entity not in RULES or span.entity == "DATE_OF_BIRTH"
            if text.text[max(0, span.start - _NEAR) : span.start].endswith(CALLED_ELSE)
        }
        extra = {
            span
            for span in set(found) - set(text.spans)
            if span.entity in _SELF_EVIDENT and _passes(span.entity, text.text[span.start : span.end])
        }
        left = [span for span in text.spans if span not in wrong | else_]
        kept = [span for span in found if span not in extra and span not in wrong | else_]
        for entity in raw:
            raw[entity] += count(found, text.spans, entity)
            valid[entity] += count(kept, left, entity)
            refused[entity] += sum(span.entity == entity for span in wrong)
            renamed[entity] += sum(span.entity == entity for span in else_ - wrong)
            unmarked[entity] += sum(span.entity == entity for span in extra)
    return [
        Structured(
            entity,
            counts.marked,
            counts.strict / counts.found if counts.found else 0.0,
            counts.strict / counts.marked if counts.marked else 0.0,
            counts.f1(),
            refused[entity],
            renamed[entity],
            unmarked[entity],
            valid[entity].f1(),
        )
        for entity, counts in raw.items()
    ]
