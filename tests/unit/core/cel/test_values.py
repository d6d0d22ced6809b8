"""Values."""

from __future__ import annotations

from typing import Any

import pytest

from checkstream.core.cel.values import (
    MAX_COMPARED,
    MAX_NESTING,
    Duration,
    EvalError,
    Timestamp,
    TypeValue,
    Uint,
    Value,
    duration_value,
    equal,
    from_json,
    int_value,
    key_value,
    map_key,
    show,
    timestamp_value,
    type_name,
    uint_value,
)
from checkstream.core.match.regex import TextRegex

NAN = float("nan")


@pytest.mark.parametrize(
    ("one", "other", "answer"),
    [
        (1, Uint(1), True),
        (1, 1.0, True),
        (Uint(1), 1.0, True),
        (True, 1, False),
        (False, 0.0, False),
        (None, False, False),
        ("a", b"a", False),
        (NAN, NAN, False),
        ((NAN,), (NAN,), False),
        ((1, (2.0,)), (1.0, (Uint(2),)), True),
        ((True,), (1,), False),
        ({"a": (1,)}, {"a": (1.0,)}, True),
        ({1: 1}, {Uint(1): 1}, True),
        ({(True,): 1}, {1: 1}, False),
        ({"a": 1}, {"a": 1, "b": 2}, False),
        ((), {}, False),
        (2**63 - 1, float(2**63), True),
        (Timestamp(1), Duration(1), False),
        (TypeValue("int"), TypeValue("int"), True),
    ],
)
def test_values_are_equal_by_their_worth(one: Value, other: Value, answer: bool) -> None:
    assert equal(one, other) is answer
    assert equal(other, one) is answer


def test_too_much_is_not_compared_and_depth_is_no_matter() -> None:
    deep: Any = ()
    for _ in range(MAX_COMPARED - 10):
        deep = (deep,)
    assert equal(deep, (deep, ())) is False
    assert equal((deep,), (deep,)) is True
    assert equal((deep, deep), (deep, deep)) == EvalError("too much to compare")


def test_numbers_and_times_keep_their_ranges() -> None:
    assert (int_value(2**63 - 1), type(int_value(2**63))) == (2**63 - 1, EvalError)
    assert (uint_value(2**64 - 1), type(uint_value(-1))) == (Uint(2**64 - 1), EvalError)
    assert type(duration_value(-(2**63) - 1)) is EvalError
    assert timestamp_value(0) == Timestamp(0)
    assert type(timestamp_value(-62135596800 * 10**9 - 1)) is EvalError


@pytest.mark.parametrize("value", ["a", 1, -1, Uint(7), True, False])
def test_a_key_stands_for_its_value(value: Value) -> None:
    found = key_value(map_key(value))
    assert (type(found), found) == (type(value), value)


def test_equal_numbers_are_one_key_and_no_others_are() -> None:
    assert {map_key(1): "one"}[map_key(Uint(1))] == {map_key(1): "one"}[map_key(1.0)] == "one"
    assert map_key(True) != map_key(1)
    assert [map_key(value) for value in (1.5, NAN, float("inf"), 1e30, None, (), b"a")] == [None] * 7


def test_json_becomes_values() -> None:
    written = {"a": [1, 2.5, None, True, "x"], "b": {}, "c": 2**63, "d": -(2**63)}
    assert from_json(written) == {"a": (1, 2.5, None, True, "x"), "b": {}, "c": float(2**63), "d": -(2**63)}
    assert [type(value) for value in from_json([1, 2**63, True])] == [int, float, bool]  # type: ignore[union-attr]


def test_what_no_decoder_gives_and_what_is_too_deep_or_too_great_is_an_error() -> None:
    deep: Any = []
    for _ in range(MAX_NESTING - 1):
        deep = [deep]
    assert isinstance(from_json(deep), tuple)
    for wrong in ([deep], 10**400, {1: 2}, {"a": b"x"}, [object()], (1,)):
        assert isinstance(from_json(wrong), EvalError)


@pytest.mark.parametrize(
    ("value", "name", "shown"),
    [
        (True, "bool", "true"),
        (1, "int", "1"),
        (Uint(1), "uint", "1u"),
        (1.5, "double", "1.5"),
        ("a", "string", "'a'"),
        (b"a", "bytes", "b'a'"),
        (None, "null_type", "null"),
        (Timestamp(1), "google.protobuf.Timestamp", "timestamp(1ns)"),
        (Duration(1), "google.protobuf.Duration", "duration(1ns)"),
        (TypeValue("int"), "type", "int"),
        ((1, ("a",)), "list", "[1, ['a']]"),
        ({"a": {(True,): NAN}}, "map", "{'a': {true: double(\"nan\")}}"),
        (EvalError("x"), "error", "error(x)"),
        (TextRegex("a+"), "error", "/a+/"),
        ("a" * 500, "string", "'" + "a" * 76 + "..."),
    ],
)
def test_a_value_has_the_name_of_its_type_and_is_shown(value: Value, name: str, shown: str) -> None:
    assert (type_name(value), show(value)) == (name, shown)
