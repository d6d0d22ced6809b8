from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.cel.values import Duration, EvalError, Timestamp, TypeValue, Uint
from checkstream.core.match.regex import TextRegex
from checkstream.core.policy.constants import read_constant, written_constant
from checkstream.errors import ProgramInvalid

SCALARS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.integers(0, 2**64 - 1).map(Uint),
    st.floats(),
    st.text(max_size=20),
    st.binary(max_size=20),
    st.integers(-62135596800 * 10**9, 253402300800 * 10**9 - 1).map(Timestamp),
    st.integers(-(2**63), 2**63 - 1).map(Duration),
    st.sampled_from(("int", "string", "type")).map(TypeValue),
    st.sampled_from(("a+", "^x$", r"\d{2}")).map(TextRegex),
)
KEYS = st.one_of(
    st.text(max_size=5), st.integers(-9, 9), st.integers(10, 20).map(Uint), st.booleans().map(lambda key: (key,))
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4).map(tuple) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=10,
)


def same(one: Any, other: Any) -> Any:
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return one.hex() == other.hex()
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(map(repr, one)) == list(map(repr, other)) and all(map(same, one.values(), other.values()))
    if isinstance(one, TextRegex):
        return one.source == other.source
    return one == other


@given(VALUES | st.text(max_size=10).map(EvalError))
def test_every_value_comes_back_as_it_was(value: Any) -> None:
    kind, text = written_constant(value)
    again = read_constant(kind, text)
    assert same(again, value)
    assert written_constant(again) == (kind, text)


def test_equal_numbers_of_different_types_are_told_apart() -> None:
    assert len({written_constant(value) for value in (1, Uint(1), 1.0, True, "1", b"1")}) == 6
    assert written_constant(-0.0) != written_constant(0.0)
    assert math.isnan(read_constant("double", "nan"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("int", ""), ("int", "-"), ("int", "--1"), ("int", "+1"), ("int", " 1"), ("int", "1_0"), ("int", "1e3"),
        ("int", "-0"), ("int", "00"), ("int", "٣"), ("int", "9" * 5000), ("int", str(-(2**63) - 1)),
        ("uint", "-1"), ("uint", str(2**64)), ("double", "1.0"), ("double", "NAN"), ("double", "-nan"),
        ("double", "infinity"), ("double", "0x1p999999"), ("double", "0x1.0p+0"), ("bool", "True"), ("bool", ""),
        ("null", "null"), ("bytes", "!"), ("bytes", "YQ"), ("bytes", "YR=="), ("bytes", "YQ==\n"), ("regex", "("),
        ("regex", r"(?<=a)b"), ("timestamp", str(253402300800 * 10**9)), ("timestamp", "x"), ("duration", str(2**63)),
        ("list", ""), ("list", "{}"), ("list", "[1]"), ("list", '[["int"]]'), ("list", '[ ["int","1"]]'),
        ("list", '[["int","01"]]'), ("map", '[[["list","[]"],["int","1"]]]'),
        ("map", '[[["double","0x1p0"],["int","1"]]]'),
        ("map", '[[["int","1"],["int","1"]],[["int","1"],["int","2"]]]'), ("map", "[[]]"), ("object", "x"), ("", ""),
        ("list", "[" * 100_000), ("list", '[["list","' * 2000),
    ],
)  # fmt: skip
def test_what_is_no_constant_or_spelled_otherwise_is_refused(kind: str, text: str) -> None:
    with pytest.raises(ProgramInvalid) as raised:
        read_constant(kind, text)
    assert len(str(raised.value)) < 200


def test_lists_within_lists_are_read_or_refused_to_any_depth() -> None:
    kind, text = "list", "[]"
    for _ in range(12):
        kind, text = written_constant((read_constant(kind, text),))
    assert written_constant(read_constant(kind, text)) == (kind, text)


@given(
    st.sampled_from(("int", "uint", "double", "bytes", "regex", "timestamp", "list", "map", "type")),
    st.text(max_size=12),
)
def test_any_text_is_refused_or_the_spelling_of_its_constant(kind: str, text: str) -> None:
    try:
        value = read_constant(kind, text)
    except ProgramInvalid:
        return
    assert written_constant(value) == (kind, text)
