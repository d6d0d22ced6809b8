"""Numbers, amounts and dates are one when they mean the same, however they are written."""

import math

import pytest

from checkstream.grounding.embedded.numbers import Quantity, agree, alike, quantities
from checkstream.grounding.embedded.reading import words


def read(text: str) -> list[Quantity]:
    return quantities(text, words(text))


def only(text: str) -> Quantity:
    (found,) = read(text)
    return found


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$394 billion", "394,000,000,000 USD"),
        ("$1,234.50", "1234.5 dollars"),
        ("1.234,50 €", "1,234.50 euros"),
        ("4.2%", "4.2 percent"),
        ("4.2 per cent", "4.2 %"),
        ("15 March 2023", "March 15, 2023"),
        ("15 March 2023", "2023-03-15"),
        ("15.03.2023", "15th of March 2023"),
        ("3/15/2023", "15 March 2023"),
        ("am 15. März 2023", "15.03.2023"),
        ("15 de marzo de 2023", "15 March 2023"),
        ("15 במרץ 2023", "15 ב מרץ 2023"),
        ("March 2023", "15 March 2023"),
        ("2023", "15 March 2023"),
        ("twenty-one days", "21 days"),
        ("thirty days", "30 days"),
        ("2 hours", "120 minutes"),
        ("5 km", "5,000 meters"),
        ("10 miles", "16.09344 km"),
        ("1 year", "12 months"),
        ("3rd", "third"),
        ("about 394 billion", "394.3 billion"),
        ("4.2", "4.23"),
        ("17:30", "5:30 pm"),
        ("5pm", "17:00"),
        ("12 a.m.", "0:00"),
        ("12:15 PM", "12:15"),
        ("-5 degrees", "\u22125 degrees"),
        ("pages 10-20", "20 pages"),
        ("5k", "5 thousand"),
        ("1990s", "1990"),
        ("٣٠", "30"),
    ],
)
def test_one_number_in_two_writings_agrees(one: str, other: str) -> None:
    claim, evidence = read(one), read(other)
    assert claim
    assert evidence
    assert any(agree(said, there) for said in claim for there in evidence)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("$394 billion", "$394 million"),
        ("$394 billion", "395 billion dollars"),
        ("30 days", "30 euros"),
        ("4.2%", "4.3%"),
        ("4.2%", "42%"),
        ("15 March 2023", "16 March 2023"),
        ("15 March 2023", "March 2023"),
        ("15 March 2023", "15 April 2023"),
        ("2023", "2022"),
        ("30 days", "30 months"),
        ("3rd", "4th"),
        ("1,234", "1,235"),
        ("104", "100"),
        ("17:30", "5:30"),
        ("9:00", "9"),
        ("5 am", "5 pm"),
        ("-5 degrees", "5 degrees"),
        ("a margin of -4.2%", "a margin of 4.2%"),
        ("thirty", "thirteen"),
    ],
)
def test_another_number_does_not_agree(one: str, other: str) -> None:
    assert not any(agree(said, there) for said in read(one) for there in read(other))


def test_a_point_before_three_digits_may_group_or_part() -> None:
    assert agree(only("1.234"), only("1,234"))
    assert agree(only("1.234"), Quantity(0, 0, values=(1.234,)))


@pytest.mark.parametrize("text", ["may help", "the march went on", "second thoughts", "version", "of one mind"])
def test_words_that_only_look_like_numbers_contradict_nothing(text: str) -> None:
    assert all(found.weak for found in read(text))


def test_only_numbers_of_one_kind_can_contradict() -> None:
    assert alike(only("30 days"), only("60 days"))
    assert alike(only("2023"), only("2022"))
    assert not alike(only("30 days"), only("$60"))
    assert not alike(only("2023"), only("30 people"))
    assert not alike(only("one"), only("7"))


@pytest.mark.parametrize(
    "text",
    [
        "9" * 5000,
        "1,2,3,4,5",
        "0.0.0.0",
        "99.99.9999",
        "2023-99-99",
        "1" + ",000" * 400,
        "½ ² ①",
        "1.2.3.4.5",
        "00/00/0000",
        "৪৫",
        "1e400",
    ],
)
def test_hostile_numbers_give_finite_values(text: str) -> None:
    for found in read(text):
        assert all(math.isfinite(value) for value in found.values)
        assert agree(found, found) or not (found.values or found.dates)


def test_a_quantity_says_which_words_it_is() -> None:
    text = "It made $394 billion in 2023."
    found = words(text)
    spans = [text[found[each.first].start : found[each.last].end] for each in quantities(text, found)]
    assert spans == ["394 billion", "2023"]
