"""The scripted LLM as Ollama: streamed and whole it says the same."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.wire.framing import LINES
from checkstream.demo import ollama, wire
from checkstream.demo.asked import Api, Asked, read_asked
from checkstream.demo.scenario import Scenario, read_scenario
from checkstream.errors import RequestInvalid

APIS = pytest.mark.parametrize("api", ["ollama.chat", "ollama.generate"])
SAYS = """
choices:
  - reasoning: Let me see.
    content: "The tides follow the moon, ${last_user}."
    tool_calls: [{name: look, arguments: '{"at": 1}'}]
"""


def asked(api: Api, **more: Any) -> Asked:
    said = {"prompt": "Ann"} if api == "ollama.generate" else {"messages": [{"role": "user", "content": "Ann"}]}
    return read_asked(api, json.dumps({"model": "m", **said, **more}).encode())


def scenario(text: str = SAYS) -> Scenario:
    return read_scenario("tides", text)


def joined(events: list[dict[str, Any]], name: str) -> str:
    said = (event.get("message") or {**event, "content": event.get("response")} for event in events)
    return "".join(each.get(name) or "" for each in said)


@APIS
def test_streamed_and_whole_say_the_same(api: Api) -> None:
    streamed = [event.payload for event in ollama.events(asked(api), scenario())]
    body = ollama.whole(asked(api, stream=False), scenario())
    for name in ("content", "thinking"):
        assert joined(streamed, name) == joined([body], name)
    assert joined(streamed, "content") == "The tides follow the moon, Ann."
    assert [event["done"] for event in streamed] == [False] * (len(streamed) - 1) + [True]
    assert streamed[-1]["eval_count"] == body["eval_count"] > 0
    calls = [{"function": {"index": 0, "name": "look", "arguments": {"at": 1}}}]
    if api == "ollama.chat":
        assert body["message"]["tool_calls"] == streamed[-2]["message"]["tool_calls"] == calls


@APIS
def test_an_answer_is_cut_off_at_the_most_tokens_and_says_so(api: Api) -> None:
    body = ollama.whole(asked(api, options={"num_predict": 3}), scenario())
    assert (body["eval_count"], body["done_reason"]) == (3, "length")
    assert "tool_calls" not in body.get("message", {})


@APIS
def test_a_stream_is_lines_of_json(api: Api) -> None:
    made = scenario()
    sent = wire.lines(ollama.events(asked(api), made), made.script)
    decoder = LINES.decoder(1 << 20, frozenset())
    frames = decoder.decode(b"".join(piece.data for piece in sent))
    assert [json.loads(frame.data or b"") for frame in frames] == [
        event.payload for event in ollama.events(asked(api), made)
    ]


@APIS
def test_streams_are_what_is_asked_for_unless_another_is_said(api: Api) -> None:
    assert [asked(api, **said).streaming for said in ({}, {"stream": True}, {"stream": False})] == [True, True, False]
    with pytest.raises(RequestInvalid):
        read_asked(api, b'{"messages": 3}')
