"""Blocks of a message: calls that the provider makes itself, what stands behind a call, calls that share a number."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamOpened
from checkstream.core.terms import Unit
from checkstream.core.wire.anthropic import answers
from checkstream.core.wire.anthropic.answers import reading_event
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.surfaces import SURFACES
from tests import messages
from tests.guarded import plan
from tests.playbook import Exchange, Played, play

MAIL = "  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n"
STOP = "  - {name: s, id: STOP-1, stage: [midstream], phrases: [drop all], actions: [{type: stop, message: Halt.}]}\n"
SEARCH = messages.call(0, "web_search", '{"query": "john.doe@', 'example.com"}', form="server_tool_use")
FOUND = [messages.begun(1, type="web_search_tool_result", tool_use_id="toolu_1", content=[]), messages.over(1)]


def opened(rules: str = MAIL + STOP) -> Exchange:
    exchange = Exchange(messages.MESSAGES, plan(rules))
    exchange.send(RequestReceived(messages.request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(messages.head()))
    return exchange


def test_text_behind_a_call_of_the_provider_s_leaves_while_the_message_goes_on() -> None:
    exchange = opened()
    for piece in (*SEARCH, *FOUND, *messages.text(2, "It is ", "so, and ", "not ")):
        exchange.send(UpstreamBytes(piece))
    assert b"[EMAIL]" in exchange.out.joined
    assert b"john" not in exchange.out.joined
    assert b'"text": "It is "' in exchange.out.joined


def test_a_call_of_the_caller_s_tools_waits_for_the_end_as_before() -> None:
    exchange = opened()
    for piece in messages.call(0, "pay", '{"amount": 1}'):
        exchange.send(UpstreamBytes(piece))
    assert b"pay" not in exchange.out.joined


@pytest.mark.parametrize("more", ['{"query": "drop all"}', '{"query": "x"'], ids=["stopped", "torn"])
def test_g35_a_call_of_the_provider_s_that_is_stopped_or_torn_never_leaves(more: str) -> None:
    exchange = opened()
    search = messages.call(0, "web_search", more, form="server_tool_use")
    for piece in (*search, *messages.text(1, "Well."), messages.end()):
        if not exchange.out.closed:
            exchange.send(UpstreamBytes(piece))
    message = messages.read(exchange.out.joined)
    assert [block["type"] for block in message["content"]] == ["text"] * len(message["content"])


def test_what_comes_for_a_call_that_is_over_goes_nowhere() -> None:
    exchange = opened()
    late = messages.delta(0, "input_json_delta", partial_json="drop all")
    for piece in (*SEARCH, late, *messages.text(1, "Well."), messages.end()):
        exchange.send(UpstreamBytes(piece))
    message = messages.read(exchange.out.joined)
    assert message["content"][0]["input"] == {"query": "[EMAIL]"}
    assert messages.said(message) == "Well."
    assert exchange.out.record is not None
    assert "text_after_end" in exchange.out.record.degradations


BEHIND: list[dict[str, Any]] = [
    {"type": "text", "text": "I do. "}, {"type": "tool_use", "id": "t", "name": "run", "input": {"x": "drop all"}},
    {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, {"type": "text", "text": "Done."},
]  # fmt: skip


@pytest.mark.parametrize("before", [0, 1], ids=["text first", "call first"])
def test_g01_text_behind_a_stopped_call_leaves_neither_streamed_nor_whole(before: int) -> None:
    blocks = BEHIND[before:]
    streamed = [
        messages.thought(at, each["thinking"])
        if each["type"] == "thinking"
        else messages.call(at, "run", json.dumps(each["input"]))
        if each["type"] == "tool_use"
        else messages.text(at, each["text"])
        for at, each in enumerate(blocks)
    ]
    one = messages.stream(MAIL + STOP, [messages.answer(*streamed, reason="tool_use")])
    other = messages.reply(MAIL + STOP, messages.whole(*blocks, reason="tool_use"))
    assert other.reply is not None
    told = [messages.read(one.joined), json.loads(other.reply.body)]
    assert [messages.said(each) for each in told] == ["I do. Halt." if not before else "Halt."] * 2
    assert [each["stop_reason"] for each in told] == ["refusal"] * 2
    assert all(block["type"] == "text" for each in told for block in each["content"])


@pytest.mark.parametrize("closed", [True, False], ids=["one by one", "at the end"])
def test_g10_an_event_of_a_block_that_waits_for_others_is_read_twice_at_most(
    monkeypatch: pytest.MonkeyPatch,
    closed: bool,
) -> None:
    count, reads = 120, 0

    def counting(frame: Frame, *, steps: bool) -> Generator[None, None, Unit]:
        nonlocal reads
        reads += 1
        return reading_event(frame, steps=steps)

    monkeypatch.setattr(answers, "reading_event", counting)
    begun = [messages.begun(at, type="text", text=f"{at} ") for at in range(count)]
    ends = [messages.over(at) for at in range(count)] if closed else []
    played = messages.stream(MAIL + STOP, [b"".join([messages.head(), *begun, *ends, messages.end()])])
    assert messages.said(messages.read(played.joined)) == "".join(f"{at} " for at in range(count))
    assert reads <= 2 * (len(begun) + len(ends) + 3)


def chat(*calls: list[dict[str, Any]]) -> Played:
    """Play a stream of Ollama's, with these calls in a line each."""
    line = {"model": "m", "created_at": "2025-01-01T10:00:00Z"}
    empty = {"role": "assistant", "content": ""}
    said = [{**line, "message": {**empty, "tool_calls": each}, "done": False} for each in calls]
    last = {**line, "message": empty, "done": True, "done_reason": "stop"}
    asked = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    data = "".join(json.dumps(each) + "\n" for each in (*said, last)).encode()
    return play(SURFACES["ollama.chat"], plan(MAIL + STOP), asked, [data])


def call(name: str, value: str, **more: Any) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": {"to": value}, **more}}


@pytest.mark.parametrize("more", [{}, {"index": 0}], ids=["no number", "one number"])
def test_g35_calls_of_ollama_s_that_share_a_number_are_calls_of_their_own(more: dict[str, Any]) -> None:
    played = chat([call("one", "a", **more)], [call("two", "joe@example.com", **more), call("three", "c", **more)])
    assert played.record is not None
    assert played.record.outcome == "complete"
    bodies = [json.loads(line) for line in played.joined.splitlines()]
    found = [each["function"] for body in bodies for each in body["message"].get("tool_calls", ())]
    assert [(each["name"], each["arguments"]["to"]) for each in found] == [
        ("one", "a"),
        ("two", "[EMAIL]"),
        ("three", "c"),
    ]
