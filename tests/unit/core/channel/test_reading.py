from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.channel.reading import Reading, Risks
from checkstream.core.match.language import UNDETERMINED, language_of
from checkstream.core.match.tokens import TokenGrid

TEXTS = st.text("ab 漢字カ,.\n\t1_éЖ", max_size=120) | st.lists(
    st.sampled_from(("das ist nicht ", "the cat and the dog ", "これは日本語", "x" * 70, " ", "\n\n")), max_size=12
).map("".join)


def reading(pieces: list[str]) -> Reading:
    made = Reading()
    for piece in pieces:
        made.feed(piece)
    return made


def test_tokens_are_counted_by_where_they_begin() -> None:
    made = reading(["one two, thr"])
    assert [made.tokens(position) for position in (0, 1, 4, 5, 8, 9, 10, 12)] == [0, 1, 1, 2, 3, 3, 4, 4]


@given(TEXTS, st.lists(st.integers(0, 600), max_size=30))
def test_what_is_known_of_a_place_does_not_depend_on_the_cut_nor_on_what_follows(text: str, points: list[int]) -> None:
    edges = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    pieces = [text[a:b] for a, b in pairwise(edges)]
    whole, growing = reading([text]), Reading()
    for begin, end in pairwise(edges):
        growing.feed(text[begin:end])
        for position in range(begin, end + 1):
            assert growing.tokens(position) == whole.tokens(position)
            assert growing.language(position) == whole.language(position)
    assert reading(pieces).tokens(len(text)) == whole.tokens(len(text))


@given(TEXTS)
def test_all_tokens_of_a_text_are_those_of_its_grid(text: str) -> None:
    grid = TokenGrid()
    tokens = [*grid.feed(text), *grid.end()]
    assert reading([text]).tokens(len(text)) == sum(1 for start, end in tokens if text[start:end].strip())


def test_the_language_is_told_from_the_beginning_and_at_a_few_lengths_only() -> None:
    german = "das ist nicht der Hund und die Katze ist auch nicht das Tier "
    made = reading([german * 20, "the and of to is that you it with " * 40])
    end = len(german) * 20 + 1000
    assert made.language(10) == UNDETERMINED
    assert made.language(40) == made.language(63) == language_of(german[:32])
    assert made.language(end) == "de"


@given(TEXTS, TEXTS, st.lists(st.integers(0, 600), max_size=5))
def test_what_is_known_of_a_place_is_the_same_after_what_lies_before_it_is_forgotten(
    before: str, text: str, points: list[int]
) -> None:
    made, whole = Reading(before), Reading(before)
    whole.feed(text)
    floors = [0, *sorted({point % (len(text) + 1) for point in points}), len(text)]
    for begin, end in pairwise(floors):
        made.feed(text[begin:end])
        made.forget(begin)
        for position in range(begin, end + 1):
            assert made.tokens(position) == whole.tokens(position)
            assert made.language(position) == whole.language(position)


@given(
    st.lists(st.tuples(st.integers(0, 9), st.floats(0, 1)), max_size=40),
    st.lists(st.integers(0, 300), max_size=5),
)
def test_the_risk_of_a_place_is_the_same_after_what_lies_before_it_is_forgotten(
    steps: list[tuple[int, float]], floors: list[int]
) -> None:
    made, whole = Risks(0.8, (0.3, 0.1)), Risks(0.8, (0.3, 0.1))
    floors, position, floor = sorted(floors, reverse=True), 0, 0
    for step, score in steps:
        position += step
        made.take(position, score)
        whole.take(position, score)
        while floors and floors[-1] <= position:
            floor = floors.pop()
            made.forget(floor)
        assert [made.at(place) for place in range(floor, position + 2)] == [
            whole.at(place) for place in range(floor, position + 2)
        ]
        assert made.latest == whole.latest
