"""What is remembered of texts: by caller, within bounds, the least recently asked for given up first."""

import numpy as np
import pytest

from checkstream.core.events import EntityFound
from checkstream.scoring.known import Known, key_of, key_of_part
from checkstream.scoring.session import Reading, Window, Word


def reading(entities: int = 0) -> Reading:
    return Reading(np.zeros(1, np.float32), tuple(EntityFound("PERSON", at, at + 1, 0.5) for at in range(entities)))


def test_what_was_not_asked_for_longest_is_given_up_first() -> None:
    known = Known(most=3)
    kept = {name: reading() for name in "abc"}
    for name in "abc":
        known.keep(key_of("", name, 0), kept[name])
    assert known.find(key_of("", "a", 0)) is kept["a"]
    known.keep(key_of("", "d", 0), reading())
    assert known.find(key_of("", "b", 0)) is None
    assert known.find(key_of("", "a", 0)) is kept["a"]


def test_entities_count_and_a_text_with_very_many_is_not_kept() -> None:
    known = Known(most=10)
    known.keep(b"many", reading(33))
    assert known.find(b"many") is None
    for name in (b"1", b"2", b"3"):
        known.keep(name, reading(4))
        known.keep(name, reading(4))  # known already: neither counted nor kept twice
    assert [known.find(name) is not None for name in (b"1", b"2", b"3")] == [False, True, True]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("a", "text", 0), ("b", "text", 0)),
        (("a", "text", 0), ("a", "text", 1)),
        (("a", "text", 0), ("a", "Text", 0)),
        (("a", "1:text", 0), ("a1", ":text", 0)),
        (("", "0:0:x", 0), ("0:", "x", 0)),
        (("a", "1", 1), ("a1", "", 11)),
        (("a", "\ud800", 0), ("a", "\ufffd", 0)),
    ],
)
def test_no_two_questions_are_taken_for_one(one: tuple[str, str, int], other: tuple[str, str, int]) -> None:
    assert key_of(*one) != key_of(*other)
    assert key_of(*one) == key_of(*one)


def part(ids: list[int], context: int = 0) -> Window:
    return Window("", len(ids), ids, context=context)


def test_a_part_is_known_by_what_a_model_reads_of_it() -> None:
    keys = [
        key_of_part("a", part([1, 2])),
        key_of_part("b", part([1, 2])),
        key_of_part("a", part([1, 2], context=1)),
        key_of_part("a", part([1, 2, 0])),
        key_of_part("a1", part([1, 2])),
        key_of_part("\ud800", part([1, 2])),
        key_of("a", "text", 0),
    ]
    assert None not in keys
    assert len(set(keys)) == len(keys)
    assert key_of_part("a", part([1, 2])) == keys[0]


def test_a_part_whose_reading_tells_places_is_not_known_by_its_tokens() -> None:
    assert key_of_part("a", Window("", 2, [1, 2], words=[Word(0, 3, 5)])) is None
    assert key_of_part("a", Window("text", 2)) is None
