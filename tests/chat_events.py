"""Events of chats as servers write them, and what is read of them."""

from __future__ import annotations

import json
from typing import Any

from checkstream.core.terms import Unit
from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.core.wire.sse import Decoder

CHAT = OpenAIChat()


def read(raw: bytes) -> Unit:
    frames = Decoder(events=CHAT.events).decode(raw)
    assert len(frames) == 1
    return CHAT.read_event(frames[0])


def chunk(choices: object, **more: object) -> bytes:
    body = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices}
    return b"data: " + json.dumps(body | more).encode() + b"\n\n"


def delta(index: int = 0, reason: str | None = None, **fields: object) -> dict[str, object]:
    return {"index": index, "delta": fields, "finish_reason": reason}


def texts(unit: Unit) -> list[tuple[str, int, int, str]]:
    return [(d.channel.kind, d.channel.choice, d.channel.index, d.text) for d in unit.deltas]


def data(raw: bytes) -> Any:
    (frame,) = Decoder().decode(raw)
    return json.loads(frame.data or b"")


FULL_DELTA = {
    "content": [{"type": "text", "text": "x"}],
    "refusal": "r",
    "reasoning": "z",
    "reasoning_details": [{"text": "x"}],
    "tool_calls": [{"index": 0, "function": {"name": "n", "arguments": "a"}}],
    "function_call": {"name": "n"},
}
