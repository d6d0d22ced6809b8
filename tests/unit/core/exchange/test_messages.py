"""Messages of tools, both ways: read, edited, refused, and how each exchange ends."""

from __future__ import annotations

import gc
import json
import tracemalloc
from typing import Any

import msgspec
import pytest

from checkstream.core.commands import PauseUpstream, ResumeUpstream, SendDownstream
from checkstream.core.events import (
    DownstreamClosed,
    Draining,
    RequestReceived,
    Scored,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.machine import machine_for
from checkstream.core.exchange.plan import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.mcp.refusals import BLOCKED, FAILED, INVALID, WITHHELD
from checkstream.core.wire.mcp.surface import MCP
from tests import mcp
from tests.mcp import ORDER, PLAN, SECRET, call, event, notice, request, result, said, veiled
from tests.playbook import Exchange, digest

LABELLED = """
pack: {name: models, version: 1.0.0}
policies:
  - name: orders
    id: INJ-1
    stage: [ingress]
    channels: [tool_result]
    classifiers: [{name: lexicon.toxicity, threshold: 0.5}]
    actions: [{type: reject, message: A tool tried to give orders.}]
"""


def test_a_call_and_its_result_go_on_as_they_came() -> None:
    played = mcp.whole(call(text="hello"), said("hello"))
    assert played.forwarded == call(text="hello")
    assert played.reply is not None
    assert played.reply.body == said("hello")
    assert played.record is not None
    assert (played.record.outcome, played.record.action) == ("complete", "allow")
    assert {"ingress:assistant", "ingress:tool_result"} <= set(played.record.scanned)


@pytest.mark.parametrize("number", [0, 7, -3, "a-1", "42"])
def test_g20_a_refused_call_is_an_error_of_json_rpc_for_the_request_that_it_is_about(number: object) -> None:
    played = mcp.whole(call(number, text="tell me the purple password"), b"")
    assert played.forwarded is None
    assert played.reply is not None
    assert (played.reply.status, played.reply.action, played.reply.retry) == (200, "reject", False)
    found = mcp.body(played)
    assert found["id"] == number
    assert found["error"]["code"] == BLOCKED
    assert found["error"]["data"] == {"type": "request_blocked", "rule_id": "ASK-1", "param": "params"}
    assert "This call was refused. (rule ASK-1" in found["error"]["message"]


def test_a_refused_notification_is_an_error_of_http() -> None:
    played = mcp.whole(
        notice("notifications/progress", progressToken=1, progress=1, message="the purple password"), b""
    )
    assert played.reply is not None
    assert played.reply.status == 400
    assert mcp.body(played)["id"] is None


@pytest.mark.parametrize(
    "arguments",
    [
        {"text": f"use {SECRET} now"},
        {"deep": [{"er": {"text": SECRET}}]},
        {SECRET: 1},
        {"parts": ["AKIA", "IOSFODNN7EXAMPLQ"]},
        {"first": "AKIA", "second": "IOSFODNN7EXAMPLQ"},
        {"card": 4242424242424242},
        {"file": "data:text/plain;base64,QUtJQUlPU0ZPRE5ON0VYQU1QTFE="},
    ],
    ids=str,
)
def test_g31_a_secret_in_arguments_reaches_no_server(arguments: dict[str, Any]) -> None:
    played = mcp.whole(call(**arguments), said("fine"))
    assert played.forwarded is not None
    sent = json.dumps(json.loads(played.forwarded))
    assert SECRET not in sent
    assert "IOSFODNN7EXAMPLQ" not in sent
    assert "4242424242424242" not in sent
    assert "QUtJQUlPU0ZPRE5ON0VYQU1QTFE" not in sent
    assert played.record is not None
    assert played.record.action == "redact"


@pytest.mark.parametrize(
    "members",
    [
        {"content": [{"type": "text", "text": f"it is {SECRET}"}]},
        {"content": [{"type": "text", "text": "it is AKIA"}, {"type": "text", "text": "IOSFODNN7EXAMPLQ"}]},
        {"content": [], "structuredContent": {"key": SECRET}},
        {"content": [], "structuredContent": {"a": "AKIA", "b": "IOSFODNN7EXAMPLQ"}},
        {"content": [], "structuredContent": {"all": ["AKIA", "IOSFODNN7EXAMPLQ"]}},
        {"content": [], "structuredContent": {"rows": [{SECRET: 1}]}},
        {"content": [{"type": "resource", "resource": {"uri": "a:b", "text": SECRET}}]},
        {"content": [{"type": "resource", "resource": {"uri": "a:b", "blob": "QUtJQUlPU0ZPRE5ON0VYQU1QTFE="}}]},
        {"content": [{"type": "resource_link", "uri": "a:b", "name": "n", "description": SECRET}]},
        {"content": [], "_meta": {"note": SECRET}},
        {"contents": [{"uri": "a:b", "text": SECRET}]},
        {"contents": [{"uri": f"a:{SECRET}", "text": ""}]},
        {"messages": [{"role": "user", "content": {"type": "text", "text": SECRET}}], "description": SECRET},
        {"instructions": SECRET, "serverInfo": {"name": SECRET, "version": "1"}},
        {
            "tools": [
                {"name": "a", "description": SECRET, "inputSchema": {"properties": {"b": {"description": SECRET}}}}
            ]
        },
        {"completion": {"values": [SECRET]}},
        {"nobody": {"knows": [SECRET, {SECRET: SECRET}]}},
    ],
    ids=lambda members: json.dumps(members)[:60],
)
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_g34_a_secret_anywhere_in_a_result_reaches_no_caller(members: dict[str, Any], stream: bool) -> None:
    answer = result(1, **members)
    played = mcp.streamed(call(), [event(answer)]) if stream else mcp.whole(call(), answer)
    data = played.joined if stream else (played.reply.body if played.reply is not None else b"")
    assert SECRET.encode() not in data
    assert b"IOSFODNN7EXAMPLQ" not in data
    assert b"QUtJQUlPU0ZPRE5ON0VYQU1QTFE" not in data
    found = mcp.events(played)[0] if stream else mcp.body(played)
    assert found["id"] == 1
    assert found["result"]["_meta"]["checkstream"]["rule_id"] == "SEC-1"
    assert not stream or played.closed


def test_a_text_that_is_json_stays_json() -> None:
    inner = json.dumps({"card": 4242424242424242, "name": "Ann"})
    found = json.loads(mcp.body(mcp.whole(call(), said(inner)))["result"]["content"][0]["text"])
    assert found["name"] == "Ann"
    assert found["card"] != 4242424242424242


def test_orders_in_a_result_make_it_the_failure_of_the_tool() -> None:
    for played in (mcp.whole(call(), said(f"now {ORDER}")), mcp.streamed(call(), [event(said(f"now {ORDER}"))])):
        found = mcp.events(played)[0] if played.sent else mcp.body(played)
        assert found["id"] == 1
        assert found["result"]["isError"] is True
        assert "A tool tried to give orders. (rule DOC-1" in found["result"]["content"][0]["text"]
        assert ORDER not in json.dumps(found)
        assert played.record is not None
        assert played.record.action == "reject"


@pytest.mark.parametrize(
    ("method", "members"),
    [
        ("resources/read", {"contents": [{"uri": "a:b", "text": ORDER}]}),
        ("prompts/get", {"messages": [{"role": "user", "content": {"type": "text", "text": ORDER}}]}),
        ("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "instructions": ORDER}),
    ],
)
def test_orders_in_any_other_result_make_an_error_of_it(method: str, members: dict[str, Any]) -> None:
    params = {"uri": "a:b"} if method == "resources/read" else {"name": "n"} if method == "prompts/get" else {}
    found = mcp.body(mcp.whole(request(method, params), result(1, **members)))
    assert found["error"]["code"] == BLOCKED
    assert found["error"]["data"]["rule_id"] == "DOC-1"
    assert ORDER not in json.dumps(found)


def test_a_tool_with_orders_in_its_description_is_taken_out_of_the_list() -> None:
    tools = [
        {"name": name, "description": text, "inputSchema": {}}
        for name, text in (("a", "A."), ("b", ORDER), ("c", "C."))
    ]
    found = mcp.body(mcp.whole(request("tools/list"), result(1, tools=tools, nextCursor="x")))
    assert [tool["name"] for tool in found["result"]["tools"]] == ["a", "c"]
    assert found["result"]["nextCursor"] == "x"


def test_an_error_of_the_server_is_read_too() -> None:
    error = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32602, "message": f"bad {SECRET}", "data": {"why": SECRET}}}
    found = mcp.body(mcp.whole(call(), json.dumps(error).encode(), status=400))
    assert found["error"]["code"] == -32602
    assert SECRET not in json.dumps(found)
    found = mcp.body(
        mcp.whole(call(), b'{"error":"invalid_token","error_description":"AKIAIOSFODNN7EXAMPLQ"}', status=401)
    )
    assert found["error"] == "invalid_token"
    assert SECRET not in json.dumps(found)
    played = mcp.whole(call(), b"Internal Server Error", status=500)
    assert played.reply is not None
    assert (played.reply.status, mcp.body(played)["error"]["code"]) == (500, FAILED)


def test_messages_of_a_stream_leave_one_by_one_as_soon_as_each_is_decided() -> None:
    plan = Plan(program=compile_sources([("m.yaml", LABELLED)], (ClassifierLabel("lexicon.toxicity"),)))
    exchange = Exchange(MCP, plan)
    exchange.send(RequestReceived(call()))
    exchange.send(UpstreamOpened(200, streaming=True))
    parts = [
        event(notice("notifications/progress", progressToken=1, progress=n, message=f"step {n}")) for n in range(2)
    ]
    exchange.send(UpstreamBytes(parts[0] + parts[1] + event(said("done"))))
    assert not exchange.out.sent
    for waited, score in enumerate((0.1, 0.9, 0.1)):
        [asked] = exchange.unanswered
        exchange.unanswered.clear()
        exchange.send(Scored(asked.ticket, {"lexicon.toxicity": score}))
        assert len(exchange.out.sent) == (1, 1, 2)[waited]  # the second says what it may not, and is left out
    exchange.send(UpstreamClosed())
    assert [message.get("method", "result") for message in mcp.events(exchange.out)] == [
        "notifications/progress",
        "result",
    ]
    assert exchange.out.closed
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "complete"


def test_a_request_of_the_server_with_orders_becomes_one_that_its_client_refuses() -> None:
    params = {"messages": [{"role": "user", "content": {"type": "text", "text": ORDER}}], "maxTokens": 5}
    played = mcp.streamed(call(), [event(request("sampling/createMessage", params, 9)), event(said("fine"))])
    asked, answered = mcp.events(played)
    assert (asked["id"], asked["method"]) == (9, WITHHELD)
    assert ORDER not in json.dumps(asked)
    assert answered["result"]["content"][0]["text"] == "fine"


def test_what_a_client_says_to_a_server_is_read_too() -> None:
    answer = json.dumps(
        {"jsonrpc": "2.0", "id": 9, "result": {"action": "accept", "content": {"key": SECRET}}}
    ).encode()
    played = mcp.whole(answer, b"", status=202)
    assert played.forwarded is not None
    assert SECRET.encode() not in played.forwarded
    assert played.reply is not None
    assert (played.reply.status, played.reply.body) == (202, b"")


@pytest.mark.parametrize(
    ("sent", "said_"),
    [
        (b"[" + call() + b"]", "batches"),
        (b" \n[]", "batches"),
        (b'{"id":1,"method":"ping"}', "`jsonrpc`"),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', "`jsonrpc`"),
        (b'{"jsonrpc":"2.0","id":1}', "one of `method`"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}', "one of `method`"),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', "`id`"),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', "`id`"),
        (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', "`id`"),
        (b'{"jsonrpc":"2.0","id":[1],"method":"ping"}', "`id`"),
        (b'{"jsonrpc":"2.0","id":"\\u0000","method":"ping"}', "`id`"),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}', "id"),
        (b'{"jsonrpc":"2.0","id":1,"Id":2,"method":"ping"}', "Id"),
        (b'{"jsonrpc":"2.0","id":1,"Method":"ping","method":"ping"}', "ethod"),
        (b'{"jsonrpc":"2.0","id":1,"method":["ping"]}', "`method`"),
        (b'{"jsonrpc":"2.0","id":1,"method":"a b"}', "`method`"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', "`params`"),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}', "`params.name`"),
        (
            b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":"{}"}}',
            "`params.arguments`",
        ),
        (b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Arguments":{}}}', "arguments"),
        (b'{"jsonrpc":"2.0","id":1,"result":[]}', "`result`"),
        (b'{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":""}}', "`error`"),
        (b"nothing", "JSON"),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping"} {}', "JSON"),
        (b"\xff", "UTF-8"),
    ],
)
def test_g31_what_two_readers_could_take_for_two_messages_is_refused(sent: bytes, said_: str) -> None:
    played = mcp.whole(sent, b"")
    assert played.forwarded is None
    assert played.reply is not None
    assert played.reply.status == 400
    found = mcp.body(played)
    assert found["error"]["code"] == INVALID
    assert said_ in found["error"]["message"]


def test_g31_an_id_is_no_place_for_a_secret() -> None:
    played = mcp.whole(call(SECRET), b"")
    assert played.forwarded is None
    assert played.reply is not None
    assert played.reply.status == 400


@pytest.mark.parametrize("number", [4111111111111111, -4111111111111111])
@pytest.mark.parametrize("answered", [False, True])
def test_g31_a_number_that_is_an_id_is_no_card_s(number: int, answered: bool) -> None:
    sent = mcp.result(number, content=[]) if answered else mcp.call(number)
    out = mcp.whole(sent, mcp.said("ok", number=number) if not answered else b"")
    assert out.forwarded is None
    assert out.record is not None
    assert {verdict.rule_id for verdict in out.record.verdicts} == {"PII-1"}


def test_ids_that_are_counts_or_moments_go_on() -> None:
    for number in (7, 99999999, 123456789012, 1763920000000, 1763920000000000):
        assert mcp.whole(mcp.call(number), mcp.said("ok", number=number)).forwarded == mcp.call(number)


def test_an_unknown_method_is_read_and_forwarded_or_refused_as_the_route_says() -> None:
    sent = request("books/burn", {"which": f"all {SECRET}"})
    played = mcp.whole(sent, result(1))
    assert played.forwarded is not None
    assert SECRET.encode() not in played.forwarded
    assert played.record is not None
    assert "ingress:method" in played.record.scanned
    strict = msgspec.structs.replace(PLAN, unknown_fields="refuse")
    played = mcp.whole(sent, b"", plan=strict)
    assert played.forwarded is None
    assert mcp.body(played)["error"]["data"]["type"] == "unknown_field"


@pytest.mark.parametrize(
    "answer",
    [
        said("x", 2),
        said("x", "1"),
        b"[" + said("x") + b"]",
        b"{}",
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":""}}',
        b'{"jsonrpc":"2.0","id":1,"Result":{},"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"Content":[],"content":[]}}',
        b'{"jsonrpc":"2.0","id":1,"id":1,"result":{}}',
        b"no JSON",
        b"\xff\xfe",
    ],
)
def test_what_was_not_asked_or_can_not_be_read_meets_the_fail_mode(answer: bytes) -> None:
    for stream in (False, True):
        played = mcp.streamed(call(), [event(answer)]) if stream else mcp.whole(call(), answer)
        found = mcp.events(played)[0] if stream else mcp.body(played)
        assert found["id"] == 1
        assert found["error"]["code"] == FAILED
        assert played.record is not None
        assert played.record.outcome == "failed"
        opened = msgspec.structs.replace(PLAN, fail_mode="open")
        played = (
            mcp.streamed(call(), [event(answer)], plan=opened) if stream else mcp.whole(call(), answer, plan=opened)
        )
        assert answer.replace(b"\xff\xfe", b"") in (played.joined if stream else played.reply.body)  # type: ignore[union-attr]
        assert played.record is not None
        assert "ingress:message" in played.record.unscanned


def test_a_second_answer_is_none() -> None:
    played = mcp.streamed(call(), [event(said("one")) + event(said("two"))])
    assert [message["result"]["content"][0]["text"] for message in mcp.events(played)] == ["one"]
    assert played.closed


def test_g36_of_an_event_only_what_clients_know_leaves() -> None:
    ids = b"retry: 5\nid: abc_1\n: a comment\ndata:\n\n"
    odd = (
        b"event: other\ndata: {}\n\nevent: message\nid: a b\ndata: "
        + notice("notifications/tools/list_changed")
        + b"\n\n"
    )
    played = mcp.streamed(call(), [ids + odd + event(said("x"), "abc_2")])
    assert played.joined == (
        b"retry: 5\nid: " + veiled(b"abc_1") + b"\ndata: \n\n"
        b"event: message\ndata: " + notice("notifications/tools/list_changed") + b"\n\n"
        b"event: message\nid: " + veiled(b"abc_2") + b"\ndata: " + said("x") + b"\n\n"
    )
    assert played.record is not None
    assert "event_dropped" in played.record.degradations


def test_an_edited_event_keeps_its_id() -> None:
    played = mcp.streamed(call(), [event(said(SECRET), "7")])
    assert played.joined.startswith(b"event: message\nid: " + veiled(b"7") + b"\ndata: {")


def test_the_old_transport_is_refused_by_name() -> None:
    played = mcp.streamed(b"", [b"event: endpoint\ndata: /messages?session=1\n\n"], method="GET")
    assert played.closed
    assert played.record is not None
    assert (played.record.outcome, played.record.upstream_failure) == ("failed", "upstream_error")


def test_a_stream_of_the_servers_own_has_answers_to_what_was_asked_before() -> None:
    sent = [
        event(said(f"late {SECRET}", 41), "9"),
        event(request("ping", {}, 3)),
        event(notice("notifications/message", level="info", data=SECRET)),
    ]
    played = mcp.streamed(b"", sent, method="GET")
    late, ping, log = mcp.events(played)
    assert SECRET not in played.joined.decode()
    assert late["id"] == 41
    assert ping == {"jsonrpc": "2.0", "method": "ping", "id": 3, "params": {}}
    assert log["params"]["data"] == "[AWS_ACCESS_KEY]"
    assert played.record is not None
    assert played.record.outcome == "complete"


def test_a_session_is_ended_and_a_stream_is_refused_in_the_servers_words() -> None:
    for method, status in (("DELETE", 200), ("GET", 405)):
        played = mcp.whole(b"", b"", method=method, status=status)
        assert played.forwarded == b""
        assert played.reply is not None
        assert played.reply.status == status
    played = mcp.whole(b"{}", b"", method="GET")
    assert played.forwarded is None
    assert played.reply is not None
    assert played.reply.status == 400


@pytest.mark.parametrize("resumable", [False, True])
@pytest.mark.parametrize(
    "ends", [UpstreamFailed("reset"), UpstreamClosed(), Draining()], ids=["reset", "close", "drain"]
)
def test_a_stream_that_breaks_off_says_so_unless_the_rest_can_be_asked_for(ends: Any, resumable: bool) -> None:
    exchange = Exchange(MCP, PLAN)
    exchange.send(RequestReceived(call()))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(
        UpstreamBytes(event(notice("notifications/progress", progressToken=1, progress=1), "5" if resumable else None))
    )
    exchange.send(ends)
    messages = mcp.events(exchange.out)
    assert exchange.out.closed
    assert [message.get("id") for message in messages] == ([None] if resumable else [None, 1])
    assert resumable or messages[1]["error"]["code"] == FAILED
    assert exchange.out.record is not None


@pytest.mark.parametrize(("kind", "status"), [("connect", 502), ("first_byte", 504), ("reset", 502)])
def test_a_server_that_fails_is_an_error_of_the_request(kind: Any, status: int) -> None:
    exchange = Exchange(MCP, PLAN)
    exchange.send(RequestReceived(call("a")))
    exchange.send(UpstreamFailed(kind))
    assert exchange.out.reply is not None
    assert exchange.out.reply.status == status
    assert mcp.body(exchange.out)["id"] == "a"


def test_a_caller_that_hangs_up_when_it_has_its_answer_has_all_of_it() -> None:
    for sent, outcome in (([event(said("x"))], "complete"), ([], "downstream_closed")):
        exchange = Exchange(MCP, PLAN)
        exchange.send(RequestReceived(call()))
        exchange.send(UpstreamOpened(200, streaming=True))
        for piece in sent:
            exchange.send(UpstreamBytes(piece))
        exchange.send(DownstreamClosed())
        assert exchange.out.cancelled
        assert exchange.out.record is not None
        assert exchange.out.record.outcome == outcome


def test_g22_a_server_that_outruns_the_checks_is_paused_and_an_event_has_a_cap() -> None:
    plan = Plan(
        program=compile_sources([("m.yaml", LABELLED)], (ClassifierLabel("lexicon.toxicity"),)),
        held_bytes=4000,
        event_bytes=3000,
    )
    exchange = Exchange(MCP, plan)
    exchange.send(RequestReceived(call()))
    exchange.send(UpstreamOpened(200, streaming=True))
    part = event(notice("notifications/message", level="info", data="word " * 300))
    for _ in range(3):
        exchange.send(UpstreamBytes(part))
    assert any(isinstance(command, PauseUpstream) for command in exchange.out.commands)
    for _ in range(3):
        [asked] = exchange.unanswered
        exchange.unanswered.clear()
        exchange.send(Scored(asked.ticket, {"lexicon.toxicity": 0.0}))
    assert any(isinstance(command, ResumeUpstream) for command in exchange.out.commands)
    assert len(mcp.events(exchange.out)) == 3
    exchange.send(UpstreamBytes(b"data: " + b"x" * 4000))
    assert exchange.out.closed
    assert mcp.events(exchange.out)[-1]["error"]["code"] == FAILED


def test_an_event_over_its_cap_behind_a_good_one_is_an_error_also_where_the_stream_ends_there() -> None:
    exchange = Exchange(MCP, msgspec.structs.replace(PLAN, event_bytes=3000))
    exchange.send(RequestReceived(call()))
    exchange.send(UpstreamOpened(200, streaming=True))
    good = event(notice("notifications/progress", progressToken=1, progress=1))
    exchange.send(UpstreamBytes(good + event(said("x" * 4000))))
    exchange.send(UpstreamClosed())
    told = mcp.events(exchange.out)
    assert [message.get("id") for message in told] == [None, 1]
    assert "larger than `3000` bytes" in told[1]["error"]["message"]
    assert exchange.out.closed
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "failed"


def test_g22_what_is_known_of_a_long_stream_does_not_grow() -> None:
    exchange = Exchange(MCP, PLAN)
    exchange.send(RequestReceived(b"", method="GET"))
    exchange.send(UpstreamOpened(200, streaming=True))
    for number in range(300):
        exchange.send(UpstreamBytes(event(notice("notifications/message", level="info", data=f"{number} {SECRET}"))))
    guard: Any = exchange.guard
    assert len(guard._course.ledger.judges) < 10
    assert len(guard._course.ledger._seen.findings) < 100
    exchange.send(UpstreamClosed())
    assert exchange.out.record is not None
    assert exchange.out.record.fired == {"SEC-1": 300}
    assert "findings_not_listed" in exchange.out.record.degradations


@pytest.mark.parametrize("all_of_it", [5, pytest.param(60, marks=pytest.mark.nightly)])
def test_g22_an_hour_of_a_servers_stream_takes_no_more_memory_than_its_first_minutes(all_of_it: int) -> None:
    """At three events a second, some of them edited; the caller has a name, so each event is marked."""
    guard = machine_for(MCP, PLAN, digest)
    guard.receive(RequestReceived(b"", "app", method="GET"), 0.0)
    guard.receive(UpstreamOpened(200, streaming=True), 0.0)

    def minutes(first: int, last: int) -> int:
        for number in range(first * 180, last * 180):
            said_ = f"{number} {SECRET if number % 50 == 0 else 'calm'}"
            data = event(notice("notifications/message", level="info", data=said_), f"e-{number}")
            out = guard.receive(UpstreamBytes(data), number / 3)
            assert sum(isinstance(command, SendDownstream) for command in out) == 1
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        begun, ended = minutes(0, 2), minutes(2, all_of_it)
    finally:
        tracemalloc.stop()
    assert ended < begun + 100_000


def test_a_whole_answer_waits_for_checks_that_only_record() -> None:
    rules = LABELLED.replace("{type: reject, message: A tool tried to give orders.}", "{type: log_event}")
    plan = Plan(program=compile_sources([("m.yaml", rules)], (ClassifierLabel("lexicon.toxicity"),)))
    exchange = Exchange(MCP, plan)
    exchange.send(RequestReceived(call()))
    exchange.send(UpstreamOpened(200, streaming=False))
    exchange.send(UpstreamBytes(said("what only may be an order")))
    exchange.send(UpstreamClosed())
    assert exchange.out.reply is None
    [asked] = exchange.unanswered
    exchange.unanswered.clear()
    exchange.send(Scored(asked.ticket, {"lexicon.toxicity": 0.9}))
    assert exchange.out.reply is not None
    assert exchange.out.record is not None
    assert [verdict.rule_id for verdict in exchange.out.record.verdicts] == ["INJ-1"]


@pytest.mark.parametrize(
    "members",
    [
        {"content": [{"type": ["text"], "data": f"a {SECRET}"}]},
        {"content": [{"type": {"a": 1}, "text": f"a {SECRET}"}]},
        {"content": [], "x\ud800": SECRET, "\udc00": f"\ud800 {SECRET}"},
        {"contents": [{"uri": "a:b", "blob": f"\ud800 {SECRET}"}]},
        {"content": [], "structuredContent": {"a": f"data:text/plain,{SECRET}\ud800"}},
    ],
    ids=["list", "object", "name", "blob", "url"],
)
def test_g19_members_of_no_type_and_halves_of_characters_are_read(members: dict[str, Any]) -> None:
    for found in (
        mcp.body(mcp.whole(call(), result(1, **members))),
        mcp.events(mcp.streamed(call(), [event(result(1, **members))]))[0],
    ):
        assert SECRET not in json.dumps(found)
        assert found["id"] == 1


def test_an_error_that_names_no_request_leaves_no_caller_waiting() -> None:
    unnamed = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}'
    for found in (mcp.body(mcp.whole(call(), unnamed)), mcp.events(mcp.streamed(call(), [event(unnamed)]))[-1]):
        assert (found["id"], found["error"]["code"]) == (1, FAILED)
    played = mcp.whole(call(), unnamed, status=400)  # who answers with an error of HTTP is heard by it
    assert mcp.body(played) == json.loads(unnamed)
