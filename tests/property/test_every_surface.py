"""Any answer on any surface: calm ones are what they were, of what is condemned no letter leaves, and all is legal."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from openai.types import Completion
from openai.types.chat import ChatCompletion, ChatCompletionChunk

from tests import messages, responses
from tests.chance import examples
from tests.generated import APIS, LETTERS, PLANS, cut, events, guarded, made_up, sent, speaks_of_it, told

SURFACE = pytest.mark.parametrize("surface", APIS)
CHANCE = st.randoms(use_true_random=False)
STREAM = st.booleans()


def letters(found: list[Any]) -> set[str]:
    """Return the letters of the secret in events, also those that stand as escapes in JSON that is cut over events."""
    members: dict[str, list[str]] = {}
    _strings(found, "", members)
    text = "\n".join("".join(pieces) for pieces in members.values())
    return {letter for letter in LETTERS if letter in text or f"\\u{ord(letter):04x}" in text.lower()}


def _strings(value: Any, name: str, members: dict[str, list[str]]) -> None:
    """Put all strings under the names of the members that they stand in."""
    if isinstance(value, str):
        members.setdefault(name, []).append(value)
    elif isinstance(value, list):
        for each in value:
            _strings(each, name, members)
    elif isinstance(value, dict):
        members.setdefault("", []).extend(value)
        for key, each in value.items():
            _strings(each, key, members)


def legal(surface: str, data: bytes, *, stream: bool) -> None:
    """Hold what leaves to the surface's published form; `tests/e2e/sdks/test_parsers.py` asks every SDK itself."""
    found = list(events(surface, data, stream=stream))
    match surface:
        case "openai.responses":
            responses.read(data) if stream else responses.parsed(data)
        case "anthropic.messages":
            assert (messages.read(data) if stream else found[0])["stop_reason"]
        case "openai.chat" | "openai.completions":
            models: dict[tuple[str, bool], Any] = {
                ("openai.chat", True): ChatCompletionChunk, ("openai.chat", False): ChatCompletion,
            }  # fmt: skip
            for each in found:
                for choice in each["choices"] if (surface, stream) == ("openai.completions", True) else ():
                    choice["finish_reason"] = (
                        choice["finish_reason"] or "stop"
                    )  # streamed it is null; the type forgot it
                models.get((surface, stream), Completion).model_validate(each)
            assert not stream or data.endswith(b"data: [DONE]\n\n")
        case _:
            assert [each["done"] for each in found] == [False] * (len(found) - 1) + [True]
            assert found[-1]["done_reason"]


@SURFACE
@given(chance=CHANCE, stream=STREAM, action=st.sampled_from(sorted(PLANS)))
@settings(max_examples=examples(40))
def test_g05_where_nothing_fires_an_answer_means_what_it_meant(
    surface: str, chance: random.Random, stream: bool, action: str
) -> None:
    script = made_up(chance, secret=False)
    data = told(surface, script, stream=stream)
    out = sent(guarded(surface, action, script, cut(chance, data), stream=stream))
    direct, through = (list(events(surface, each, stream=stream)) for each in (data, out))
    if stream and surface in {"openai.chat", "openai.completions"}:  # another choice may overtake a held one
        direct, through = (sorted(found, key=_of_choice) for found in (direct, through))
    assert through == direct
    legal(surface, out, stream=stream)


def _of_choice(event: dict[str, Any]) -> int:
    return event["choices"][0]["index"] if event["choices"] else 99


@SURFACE
@given(chance=CHANCE, stream=STREAM, action=st.sampled_from(sorted(PLANS)))
@settings(max_examples=examples(40))
def test_g04_where_a_rule_fires_no_letter_of_what_it_condemns_leaves_and_the_answer_is_legal(
    surface: str, chance: random.Random, stream: bool, action: str
) -> None:
    script = made_up(chance, secret=True)
    data = told(surface, script, stream=stream)
    assert bool(letters(list(events(surface, data, stream=stream)))) == speaks_of_it(surface, script)
    out = guarded(surface, action, script, cut(chance, data), stream=stream)
    assert not letters(list(events(surface, sent(out), stream=stream)))
    legal(surface, sent(out), stream=stream)
    assert out.record is not None
    fired = {verdict.rule_id for verdict in out.record.verdicts}
    assert fired == ({"R-1"} if speaks_of_it(surface, script) else set())
