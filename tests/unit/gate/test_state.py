from __future__ import annotations

from collections.abc import MutableMapping

import pytest

from checkstream.errors import GateError
from checkstream.gate.state import Key, State

PROMPTS: Key[tuple[str, ...]] = Key("prompts")
SCORE: Key[float] = Key("score")


def test_a_state_grows_and_the_one_before_stays_as_it_was() -> None:
    empty = State()
    one = empty.with_(PROMPTS, ("a",))
    assert dict(empty) == {}
    assert dict(one.with_(SCORE, 0.5)) == {"prompts": ("a",), "score": 0.5}
    assert dict(one) == {"prompts": ("a",)}


def test_a_key_that_was_written_is_never_changed() -> None:
    state = State().with_(PROMPTS, ("a",))
    with pytest.raises(GateError, match="`prompts` is written already"):
        state.with_(PROMPTS, ("b",))
    assert state.of(PROMPTS) == ("a",)
    assert not isinstance(state, MutableMapping)
    with pytest.raises(TypeError):
        state["prompts"] = ()  # type: ignore[index]


def test_a_key_that_no_step_wrote_is_told() -> None:
    with pytest.raises(GateError, match="no step has written `score` yet"):
        State().of(SCORE)


def test_the_mapping_given_at_the_start_can_change_without_the_state() -> None:
    given: dict[str, object] = {"prompts": ("a",)}
    state = State(given)
    given["prompts"] = ()
    assert state["prompts"] == ("a",)
