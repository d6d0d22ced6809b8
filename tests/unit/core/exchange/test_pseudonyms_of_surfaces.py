"""Values come back on every API, streamed and whole, in text and in arguments of tools, and snapshots agree (G38)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.wire.surface import Surface
from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.guarded import plan
from tests.playbook import Played, play

RULES = "  - {name: p, id: PSN-1, entities: [EMAIL], actions: [{type: pseudonymise}]}\n"
PLAN = plan(RULES)
MAIL = "Ann.Lee+x@northwind.example"
PROMPT = f"Write to {MAIL}."
SAID = "To **<email_1>**, not <EMAIL_2>."
READ = f"To **{MAIL}**, not <EMAIL_2>."
GIVEN = '{"to": "\\u003cEMAIL_1\\u003e"}'
STREAMS = pytest.mark.parametrize("stream", [True, False], ids=["stream", "whole"])
SIZES = pytest.mark.parametrize("size", [1, 4, 7, 100])


def ran(surface: Surface, asked: bytes, answer: bytes, stream: bool, size: int) -> Played:
    pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
    out = play(surface, PLAN, asked, pieces, streaming=stream)
    assert out.forwarded is not None, out.reply
    assert b"northwind" not in out.forwarded
    assert b"EMAIL_1" in out.forwarded
    return out


@STREAMS
@SIZES
def test_g38_responses(stream: bool, size: int) -> None:
    items = (responses.reasoning("Ask EMAIL 1."), responses.message(SAID), responses.call("mail", GIVEN))
    answer = responses.answer(*items, pieces=size) if stream else responses.whole(*items)
    out = ran(responses.RESPONSES, responses.request(PROMPT, stream=stream), answer, stream, 9)
    if stream:
        reader = responses.Reader()  # holds what was streamed against each snapshot
        for event in responses.events(out.joined):
            reader.take(event)
        told = reader.response
    else:
        assert out.reply is not None
        told = json.loads(out.reply.body)
    thought, said, call = told["output"]
    assert thought["summary"][0]["text"] == f"Ask {MAIL}."
    assert said["content"][0]["text"] == READ
    assert json.loads(call["arguments"]) == {"to": MAIL}


@STREAMS
@SIZES
def test_g38_messages(stream: bool, size: int) -> None:
    def cut(text: str) -> list[str]:
        return [text[at : at + size] for at in range(0, len(text), size)]

    if stream:
        answer = messages.answer(messages.text(0, *cut(SAID)), messages.call(1, "mail", *cut(GIVEN)))
    else:
        call = {"type": "tool_use", "id": "toolu_1", "name": "mail", "input": json.loads(GIVEN)}
        answer = messages.whole({"type": "text", "text": SAID}, call)
    out = ran(SURFACES["anthropic.messages"], messages.request(PROMPT, stream=stream), answer, stream, 11)
    told = json.loads(out.reply.body) if out.reply is not None else messages.read(out.joined)
    assert [block.get("text") or block["input"] for block in told["content"]] == [READ, {"to": MAIL}]


@STREAMS
@SIZES
@pytest.mark.parametrize("surface", ["ollama.chat", "ollama.generate", "openai.completions"])
def test_g38_other_surfaces(surface: str, stream: bool, size: int) -> None:
    chat = surface == "ollama.chat"
    asked = {"model": "m", "stream": stream}
    asked |= {"messages": [{"role": "user", "content": PROMPT}]} if chat else {"prompt": PROMPT}

    def body(text: str, **more: Any) -> dict[str, Any]:
        if surface == "openai.completions":
            return {"id": "x", "object": "o", "choices": [{"index": 0, "text": text, "finish_reason": None} | more]}
        said = {"message": {"role": "assistant", "content": text}} if chat else {"response": text}
        return {"model": "m", "created_at": "2025-01-01T10:00:00Z", **said, "done": False} | more

    done = {"finish_reason": "stop"} if surface == "openai.completions" else {"done": True, "done_reason": "stop"}
    parts = [body(SAID[at : at + size]) for at in range(0, len(SAID), size)] + [body("", **done)]
    if not stream:
        answer = json.dumps(body(SAID, **done)).encode()
    elif surface == "openai.completions":
        answer = b"".join(b"data: " + json.dumps(part).encode() + b"\n\n" for part in parts) + b"data: [DONE]\n\n"
    else:
        answer = b"".join(json.dumps(part).encode() + b"\n" for part in parts)
    out = ran(SURFACES[surface], json.dumps(asked).encode(), answer, stream, 13)
    data = out.reply.body if out.reply is not None else out.joined
    lines = [line.removeprefix(b"data: ") for line in data.split(b"\n")]
    told = [json.loads(line) for line in lines if line.startswith(b"{")]
    texts = [
        each["choices"][0]["text"] if "choices" in each else each["message"]["content"] if chat else each["response"]
        for each in told
        if each.keys() & {"choices", "message", "response"}
    ]
    assert "".join(texts) == READ
