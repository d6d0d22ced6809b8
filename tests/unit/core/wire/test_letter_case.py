"""Clients that take members in any letter case (Go's, .NET's) get none that was read as something else."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from checkstream.core.wire.frame import Frame
from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from checkstream.errors import WireError

_CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
_CHAT = {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "hi", "tool_calls": [_CALL]}}]}
_WHOLE = {"id": "c", "choices": [{"index": 0, "message": {"content": [{"type": "text", "text": "hi"}]}}]}
_OLLAMA_CALL = {"function": {"name": "f", "arguments": {"a": 1}}}
_ANSWERS = [
    ("openai.chat", _CHAT, False),
    ("openai.chat", _WHOLE, True),
    ("openai.completions", {"choices": [{"index": 0, "text": "hi", "finish_reason": "stop"}]}, False),
    ("ollama.chat", {"message": {"content": "hi", "thinking": "so", "tool_calls": [_OLLAMA_CALL]}, "done": True}, True),
    ("anthropic.messages", {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "hi"}]}, True),
    ("ollama.generate", {"response": "hi", "done": True, "done_reason": "stop"}, False),
]


def _others(name: str) -> set[str]:
    return {name.upper(), name.title(), name.replace("s", "\u017f"), name.replace("k", "\u212a")} - {name}


def variants(value: object) -> Iterator[object]:
    """Yield a value as it is but for one member's name, in each of its objects: as the same in another letter case."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name != "a":
                for other in _others(name):
                    yield {**value, other: inner}
                    yield {other if each == name else each: what for each, what in value.items()}
            yield from ({**value, name: changed} for changed in variants(inner))
    elif isinstance(value, list):
        yield from ([changed, *value[1:]] for changed in variants(value[0]))


def read(surface: Surface, answer: object, *, whole: bool) -> None:
    data = json.dumps(answer).encode()
    if whole:
        surface.read_whole(data)
    else:
        surface.read_event(Frame(b"data: " + data + b"\n\n", data))


@pytest.mark.parametrize(("name", "answer", "whole"), _ANSWERS)
def test_g34_a_name_that_clients_act_on_in_another_letter_case_is_refused(
    name: str, answer: dict[str, object], whole: bool
) -> None:
    surface = SURFACES[name]
    read(surface, answer, whole=whole)
    found = list(variants(answer))
    assert len(found) > 10
    for each in found:
        with pytest.raises(WireError):
            read(surface, each, whole=whole)


def test_names_that_differ_in_letter_case_are_no_matter_where_they_are_anybodys() -> None:
    call = {"function": {"name": "f", "arguments": {"ID": 1, "Name": "x", "Content": [{"Text": 1}]}}}
    unit = SURFACES["ollama.chat"].read_whole(json.dumps({"message": {"tool_calls": [call]}}).encode())
    assert '"Name": "x"' in unit.deltas[0].text + unit.deltas[1].text
