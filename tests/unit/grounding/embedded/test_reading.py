"""Words of a text: their places, what forms share, and which a negator turns round."""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from checkstream.grounding.embedded.reading import folded, found_stem, reading, stem, words

TraceFunction = Callable[[FrameType, str, Any], Any]
HOSTILE = (
    "",
    " \n\t",
    "...!!!",
    "\ud800 lone \udfff",
    "\u0301\u0301",
    "\u200b\u200f\u202e",
    "²³½ ①②",
    "a" * 100_000,
    "1." * 20_000,
    "'" * 1000,
    "n't 's",
    "漢" * 5_000,
    "٣٤٥ ৪৫",
    "\x00",
)


@pytest.mark.parametrize("text", HOSTILE)
def test_words_lie_in_the_text_in_order_and_never_overlap(text: str) -> None:
    end = 0
    for word in words(text):
        assert end <= word.start < word.end <= len(text)
        assert word.form
        end = word.end
    found = words(text)
    assert len(reading(text, found).negated) == len(found)


def test_a_word_keeps_its_place_and_loses_case_and_accents() -> None:
    text = "José’s Café, don’t"
    assert [(text[word.start : word.end], word.form) for word in words(text)] == [
        ("José’s", "jose"),
        ("Café", "cafe"),
        ("don’t", "don't"),
    ]


def test_numbers_keep_points_and_commas() -> None:
    assert [word.form for word in words("$1,234.50 on 15.03.2023, then 5km.")] == [
        "1,234.50", "on", "15.03.2023", "then", "5", "km",
    ]  # fmt: skip


def test_scripts_without_spaces_are_read_letter_by_letter() -> None:
    assert [word.form for word in words("漢字 has")] == ["漢", "字", "has"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("closed", "closes"), ("companies", "company"), ("running", "runs"), ("החברה", "חברה"), ("Verträge", "Vertrag")],
)
def test_forms_of_one_word_find_each_other(one: str, other: str) -> None:
    text = f"{other} there"
    assert found_stem(stem(folded(one)), reading(text, words(text)))[1] >= 0.8


@pytest.mark.parametrize(
    ("one", "other"), [("cat", "car"), ("nation", "national park"), ("1234", "12345"), ("international", "internet")]
)
def test_other_words_do_not_pass_for_the_same(one: str, other: str) -> None:
    text = other
    assert found_stem(stem(folded(one)), reading(text, words(text)))[1] < 1


@pytest.mark.parametrize(
    ("text", "turned"),
    [
        ("it is not open today", ["open", "today"]),
        ("it isn't open", ["open"]),
        ("it is not, open", ["it", "is"]),
        ("it is open", []),
        ("das ist nicht offen", ["offen"]),
        ("er kommt nicht", ["er", "kommt"]),
        ("ce n'est pas ouvert", ["pas", "ouvert"]),
        ("אין החזר", ["החזר"]),
    ],
)
def test_a_negator_turns_the_next_words_round_up_to_a_mark(text: str, turned: list[str]) -> None:
    found = words(text)
    read = reading(text, found)
    assert [word.form for word, each in zip(found, read.negated, strict=True) if each] == turned


def test_a_long_text_takes_a_step_for_each_of_its_words() -> None:
    def steps(size: int) -> int:
        text = "the quick brown fox never jumps over 12 lazy dogs. " * size
        count = 0

        def counting(_: FrameType, __: str, ___: object) -> TraceFunction:
            nonlocal count
            count += 1
            return counting

        before = sys.gettrace()
        sys.settrace(counting)
        try:
            reading(text, words(text))
        finally:
            sys.settrace(before)
        return count

    short, long = steps(20), steps(200)
    assert short > 20 * 10
    assert long < 10.5 * short
