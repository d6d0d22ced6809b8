"""Of a passage that is longer than a window, the sentences are read that have most to do with the claim."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.terms import Span
from checkstream.grounding.embedded.windows import PassageReader
from checkstream.grounding.joined import joined, room_beside, shared, text_of

FILLER = "The weather was fine and nobody minded the long road home. " * 30
LONG = f"{FILLER}Ann Smith founded the mill. {FILLER}Later it burnt down. {FILLER}Her brother rebuilt the mill in 1882."


def read(text: str, claim: str, room: int) -> str:
    passage = PassageReader(text)
    return text_of(passage, joined(passage, claim, room))


def test_what_has_room_is_read_whole() -> None:
    text = "  One sentence. And another. "
    assert joined(PassageReader(text), "anything", len(text)) == [Span(0, len(text))]


def test_sentences_that_have_the_claims_words_are_joined_in_their_order_from_anywhere() -> None:
    found = read(LONG, "The mill that Ann Smith founded was rebuilt by her brother in 1882.", 200)
    assert "Ann Smith founded the mill." in found
    assert found.endswith("Her brother rebuilt the mill in 1882.")
    assert len(found) <= 200


def test_a_sentence_that_adds_a_word_goes_before_one_that_says_the_same_again() -> None:
    text = "The mill burnt. " * 20 + "Rain fell. " * 20 + "The owner wept."
    assert "The owner wept." in read(text, "The owner of the mill that burnt wept.", 60)


def test_neighbours_fill_the_room_that_is_left() -> None:
    text = FILLER + "Ann Smith was a miller. She founded it in 1850. " + FILLER
    assert "Ann Smith was a miller. She founded it in 1850." in read(text, "It was founded in 1850.", 180)


@pytest.mark.parametrize("text", ["", "x" * 5000, "漢字" * 2000, "\x00 \u200b" * 2000, "a. " * 3000, "\ud800 " * 900])
@pytest.mark.parametrize("claim", ["", "x", "漢字", "\ud800", "a " * 3000])
def test_hostile_texts_are_cut_too(text: str, claim: str) -> None:
    passage = PassageReader(text)
    room = room_beside(claim)
    found = joined(passage, claim, room)
    assert sum(span.end - span.start for span in found) <= max(room, len(text[:room]))
    assert shared(passage, claim) >= 0


@given(
    st.lists(st.sampled_from(["mill", "Ann", "1882.", "burnt.", "it", "\n\n", "the"]), max_size=400),
    st.integers(1, 300),
)
def test_stretches_are_in_order_disjoint_and_have_room(words: list[str], room: int) -> None:
    text = " ".join(words)
    found = joined(PassageReader(text), "Ann burnt the mill in 1882.", room)
    assert found
    assert all(0 <= each.start <= each.end <= len(text) for each in found)
    assert all(before.end < after.start for before, after in pairwise(found))
    assert sum(span.end - span.start for span in found) <= room
