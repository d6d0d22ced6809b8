"""Chunks of documents."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.terms import Span
from checkstream.evidence.chunking import MAX_TOKEN_CHARS, Cutting, chunks, words
from checkstream.evidence.records import chunk_id

STORY = " ".join(f"Sentence number {number} tells of thing {number}." for number in range(200))


def texts(text: str, size: int, overlap: int) -> list[str]:
    return [chunk.text for chunk in chunks(text, "s", words, Cutting(size=size, overlap=overlap))]


def test_words_and_signs_are_tokens() -> None:
    text = "It's 4.2%, 公司 ok"
    assert [text[span.start : span.end] for span in words(text)] == [
        "It", "'", "s", "4", ".", "2", "%", ",", "公", "司", "ok",
    ]  # fmt: skip


def test_chunks_begin_and_end_where_sentences_do() -> None:
    found = texts(STORY, 100, 10)
    assert len(found) > 10
    assert all(each.startswith("Sentence number") and each.endswith(".") for each in found)


def test_without_sentence_edges_it_is_the_plain_window_algorithm() -> None:
    text = " ".join(f"w{number}" for number in range(1, 13))
    assert texts(text, 5, 2) == ["w1 w2 w3 w4 w5", "w4 w5 w6 w7 w8", "w7 w8 w9 w10 w11", "w10 w11 w12"]


def test_a_section_has_chunks_of_its_own_and_a_short_one_goes_with_what_follows() -> None:
    text = f"# Guide\n\n## Refunds\n{STORY[:700]}\n\n## Delivery\n{STORY[700:1400]}\n"
    found = chunks(text, "s", words, Cutting(size=500, overlap=20))
    assert [chunk.headings for chunk in found] == [("Guide", "Refunds"), ("Guide", "Delivery")]
    assert found[0].text.startswith("# Guide")
    assert found[1].searched.startswith("Guide > Delivery\n## Delivery")


def test_short_sections_side_by_side_stand_under_what_they_share() -> None:
    text = f"# Guide\n## A\none\n## B\n{STORY[:500]}"
    assert [chunk.headings for chunk in chunks(text, "s", words, Cutting(size=500, overlap=20))] == [("Guide",)]


def test_text_that_stands_twice_is_one_chunk_and_white_space_makes_no_other() -> None:
    text = "same words\n# h\n" * 2
    assert len({chunk.id for chunk in chunks(text, "s", words, Cutting(size=4, overlap=0))}) == len(texts(text, 4, 0))
    assert chunk_id("a  b\nc", "s") == chunk_id(" a b c", "s") != chunk_id("a b c", "t")
    assert chunk_id("b", "a") != chunk_id("ab", "") != chunk_id("a\x00b", "")


@pytest.mark.parametrize(("size", "overlap"), [(10, 6), (0, 0), (5, -1)])
def test_an_overlap_of_more_than_half_is_refused(size: int, overlap: int) -> None:
    with pytest.raises(ValueError, match="overlap"):
        Cutting(size=size, overlap=overlap)


def test_an_empty_text_has_no_chunks() -> None:
    assert texts("", 10, 2) == texts(" \n ", 10, 2) == []


@given(
    st.lists(
        st.sampled_from(["word ", "End. ", "x", "\n\n", "# H\n", "是。", "1.5 ", "- ", "e.g. "]), max_size=120
    ).map("".join),
    st.integers(4, 30),
    st.data(),
)
def test_every_token_is_in_a_chunk_no_chunk_is_too_long_and_neighbours_overlap(
    text: str, size: int, data: st.DataObject
) -> None:
    overlap = data.draw(st.integers(0, size // 2))
    found = chunks(text, "s", words, Cutting(size=size, overlap=overlap))
    assert [text[chunk.start : chunk.end] for chunk in found] == [chunk.text for chunk in found]
    held = {chunk.text.split() and " ".join(chunk.text.split()) for chunk in found}
    covered: set[Span] = set()
    for chunk in found:
        inside = [Span(chunk.start + span.start, chunk.start + span.end) for span in words(chunk.text)]
        assert 0 < len(inside) <= size
        covered.update(inside)
    missing = [span for span in words(text) if span not in covered]
    # what is missing stands in a chunk of the same text elsewhere
    assert all(any(text[span.start : span.end] in each for each in held if each) for span in missing)
    if len(found) == len(set(held)) and not missing:
        for before, after in pairwise(found):
            if after.start < before.end:
                assert len(words(text[after.start : before.end])) >= overlap


@pytest.mark.parametrize(
    "text",
    ["x" * 30_000, "QUJD" * 9_000, f"a{' ' * 30_000}b", f"word {'x' * 30_000} word", "\u200b" * 30_000 + "end"],
)
def test_what_has_no_spaces_and_what_has_nothing_else_makes_no_huge_chunk(text: str) -> None:
    def letters(part: str) -> list[Span]:  # as a model's tokeniser: a word however long, and nothing of other signs
        return [Span(found.start(), found.end()) for found in re.finditer(r"[a-zA-Z]+", part)]

    for tokenise in (words, letters):
        found = chunks(text, "s", tokenise, Cutting(size=100, overlap=10))
        assert max(len(chunk.text) for chunk in found) <= 100 * MAX_TOKEN_CHARS
        assert found[0].start == 0
