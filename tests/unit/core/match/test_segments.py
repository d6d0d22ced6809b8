"""Words and sentences by their stated rules, and what is known of them while text comes."""

from __future__ import annotations

from typing import Literal

import pytest

from checkstream.core.match.segments import MAX_SEGMENT_CHARS, Segments
from checkstream.core.terms import Span


def segments(grain: Literal["word", "sentence"], text: str) -> list[str]:
    found = Segments(grain)
    found.feed(text)
    found.end()
    spans = []
    at = 0
    while at < len(text):
        span = found.around(Span(at, at + 1))
        assert span is not None
        if not text[span.start : span.end].isspace():
            spans.append(span)
        at = span.end
    return [text[span.start : span.end] for span in spans]


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("It costs 3.14 now. Yes", ["It costs 3.14 now.", "Yes"]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("(Really?) Wait... what?!", ["(Really?)", "Wait...", "what?!"]),
        ("a heading\nthe text. More", ["a heading", "the text.", "More"]),
        ("over\u2028two\r\n\r\nlines", ["over", "two", "lines"]),
        ("今日は。明日は！」はい", ["今日は。", "明日は！」", "はい"]),  # noqa: RUF001
        ("  spaced   out  .  so", ["spaced   out  .", "so"]),
        ("...", ["..."]),
        ("", []),
        (" \n ", []),
    ],
)
def test_a_sentence_ends_at_stops_before_white_space_at_line_ends_and_at_stops_of_unspaced_scripts(
    text: str, sentences: list[str]
) -> None:
    assert segments("sentence", text) == sentences


def test_a_word_is_a_run_without_white_space_and_ends_at_a_stop_of_an_unspaced_script() -> None:
    assert segments("word", " mail  a@b.io, ok?\n") == ["mail", "a@b.io,", "ok?"]
    assert segments("word", "今日。明日") == ["今日。", "明日"]


def test_a_sentence_that_is_too_long_ends_behind_its_last_whole_word() -> None:
    text = "word " * 300
    first, second = segments("sentence", text)
    assert first == ("word " * 200).rstrip()
    assert len(first) <= MAX_SEGMENT_CHARS
    assert second == ("word " * 100).rstrip()


@pytest.mark.parametrize("grain", ["word", "sentence"])
def test_what_has_no_word_end_is_cut_at_the_cap(grain: Literal["word", "sentence"]) -> None:
    text = "x" * (2 * MAX_SEGMENT_CHARS + 1)
    assert [len(each) for each in segments(grain, text)] == [MAX_SEGMENT_CHARS, MAX_SEGMENT_CHARS, 1]
    assert [len(each) for each in segments(grain, "。" * (MAX_SEGMENT_CHARS + 2))] == [MAX_SEGMENT_CHARS, 2]


def test_the_end_of_a_segment_is_not_known_before_the_character_behind_it() -> None:
    found = Segments("sentence")
    found.feed("Hi there. It costs 3.")
    assert found.around(Span(3, 5)) == Span(0, 9)
    assert found.around(Span(9, 10)) == Span(9, 10), "white space between sentences belongs to none"
    assert found.around(Span(11, 12)) is None
    assert found.around(Span(0, 12)) is None
    assert found.floor(21) == found.floor(12) == 10
    assert found.floor(9) == 9
    found.feed("14 now")
    assert found.around(Span(20, 21)) is None
    found.end()
    assert found.around(Span(20, 21)) == Span(10, 27)


def test_what_is_forgotten_is_not_touched_any_more() -> None:
    found = Segments("word")
    text = "ab " * 2000
    found.feed(text)
    found.forget(3000)
    assert found.around(Span(1, 2)) == Span(1, 2)
    assert found.around(Span(3001, 3002)) == Span(3000, 3002)
    assert len(found._complete._starts) == 1000
