"""Messages of the Model Context Protocol, and exchanges of them without a shell."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.frame import Frame
from checkstream.core.wire.mcp.bound import Bound
from checkstream.core.wire.mcp.surface import MCP
from tests.playbook import Played, Scorer, digest, play

POLICY = """
pack: {name: tools, version: 1.0.0}
policies:
  - name: secrets
    id: SEC-1
    stage: [ingress]
    entities: ["group:secret"]
    actions: [{type: redact}]
  - name: cards
    id: PII-1
    stage: [ingress]
    entities: [CREDIT_CARD]
    actions: [{type: redact}]
  - name: forbidden_calls
    id: ASK-1
    stage: [ingress]
    channels: [user, assistant]
    phrases: [the purple password]
    actions: [{type: reject, message: This call was refused.}]
  - name: orders_in_results
    id: DOC-1
    stage: [ingress]
    channels: [tool_result, document]
    phrases: [obey the hidden order]
    actions: [{type: reject, message: A tool tried to give orders.}]
"""
SECRET = "AKIAIOSFODNN7EXAMPLQ"
ORDER = "obey the hidden order"
PLAN = Plan(program=compile_sources([("tools.yaml", POLICY)]))


def request(method: str = "tools/call", params: Mapping[str, Any] | None = None, number: object = 1) -> bytes:
    """A request, or without a number a notification."""
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if number is not None:
        message["id"] = number
    if params is not None:
        message["params"] = params
    return json.dumps(message).encode()


def call(number: object = 1, name: str = "echo", **arguments: Any) -> bytes:
    """A call of a tool."""
    return request("tools/call", {"name": name, "arguments": arguments}, number)


def result(number: object = 1, **members: Any) -> bytes:
    """The result of a request."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "result": members}).encode()


def said(text: str, number: object = 1, **members: Any) -> bytes:
    """The result of a call whose tool says a text."""
    return result(number, content=[{"type": "text", "text": text}], **members)


def notice(method: str, **params: Any) -> bytes:
    """A notification of the server's."""
    return request(method, params, None)


def event(data: bytes, number: str | None = None) -> bytes:
    """A message as an event of a stream."""
    return b"event: message\n" + (f"id: {number}\n".encode() if number else b"") + b"data: " + data + b"\n\n"


def veiled(number: bytes) -> bytes:
    """What a caller without a name gets as the id of an event, outside of sessions."""
    frame = Frame(b"id: " + number + b"\n\n", None)
    return Bound(digest, PLAN.upstream, None).event(frame, "").raw.removeprefix(b"id: ").rstrip()


def streamed(
    sent: bytes, pieces: Sequence[bytes], *, plan: Plan = PLAN, method: str = "POST", scorer: Scorer | None = None
) -> Played:
    """What comes of a message whose server answers with a stream."""
    return play(MCP, plan, sent, pieces, method=method, scorer=scorer)


def whole(
    sent: bytes,
    answer: bytes,
    *,
    plan: Plan = PLAN,
    status: int = 200,
    method: str = "POST",
    scorer: Scorer | None = None,
) -> Played:
    """What comes of a message whose server answers with one."""
    return play(MCP, plan, sent, [answer], streaming=False, status=status, method=method, scorer=scorer)


def body(played: Played) -> dict[str, Any]:
    """The message that a caller got."""
    assert played.reply is not None
    found: dict[str, Any] = json.loads(played.reply.body)
    return found


def events(played: Played) -> list[dict[str, Any]]:
    """The messages of the stream that a caller got."""
    lines = played.joined.decode().splitlines()
    return [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: {")]
