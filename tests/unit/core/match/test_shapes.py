"""The shape of text: case, white space, what belongs to a word."""

from __future__ import annotations

import pytest

from checkstream.core.match.engine import compile_regex
from checkstream.core.match.shapes import ASCII_LETTERS, ASCII_SHAPES, LETTERS, SHAPES, is_word, lettered, shaped

CASED = [char for char in map(chr, range(0x530)) if char.lower() != char or char.upper() != char]


@pytest.mark.parametrize("char", CASED)
def test_two_characters_have_one_shape_where_the_engine_says_that_only_their_case_differs(char: str) -> None:
    regex = compile_regex(f"(?i){char}")
    alike = [other for other in CASED if other.translate(SHAPES) == char.translate(SHAPES)]
    assert alike == [other for other in CASED if regex.search(other) is not None]


def test_what_belongs_to_a_word_does_so_in_any_case() -> None:
    everything = map(chr, [*range(0xD800), *range(0xE000, 0x20000)])
    assert [char for char in everything if is_word(char) != is_word(char.translate(SHAPES))] == []


def test_ascii_is_mapped_like_any_text() -> None:
    text = "".join(map(chr, range(128)))
    assert text.encode().translate(ASCII_SHAPES).decode() == text.translate(SHAPES)
    assert text.encode().translate(ASCII_LETTERS).decode() == text.translate(LETTERS)


def test_white_space_is_what_the_engine_takes_for_it_and_the_vertical_tab() -> None:
    space = compile_regex(r"\s")
    everything = map(chr, [*range(0xD800), *range(0xE000, 0x11000)])
    assert [char for char in everything if (char.translate(SHAPES) == " ") != bool(space.search(char))] == ["\v"]


def test_up_to_eight_white_space_characters_are_one_space() -> None:
    assert shaped("a b") == ("a b", ())
    assert shaped("A \n\u00a0B") == ("a b", [1, 4, 5])
    assert shaped("a" + " " * 8 + "b") == ("a b", [1, 9, 10])


def test_a_wider_gap_is_like_nothing_that_a_phrase_can_have() -> None:
    shape, _ = shaped("a" + " " * 9 + "b")
    assert shape == "a\ud800"
    assert not is_word(shape[1])


def test_words_are_runs_of_letters_digits_marks_and_underscores() -> None:
    assert lettered("Can't c++ a_1") == "can t c   a_1"
    assert lettered("CAN'T e\u0301\u00a0c\u2026") == "can t e\u0301 c "
