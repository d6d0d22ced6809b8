"""Requests, events and answers of the Messages API for tests, and what a client makes of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from checkstream.core.wire.surfaces import SURFACES
from tests.guarded import plan
from tests.playbook import Played, by_words, play

MESSAGES = SURFACES["anthropic.messages"]
MAIL = "john.doe@example.com"


def request(content: Any = "hi", *, stream: bool = True, **more: Any) -> bytes:
    asked = {"model": "claude", "max_tokens": 64, "stream": stream, "messages": [{"role": "user", "content": content}]}
    return json.dumps({**asked, **more}).encode()


def event(kind: str, **members: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def head(**more: Any) -> bytes:
    message = {
        "id": "msg_1", "type": "message", "role": "assistant", "content": [], "model": "claude",
        "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 1}, **more,
    }  # fmt: skip
    return event("message_start", message=message)


def delta(index: int, kind: str, **members: Any) -> bytes:
    return event("content_block_delta", index=index, delta={"type": kind, **members})


def begun(index: int, **block: Any) -> bytes:
    return event("content_block_start", index=index, content_block=block)


def over(index: int) -> bytes:
    return event("content_block_stop", index=index)


def text(index: int, *pieces: str) -> list[bytes]:
    """Return a text block."""
    said = [delta(index, "text_delta", text=piece) for piece in pieces]
    return [begun(index, type="text", text=""), *said, over(index)]


def thought(index: int, *pieces: str, signature: str = "c2ln") -> list[bytes]:
    """Return a thinking block with a signature."""
    said = [delta(index, "thinking_delta", thinking=piece) for piece in pieces]
    signed = delta(index, "signature_delta", signature=signature)
    return [begun(index, type="thinking", thinking="", signature=""), *said, signed, over(index)]


def call(index: int, name: str, *pieces: str, form: str = "tool_use", id: str = "toolu_1") -> list[bytes]:  # noqa: A002
    """Return a block that calls a tool."""
    said = [delta(index, "input_json_delta", partial_json=piece) for piece in ("", *pieces)]
    return [begun(index, type=form, id=id, name=name, input={}), *said, over(index)]


def end(reason: str = "end_turn", tokens: int = 9) -> bytes:
    stop = event("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage={"output_tokens": tokens})
    return stop + event("message_stop")


def answer(*blocks: Sequence[bytes], reason: str = "end_turn") -> bytes:
    """Return a whole stream."""
    return b"".join([head(), *(each for block in blocks for each in block), end(reason)])


def whole(*content: dict[str, Any], reason: str = "end_turn", **more: Any) -> bytes:
    body = {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": list(content),
        "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 7, "output_tokens": 9}, **more,
    }  # fmt: skip
    return json.dumps(body).encode()


def stream(rules: str, pieces: Sequence[bytes], body: bytes | None = None, **settings: Any) -> Played:
    scorer = by_words("lexicon.toxicity", ["idiot"])
    return play(MESSAGES, plan(rules, **settings), body or request(), pieces, scorer=scorer)


def reply(rules: str, body: bytes, asked: bytes | None = None, *, status: int = 200, **settings: Any) -> Played:
    scorer = by_words("lexicon.toxicity", ["idiot"])
    asked = asked or request(stream=False)
    return play(MESSAGES, plan(rules, **settings), asked, [body], streaming=False, status=status, scorer=scorer)


def events(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield what a client reads: each event's data, which has the name of the event."""
    for raw in data.split(b"\n\n"):
        lines = [line for line in raw.split(b"\n") if line and not line.startswith(b":")]
        if lines:
            assert lines[0].startswith(b"event: "), raw
            assert lines[1].startswith(b"data: "), raw
            body = json.loads(lines[1][6:])
            assert body["type"] == lines[0][7:].decode()
            yield body


class Reader:
    """Puts a message together; a stream that is no legal sequence fails the test."""

    def __init__(self) -> None:
        self.message: dict[str, Any] = {}
        self._open: int | None = None
        self._told = self.stopped = False

    def take(self, body: dict[str, Any]) -> None:
        kind = body.pop("type")
        assert not self.stopped, "nothing comes behind the last word"
        if kind in {"ping", "error"}:
            self.message |= body
            return
        assert bool(self.message) == (kind != "message_start"), "the message begins first"
        if kind.startswith("content_block"):
            self._take_block(kind, body)
            return
        assert self._open is None, "each block is closed"
        match kind:
            case "message_start":
                self.message = {**body["message"], "content": []}
            case "message_delta":
                assert not self._told, "it is said once why the message ends"
                self._told = body["delta"]["stop_reason"] is not None
                self.message |= {**body["delta"], "usage": {**self.message["usage"], **body["usage"]}}
            case "message_stop":
                assert self._told, "it is said why the message ends"
                self.stopped = True

    def _take_block(self, kind: str, body: dict[str, Any]) -> None:
        assert not self._told, "no block behind the end"
        content = self.message["content"]
        if kind == "content_block_start":
            assert self._open is None, "one block at a time"
            assert body["index"] == len(content), "no gap"
            self._open = body["index"]
            content.append({**body["content_block"], "json": ""})
            return
        assert body["index"] == self._open
        if kind == "content_block_delta":
            _add(content[-1], body["delta"])
            return
        self._open = None
        added = content[-1].pop("json")
        if added:
            content[-1]["input"] = json.loads(added)


def read(data: bytes) -> dict[str, Any]:
    """Return the message that a stream comes to; a stream that is no legal sequence fails the test."""
    reader = Reader()
    for body in events(data):
        reader.take(body)
    assert reader.stopped or "error" in reader.message, "the stream has an end"
    return reader.message


def _add(block: dict[str, Any], said: dict[str, Any]) -> None:
    match said["type"]:
        case "text_delta":
            assert block["type"] == "text"
            block["text"] += said["text"]
        case "thinking_delta":
            assert block["type"] == "thinking"
            block["thinking"] += said["thinking"]
        case "signature_delta":
            block["signature"] = said["signature"]
        case "input_json_delta":
            block["json"] += said["partial_json"]
        case "citations_delta":
            block.setdefault("citations", []).append(said["citation"])


def said(message: dict[str, Any]) -> str:
    """Return the text of a message, as clients join it."""
    return "".join(block["text"] for block in message["content"] if block["type"] == "text")
