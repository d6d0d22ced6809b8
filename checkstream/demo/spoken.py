"""Reads the events of each API as chunks of OpenAI's chat: the page shows all answers in one way. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]

_RESPONSES = "response."
_DELTAS = {
    "response.output_text.delta": "content",
    "response.refusal.delta": "refusal",
    "response.reasoning_summary_text.delta": "reasoning",
    "response.reasoning_text.delta": "reasoning",
}


def choices(event: Json) -> Iterator[Json]:
    """Yield the choices of an event, each with what it adds; an event that says nothing has none."""
    kind = event.get("type")
    if isinstance(kind, str) and kind.startswith(_RESPONSES):
        yield _of_responses(kind, event)
    elif isinstance(kind, str):
        yield _of_messages(event)
    elif isinstance(event.get("message"), dict):
        yield _of_ollama(event)
    yield from event.get("choices") or ()


def failure(event: Json) -> str:
    """Return the message of an event that is an error; nothing if it is none."""
    error = event.get("error")
    if isinstance(event.get("response"), dict):
        error = event["response"].get("error")
    elif event.get("type") == "error" and error is None:
        error = event
    if isinstance(error, dict):
        return str(error.get("message", "an error without words"))
    return str(error) if error else ""


def _of_responses(kind: str, event: Json) -> Json:
    """An event of the Responses API, whose one answer is made of items."""
    delta: Json = {}
    item = event.get("item") or {}
    if kind in _DELTAS:
        delta = {_DELTAS[kind]: event["delta"]}
    elif kind == "response.output_item.added" and item.get("type") == "function_call":
        delta = {"tool_calls": [{"index": event["output_index"], "function": {"name": item["name"]}}]}
    elif kind == "response.function_call_arguments.delta":
        delta = {"tool_calls": [{"index": event["output_index"], "function": {"arguments": event["delta"]}}]}
    finish = None
    if kind.removeprefix(_RESPONSES) in {"completed", "incomplete", "failed"}:
        answer = event["response"]
        why = (answer.get("incomplete_details") or {}).get("reason")
        finish = f"{answer['status']} ({why})" if why else answer["status"]
    return {"index": 0, "delta": delta, "finish_reason": finish}


def _of_messages(event: Json) -> Json:
    """An event of Anthropic's, which has one answer, of blocks."""
    delta, block, index = event.get("delta") or {}, event.get("content_block") or {}, event.get("index", 0)
    calls: list[Json] = []
    if block.get("type") == "tool_use" or "partial_json" in delta:
        calls.append({"index": index, "function": {"name": block.get("name"), "arguments": delta.get("partial_json")}})
    said = {"reasoning": delta.get("thinking"), "content": delta.get("text"), "tool_calls": calls}
    return {"index": 0, "delta": said, "finish_reason": delta.get("stop_reason")}


def _of_ollama(event: Json) -> Json:
    """An object of Ollama's, whose calls come whole."""
    message = event["message"]
    calls = [
        {"index": at, "function": {**call["function"], "arguments": json.dumps(call["function"].get("arguments"))}}
        for at, call in enumerate(message.get("tool_calls") or ())
    ]
    delta = {"reasoning": message.get("thinking"), "content": message.get("content"), "tool_calls": calls}
    return {"index": 0, "delta": delta, "finish_reason": event.get("done_reason") if event.get("done") else None}
