"""Text from outside on a page: nothing hides, nothing turns the line around, nothing is longer than was said."""

from __future__ import annotations

import math
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.console.text import MOST_CHARS, lines_of, moment, number, seconds, shown, span, whole


@given(st.text(st.characters()))
def test_nothing_that_is_shown_is_hidden_or_steers_what_stands_around_it(text: str) -> None:
    for character in shown(text) + whole(text).replace("\n", ""):
        assert unicodedata.category(character) not in {"Cc", "Cf", "Cs", "Zl", "Zp", "Co"}


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), max_size=MOST_CHARS))
def test_what_can_be_seen_stays_as_it_is(text: str) -> None:
    assert shown(text) == text


@given(st.text(st.characters(categories=["L"])), st.integers(1, 50))
def test_what_is_long_is_cut_and_says_so(text: str, most: int) -> None:
    assert len(shown(text, most)) == min(len(text), most)
    assert shown(text, most).endswith("…") or len(text) <= most or "…" in text


def test_what_is_hidden_is_spelled_out() -> None:
    assert shown("a\u202eb\x1b[31m\ud800\u200b") == "a\\u202eb\\x1b[31m\\ud800\\u200b"
    assert lines_of("a\r\n\tb\x00\n") == ["a", "  b\\x00", ""]


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "-"), (math.inf, "> 5 s"), (0.0004, "0.40 ms"), (0.0384, "38.4 ms"), (1.234, "1.23 s"), (0.0, "0.00 ms")],
)
def test_times_are_said_as_people_read_them(value: float | None, said: str) -> None:
    assert seconds(value) == said


def test_counts_spans_and_moments() -> None:
    assert (number(1234567.0), number(0)) == ("1,234,567", "0")
    assert [span(value) for value in (-1, 42, 420, 11_100, 360_000)] == ["0 s", "42 s", "7 min", "3 h 5 min", "4 d 4 h"]
    assert moment(0) == "1970-01-01 00:00:00Z"
