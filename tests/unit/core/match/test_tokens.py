"""The grid of tokens depends on the text alone, however it was cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.match.tokens import MAX_TOKEN_CHARS, TokenGrid

CHUNKS = st.lists(
    st.one_of(
        st.sampled_from([" a", " word", " 42", " x_1", " ", "", "\n\n", " don't", "...", " a b", " " + "x" * 63]),
        st.sampled_from(
            [" " + "x" * 64, "x" * 70, " \u00e9t\u00e9", "\u6f22\u5b57", " \u0e01\u0e02", "\u00a0", " \u00bd"]
        ),
        st.text(max_size=4),
    ),
    max_size=30,
)


def tokens(chunks: list[str]) -> tuple[list[tuple[int, int]], int]:
    grid = TokenGrid()
    found = [span for chunk in chunks for span in grid.feed(chunk)]
    return found + grid.end(), grid.count


@given(chunks=CHUNKS)
def test_tokens_stand_where_they_do_however_the_text_was_cut(chunks: list[str]) -> None:
    text = "".join(chunks)
    found, count = tokens(chunks)
    assert (found, count) == tokens([text])
    assert (found, count) == tokens(list(text))
    assert count == len(found)


@pytest.mark.parametrize(
    ("chunks", "words"),
    [
        (["One", " two", " three", "."], ["One", "two", "three", "."]),
        ([" two", " 3"], ["two", "3"]),
        (["a", " " + "x" * 63, " b"], ["a", "x" * 63, "b"]),
        (["a", " " + "x" * (MAX_TOKEN_CHARS + 1)], ["a", "x" * MAX_TOKEN_CHARS, "x"]),
    ],
)
def test_words_and_marks_are_tokens(chunks: list[str], words: list[str]) -> None:
    text = "".join(chunks)
    assert [text[start:end] for start, end in tokens(chunks)[0]] == words
