"""Types."""

from __future__ import annotations

import pytest

from checkstream.core.cel.types import (
    BOOL,
    DOUBLE,
    DYN,
    FREE,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    agree,
    join,
    list_of,
    map_of,
    settled,
    signatures,
)


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (INT, INT, INT),
        (INT, STRING, None),
        (DYN, STRING, DYN),
        (FREE, INT, INT),
        (list_of(FREE), list_of(INT), list_of(INT)),
        (list_of(INT), list_of(STRING), None),
        (map_of(STRING, FREE), map_of(FREE, INT), map_of(STRING, INT)),
        (list_of(INT), map_of(INT, INT), None),
    ],
)
def test_types_agree_from_both_sides(one: Type, other: Type, both: Type | None) -> None:
    assert agree(one, other) == both
    assert agree(other, one) == both


def test_a_list_of_what_differs_is_of_dyn() -> None:
    assert join([INT, INT]) == INT
    assert join([INT, STRING, INT]) == DYN
    assert join([]) == FREE
    assert settled(list_of(FREE)) == list_of(DYN)


def test_a_form_binds_its_types_everywhere_alike() -> None:
    contained, indexed, made = signatures("A list(A) -> bool; map(A,B) A -> B; timestamp -> list(int)")
    assert contained.applied((INT, list_of(INT))) == BOOL
    assert contained.applied((INT, list_of(STRING))) is None
    assert contained.applied((DYN, list_of(STRING))) == BOOL
    assert indexed.applied((map_of(STRING, DOUBLE), STRING)) == DOUBLE
    assert indexed.applied((DYN, STRING)) == DYN
    assert made.applied((TIMESTAMP,)) == list_of(INT)
    assert made.applied((TIMESTAMP, INT)) is None


def test_a_type_is_written_as_the_language_writes_it() -> None:
    assert str(map_of(STRING, list_of(FREE))) == "map(string, list(dyn))"
