"""What stands on the wire between callers and model: OpenAI's chat API, as a model server writes it."""

from __future__ import annotations

import json

import msgspec

_ID = "chatcmpl-Bq7w0ZyT4kMZ3v0yCkT1oHnXhY2dS"
_CREATED = 1751500000
DONE = b"data: [DONE]\n\n"
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


class Message(msgspec.Struct):
    """Of a message, what is looked at."""

    content: str = ""


class Asked(msgspec.Struct):
    """Of a request."""

    messages: tuple[Message, ...]
    stream: bool = False


class Function(msgspec.Struct):
    """Of a call's function."""

    arguments: str = ""


class Call(msgspec.Struct):
    """Of a tool call."""

    function: Function = msgspec.field(default_factory=Function)


class Delta(msgspec.Struct):
    """Of what an event adds, or of a whole message."""

    content: str | None = None
    tool_calls: tuple[Call, ...] | None = None


class Choice(msgspec.Struct):
    """Of a choice."""

    delta: Delta = msgspec.field(default_factory=Delta)
    message: Delta = msgspec.field(default_factory=Delta)
    finish_reason: str | None = None


class Said(msgspec.Struct):
    """Of an event or a whole answer."""

    choices: tuple[Choice, ...] = ()
    error: msgspec.Raw = msgspec.field(default_factory=msgspec.Raw)


def chunk(data: bytes) -> bytes:
    """Return one HTTP chunk."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def request(model: str, prompt: str, *, stream: bool) -> bytes:
    """Return the body of a request."""
    messages = [{"role": "system", "content": "You are a helpful assistant."}, {"role": "user", "content": prompt}]
    return _json({"model": model, "stream": stream, "messages": messages})


def event(delta: dict[str, object], finish: str | None = None) -> bytes:
    """Return one event: about 245 bytes for a word."""
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return b"data: %s\n\n" % _json({**_frame("chat.completion.chunk"), "choices": [choice]})


def whole(text: str) -> bytes:
    """Return a whole answer with its head."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "logprobs": None, "finish_reason": "stop"}
    usage = {"prompt_tokens": 20, "completion_tokens": 300, "total_tokens": 320}
    body = _json({**_frame("chat.completion"), "choices": [choice], "usage": usage})
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)


def text_event(text: str) -> bytes:
    """Return an event with text."""
    return event({"content": text})


def call_event(arguments: str) -> bytes:
    """Return an event with a piece of a call's arguments."""
    return event({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})


def _frame(kind: str) -> dict[str, object]:
    return {
        "id": _ID,
        "object": kind,
        "created": _CREATED,
        "model": "gpt-4.1-mini",
        "system_fingerprint": "fp_6f2eabb9a5",
    }


def _json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


FIRST = event({"role": "assistant", "content": ""})
FIRST_OF_CALL = event(
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"index": 0, "id": "call_7w0ZyT4kMZ3v", "type": "function", "function": {"name": "write", "arguments": ""}}
        ],
    }
)
