"""The scripted LLM as Anthropic's Messages API: streamed and whole it says the same, in a sequence that is legal."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.demo import anthropic, wire
from checkstream.demo.asked import Asked, read_asked
from checkstream.demo.scenario import read_scenario
from checkstream.demo.script import Failure
from checkstream.errors import RequestInvalid
from tests import messages

SAYS = """
choices:
  - reasoning: Let me see.
    content: "The tides follow the moon, ${last_user}."
    tool_calls:
      - {name: look, arguments: '{"at": 1}'}
      - {name: pay, arguments: '{"amount": 2}', id: toolu_own}
"""


def asked(**more: Any) -> Asked:
    said = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Ann"}]}], "max_tokens": 99}
    return read_asked("anthropic.messages", json.dumps({"model": "m", **said, **more}).encode())


def streamed(request: Asked, text: str = SAYS) -> bytes:
    made = read_scenario("tides", text)
    return b"".join(piece.data for piece in wire.stream(anthropic.events(request, made), made.script))


def whole(request: Asked, text: str = SAYS) -> dict[str, Any]:
    return anthropic.whole(request, read_scenario("tides", text))


def test_streamed_and_whole_say_the_same() -> None:
    message, body = messages.read(streamed(asked(stream=True))), whole(asked())
    for block in message["content"]:
        block.pop("json", None)
    assert message == body
    assert [block["type"] for block in body["content"]] == ["thinking", "text", "tool_use", "tool_use"]
    assert messages.said(body) == "The tides follow the moon, Ann."
    assert [block["input"] for block in body["content"][2:]] == [{"at": 1}, {"amount": 2}]
    assert [block["id"] for block in body["content"][2:]] == ["toolu_0", "toolu_own"]
    assert (body["stop_reason"], body["usage"]["input_tokens"]) == ("tool_use", 1)


@pytest.mark.parametrize(("finish", "reason"), [("stop", "end_turn"), ("content_filter", "refusal"), ("own", "own")])
def test_why_an_answer_ends_is_said_in_anthropic_s_words(finish: str, reason: str) -> None:
    text = f"choices: [{{content: Hm., finish_reason: {finish}}}]"
    assert whole(asked(), text)["stop_reason"] == reason
    assert messages.read(streamed(asked(stream=True), text))["stop_reason"] == reason


def test_an_answer_is_cut_off_at_the_most_tokens_and_says_so() -> None:
    body = whole(asked(max_tokens=3))
    assert (body["usage"]["output_tokens"], body["stop_reason"]) == (3, "max_tokens")
    assert [block["type"] for block in body["content"]] == ["thinking"]


def test_requests_are_read_as_the_api_has_them() -> None:
    begun = asked(
        messages=[{"role": "user", "content": "A"}, {"role": "assistant", "content": "B"}], system="Be brief."
    )
    assert (begun.continues, begun.last_user, begun.prompt_tokens, begun.streaming) == (True, "A", 4, False)
    for name, wrong in (("max_tokens", None), ("messages", []), ("messages", "x")):
        with pytest.raises(RequestInvalid):
            asked(**{name: wrong})


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (429, "rate_limit_error"), (500, "api_error")]
)
def test_errors_have_anthropic_s_form(status: int, kind: str) -> None:
    body = anthropic.failure_body(Failure(status=status), "No.")
    assert body == {"type": "error", "error": {"type": kind, "message": "No."}, "request_id": "req_scripted"}
