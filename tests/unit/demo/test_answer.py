from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.demo import answer
from checkstream.demo.asked import read_asked
from checkstream.demo.scenario import Scenario, read_scenario
from checkstream.demo.script import Failure, Split
from tests.chance import examples

RICH = """
choices:
  - reasoning_content: [Let, " me", " see"]
    content: [Hello, " wörld"]
    refusal: ["No"]
    tool_calls: [{name: f, arguments: ['{"a"', ': 1}']}, {name: g, arguments: ""}]
  - content: "${last_user} by ${model}"
extra: {event: {x_event: 1}, choice: {x_choice: 2}, delta: {x_delta: 3}}
"""


def _chat(scenario: Scenario, **fields: Any) -> Any:
    body = {"model": "m", "messages": [{"role": "user", "content": "hi there"}], **fields}
    return read_asked("chat", json.dumps(body).encode()), scenario


def _legacy(scenario: Scenario, **fields: Any) -> Any:
    return read_asked("completions", json.dumps({"model": "m", "prompt": "hi there", **fields}).encode()), scenario


def _streamed(asked: Any, scenario: Scenario) -> list[dict[str, Any]]:
    return [event.payload for event in answer.events(asked, scenario)]


def _joined(events: list[dict[str, Any]], index: int) -> dict[str, Any]:
    """Put a streamed choice together as an SDK does."""
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for event in events:
        for choice in event["choices"]:
            if choice["index"] != index:
                continue
            for key, value in choice["delta"].items():
                if key == "tool_calls":
                    for call in value:
                        known = calls.setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                        known["id"] += call.get("id", "")
                        known["name"] += call["function"].get("name", "")
                        known["arguments"] += call["function"]["arguments"]
                elif isinstance(value, str) and key != "role":
                    message[key] = message.get(key, "") + value
            message["finish"] = choice["finish_reason"] or message.get("finish")
    return message | {"calls": list(calls.values())}


def test_stream_and_whole_say_the_same() -> None:
    scenario = read_scenario("rich", RICH)
    events = _streamed(*_chat(scenario, stream=True, n=2))
    body = answer.whole(*_chat(scenario, n=2))
    for index in (0, 1):
        joined, choice = _joined(events, index), body["choices"][index]
        message = choice["message"]
        for kind in ("content", "refusal", "reasoning_content"):
            assert joined.get(kind) == message.get(kind)
        calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", [])]
        assert joined["calls"] == calls
        assert joined["finish"] == choice["finish_reason"]
    assert body["choices"][1]["message"]["content"] == "hi there by m"


def test_a_stream_begins_with_the_role_and_ends_with_the_finish_reason_of_each_choice() -> None:
    events = _streamed(*_chat(read_scenario("rich", RICH), stream=True, n=2))
    for index in (0, 1):
        mine = [choice for event in events for choice in event["choices"] if choice["index"] == index]
        assert mine[0]["delta"]["role"] == "assistant"
        assert [choice["finish_reason"] is not None for choice in mine] == [False] * (len(mine) - 1) + [True]
    order = [choice["index"] for event in events for choice in event["choices"]]
    assert order[:6] == [0, 1, 0, 1, 0, 1]


def test_a_tool_is_named_before_its_arguments_come() -> None:
    events = _streamed(*_chat(read_scenario("rich", RICH), stream=True))
    calls = [call for e in events for c in e["choices"] for call in c["delta"].get("tool_calls", [])]
    assert [(call["index"], call["function"]) for call in calls] == [
        (0, {"name": "f", "arguments": ""}),
        (0, {"arguments": '{"a"'}),
        (0, {"arguments": ": 1}"}),
        (1, {"name": "g", "arguments": ""}),
    ]


def test_unknown_fields_stand_in_every_event() -> None:
    for event in _streamed(*_chat(read_scenario("rich", RICH), stream=True)):
        assert event["x_event"] == 1
        assert all(choice["x_choice"] == 2 and choice["delta"]["x_delta"] == 3 for choice in event["choices"])


def test_usage_comes_last_without_choices_and_only_when_asked_for() -> None:
    scenario = read_scenario("rich", RICH)
    wanted = _streamed(*_chat(scenario, stream=True, stream_options={"include_usage": True}))
    assert wanted[-1]["choices"] == []
    assert wanted[-1]["usage"]["total_tokens"] == 2 + 8
    assert wanted[-1]["usage"]["completion_tokens_details"] == {"reasoning_tokens": 3}
    assert all(event["usage"] is None for event in wanted[:-1])
    assert all("usage" not in event for event in _streamed(*_chat(scenario, stream=True)))


def test_max_tokens_cuts_each_choice_and_says_length() -> None:
    scenario = read_scenario("rich", RICH)
    for fields in ({"max_tokens": 4}, {"max_completion_tokens": 4}):
        body = answer.whole(*_chat(scenario, **fields))
        assert body["choices"][0]["message"]["content"] == "Hello"
        assert body["choices"][0]["message"]["refusal"] is None
        assert "tool_calls" not in body["choices"][0]["message"]
        assert body["choices"][0]["finish_reason"] == "length"
    cut = answer.whole(*_chat(scenario, max_tokens=7))["choices"][0]["message"]["tool_calls"]
    assert [call["function"] for call in cut] == [{"name": "f", "arguments": '{"a"'}]


def test_logprobs_carry_each_token_with_its_bytes() -> None:
    scenario = read_scenario("rich", RICH)
    body = answer.whole(*_chat(scenario, logprobs=True, top_logprobs=2))
    rows = body["choices"][0]["logprobs"]["content"]
    assert [row["token"] for row in rows] == ["Hello", " wörld"]
    assert all(bytes(row["bytes"]).decode() == row["token"] for row in rows)
    assert [len(row["top_logprobs"]) for row in rows] == [2, 2]
    assert rows[0]["top_logprobs"][0]["token"] == "Hello"
    streamed = _streamed(*_chat(scenario, stream=True, logprobs=True, top_logprobs=2))
    told = [row for e in streamed for c in e["choices"] for row in (c["logprobs"] or {}).get("content") or ()]
    assert told == rows


def test_completions_have_text_and_legacy_logprobs() -> None:
    scenario = read_scenario("rich", RICH)
    body = answer.whole(*_legacy(scenario, logprobs=1))
    choice = body["choices"][0]
    assert (body["object"], choice["text"], choice["finish_reason"]) == ("text_completion", "Hello wörld", "stop")
    assert choice["logprobs"]["text_offset"] == [0, 5]
    events = _streamed(*_legacy(scenario, stream=True, logprobs=1))
    assert "".join(event["choices"][0]["text"] for event in events) == "Hello wörld"
    assert events[1]["choices"][0]["logprobs"]["text_offset"] == [5]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_content_can_be_said_many_times_over() -> None:
    scenario = read_scenario("long", "choices: [{content: [a, b], refusal: c, repeat: 3}]")
    message = answer.whole(*_chat(scenario))["choices"][0]["message"]
    assert (message["content"], message["refusal"]) == ("ababab", "c")


def test_the_same_request_gives_the_same_answer() -> None:
    scenario = read_scenario("rich", RICH)
    assert _streamed(*_chat(scenario, stream=True)) == _streamed(*_chat(scenario, stream=True))
    assert answer.whole(*_chat(scenario))["id"] == "chatcmpl-rich"


@settings(max_examples=examples(60))
@given(st.text(), st.sampled_from(["words", "chars", "random", "whole"]), st.integers(1, 7), st.integers(0, 99))
def test_tokens_joined_are_the_text(text: str, by: Any, size: int, seed: int) -> None:
    pieces = answer.tokens(text, Split(by=by, size=size, seed=seed))
    assert "".join(pieces) == text
    assert all(pieces)


def test_words_keep_the_space_before_them() -> None:
    assert answer.tokens(" one  two\nthree ", Split()) == [" one", "  two", "\nthree", " "]
    assert answer.tokens("a b c", Split(size=2)) == ["a b", " c"]


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", None),
        (401, "invalid_request_error", "invalid_api_key"),
        (418, "invalid_request_error", None),
        (429, "requests", "rate_limit_exceeded"),
        (500, "server_error", None),
        (502, "server_error", None),
    ],
)
def test_an_error_has_the_usual_values_of_its_status(status: int, kind: str, code: str | None) -> None:
    error = answer.failure_body(Failure(status=status))["error"]
    assert (error["type"], error["code"], error["param"]) == (kind, code, None)
    assert error["message"]


def test_an_error_says_what_the_scenario_says() -> None:
    failure = Failure(status=429, message="slow down", type="t", code="c", param="p")
    assert answer.failure_body(failure)["error"] == {"message": "slow down", "type": "t", "code": "c", "param": "p"}
