"""Who is answered by a candidate: about as many as it says, always the same, and more of them as the share grows."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from checkstream.listen import Who
from checkstream.proxy.candidate import Chosen, party_of

CALLERS = [f"caller app-{number}" for number in range(4000)]
SALTS = st.text("0123456789abcdef", max_size=16)


def chosen(share: int, salt: str, parties: list[str]) -> set[str]:
    return {party for party in parties if Chosen(share=share, salt=salt).has(party)}


@given(SALTS, st.lists(st.text()), st.integers(1, 99), st.integers(1, 99))
def test_whoever_is_among_fewer_is_among_more(salt: str, parties: list[str], one: int, other: int) -> None:
    assert chosen(min(one, other), salt, parties) <= chosen(max(one, other), salt, parties)


@given(SALTS, st.sampled_from([1, 10, 50, 99]))
def test_a_share_has_about_as_many_as_it_says(salt: str, share: int) -> None:
    found, expected = len(chosen(share, salt, CALLERS)), len(CALLERS) * share / 100
    assert abs(found - expected) < 6 * math.sqrt(expected)


def test_another_rollout_begins_with_others() -> None:
    one, other = chosen(10, "00ab", CALLERS), chosen(10, "00ac", CALLERS)
    assert 10 < len(one & other) < 90  # 40 of 4000, where they have nothing to do with each other


def test_where_a_caller_stands_is_the_same_in_every_process() -> None:
    """A node that is started anew, and another node, are to choose the same."""
    found = [number for number in range(40) if Chosen(share=10, salt="6a").has(f"caller app-{number}")]
    assert found == FIRST


FIRST = [5, 35, 36]
"""Reckoned by hand: `printf '6a caller app-N' | sha256sum`, its first 16 digits modulo 10000 below 1000."""


def test_a_caller_goes_by_its_name_and_others_by_conversation_or_address() -> None:
    named, nameless = Who("app", "10.0.0.1"), Who(None, "10.0.0.1")
    assert party_of(named, None) == party_of(named, "c1") == party_of(Who("app", "10.0.0.2"), "c2")
    assert party_of(nameless, "c1") == party_of(Who(None, "10.0.0.2"), "c1") != party_of(nameless, "c2")
    assert party_of(nameless, None) == party_of(nameless, "") != party_of(Who(None, "10.0.0.2"), None)
    every = {party_of(who, "x") for who in (Who("x", "x"), Who(None, "x"))} | {party_of(Who(None, "x"), None)}
    assert len(every) == 3  # nobody is taken for somebody of another kind


def test_what_is_no_text_is_chosen_as_well() -> None:
    assert isinstance(Chosen(share=50, salt="").has("conversation \udcff\x00"), bool)
