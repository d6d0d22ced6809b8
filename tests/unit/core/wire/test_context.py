"""The caller's facts: read strictly, bounded, and from one place only."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.wire.context import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_STRING_CHARS,
    MAX_VALUES,
    read_context,
    with_known,
)
from checkstream.core.wire.surface import Extension
from checkstream.errors import RequestInvalid


def nested(levels: int) -> dict[str, object]:
    found: dict[str, object] = {"leaf": 1}
    for _ in range(levels - 1):
        found = {"a": found}
    return found


def test_the_context_comes_from_the_body_or_the_header() -> None:
    context: dict[str, object] = {"user": {"segment": "retail", "age": 41}, "flags": [True, None, 1.5]}
    assert read_context(None, None) == {}
    assert read_context(None, Extension()) == {}
    assert read_context(None, Extension(context=context)) == context
    assert read_context(json.dumps(context), None) == context
    assert read_context(json.dumps(context), Extension(conversation="c")) == context
    assert read_context('{"name": "Zoë"}', None) == {"name": "Zoë"}


def test_g31_a_context_in_two_places_is_refused() -> None:
    for header in ('{"a": 1}', "{}", "not json"):
        with pytest.raises(RequestInvalid, match="in one place"):
            read_context(header, Extension(context={"a": 1}))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("{} {}", "not JSON"),
        ("null", "not a JSON object"),
        ('"x"', "not a JSON object"),
        ("[{}]", "not a JSON object"),
        ('{"a": NaN}', "`NaN`"),
        ('{"a": 1e999}', "too large"),
        ('{"a": ' + "9" * 30 + "}", "too large"),
        ('{"a": 9223372036854775808}', "64 bits"),
        ('{"a": [-9223372036854775809]}', "64 bits"),
        ('{"a": 1, "a": 2}', "both `a` and `a`"),
        ('{"a": 1, "\\u0061": 2}', "both `a` and `a`"),
        ('{"user": {"Role": 1, "role": 2}}', "both `Role` and `role`"),
        ('{"a": "\\ud800"}', "lone surrogate"),
        ('{"\\udc00": 1}', "lone surrogate"),
        ('{"a": "\udcff"}', "lone surrogate"),
        ('{"a": "\n"}', "not JSON"),
        ("[" * 50_000, "too deeply"),
        ('{"a":' * 50_000, "too deeply"),
        ("{'a': 1}", "not JSON"),
        ("\ufeff{}", "not JSON"),
    ],
)
def test_g31_a_header_that_two_parsers_could_read_differently_is_refused(header: str, message: str) -> None:
    with pytest.raises(RequestInvalid) as raised:
        read_context(header, None)
    assert message in str(raised.value)
    assert "x-checkstream-context" in str(raised.value) or "the context" in str(raised.value)
    assert str(raised.value).isprintable()
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize(
    ("most", "above", "message"),
    [
        (nested(MAX_DEPTH), nested(MAX_DEPTH + 1), "levels deep"),
        ({"a": [0] * (MAX_VALUES - 1)}, {"a": [0] * MAX_VALUES}, "values"),
        ({str(i): 0 for i in range(MAX_VALUES)}, {str(i): 0 for i in range(MAX_VALUES + 1)}, "values"),
        ({"a": "x" * MAX_STRING_CHARS}, {"a": "x" * (MAX_STRING_CHARS + 1)}, "string of 4097 characters"),
        ({"x" * MAX_STRING_CHARS: 0}, {"x" * (MAX_STRING_CHARS + 1): 0}, "string of 4097 characters"),
        (
            {str(i): "x" * 4000 for i in range(4)},
            {str(i): "x" * 4000 for i in range(4)} | {"z": "x" * (MAX_BYTES - 4 * 4000)},
            "as JSON",
        ),
        ({"a": "é" * 4000}, {"a": ["é" * 4000] * 2 + ["é" * 1000]}, "as JSON"),
        ({"a": 2**63 - 1, "b": -(2**63)}, {"a": 2**63}, "64 bits"),
    ],
)
def test_g22_a_context_is_bounded_wherever_it_comes_from(
    most: dict[str, object], above: dict[str, object], message: str
) -> None:
    assert read_context(None, Extension(context=most)) == most
    assert read_context(json.dumps(most), None) == most
    for header, extension in ((None, Extension(context=above)), (json.dumps(above), None)):
        with pytest.raises(RequestInvalid, match=message):
            read_context(header, extension)


@given(
    st.dictionaries(st.sampled_from("abcd"), st.integers(0, 9)),
    st.dictionaries(st.sampled_from("cdef"), st.none() | st.integers(0, 9)),
)
def test_what_is_surely_known_is_never_what_the_caller_says(said: dict[str, object], known: dict[str, object]) -> None:
    text = json.dumps(known)
    if set(said) & set(known):
        with pytest.raises(RequestInvalid, match="is for tokens alone to say"):
            with_known(said, text)
        return
    found = with_known(said, text)
    assert found == {**said, **{name: value for name, value in known.items() if value is not None}}


@pytest.mark.parametrize("known", ['{"a": "' + "x" * 4097 + '"}', '{"a": 9223372036854775808}', "[" * 9])
def test_what_is_known_keeps_to_the_bounds_of_what_is_said(known: str) -> None:
    text = known if known.startswith("{") else '{"a": ' + known + "]" * len(known) + "}"
    with pytest.raises(RequestInvalid, match="the token"):
        with_known({}, text)


def test_nothing_known_changes_nothing() -> None:
    assert with_known({"a": 1}, "") == {"a": 1}
