"""The scripted LLM as OpenAI's Responses API: streamed and whole it says the same, in a sequence that is legal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.demo import responses, wire
from checkstream.demo.asked import Asked, read_asked
from checkstream.demo.scenario import read_scenario
from checkstream.errors import RequestInvalid
from tests.responses import parsed, read, said

SAYS = """
choices:
  - reasoning: Let me see.
    content: "The tides follow the moon, ${last_user}."
    refusal: But no more of it.
    tool_calls:
      - {name: look, arguments: '{"at": 1}'}
      - {name: pay, arguments: '{"amount": 2}', id: call_own}
"""


def asked(**more: Any) -> Asked:
    body = {"model": "m", "input": [{"role": "user", "content": [{"type": "input_text", "text": "Ann"}]}], **more}
    return read_asked("openai.responses", json.dumps(body).encode())


def streamed(request: Asked, text: str = SAYS) -> dict[str, Any]:
    made = read_scenario("tides", text)
    return read(b"".join(piece.data for piece in wire.stream(responses.events(request, made), made.script)))


def whole(request: Asked, text: str = SAYS) -> dict[str, Any]:
    return parsed(json.dumps(responses.whole(request, read_scenario("tides", text))).encode())


def test_streamed_and_whole_say_the_same() -> None:
    body = whole(asked())
    assert streamed(asked(stream=True)) == body
    assert [item["type"] for item in body["output"]] == ["reasoning", "message", "function_call", "function_call"]
    assert said(body) == "The tides follow the moon, Ann."
    assert [part["type"] for part in body["output"][1]["content"]] == ["output_text", "refusal"]
    assert [(item["name"], item["arguments"], item["call_id"]) for item in body["output"][2:]] == [
        ("look", '{"at": 1}', "call_0"),
        ("pay", '{"amount": 2}', "call_own"),
    ]
    assert (body["status"], body["usage"]["input_tokens"]) == ("completed", 1)


def test_an_answer_is_cut_off_at_the_most_tokens_and_says_so() -> None:
    for most, kind in ((5, "message"), (2, "reasoning")):
        body = whole(asked(max_output_tokens=most))
        assert streamed(asked(stream=True, max_output_tokens=most)) == body
        assert (body["status"], body["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
        assert (body["output"][-1]["type"], body["usage"]["output_tokens"]) == (kind, most)
        assert body["output"][-1].get("status") == ("incomplete" if kind == "message" else None)


@pytest.mark.parametrize(
    ("finish", "reason"), [("stop", None), ("length", "max_output_tokens"), ("content_filter", "content_filter")]
)
def test_why_an_answer_ends_is_said_in_the_api_s_words(finish: str, reason: str | None) -> None:
    body = whole(asked(), f"choices: [{{content: Hm., finish_reason: {finish}}}]")
    assert body["incomplete_details"] == ({"reason": reason} if reason else None)
    assert body["status"] == ("incomplete" if reason else "completed")


def test_requests_are_read_as_the_api_has_them() -> None:
    plain = asked(input="What is it?", instructions="Be brief.")
    assert (plain.last_user, plain.prompt_tokens, plain.streaming, plain.max_tokens) == ("What is it?", 5, False, None)
    call = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "a page"}
    assert asked(input=[{"role": "user", "content": "A"}, call, result]).last_user == "A"
    for name, wrong in (("input", None), ("input", []), ("max_output_tokens", 0)):
        with pytest.raises(RequestInvalid):
            asked(**{name: wrong})


@pytest.mark.parametrize("status", ["in_progress", "incomplete", "completed"])
def test_a_message_that_is_not_complete_is_gone_on_with(status: str) -> None:
    begun = {
        "type": "message",
        "role": "assistant",
        "status": status,
        "content": [{"type": "output_text", "text": "A"}],
    }
    found = asked(input=[{"role": "user", "content": "What?"}, begun])
    assert found.continues is (status != "completed")
    assert found.last_user == "What?"
