"""OpenAI chat: whole bodies, and edits that keep every other byte."""

from __future__ import annotations

import json

import pytest

from checkstream.core.wire.surface import Edit
from checkstream.errors import WireError
from tests.chat_events import CHAT, FULL_DELTA, data, texts
from tests.mutated import mutations


def test_g19_a_wrong_type_anywhere_in_a_whole_body_is_a_wire_error_at_most() -> None:
    for body in mutations({"choices": [{"index": 0, "message": FULL_DELTA, "finish_reason": "stop"}], "error": None}):
        try:
            unit = CHAT.read_whole(json.dumps(body).encode())
            CHAT.write_whole(unit, Edit(dict.fromkeys(range(len(unit.deltas)), "[X]")), {0: "stop"})
            CHAT.write_whole(unit, Edit({}, frozenset(unit.choices)), {})
        except WireError:
            pass


WHOLE = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "m",
    "choices": [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "hello",
                "refusal": None,
                "reasoning_content": "think",
                "annotations": [{"type": "url_citation"}],
                "tool_calls": [{"id": "t", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
            },
            "logprobs": {"content": [{"token": "hello"}]},
            "finish_reason": "tool_calls",
        },
        {"index": 1, "message": {"content": None, "role": "assistant"}, "finish_reason": "stop"},
    ],
    "usage": {"total_tokens": 9},
}


WHOLE_RAW = json.dumps(WHOLE, indent=1).encode()


def test_g01_whole_body_is_read_into_the_same_channels() -> None:
    unit = CHAT.read_whole(WHOLE_RAW)
    assert texts(unit) == [
        ("content", 0, 0, "hello"),
        ("reasoning", 0, 0, "think"),
        ("tool_name", 0, 0, "f"),
        ("tool_arguments", 0, 0, "{}"),
        ("content", 1, 0, ""),
    ]
    assert (unit.choices, unit.finished, unit.usage) == ((0, 1), (0, 1), True)
    assert {extra.text for extra in unit.extras if not extra.word} == {"c1", "m", "t", "url_citation"}


def test_whole_body_is_edited_in_place() -> None:
    unit = CHAT.read_whole(WHOLE_RAW)
    assert CHAT.write_whole(unit, Edit({0: "hello"}), {}) == WHOLE_RAW
    out = CHAT.write_whole(unit, Edit({0: "bye", 4: "added"}), {1: "content_filter"})
    expected = json.loads(WHOLE_RAW)
    expected["choices"][0]["message"]["content"] = "bye"
    expected["choices"][0]["logprobs"] = None
    expected["choices"][1]["message"]["content"] = "added"
    expected["choices"][1]["finish_reason"] = "content_filter"
    assert json.loads(out) == expected
    assert out.startswith(WHOLE_RAW[: WHOLE_RAW.index(b'"hello"')] + b'"bye"')


def test_stopped_choice_of_a_whole_body_is_emptied_of_all_but_what_is_written() -> None:
    unit = CHAT.read_whole(WHOLE_RAW)
    out = json.loads(CHAT.write_whole(unit, Edit({0: "stopped"}, frozenset({0})), {0: "content_filter"}))
    assert out["choices"][0] == {
        "index": 0,
        "message": {"role": "assistant", "content": "stopped", "refusal": None},
        "logprobs": None,
        "finish_reason": "content_filter",
    }
    assert out["choices"][1] == WHOLE["choices"][1]  # type: ignore[index]
    out = json.loads(CHAT.write_whole(unit, Edit({}, frozenset({0})), {}))
    assert out["choices"][0]["message"] == {"role": "assistant", "content": "", "refusal": None}


def test_stopped_choice_whose_content_is_a_list_or_missing() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "image", "image": "xx"}, {"type": "text", "text": "b"}]
    body = {"choices": [{"index": 0, "message": {"content": parts}}, {"index": 1, "message": {"audio": {"x": 1}}}]}
    unit = CHAT.read_whole(json.dumps(body).encode())
    out = json.loads(CHAT.write_whole(unit, Edit({0: "s", 2: "t"}, frozenset({0, 1})), {0: "stop", 1: "stop"}))
    assert out["choices"] == [
        {"index": 0, "message": {"content": [{"type": "text", "text": "s"}]}, "finish_reason": "stop"},
        {"index": 1, "message": {"content": "t"}, "finish_reason": "stop"},
    ]


def test_error_body_of_the_upstream_is_a_failure() -> None:
    assert CHAT.read_whole(b'{"error":{"message":"no model"}}').failure == "no model"
    with pytest.raises(WireError):
        CHAT.read_whole(b'{"detail":"Not Found"}')


def test_envelope_of_a_whole_body() -> None:
    assert data(CHAT.finish_event(CHAT.read_whole(WHOLE_RAW), 0))["id"] == "c1"
