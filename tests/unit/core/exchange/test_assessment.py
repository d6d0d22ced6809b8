"""What evidence says of an answer while its caller waits: who asks for it, how it comes, what it stops."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from checkstream.core.commands import ArmTimer, Assess, CloseDownstream, Enqueue, ForwardRequest
from checkstream.core.events import (
    Assessed,
    DownstreamClosed,
    Draining,
    RequestReceived,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.exchange.plan import Assessing, Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.openai.completions import OpenAICompletions
from tests.guarded import CHAT, DONE, MAIL, STOP, bodies, ends, event, plan, request, says, told
from tests.playbook import Exchange, by_words
from tests.turned import LABELS, RULES, stream
from tests.unit.core.exchange.test_heard import whole

FOUND = Assessed({"risk": msgspec.Raw(b'{"risk_score":35}')}, {"watchdog": 35.0})
FAILED = Assessed({"risk": msgspec.Raw(b"null")}, {}, ("watchdog",))


def route(*, rules: str = MAIL, scored: int = 0, fail_mode: str = "closed", **settings: Any) -> Plan:
    return plan(rules, assessing=Assessing(**settings), scored_chars=scored, fail_mode=fail_mode)


def asked(exchange: Exchange) -> list[Assess]:
    return [command for command in exchange.out.commands if isinstance(command, Assess)]


def begin(plan: Plan, *pieces: bytes, surface: Any = CHAT, body: bytes | None = None, closed: bool = True) -> Exchange:
    streaming = body is None or b'"stream": true' in body
    exchange = Exchange(surface, plan)
    exchange.send(RequestReceived(body or request()))
    exchange.send(UpstreamOpened(200, streaming=streaming))
    for piece in pieces:
        exchange.send(UpstreamBytes(piece))
    if closed:
        exchange.send(UpstreamClosed())
    return exchange


@pytest.mark.parametrize("closed", [True, False])
def test_a_stream_carries_the_result_as_its_last_event_and_text_waits_for_nothing(closed: bool) -> None:
    pieces = [says("Write to jo@x.io. "), says("Bye."), ends(), event(usage={"total_tokens": 3}), DONE]
    exchange = begin(route(always=True), *pieces, closed=closed)
    (command,) = asked(exchange)
    assert (command.profiles, command.deadline_ms) == (("watchdog",), 3000.0)
    assert dict(command.dialogue.answers) == {0: "Write to [EMAIL]. Bye."}
    assert b"Bye." in exchange.out.joined
    assert b"total_tokens" in exchange.out.joined
    assert b"[DONE]" not in exchange.out.joined
    exchange.send(FOUND)
    *_, last = bodies(exchange.out)
    assert last == {**last, "id": "c1", "object": "chat.completion.chunk", "risk": {"risk_score": 35}}
    assert last["choices"] == [{"index": 0, "delta": {"content": ""}, "logprobs": None, "finish_reason": None}]
    assert exchange.out.joined.endswith(DONE)
    assert exchange.out.joined.count(b"[DONE]") == 1
    assert exchange.out.closed
    assert exchange.out.record is not None
    assert (exchange.out.record.outcome, exchange.out.record.risks) == ("complete", {"watchdog": 35.0})


@pytest.mark.parametrize("surface", [CHAT, OpenAICompletions()])
def test_a_whole_answer_carries_the_result_and_nothing_that_an_upstream_calls_so(surface: Any) -> None:
    chat = surface is CHAT
    content = {"message": {"role": "assistant", "content": "Yes."}} if chat else {"text": "Yes."}
    answer = {"risk": {"risk_score": 0}, "id": "c", "choices": [{"index": 0, "finish_reason": "stop", **content}]}
    asks = request(stream=False) if chat else json.dumps({"model": "m", "prompt": "hi"}).encode()
    exchange = begin(route(always=True), json.dumps(answer).encode(), surface=surface, body=asks)
    assert exchange.out.reply is None
    exchange.send(FOUND)
    assert exchange.out.reply is not None
    body = exchange.out.reply.body
    assert body.count(b'"risk"') == 1
    assert json.loads(body) == {**answer, "risk": {"risk_score": 35}}


def test_the_end_of_a_stopped_stream_stays_its_end() -> None:
    exchange = begin(route(rules=STOP, always=True), says("It is zero risk."), says(" more"), closed=False)
    assert exchange.out.cancelled
    assert dict(asked(exchange)[0].dialogue.answers) == {0: "It is "}
    exchange.send(FOUND)
    rows = bodies(exchange.out)
    assert "risk" in rows[-1]
    assert rows[-2]["choices"][0]["finish_reason"] == "content_filter"
    assert exchange.out.joined.endswith(DONE)


@pytest.mark.parametrize(
    ("settings", "body", "profiles"),
    [
        ({}, {}, None),
        ({}, {"checkstream": {"verify": True}}, ("watchdog",)),
        ({}, {"checkstream": {"verify": False}}, None),
        ({}, {"enable_verification": True}, ("rag",)),
        ({}, {"checkstream": {"verify": True}, "enable_verification": True}, ("watchdog", "rag")),
        ({"always": True}, {}, ("watchdog",)),
        ({"always": True}, {"checkstream": {"verify": False}}, None),
        ({"always": True, "profiles": ("rag", "budget")}, {"enable_verification": False}, ("budget",)),
        ({"always": True, "profiles": ("rag",)}, {"enable_verification": False}, None),
        ({"always": True, "block": 70.0}, {"checkstream": {"verify": False}}, ("watchdog",)),
        (
            {"always": True, "block": 70.0, "profiles": ("rag",)},
            {"checkstream": {"verify": False}, "enable_verification": False},
            ("rag",),
        ),
    ],
)
def test_who_asks_gets_it_and_nobody_switches_off_what_blocks(
    settings: dict[str, Any], body: dict[str, Any], profiles: tuple[str, ...] | None
) -> None:
    exchange = begin(route(**settings), says("Yes."), ends(), DONE, body=request(**body))
    assert [command.profiles for command in asked(exchange)] == ([profiles] if profiles else [])
    assert exchange.out.forwarded is not None
    assert not {"checkstream", "enable_verification"} & json.loads(exchange.out.forwarded).keys()
    assert (exchange.out.record is None) == bool(profiles)


@pytest.mark.parametrize("body", [{"checkstream": {"verify": 1}}, {"enable_verification": "yes"}])
def test_g31_a_switch_that_is_none_is_refused(body: dict[str, Any]) -> None:
    exchange = Exchange(CHAT, route())
    exchange.send(RequestReceived(request(**body)))
    assert exchange.out.reply is not None
    assert exchange.out.reply.status == 400
    assert b"must be true or false" in exchange.out.reply.body


@pytest.mark.parametrize(
    ("said", "fail_mode", "blocked"),
    [
        (FOUND, "closed", True),
        (Assessed(FOUND.members, {"watchdog": 34.9}), "closed", False),
        (Assessed(FOUND.members, {"a": 0.0, "b": 35.0}), "closed", True),
        (FAILED, "closed", True),
        (FAILED, "open", False),
        (Assessed(FAILED.members, {"budget": 90.0}, ("watchdog",)), "open", True),
    ],
)
def test_a_whole_answer_is_blocked_from_the_routes_limit_on(said: Assessed, fail_mode: str, blocked: bool) -> None:
    settled = route(always=True, block=35.0, fail_mode=fail_mode, scored=1000)
    exchange = begin(settled, whole("Goods come back in 60 days."), body=request(stream=False))
    exchange.send(said)
    reply, record = exchange.out.reply, exchange.out.record
    assert reply is not None
    assert record is not None
    assert (reply.status, reply.action, reply.retry) == ((502, "stop", False) if blocked else (200, "allow", None))
    assert (b"60 days" in reply.body) is not blocked
    assert (record.outcome, record.action) == (("stopped", "stop") if blocked else ("complete", "allow"))
    assert any(isinstance(command, Enqueue) for command in exchange.out.commands) is not blocked
    assert record.degradations == tuple(f"not_assessed:{name}" for name in said.failed)
    if blocked:
        assert json.loads(reply.body)["error"]["code"] == "response_blocked"


def test_a_stream_has_gone_out_and_is_not_blocked() -> None:
    exchange = begin(route(always=True, block=10.0), says("Yes."), ends(), DONE)
    exchange.send(FOUND)
    assert b"Yes." in exchange.out.joined
    assert exchange.out.joined.endswith(DONE)


@pytest.mark.parametrize("streaming", [True, False])
def test_without_a_result_the_answer_goes_out_and_says_so(streaming: bool) -> None:
    pieces = [says("Yes."), ends(), DONE] if streaming else [whole("Yes.")]
    exchange = begin(route(always=True), *pieces, body=request(stream=streaming))
    exchange.send(FAILED)
    out = exchange.out
    assert b'"risk":null' in (out.joined if streaming else out.reply.body if out.reply else b"")
    assert out.record is not None
    assert out.record.degradations == ("not_assessed:watchdog",)


@pytest.mark.parametrize("fail_mode", ["open", "closed"])
def test_g31_a_stream_in_place_of_a_whole_answer_that_may_be_blocked_is_refused_unless_the_route_fails_open(
    fail_mode: str,
) -> None:
    exchange = Exchange(CHAT, route(block=20, always=True, fail_mode=fail_mode))
    exchange.send(RequestReceived(request(stream=False)))
    exchange.send(UpstreamOpened(200, streaming=True))
    for piece in (says("Yes."), ends(), DONE):
        exchange.send(UpstreamBytes(piece))
    exchange.send(UpstreamClosed())
    exchange.send(FOUND)
    out = exchange.out
    assert out.record is not None
    if fail_mode == "closed":
        assert out.reply is not None
        assert out.reply.status == 502
        assert b"asked for whole" in out.reply.body
        assert (out.record.outcome, out.record.upstream_failure) == ("failed", "upstream_error")
        assert out.cancelled
        assert not out.sent
    else:
        assert b"Yes." in out.joined
        assert out.joined.endswith(DONE)
        assert "streamed_not_blocked" in out.record.degradations


@pytest.mark.parametrize("settings", [{"always": True}, {"block": 20, "profiles": ()}])
def test_a_stream_in_place_of_a_whole_answer_that_nothing_blocks_is_passed_on(settings: dict[str, Any]) -> None:
    exchange = Exchange(CHAT, route(**settings))
    exchange.send(RequestReceived(request(stream=False)))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(says("Yes, that is so. ") + says("No more.")))
    assert exchange.out.reply is None
    assert b"that is" in exchange.out.joined


def test_g06_a_comment_keeps_the_connection_while_a_stream_is_assessed() -> None:
    exchange = begin(route(always=True), says("Yes."), ends(), DONE)
    assert asked(exchange)
    sent = len(exchange.out.sent)
    for _ in range(2):
        exchange.now += 20
        exchange.send(TimerFired("keepalive"))
    assert exchange.out.sent[sent:] == [b": keep-alive\n"] * 2
    exchange.send(TimerFired("stall"))
    exchange.send(FOUND)
    assert exchange.out.joined.endswith(DONE)
    assert exchange.out.closed


def test_no_comment_is_sent_before_a_whole_answer_that_is_assessed() -> None:
    exchange = begin(route(always=True), whole("Yes."), body=request(stream=False))
    assert asked(exchange)
    assert not any(isinstance(command, ArmTimer) for command in exchange.out.commands)


@pytest.mark.parametrize("streaming", [True, False])
def test_a_process_that_ends_waits_for_no_assessment(streaming: bool) -> None:
    pieces = [says("Yes."), ends(), DONE] if streaming else [whole("Yes.")]
    exchange = begin(route(always=True), *pieces, body=request(stream=streaming))
    exchange.send(Draining())
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "complete"
    assert b"Yes." in (exchange.out.joined or (exchange.out.reply and exchange.out.reply.body) or b"")


def test_a_caller_who_leaves_meanwhile_ends_it_and_a_late_result_changes_nothing() -> None:
    exchange = begin(route(always=True), whole("Yes."), body=request(stream=False))
    exchange.send(DownstreamClosed())
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "downstream_closed"
    exchange.send(FOUND)
    assert exchange.out.reply is None


def test_nothing_is_asked_of_answers_that_broke_off_or_say_nothing_or_too_much() -> None:
    broken = begin(route(always=True), says("Half of "), closed=False)
    broken.send(UpstreamFailed("reset"))
    empty = begin(route(always=True, block=1.0), whole(""), body=request(stream=False))
    error = begin(route(always=True, block=1.0), b"no json", body=request(stream=False))
    for exchange in (broken, empty, error):
        assert not asked(exchange)
        assert exchange.out.record is not None
    assert empty.out.reply is not None
    assert empty.out.reply.status == 200


@pytest.mark.parametrize("scored", [0, 1_000_000])
def test_g22_an_answer_too_long_to_assess_comes_without_its_text_and_goes_out_without_a_result(scored: int) -> None:
    long = begin(route(always=True, scored=scored), *[says("x" * 20_000)] * 2, ends(), DONE)
    assert [dict(command.dialogue.answers) for command in asked(long)] == [{}]
    long.send(FAILED)
    assert long.out.record is not None
    assert long.out.record.degradations == ("not_assessed:watchdog",)
    assert any(isinstance(command, CloseDownstream) for command in long.out.commands)
    assert any(isinstance(command, Enqueue) for command in long.out.commands) is bool(scored)


def test_a_bound_on_what_is_scored_later_keeps_no_answer_from_being_blocked() -> None:
    settings = route(always=True, block=30.0, scored=10, fail_mode="open")
    exchange = begin(settings, whole("Longer than ten characters."), body=request(stream=False))
    assert [dict(command.dialogue.answers) for command in asked(exchange)] == [{0: "Longer than ten characters."}]
    exchange.send(FOUND)
    assert exchange.out.reply is not None
    assert exchange.out.reply.status == 502
    told = begin(route(always=True, scored=10), says("Longer than ten characters."), ends(), DONE)
    told.send(FOUND)
    assert told.out.record is not None
    assert told.out.record.degradations == ("answer_too_long_to_score",)
    assert not any(isinstance(command, Enqueue) for command in told.out.commands)


def test_nobody_is_asked_where_nobody_is_there() -> None:
    exchange = begin(plan(MAIL), says("Yes."), ends(), DONE, body=request(checkstream={"verify": True}))
    assert not asked(exchange)
    assert exchange.out.joined.endswith(DONE)


@pytest.mark.parametrize("at_once", [True, False])
def test_an_answer_that_turned_is_assessed_once_and_as_a_whole(at_once: bool) -> None:
    program = compile_sources([("p.yaml", RULES)], LABELS)
    exchange = Exchange(CHAT, Plan(program=program, assessing=Assessing(always=True)), by_words("toy.risk", ["casino"]))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    first = stream("Go to the ", "casino tonight.")
    for piece in [b"".join(first)] if at_once else first:
        if not exchange.out.cancelled:
            exchange.send(UpstreamBytes(piece))
    assert len([command for command in exchange.out.commands if isinstance(command, ForwardRequest)]) == 2
    exchange.send(UpstreamOpened(200, streaming=True))
    for piece in stream("library.", number="two"):
        exchange.send(UpstreamBytes(piece))
    (command,) = asked(exchange)
    (answer,) = command.dialogue.answers.values()
    assert answer.endswith("library.")
    assert "casino" not in answer
    exchange.send(FOUND)
    assert exchange.out.joined.endswith(DONE)
    assert exchange.out.joined.count(b"[DONE]") == 1
    assert "risk" in bodies(exchange.out)[-1]


def test_g37_what_evidence_says_stands_beside_what_rules_have_done() -> None:
    exchange = begin(route(always=True), says("Write to jo@x.io. "), ends(), DONE)
    claims = {"claims": [1], "evidence_spans": []}
    exchange.send(Assessed({"checkstream": msgspec.Raw(msgspec.json.encode(claims))}, {"watchdog": 35.0}))
    assert told(exchange.out) == [{**claims, "action": "redact", "rule_id": "PII-1", "reason": "entity:EMAIL"}]
