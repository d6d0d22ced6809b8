"""How each surface says the texts of channels: requests and answers that hold them, and what a caller reads of one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from checkstream.core.policy.capabilities import (
    CHAT,
    COMPLETIONS,
    MESSAGES,
    OLLAMA_CHAT,
    OLLAMA_GENERATE,
    RESPONSES,
)
from checkstream.core.terms import STAGE_CHANNELS, Stage
from tests import messages, responses
from tests.playbook import Played

_WITHOUT_REFUSALS = {stage: tuple(kind for kind in STAGE_CHANNELS[stage] if kind != "refusal") for stage in Stage}
CHANNELS: dict[str, Mapping[Stage, tuple[str, ...]]] = {
    CHAT: {stage: STAGE_CHANNELS[stage] for stage in Stage},
    # A completion is one text, asked for by one text.
    COMPLETIONS: {
        Stage.INGRESS: ("user", "document"),
        Stage.MIDSTREAM: ("content", "extra"),
        Stage.EGRESS: ("content", "extra"),
    },
    RESPONSES: {stage: STAGE_CHANNELS[stage] for stage in Stage},
    MESSAGES: _WITHOUT_REFUSALS,
    OLLAMA_CHAT: _WITHOUT_REFUSALS,
    # The system's words and the prompt are each a field.
    OLLAMA_GENERATE: {
        Stage.INGRESS: ("system", "user", "document"),
        Stage.MIDSTREAM: ("content", "reasoning", "extra"),
        Stage.EGRESS: ("content", "reasoning", "extra"),
    },
}
"""API -> the channels that its requests and its answers have; `policies/LANGUAGE.md` publishes them."""
OLLAMA = frozenset({OLLAMA_CHAT, OLLAMA_GENERATE})


def request(surface: str, streamed: bool, texts: dict[str, str]) -> bytes:
    extension = {"documents": [{"text": texts.get("document", "plain"), "title": "The Book"}]}
    body: dict[str, Any] = {"model": "m", "stream": streamed, "temperature": 0.9, "checkstream": extension}
    if surface == COMPLETIONS:
        return json.dumps(body | {"prompt": texts.get("user", "Hi")}).encode()
    if surface == MESSAGES:
        return json.dumps(body | message_request(texts)).encode()
    if surface == RESPONSES:
        return json.dumps(body | response_request(texts)).encode()
    if surface in OLLAMA:
        body["options"] = {"temperature": body.pop("temperature")}
    if surface == OLLAMA_GENERATE:
        return json.dumps(
            body | {"system": texts.get("system", "Be brief."), "prompt": texts.get("user", "Hi")}
        ).encode()
    call = {"id": "c", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}
    body["messages"] = [
        {"role": "system", "content": texts.get("system", "Be brief.")},
        {"role": "user", "content": texts.get("user", "Hi")},
        {"role": "assistant", "content": texts.get("assistant", "Yes?"), "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": texts.get("tool_result", "4")},
    ]
    body["tools"] = [{"type": "function", "function": {"name": name}} for name in ("look_up", "delete_all")]
    return json.dumps(body).encode()


def response_request(texts: dict[str, str]) -> dict[str, Any]:
    tools = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in ("look_up", "delete_all")]
    said = [
        {"role": "user", "content": texts.get("user", "Hi")},
        {"role": "assistant", "content": texts.get("assistant", "Yes?")},
        {"type": "function_call", "call_id": "c", "name": "look_up", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": texts.get("tool_result", "4")},
    ]
    return {"instructions": texts.get("system", "Be brief."), "input": said, "tools": tools}


def message_request(texts: dict[str, str]) -> dict[str, Any]:
    call = {"type": "tool_use", "id": "c", "name": "look_up", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": texts.get("tool_result", "4")}
    return {
        "max_tokens": 9,
        "system": texts.get("system", "Be brief."),
        "messages": [
            {"role": "user", "content": texts.get("user", "Hi")},
            {"role": "assistant", "content": [{"type": "text", "text": texts.get("assistant", "Yes?")}, call]},
            {"role": "user", "content": [result]},
        ],
        "tools": [{"name": name, "input_schema": {"type": "object"}} for name in ("look_up", "delete_all")],
    }


def message_answer(streamed: bool, texts: dict[str, str]) -> list[bytes]:
    said = "Hello there. " + texts.get("content", "")
    name, given = texts.get("tool_name", "look_up"), texts.get("tool_arguments", "{}")
    thinks, calls = int("reasoning" in texts), "tool_name" in texts or "tool_arguments" in texts
    note = {"note": texts["extra"]} if "extra" in texts else {}
    if streamed:
        events = [messages.head()]
        events += messages.thought(0, texts["reasoning"]) if thinks else []
        events += [*messages.text(thinks, said), messages.event("ping", **note)]
        events += messages.call(1 + thinks, name, given) if calls else []
        return [*events, messages.end()]
    blocks: list[dict[str, Any]] = [{"type": "text", "text": said}]
    if thinks:
        blocks.insert(0, {"type": "thinking", "thinking": texts["reasoning"], "signature": "s"})
    if calls:
        blocks.append({"type": "tool_use", "id": "c", "name": name, "input": json.loads(given)})
    return [messages.whole(*blocks, **note)]


def response_answer(streamed: bool, texts: dict[str, str]) -> list[bytes]:
    items = [responses.reasoning(texts["reasoning"])] if "reasoning" in texts else []
    said = responses.message("Hello there. " + texts.get("content", ""))
    if "extra" in texts:
        page = {"type": "url_citation", "url": "https://a.example", "start_index": 0, "end_index": 5}
        said["content"][0]["annotations"] = [page | {"title": texts["extra"]}]
    items.append(said)
    if "refusal" in texts:
        items.append(responses.message(texts["refusal"], id="msg_2", form="refusal"))
    if "tool_name" in texts or "tool_arguments" in texts:
        items.append(responses.call(texts.get("tool_name", "look_up"), texts.get("tool_arguments", "{}")))
    return [responses.answer(*items, pieces=1) if streamed else responses.whole(*items)]


def response_received(played: Played) -> dict[str, str]:
    found = json.loads(played.reply.body) if played.reply is not None else responses.read(played.joined)
    got = dict.fromkeys(STAGE_CHANNELS[Stage.MIDSTREAM], "")
    got["finish"] = (found.get("incomplete_details") or {}).get("reason", "stop")
    for item in found["output"]:
        for part in (*(item.get("content") or ()), *(item.get("summary") or ())):
            kind = {"output_text": "content", "refusal": "refusal"}.get(part["type"], "reasoning")
            got[kind] += part.get("text") or part.get("refusal") or ""
            got["extra"] += "".join(page["title"] for page in part.get("annotations") or ())
        got["tool_name"] += item.get("name", "")
        got["tool_arguments"] += item.get("arguments", "")
    return got


def ollama_answer(surface: str, streamed: bool, texts: dict[str, str]) -> list[bytes]:
    said: dict[str, Any] = {"content": "Hello there. " + texts.get("content", "")}
    said |= {"thinking": texts["reasoning"]} if "reasoning" in texts else {}
    if "tool_name" in texts or "tool_arguments" in texts:
        given = json.loads(texts.get("tool_arguments", "{}"))
        said["tool_calls"] = [{"function": {"name": texts.get("tool_name", "look_up"), "arguments": given}}]
    line: dict[str, Any] = {"model": "m", "created_at": "2025-01-01T10:00:00Z"}
    line |= {"note": texts["extra"]} if "extra" in texts else {}
    if surface == OLLAMA_CHAT:
        line["message"] = {"role": "assistant", **said}
    else:
        line |= {"response": said.pop("content"), **said}
    end = {"done": True, "done_reason": "stop"}
    if not streamed:
        return [json.dumps(line | end).encode()]
    last = {"model": "m", "created_at": line["created_at"], **({"response": ""} if "response" in line else {})}
    last |= {"message": {"role": "assistant", "content": ""}} if "message" in line else {}
    return [json.dumps(each).encode() + b"\n" for each in (line | {"done": False}, last | end)]


def ollama_received(played: Played) -> dict[str, str]:
    data = played.reply.body if played.reply is not None else played.joined
    got = dict.fromkeys(STAGE_CHANNELS[Stage.MIDSTREAM], "")
    for body in map(json.loads, data.splitlines()):
        said = body.get("message") or {**body, "content": body.get("response")}
        got["finish"] = body.get("done_reason") or got.get("finish", "")
        got["extra"] += body.get("note") or ""
        got["content"] += said.get("content") or ""
        got["reasoning"] += said.get("thinking") or ""
        for call in said.get("tool_calls") or ():
            got["tool_name"] += call["function"].get("name") or ""
            got["tool_arguments"] += json.dumps(call["function"]["arguments"])
    return got


def message_received(played: Played) -> dict[str, str]:
    message = json.loads(played.reply.body) if played.reply is not None else messages.read(played.joined)
    got = dict.fromkeys(STAGE_CHANNELS[Stage.MIDSTREAM], "")
    got["finish"] = {"refusal": "content_filter"}.get(message["stop_reason"], "stop")
    got["extra"] = message.get("note", "")
    for block in message["content"]:
        got["content"] += block.get("text", "")
        got["reasoning"] += block.get("thinking", "")
        got["tool_name"] += block.get("name", "")
        got["tool_arguments"] += json.dumps(block["input"]) if "input" in block else ""
    return got


def answer(surface: str, streamed: bool, texts: dict[str, str]) -> list[bytes]:
    if surface == MESSAGES:
        return message_answer(streamed, texts)
    if surface == RESPONSES:
        return response_answer(streamed, texts)
    if surface in OLLAMA:
        return ollama_answer(surface, streamed, texts)
    said = "Hello there. " + texts.get("content", "")
    if surface == COMPLETIONS:
        choice: dict[str, Any] = {"index": 0, "text": said, "finish_reason": None if streamed else "stop"}
        ends = {"index": 0, "text": "", "finish_reason": "stop"}
    else:
        message: dict[str, Any] = {"role": "assistant", "content": said}
        message |= {"refusal": texts["refusal"]} if "refusal" in texts else {}
        message |= {"reasoning_content": texts["reasoning"]} if "reasoning" in texts else {}
        if "tool_name" in texts or "tool_arguments" in texts:
            function = {"name": texts.get("tool_name", "look_up"), "arguments": texts.get("tool_arguments", "{}")}
            message["tool_calls"] = [{"index": 0, "id": "c", "type": "function", "function": function}]
        key = "delta" if streamed else "message"
        choice = {"index": 0, key: message, "finish_reason": None if streamed else "stop"}
        ends = {"index": 0, "delta": {}, "finish_reason": "stop"}
    if "extra" in texts:
        choice["note"] = texts["extra"]
    if not streamed:
        return [json.dumps({"id": "x", "object": "o", "choices": [choice]}).encode()]
    bodies = [{"id": "x", "object": "o", "choices": [each]} for each in (choice, ends)]
    return [*(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies), b"data: [DONE]\n\n"]


def received(played: Played, surface: str) -> dict[str, str]:
    """Return the texts of the answer as the caller gets them, by channel, and its finish reason."""
    reading = {MESSAGES: message_received, RESPONSES: response_received, **dict.fromkeys(OLLAMA, ollama_received)}
    if surface in reading and (played.reply is None or played.reply.status == 200):
        return reading[surface](played)
    bodies = [json.loads(line[6:]) for line in played.joined.decode().splitlines() if line.startswith("data: {")]
    bodies += [json.loads(played.reply.body)] if played.reply is not None else []
    got = dict.fromkeys(STAGE_CHANNELS[Stage.MIDSTREAM], "")
    for choice in (choice for body in bodies for choice in body.get("choices", ())):
        got["finish"] = choice.get("finish_reason") or got.get("finish", "")
        got["extra"] += choice.get("note") or ""
        if surface == COMPLETIONS:
            got["content"] += choice.get("text") or ""
            continue
        said = choice.get("delta") or choice.get("message") or {}
        for name, key in (("content", "content"), ("refusal", "refusal"), ("reasoning", "reasoning_content")):
            got[name] += said.get(key) or ""
        for call in said.get("tool_calls") or ():
            got["tool_name"] += call["function"].get("name") or ""
            got["tool_arguments"] += call["function"].get("arguments") or ""
    return got
