"""Expressions asked of whole texts."""

from __future__ import annotations

import pytest

from checkstream.core.match.regex import TextRegex
from checkstream.core.terms import Span
from checkstream.errors import PatternError


def test_any_part_of_a_text_may_match() -> None:
    assert TextRegex("b+").found_in("abba")
    assert not TextRegex("^b").found_in("abba")
    assert TextRegex("").found_in("")
    assert TextRegex("(?i)É").found_in("café")


@pytest.mark.parametrize("source", ["(", "a(?=b)", r"(a)\1", "[", "a{2,1}", "\ud800", "(" * 5000])
def test_what_re2_does_not_run_is_refused(source: str) -> None:
    with pytest.raises(PatternError):
        TextRegex(source)


def test_a_lone_surrogate_matches_nothing_and_hides_nothing() -> None:
    assert TextRegex("a$").found_in("\ud800a")
    assert not TextRegex("^a").found_in("\ud800a")


def test_spans_are_in_code_points_and_do_not_overlap() -> None:
    assert TextRegex("[bש]+").spans("aשbb a שb") == [Span(1, 4), Span(7, 9)]
    assert TextRegex("aa").spans("aaaaa") == [Span(0, 2), Span(2, 4)]
    assert TextRegex("a").spans("") == []


def test_spans_hold_behind_a_lone_surrogate() -> None:
    assert TextRegex("a+").spans("\ud800aa\udfffa") == [Span(1, 3), Span(4, 5)]


def test_two_are_equal_when_written_the_same() -> None:
    assert len({TextRegex("a"), TextRegex("a"), TextRegex("b")}) == 2
    assert TextRegex("a") != "a"
    assert repr(TextRegex("a")) == "TextRegex('a')"
