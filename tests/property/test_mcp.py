"""Laws of messages of tools: nothing fires and they are as they were; what is condemned leaves in none of them."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from random import Random
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.events import RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
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
TOXIC = "lexicon.toxicity"
TOXICITY = """
pack: {name: m, version: 1.0.0}
policies:
  - name: m
    id: M-1
    stage: ingress
    channels: [tool_result]
    classifiers: [{name: toxicity, threshold: 0.5}]
    actions: [{type: reject}]
"""
WATCHING = Plan(program=compile_sources([("m.yaml", TOXICITY)], (ClassifierLabel(TOXIC),)))


def step(number: int, *, is_bad: bool) -> bytes:
    """What a server tells on its way, with an id to come back to."""
    told = notice("notifications/progress", progressToken=1, progress=number, message=f"step {number}. {is_bad}")
    return event(told, f"e-{number}")


def steps_in(data: bytes) -> list[int]:
    """The numbers of the steps that were told."""
    lines = (line for line in data.decode().splitlines() if line.startswith("data: {"))
    told = [json.loads(line[6:]) for line in lines]
    return [each["params"]["progress"] for each in told if each.get("method") == "notifications/progress"]


@given(st.lists(st.booleans(), max_size=5), st.booleans(), CUTS, st.randoms())
def test_g02_g16_of_a_servers_stream_leaves_what_was_decided_in_its_order_and_all_behind_what_was_condemned(
    bad: list[bool], is_bad: bool, at: list[int], chance: Random
) -> None:
    last = event(result(1, content=[{"type": "text", "text": f"step 99. {is_bad}"}]), "e-99")
    stream = b"".join([*(step(number, is_bad=each) for number, each in enumerate(bad)), last, b"id: e-100\n\n"])
    exchange = Exchange(MCP, WATCHING)
    exchange.send(RequestReceived(call()))
    exchange.send(UpstreamOpened(200, streaming=True))
    came, cleared = cut(stream, at), set[int]()
    while came or exchange.unanswered:
        if came and (not exchange.unanswered or chance.random() < 0.5):
            exchange.send(UpstreamBytes(came.pop(0)))
        else:
            asked = exchange.unanswered.pop(0)
            said = asked.text.partition("step ")[2]
            exchange.send(Scored(asked.ticket, {TOXIC: float("True" in said)}))
            cleared |= {int(said.partition(".")[0])} if "False" in said else set()
        sent = exchange.out.joined
        assert set(steps_in(sent)) <= cleared
        assert "True" not in sent.decode()
        assert (b"step 99" in sent) <= (99 in cleared)
    exchange.send(UpstreamClosed())
    assert steps_in(exchange.out.joined) == [number for number, each in enumerate(bad) if not each]
    [answer] = [each for each in mcp.events(exchange.out) if "result" in each]
    assert (answer["id"], answer["result"].get("isError", False)) == (1, is_bad)
    assert exchange.out.joined.endswith(b"\n\nid: " + mcp.veiled(b"e-100") + b"\n\n")
    assert exchange.out.closed


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


BESIDE = st.lists(st.sampled_from(["x1", "the tides", "2026", "aws", "Ann"]), max_size=2)
INDENTS = st.sampled_from([None, 1, 2])


@st.composite
def cut_over_strings(draw: st.DrawFn) -> tuple[list[str], object]:
    """A secret in two or three strings of one object or list, among others, somewhere in a value."""
    first, second = sorted(draw(st.tuples(st.integers(4, 16), st.integers(4, 16))))
    pieces = (
        [SECRET[:first], SECRET[first:second], SECRET[second:]]
        if second - first >= 4
        else [SECRET[:first], SECRET[first:]]
    )
    strings = [*draw(BESIDE), *pieces, *draw(BESIDE)]
    value: Any = dict(zip("abcdefghi", strings, strict=False)) if draw(st.booleans()) else strings
    for name in draw(st.lists(st.sampled_from(["rows", "x", ""]), max_size=2)):
        value = {name: value, "n": 7} if name else [value, 1]
    return pieces, value


@given(cut_over_strings(), st.integers(0, 6), INDENTS, st.booleans())
def test_g04_g18_a_secret_cut_over_strings_leaves_in_no_message(
    cut_: tuple[list[str], object], where: int, indent: int | None, inner: bool
) -> None:
    pieces, value = cut_
    text = json.dumps({"inner": json.dumps(value)} if inner else value, indent=indent)
    texts = [f"Here it is: {text}", text]
    sent = [
        result(1, content=[], structuredContent={"v": value}),
        mcp.said(texts[0]),
        mcp.said(text, structuredContent=value if isinstance(value, dict) else {"v": value}),
        result(1, contents=[{"uri": "a:b", "text": text}]),
        result(1, content=[], _meta={"x": value, "y": text}),
        json.dumps({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": text, "data": value}}).encode(),
        result(1, content=[{"type": "text", "text": json.dumps({"k": piece})} for piece in pieces]),
    ][where]
    told = notice("notifications/message", level="info", data=[value, text])
    asked = request(
        "sampling/createMessage", {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}, 5
    )
    played = mcp.streamed(given_to({"v": value, "t": text}), [event(told), event(asked), event(sent)])
    assert played.forwarded is not None
    for out in (played.forwarded.decode(), played.joined.decode()):
        assert not [piece for piece in pieces if piece in out]
    assert len(mcp.events(played)) == 3
    if where == 2:
        found = mcp.events(played)[-1]["result"]
        assert isinstance(json.loads(found["content"][0]["text"]), dict | list)


def _text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def _file(said: str, name: str = "a") -> dict[str, Any]:
    return {"uri": f"file:///{name}", "mimeType": "text/plain", "text": said}


def _tool(name: str, said: str, more: str = "") -> dict[str, Any]:
    schema = {"type": "object", "properties": {"p": {"type": "string", "description": more}}}
    return {"name": name, "description": said, "inputSchema": schema}


CUT_OVER_PARTS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "texts": lambda a, b: {"content": [_text(a), _text(b)]},
    "text and value": lambda a, b: {"content": [_text(a)], "structuredContent": {"x": b}},
    "text and value before it": lambda a, b: {"structuredContent": {"x": b}, "content": [_text(a)]},
    "value and text behind it": lambda a, b: {"structuredContent": {"x": a}, "content": [_text(b)]},
    "value and text before it": lambda a, b: {"content": [_text(b)], "structuredContent": {"x": a}},
    "text of JSON and value": lambda a, b: {"content": [_text(json.dumps({"x": a}))], "structuredContent": {"y": b}},
    "values within values": lambda a, b: {"content": [], "structuredContent": {"x": {"q": a}, "y": [[b]]}},
    "text and file": lambda a, b: {"content": [_text(a), {"type": "resource", "resource": _file(b)}]},
    "file and text": lambda a, b: {"content": [{"type": "resource", "resource": _file(a)}, _text(b)]},
    "files": lambda a, b: {"content": [{"type": "resource", "resource": _file(each)} for each in (a, b)]},
    "contents": lambda a, b: {"contents": [_file(a), _file(b, "b")]},
    "messages": lambda a, b: {
        "messages": [{"role": "user", "content": _text(a)}, {"role": "assistant", "content": _text(b)}]
    },
    "description and message": lambda a, b: {"description": a, "messages": [{"role": "user", "content": _text(b)}]},
    "text and meta": lambda a, b: {"content": [_text(a)], "_meta": {"x": b}},
    "tool and schema": lambda a, b: {"tools": [_tool("t", a, b)]},
    "tools": lambda a, b: {"tools": [_tool("t", a), _tool("u", b)]},
}
"""Name -> the members of a result of which two parts say this."""


@pytest.mark.parametrize("name", CUT_OVER_PARTS)
@pytest.mark.parametrize(("said", "at"), [(SECRET, 5), (SECRET, 16), (mcp.ORDER, 5), (mcp.ORDER, 15)])
def test_g04_g18_what_is_cut_over_parts_of_one_result_leaves_in_none(name: str, said: str, at: int) -> None:
    parts = CUT_OVER_PARTS[name](f"See {said[:at]}", f"{said[at:]} and so on.")
    reply = mcp.whole(call(), result(1, **parts)).reply
    assert reply is not None
    assert said[:at].strip() not in reply.body.decode() or said[at:].strip() not in reply.body.decode()
    if said == SECRET:
        assert said[:at] not in reply.body.decode()
        assert said[at:] not in reply.body.decode()


@pytest.mark.parametrize("name", CUT_OVER_PARTS)
@pytest.mark.parametrize(
    ("first", "second"), [("Order 4929 1234", "5678 9012 shipped"), ("Ask Ann", "@home"), ("1", "2")]
)
def test_g05_what_only_stands_in_parts_of_one_result_goes_on_as_it_came(name: str, first: str, second: str) -> None:
    sent = result(1, **CUT_OVER_PARTS[name](first, second))
    reply = mcp.whole(call(), sent).reply
    assert reply is not None
    assert reply.body == sent


RECORDS = st.fixed_dictionaries({
    "name": st.sampled_from(["Ann", "Bob Lee", "Zoë"]), "date": st.sampled_from(["2026-01-02", "1999-12-31"]),
    "id": st.integers(0, 10**6).map(str), "mail": st.none(), "note": WORDS,
})  # fmt: skip


@given(st.lists(RECORDS, max_size=4), INDENTS)
def test_g05_records_with_nothing_in_them_are_what_they_were(rows: list[dict[str, Any]], indent: int | None) -> None:
    sent = mcp.said(json.dumps({"rows": rows}, indent=indent), structuredContent={"rows": rows})
    reply = mcp.whole(call(), sent).reply
    assert reply is not None
    assert reply.body == sent


def test_what_stands_beside_an_address_stays() -> None:
    row = {"name": "Ann", "mail": "ann.smith@example.com", "next": "Bob"}
    policy = mcp.POLICY.replace("entities: [CREDIT_CARD]", "entities: [CREDIT_CARD, EMAIL]")
    plan = Plan(program=compile_sources([("tools.yaml", policy)]))
    found = mcp.body(mcp.whole(call(), mcp.said(json.dumps(row), structuredContent=row), plan=plan))["result"]
    redacted = row | {"mail": "[EMAIL]"}
    assert found["structuredContent"] == json.loads(found["content"][0]["text"]) == redacted


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


LONG = {
    "quotes": '{"' * 60_000,
    "escaped": "{" + '\\"' * 60_000,
    "strings": "{" + '"a\\"' * 30_000,
    "nested": "[" * 100_000,
    "list": json.dumps(["a1b"] * 20_000),
    "inner": '{"a": "' + '\\\\"' * 40_000,
}


@pytest.mark.parametrize("text", LONG.values(), ids=LONG)
def test_g10_json_in_a_text_is_read_in_linear_time(text: str) -> None:
    took = []
    for share in (2, 1):
        begun = time.process_time()
        mcp.whole(call(), mcp.said(text[: len(text) // share]))
        took.append(time.process_time() - begun)
    assert took[1] < 4 * took[0] + 0.5
