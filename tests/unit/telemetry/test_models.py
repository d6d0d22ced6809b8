"""A request's model is its caller's text: metrics name no more of those than they must."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.telemetry.models import MOST, NONE, OTHER, ModelNames

NAMES = st.text(st.sampled_from("ab1-/:*\n \u00e9\u202e"), max_size=70)


def test_a_name_is_told_apart_once_an_upstream_has_answered_to_it() -> None:
    names = ModelNames()
    names.expect(["gpt-4o", "llama-*", "*"], learns=True)
    assert names.of("gpt-4o") == "gpt-4o"
    assert names.of("llama-3") == OTHER
    names.learn("llama-3")
    assert names.of("llama-3") == "llama-3"
    assert names.of("llama-*") == OTHER, "a pattern is no name"
    assert names.of("") == NONE


def test_only_configured_names_are_told_apart_where_that_is_wanted() -> None:
    names = ModelNames()
    names.expect([], learns=True)
    names.learn("a")
    names.expect(["b"], learns=True)
    assert names.of("a") == "a", "a reload forgets nothing"
    names.expect(["b"], learns=False)
    names.learn("c")
    assert [names.of(name) for name in "abc"] == [OTHER, "b", OTHER]


@pytest.mark.parametrize(
    "name", ["a b", "a\n", 'a"}', "x" * 65, "\u202egpt", "é", "-gpt", "a{b}", "a\\", "\ud800", "  "], ids=ascii
)
def test_what_is_no_name_is_never_told(name: str) -> None:
    names = ModelNames()
    names.expect([name], learns=True)
    names.learn(name)
    assert names.of(name) == OTHER


@given(st.lists(NAMES, max_size=80), st.lists(NAMES, max_size=5))
def test_g22_however_many_names_come_few_are_told(answered: list[str], listed: list[str]) -> None:
    names = ModelNames()
    names.expect(listed, learns=True)
    for name in answered:
        names.learn(name)
    told = {names.of(name) for name in (*answered, *listed)}
    assert len(told) <= MOST + len(set(listed)) + 2
    assert all(name.isascii() and len(name) <= 64 for name in told)
