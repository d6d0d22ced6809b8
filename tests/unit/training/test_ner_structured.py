"""Values that patterns find are told apart from those that no pattern should: by rules of their own."""

import pytest

from tests.train_packages import TRAIN

pytest.importorskip("faker", reason=TRAIN)

from models.training.ner.marked import Marked, Span
from models.training.ner.patterned import ENTITIES, LOCALES, texts
from models.training.ner.structured import RULES, Structured, figures


def row(found: list[Structured], entity: str) -> Structured:
    return next(one for one in found if one.entity == entity)


def marked(text: str, value: str, entity: str) -> Marked:
    start = text.index(value)
    return Marked(text, (Span(start, start + len(value), entity),))


@pytest.mark.parametrize(
    ("entity", "right", "wrong"),
    [
        ("CREDIT_CARD", "4539 1488 0343 6467", "4539 1488 0343 6468"),
        ("IBAN", "DE89 3704 0044 0532 0130 00", "DE88 3704 0044 0532 0130 00"),
        ("IBAN", "GB82WEST12345698765432", "GB82"),
        ("US_SSN", "536-22-8745", "966-22-8745"),
        ("US_SSN", "001-01-0001", "536-00-8745"),
        ("PHONE", "+1 (424) 761-8090", "+1 007-844-969"),
        ("PHONE", "+49 30 901820", "+49 30"),
        ("PHONE", "424-761-8090", "0591-3740-01"),
        ("IP_ADDRESS", "2001:db8::1", "300.1.1.1"),
        ("MAC_ADDRESS", "00:1a:2b:3c:4d:5e", "00:1a:2b"),
        ("EMAIL", "a@b.co", "a@b"),
        ("DATE_OF_BIRTH", "1980-02-29", "1981-02-29"),
    ],
)
def test_a_public_rule_takes_what_is_right_and_refuses_what_is_not(entity: str, right: str, wrong: str) -> None:
    assert RULES[entity](right)
    assert not RULES[entity](wrong)


def test_a_marked_value_with_a_wrong_check_digit_counts_as_missed_and_as_refused() -> None:
    right, wrong = "4539 1488 0343 6467", "4539 1488 0343 6468"
    found = figures([marked(f"card {right}", right, "CREDIT_CARD"), marked(f"card {wrong}", wrong, "CREDIT_CARD")])
    assert row(found, "CREDIT_CARD") == Structured("CREDIT_CARD", 2, 1.0, 0.5, 2 / 3, refused=1, f1_valid=1.0)


def test_a_right_value_that_the_source_forgot_counts_as_false_and_as_unmarked() -> None:
    found = figures(
        [Marked("MAC 00:1a:2b:3c:4d:5e", ()), marked("MAC 00:1a:2b:3c:4d:5f", "00:1a:2b:3c:4d:5f", "MAC_ADDRESS")]
    )
    mac = row(found, "MAC_ADDRESS")
    assert (mac.precision, mac.recall, mac.unmarked, mac.f1_valid) == (0.5, 1.0, 1, 1.0)


def test_a_date_that_the_text_calls_an_admission_is_no_missed_birth() -> None:
    text = "He was admitted on 1980-01-02."
    birth = row(figures([marked(text, "1980-01-02", "DATE_OF_BIRTH")]), "DATE_OF_BIRTH")
    assert (birth.recall, birth.renamed, birth.refused) == (0.0, 1, 0)


def test_generated_prose_marks_what_stands_there_and_repeats_from_its_seed() -> None:
    every = list(texts(20, 1))
    assert every == list(texts(20, 1))
    assert every != list(texts(20, 2))
    assert {locale for locale, _ in every} == set(LOCALES)
    assert len(LOCALES) == 10
    assert {span.entity for _, text in every for span in text.spans} == set(ENTITIES)
    for _, text in every:
        assert "{" not in text.text
        for span in text.spans:
            value = text.text[span.start : span.end]
            assert value == value.strip()
            assert span.entity not in {"IBAN", "CREDIT_CARD", "US_SSN"} or RULES[span.entity](value)


def test_what_patterns_find_in_generated_prose_is_what_is_marked() -> None:
    found = figures(text for _, text in texts(25, 3))
    assert min(one.f1 for one in found) > 0.97
    assert min(one.marked for one in found) > 5
