"""Answers that a rule cuts and the model continues, on every surface that can: what the upstream says, what comes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from checkstream.core.commands import ForwardRequest
from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.playbook import Exchange, Played

NAMES = ("openai.chat", "openai.completions", "openai.responses", "anthropic.messages", "ollama.chat")
RULES = """pack: {name: p, version: 1.0.0}
policies:
  - {name: turn, id: SAFE-1, stage: midstream, patterns: [{name: crime, regex: launder money}],
     actions: [{type: safe_mode, temperature: 0.2, message: "[Stopped.]"}]}
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}
  - {name: kin, id: KIN-1, stage: midstream, phrases: [blue moon], actions: [{type: redact}]}
"""
ASK = "What now?"


def request(name: str, *, stream: bool, **more: Any) -> bytes:
    asked: dict[str, Any] = {"model": "m", "stream": stream}
    if name in {"openai.completions", "ollama.generate"}:
        asked["prompt"] = ASK
    elif name == "openai.responses":
        return responses.request(ASK, stream=stream, **more)
    else:
        asked["messages"] = [{"role": "user", "content": ASK}]
    if name.startswith("openai.") and stream:
        asked["stream_options"] = {"include_usage": True}
    if name == "anthropic.messages":
        asked["max_tokens"] = 64
    return json.dumps(asked | more).encode()


def answer(name: str, pieces: Sequence[str], *, stream: bool, tokens: int = 5) -> bytes:
    """Return an answer of one text, as the surface has it."""
    said = list(pieces) if stream else ["".join(pieces)]
    match name:
        case "anthropic.messages":
            if not stream:
                return messages.whole({"type": "text", "text": said[0]})
            return messages.head() + b"".join(messages.text(0, *said)) + messages.end(tokens=tokens)
        case "openai.responses":
            return responses.one(responses.message("".join(said)), stream=stream, pieces=said)
        case "ollama.chat" | "ollama.generate":
            counts = {"done_reason": "stop", "prompt_eval_count": 3, "eval_count": tokens}
            lines = [_line(name, text, done=False) for text in said] if stream else []
            return b"".join([*lines, _line(name, "" if stream else said[0], done=True, **counts)])
    usage = {"prompt_tokens": 3, "completion_tokens": tokens, "total_tokens": tokens + 3}
    if not stream:
        return json.dumps({**_openai(name, said[0], "stop", stream=False), "usage": usage}).encode()
    bodies = [_openai(name, text, None, stream=True) for text in said]
    bodies += [_openai(name, "", "stop", stream=True), {**_openai(name, "", None, stream=True), "choices": []}]
    bodies[-1]["usage"] = usage
    return b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies) + b"data: [DONE]\n\n"


def _line(name: str, text: str, **more: Any) -> bytes:
    said = {"response": text} if name == "ollama.generate" else {"message": {"role": "assistant", "content": text}}
    return json.dumps({"model": "m", "created_at": "2025-01-01T10:00:00Z", **said, **more}).encode() + b"\n"


def _openai(name: str, text: str, finish: str | None, *, stream: bool) -> dict[str, Any]:
    said = {"role": "assistant", "content": text}
    form: dict[str, Any] = {"text": text} if name.endswith("completions") else {"delta" if stream else "message": said}
    choice = {**form, "index": 0, "finish_reason": finish}
    return {"id": "x", "object": "o", "created": 1, "model": "m", "choices": [choice]}


def told(name: str, data: bytes, *, stream: bool) -> tuple[str, list[dict[str, Any]]]:
    """Return the text that a client makes of an answer, and what is told of tokens."""
    if name == "anthropic.messages":
        message = messages.read(data) if stream else json.loads(data)
        assert len(message["content"]) <= 1, "one text is one block"
        return messages.said(message), [message["usage"]]
    if name == "openai.responses":
        found = responses.read(data) if stream else responses.parsed(data)
        return responses.said(found), [found["usage"]]
    if name.startswith("ollama"):
        bodies = [json.loads(line) for line in data.splitlines()] if stream else [json.loads(data)]
        texts = [body["response"] if name == "ollama.generate" else body["message"]["content"] for body in bodies]
        return "".join(texts), bodies[-1:]
    events = [line[6:] for line in data.splitlines() if line.startswith(b"data: {")] if stream else [data]
    bodies = [json.loads(body) for body in events]
    choices = [choice for body in bodies for choice in body["choices"]]
    texts = [each.get("text") or (each.get("delta") or each.get("message") or {}).get("content") for each in choices]
    return "".join(text or "" for text in texts), [body["usage"] for body in bodies if body.get("usage")]


def run(
    name: str, first: Sequence[bytes], second: Sequence[bytes] = (), *, stream: bool, status: int = 200, **more: Any
) -> Played:
    """Play an exchange, whose second answer comes when the upstream is asked again."""
    exchange = Exchange(SURFACES[name], Plan(program=compile_sources([("p.yaml", RULES)])))
    exchange.send(RequestReceived(request(name, stream=stream, **more)))
    for number, pieces in enumerate((first, second)):
        if exchange.out.record is None and len(forwarded(exchange.out)) > number:
            exchange.out.cancelled = False
            exchange.send(UpstreamOpened(status if number else 200, stream))
            for piece in pieces:
                if not exchange.out.cancelled and exchange.out.record is None:
                    exchange.send(UpstreamBytes(piece))
            if not exchange.out.cancelled and exchange.out.record is None:
                exchange.send(UpstreamClosed())
    assert exchange.out.record is not None
    return exchange.out


def forwarded(played: Played) -> list[dict[str, Any]]:
    """Return the requests that reached the upstream."""
    return [json.loads(command.body) for command in played.commands if isinstance(command, ForwardRequest)]


def came(played: Played) -> bytes:
    """Return all that the caller got."""
    return played.reply.body if played.reply is not None else played.joined
