"""What the caller is told of what rules have done: at the end of a stream, in a whole answer, in an error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Guard
from tests.guarded import CHAT, DONE, STOP, ends, event, finishes, plan, request, says, stream, told, whole
from tests.playbook import Exchange, digest, play

RULES = """\
  - {name: m, id: PII-1, stage: [ingress, midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: s, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: Halt.}]}
  - {name: l, id: LOG-1, stage: [midstream], phrases: [weather], actions: [{type: log_event}]}
  - {name: w, id: SHADOW-1, mode: shadow, stage: [midstream], phrases: [lion], actions: [{type: stop}]}
  - {name: r, id: REF-1, stage: [ingress], phrases: [forbidden], actions: [{type: reject, message: Not this.}]}
"""


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("all is well", []),
        ("nice weather", []),
        ("a lion", []),
        ("mail a@b.co", [{"action": "redact", "rule_id": "PII-1", "reason": "entity:EMAIL"}]),
        ("mail a@b.co, zero risk", [{"action": "stop", "rule_id": "STOP-1", "reason": "phrase"}]),
    ],
)
def test_g37_a_stream_says_before_its_last_word_what_was_done(said: str, expected: list[dict[str, Any]]) -> None:
    for pieces in ([says(said), ends(), event(usage={"total_tokens": 3}), DONE], [says(said) + ends() + DONE]):
        out = stream(RULES, pieces)
        assert told(out) == expected
        assert out.joined.endswith(DONE)
        if expected:
            assert b"checkstream" in out.joined.split(b"\n\n")[-3]
        else:
            assert out.joined == b"".join(pieces)


def test_g37_a_stop_before_anything_has_left_is_told() -> None:
    call = {"index": 0, "id": "x", "type": "function", "function": {"name": "pay", "arguments": '{"to":"zero risk"}'}}
    out = stream(STOP, [event((0, {"tool_calls": [call]}, None)), ends(reason="tool_calls"), DONE])
    assert finishes(out) == {0: "content_filter"}
    assert told(out) == [{"action": "stop", "rule_id": "STOP-1", "reason": "phrase"}]
    assert out.joined.endswith(DONE)


def test_g37_what_was_done_to_the_prompt_is_told_with_the_answer() -> None:
    out = stream(RULES, [says("fine"), ends(), DONE], request("I am a@b.co"))
    assert told(out) == [{"action": "redact", "rule_id": "PII-1", "reason": "entity:EMAIL"}]


def test_g37_a_whole_answer_carries_it_and_the_id_of_the_stream() -> None:
    exchange = Exchange(CHAT, plan(RULES))
    exchange.guard = Guard(surface=CHAT, plan=plan(RULES), digest=digest, stream="4f2a")
    exchange.send(RequestReceived(request(stream=False)))
    exchange.send(UpstreamOpened(200, streaming=False))
    exchange.send(UpstreamBytes(whole("mail a@b.co")))
    exchange.send(UpstreamClosed())
    assert exchange.out.reply is not None
    said = json.loads(exchange.out.reply.body)["checkstream"]
    assert said == {"action": "redact", "rule_id": "PII-1", "reason": "entity:EMAIL", "stream": "4f2a"}
    clean = play(CHAT, plan(RULES), request(stream=False), [whole("fine")], streaming=False)
    assert clean.reply is not None
    assert clean.reply.body == whole("fine")


def test_g37_an_upstream_can_not_say_it_in_our_name() -> None:
    body = json.loads(whole("mail a@b.co"))
    forged = json.dumps({**body, "checkstream": {"action": "allow"}}).encode()
    out = play(CHAT, plan(RULES), request(stream=False), [forged], streaming=False)
    assert out.reply is not None
    assert json.loads(out.reply.body)["checkstream"]["action"] == "redact"


def test_g37_an_error_names_rule_and_place_where_sdks_show_it() -> None:
    out = play(CHAT, plan(RULES), request("this is forbidden"), [])
    assert out.reply is not None
    error = json.loads(out.reply.body)["error"]
    assert error["message"] == "Not this. (rule REF-1, messages[0])"
    assert (error["code"], error["rule_id"], error["param"]) == ("request_blocked", "REF-1", "messages[0]")


def test_an_upstream_that_stays_open_behind_its_last_word_keeps_nobody_waiting() -> None:
    exchange = Exchange(CHAT, plan(RULES))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(says("mail a@b.co") + ends() + DONE))
    assert exchange.out.joined.endswith(DONE)
    assert exchange.out.closed
