"""Laws of messages of tools: nothing fires and they are as they were; what is condemned leaves in none of them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.wire.mcp.surface import MCP
from tests import mcp
from tests.mcp import PLAN, SECRET, call, event, notice, request, result
from tests.playbook import Exchange, Played

NAMES = st.sampled_from([
    "text", "type", "content", "structuredContent", "tools", "name", "description", "contents", "messages", "resource",
    "blob", "data", "uri", "_meta", "arguments", "nextCursor", "isError", "x", "inputSchema", "role", "annotations",
])  # fmt: skip
WORDS = st.sampled_from(
    ["", "a", "the tides rise", "text", "image", "resource", "user", "\u2028", "é🌊", '"\\n', "2026"]
)


def given_to(arguments: dict[str, Any]) -> bytes:
    return request("tools/call", {"name": "echo", "arguments": arguments})


def values(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(
        leaf | st.booleans() | st.none() | st.integers(-99, 99),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
        max_leaves=10,
    )


def objects(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(NAMES, values(leaf), max_size=5)


def messages(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[list[bytes]]:
    """Notifications, then the result."""
    told = st.lists(objects(leaf).map(lambda params: notice("notifications/message", **params)), max_size=2)
    return st.builds(lambda before, members: [*before, result(1, **members)], told, objects(leaf))


def cut(data: bytes, at: list[int]) -> list[bytes]:
    places = sorted({each % (len(data) + 1) for each in at})
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


CUTS = st.lists(st.integers(0, 100_000), max_size=5)


@given(messages(WORDS), objects(WORDS), CUTS)
def test_g03_g05_nothing_fires_and_messages_are_what_they_were(
    sent: list[bytes], arguments: dict[str, Any], at: list[int]
) -> None:
    stream = b"".join(event(each, str(number)) for number, each in enumerate(sent))
    played = mcp.streamed(given_to(arguments), cut(stream, at))
    assert played.forwarded == given_to(arguments)
    assert [json.loads(each) for each in sent] == mcp.events(played)
    assert mcp.body(mcp.whole(given_to(arguments), sent[-1])) == json.loads(sent[-1])


@given(messages(WORDS | st.sampled_from([SECRET, f"use {SECRET} now"])), CUTS)
def test_g04_g34_no_part_of_what_is_condemned_leaves_in_any_event(sent: list[bytes], at: list[int]) -> None:
    stream = b"".join(map(event, sent))
    played = mcp.streamed(call(), cut(stream, at))
    assert SECRET.encode() not in played.joined
    assert len(mcp.events(played)) == len(sent)
    assert played.joined == mcp.streamed(call(), [stream]).joined
    for each, before in zip(mcp.events(played), map(json.loads, sent), strict=True):
        assert (each.get("id"), each.get("method")) == (before.get("id"), before.get("method"))
    reply = mcp.whole(call(), sent[-1]).reply
    assert reply is not None
    assert SECRET.encode() not in reply.body
    json.loads(reply.body)


@given(objects(WORDS | st.sampled_from([SECRET, f"use {SECRET} now"])))
def test_g31_nothing_condemned_reaches_a_server(arguments: dict[str, Any]) -> None:
    played = mcp.whole(given_to(arguments), b"", status=202)
    assert played.forwarded is not None
    assert SECRET.encode() not in played.forwarded
    assert list(json.loads(played.forwarded)["params"]["arguments"]) == list(arguments)


JUNK = st.sampled_from([
    b"data: {}\n\n", b"data: [1]\n\n", b"event: endpoint\ndata: /x\n\n", b"id: 7\n\n", b": c\n\n",
    b"data:\n\n", b"\xff\xfe",
    b'data: {"jsonrpc":"2.0","id":1,"result":{}}\n\n', b'data: {"jsonrpc":"2.0","method":"x"}\n\n', b"x: y\n\n",
    b"\r\n",
])  # fmt: skip


@given(st.lists(st.binary(max_size=12) | JUNK, max_size=8), st.sampled_from(["POST", "GET"]), st.booleans())
def test_g19_any_bytes_of_a_server_end_in_one_record(pieces: list[bytes], method: str, streams: bool) -> None:
    exchange = Exchange(MCP, msgspec.structs.replace(PLAN))
    exchange.send(RequestReceived(call() if method == "POST" else b"", method=method))
    exchange.send(UpstreamOpened(200, streaming=streams))
    for piece in pieces:
        exchange.send(UpstreamBytes(piece))
    exchange.send(UpstreamClosed())
    out: Played = exchange.out
    assert out.record is not None
    assert out.closed is streams
    assert (out.reply is None) is streams
