"""What becomes of the rest of a choice when one of its channels is cut: the same, streamed and whole."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from checkstream.core.events import AnyEvent, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import Exchange

RULES = """pack: {name: p, version: 1.0.0}
policies:
  - name: tools
    id: TOOLS-1
    stage: ingress
    conditions: ["true"]
    actions: [{type: constrain_tools, allow: [read_mail], message: "[No.]"}]
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}
  - name: words
    id: WORD-1
    stage: midstream
    channels: [content]
    phrases: [zebra]
    actions: [{type: redact, scope: sentence}]
  - name: word
    id: STOP-2
    stage: midstream
    channels: [content]
    phrases: [lion]
    actions: [{type: stop, message: "[Stop.]"}]
  - name: end
    id: STOP-1
    stage: midstream
    channels: [tool_arguments]
    phrases: [everything]
    actions: [{type: stop}]
"""
CALLS = (("read_mail", '{"folder": "inbox"}'), ("delete_all", '{"what": "all"}'))


def call(index: int, name: str, arguments: str) -> dict[str, Any]:
    return {
        "index": index,
        "id": f"c{index}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def answer(streamed: bool, content: str, calls: Sequence[tuple[str, str]]) -> list[bytes]:
    tools = [call(index, *each) for index, each in enumerate(calls)]
    if not streamed:
        message = {"role": "assistant", "content": content, "tool_calls": tools}
        body = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        return [json.dumps(body).encode()]
    deltas: list[dict[str, Any]] = [{"content": content}, *({"tool_calls": [tool]} for tool in tools), {}]
    bodies = [
        {
            "id": "x",
            "object": "chat.completion.chunk",
            "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "tool_calls"}],
        }
        for delta in deltas
    ]
    return [*(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies), b"data: [DONE]\n\n"]


def run(streamed: bool, content: str, calls: Sequence[tuple[str, str]]) -> tuple[str, list[tuple[str, str]], list[str]]:
    """Return content, calls and finish reasons as the caller gets them."""
    running = Exchange(SURFACES["openai.chat"], Plan(program=compile_sources([("p.yaml", RULES)])))
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": streamed}
    running.send(RequestReceived(json.dumps(asked).encode()))
    running.send(UpstreamOpened(200, streamed))
    events: list[AnyEvent] = [*map(UpstreamBytes, answer(streamed, content, calls)), UpstreamClosed()]
    for event in events:
        if not running.out.cancelled:
            running.send(event)
    bodies = [json.loads(line[6:]) for line in running.out.joined.decode().splitlines() if line.startswith("data: {")]
    bodies += [json.loads(running.out.reply.body)] if running.out.reply is not None else []
    said, finishes, got = "", [], dict[str, list[str]]()
    for choice in (choice for body in bodies for choice in body["choices"]):
        part = choice.get("delta") or choice.get("message") or {}
        said += part.get("content") or ""
        finishes += [choice["finish_reason"]] if choice["finish_reason"] else []
        for tool in part.get("tool_calls") or ():
            told = got.setdefault(tool["id"], ["", ""])
            told[0] += tool["function"].get("name") or ""
            told[1] += tool["function"].get("arguments") or ""
    return said, [(name, arguments) for name, arguments in got.values()], finishes


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("Let me see. ", "Let me see. "),
        ("Let me se", "Let me se"),
        ("I mail joe@example.com", "I mail [EMAIL]"),
        ("One. A zebra in here", "One. [REDACTED]"),
    ],
)
def test_g01_what_had_come_before_a_refused_call_is_decided_and_sent(streamed: bool, content: str, said: str) -> None:
    assert run(streamed, content, CALLS) == (f"{said}[No.]", [CALLS[0]], ["content_filter"])


@pytest.mark.parametrize("streamed", [True, False])
def test_g01_a_stop_in_one_channel_ends_the_others_where_they_are(streamed: bool) -> None:
    calls = [CALLS[0], ("read_mail", '{"folder": "everything"}')]
    said, got, finishes = run(streamed, "I mail joe@example.com", calls)
    assert (said, finishes) == ("I mail [EMAIL][a tool call was withheld by policy: STOP-1]", ["content_filter"])
    assert got == [CALLS[0]]


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("content", ["I see a lion. So I call.", "I see a lion"])
@pytest.mark.parametrize("calls", [CALLS, CALLS[:1], [CALLS[0], ("read_mail", '{"folder": "everything"}')]])
def test_g01_what_stands_behind_a_stop_does_not_come_streamed_or_whole(
    streamed: bool, content: str, calls: Sequence[tuple[str, str]]
) -> None:
    assert run(streamed, content, calls) == ("I see a [Stop.]", [], ["content_filter"])


def test_a_choice_that_comes_in_one_event_is_decided_as_a_whole_answer_is() -> None:
    message = {"content": "I see a lion", "tool_calls": [call(0, *CALLS[0])]}
    running = Exchange(SURFACES["openai.chat"], Plan(program=compile_sources([("p.yaml", RULES)])))
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
    running.send(RequestReceived(json.dumps(asked).encode()))
    running.send(UpstreamOpened(200, streaming=True))
    body = {"id": "x", "choices": [{"index": 0, "delta": message, "finish_reason": "tool_calls"}]}
    running.send(UpstreamBytes(b"data: " + json.dumps(body).encode() + b"\n\n"))
    assert b"[Stop.]" in running.out.joined
    assert b"read_mail" not in running.out.joined
    assert b"inbox" not in running.out.joined
