"""What servers don't send and could: a text beside an error, behind a call of the same place, behind a call's end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.wire.surfaces import SURFACES
from tests import responses
from tests.guarded import MAIL, plan
from tests.playbook import Played, play

ADDRESS = "john.doe@example.com"
CHAT = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
GENERATE = json.dumps({"model": "m", "prompt": "hi"}).encode()


def left(played: Played) -> bytes:
    return played.joined or (played.reply.body if played.reply is not None else b"")


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    ("surface", "request_body", "says"),
    [
        ("ollama.chat", CHAT, {"message": {"role": "assistant", "content": f"mail {ADDRESS} now"}}),
        ("ollama.chat", CHAT, {"message": {"role": "assistant", "content": "", "thinking": f"mail {ADDRESS} now"}}),
        ("ollama.generate", GENERATE, {"response": f"mail {ADDRESS} now"}),
        ("ollama.generate", GENERATE, {"response": "", "thinking": f"mail {ADDRESS} now"}),
    ],
)
def test_g34_what_ollama_says_beside_an_error_is_read(
    surface: str, request_body: bytes, says: dict[str, Any], streaming: bool
) -> None:
    line = json.dumps({"model": "m", **says, "done": not streaming, "error": "x"}).encode() + b"\n"
    body = request_body if streaming else request_body[:-1] + b', "stream": false}'
    assert ADDRESS.encode() not in left(play(SURFACES[surface], plan(MAIL), body, [line], streaming=streaming))


def _streamed(*events: tuple[str, dict[str, Any]]) -> bytes:
    begun = ("response.created", {"response": responses.response(status="in_progress")})
    said = [responses.event(kind, number, **members) for number, (kind, members) in enumerate((begun, *events))]
    return left(play(responses.RESPONSES, plan(MAIL), responses.request(), said))


def test_g34_a_text_whose_place_a_call_has_had_is_not_said_again_unread() -> None:
    text = f"write to {ADDRESS} now"
    at = {"item_id": "msg_1", "output_index": 0}
    item = responses.message(text)
    out = _streamed(
        ("response.output_item.added", {"output_index": 0, "item": {**item, "content": [], "status": "in_progress"}}),
        ("response.output_text.delta", {**at, "content_index": 0, "delta": text, "logprobs": []}),
        ("response.function_call_arguments.delta", {**at, "delta": "{"}),
        ("response.output_text.done", {**at, "content_index": 0, "text": text, "logprobs": []}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": responses.response(item)}),
    )
    assert ADDRESS.encode() not in out


@pytest.mark.parametrize(("first", "more"), [('{"a":"john.doe@ex', 'ample.com"}'), ("john.doe@ex", "ample.com")])
def test_g34_what_comes_behind_the_end_of_a_providers_call_goes_nowhere(first: str, more: str) -> None:
    item = {
        "id": "c_0",
        "type": "mcp_call",
        "status": "completed",
        "name": "find",
        "server_label": "crm",
        "error": None,
        "arguments": first,
        "output": "ok",
    }
    at = {"item_id": "c_0", "output_index": 0}
    out = _streamed(
        ("response.output_item.added", {"output_index": 0, "item": {**item, "arguments": "", "status": "in_progress"}}),
        ("response.mcp_call_arguments.delta", {**at, "delta": first}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.mcp_call_arguments.delta", {**at, "delta": more}),
        ("response.completed", {"response": responses.response({**item, "arguments": first + more})}),
    )
    assert more.encode() not in out
    assert ADDRESS.encode() not in out
