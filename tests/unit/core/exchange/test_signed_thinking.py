"""Thinking that a model has signed: it leaves as the model wrote it, or its block not at all."""

from __future__ import annotations

import json
from typing import Any

import pytest

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.plan import Plan
from tests import messages
from tests.guarded import plan
from tests.messages import MAIL, MESSAGES
from tests.playbook import Exchange

ALL = "  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n"
CONTENT = ALL.replace("entities", "channels: [content], entities")
STOP = "  - {name: s, id: STOP-1, stage: [midstream], phrases: [drop all], actions: [{type: stop, message: Halt.}]}\n"
NAMED = "  - {name: n, id: PII-2, stage: [ingress], entities: [EMAIL], actions: [{type: pseudonymise}]}\n"
PING = messages.event("ping")


def opened(rules: str | Plan, asked: str = "hi") -> Exchange:
    exchange = Exchange(MESSAGES, plan(rules) if isinstance(rules, str) else rules)
    exchange.send(RequestReceived(messages.request(asked)))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(messages.head()))
    return exchange


def come(exchange: Exchange, *pieces: bytes) -> bytes:
    """Return what leaves when these pieces come."""
    before = len(exchange.out.joined)
    for piece in pieces:
        if not exchange.out.closed:
            exchange.send(UpstreamBytes(piece))
    return exchange.out.joined[before:]


def types(exchange: Exchange) -> list[str]:
    return [block["type"] for block in messages.read(exchange.out.joined)["content"]]


def test_it_is_held_until_its_block_is_over_and_pings_pass_it() -> None:
    exchange = opened(ALL)
    block = messages.thought(0, "I look ", "at it. ", "Well, ", "so it is. ")
    assert come(exchange, *block[:4], PING) == messages.head() + PING
    assert come(exchange, *block[4:], *messages.text(1, "Done. ")).startswith(b"".join(block))


def test_it_leaves_as_it_comes_where_no_rule_edits_any() -> None:
    exchange = opened(CONTENT)
    block = messages.thought(0, f"I write to {MAIL} ", "then. ")
    assert come(exchange, *block[:-1]) == b"".join(block[:-1])


def test_g08_a_block_that_a_rule_edits_goes_as_a_whole_and_those_behind_it_move_up() -> None:
    exchange = opened(ALL)
    first, second = messages.thought(0, f"Is it {MAIL}", "? ", "No. "), messages.thought(1, "It is not. ")
    come(exchange, *first, *second, *messages.text(2, "Done."), messages.end())
    message = messages.read(exchange.out.joined)
    assert message["content"] == [
        {"type": "thinking", "thinking": "It is not. ", "signature": "c2ln"},
        {"type": "text", "text": "Done."},
    ]
    assert exchange.out.record is not None
    assert [verdict.rule_id for verdict in exchange.out.record.verdicts] == ["PII-1"]


def test_g08_a_value_over_two_blocks_takes_both() -> None:
    exchange = opened(ALL)
    name, rest = MAIL.split("@")
    come(exchange, *messages.thought(0, f"It is {name}"), *messages.thought(1, f"@{rest} "), *messages.text(2, "Done."))
    come(exchange, messages.end())
    assert types(exchange) == ["text"]


def test_g08_of_a_block_in_which_a_rule_stops_the_message_nothing_leaves() -> None:
    exchange = opened(STOP)
    come(exchange, *messages.thought(0, "I could ", "drop all ", "of it. "), *messages.text(1, "Done."), messages.end())
    message = messages.read(exchange.out.joined)
    assert message["content"] == [{"type": "text", "text": "Halt."}]
    assert message["stop_reason"] == "refusal"


def test_a_block_whose_end_is_never_told_leaves_when_another_begins() -> None:
    exchange = opened(ALL)
    come(exchange, *messages.thought(0, "Well. ")[:-1], *messages.text(1, "Done."), messages.end())
    assert messages.read(exchange.out.joined)["content"] == [
        {"type": "thinking", "thinking": "Well. ", "signature": "c2ln"},
        {"type": "text", "text": "Done."},
    ]


def test_g08_an_edited_block_whose_end_is_never_told_goes_all_the_same() -> None:
    exchange = opened(ALL)
    come(exchange, *messages.thought(0, f"So {MAIL} ")[:-1], *messages.text(1, "Done."), messages.end())
    assert types(exchange) == ["text"]


def test_g22_a_block_too_long_to_be_held_goes_and_the_message_goes_on() -> None:
    exchange = opened(plan(ALL, call_bytes=4096))
    come(exchange, *messages.thought(0, *["so it is, and "] * 400), *messages.thought(1, "Well. "))
    come(exchange, *messages.text(2, "Done."), messages.end())
    exchange.send(UpstreamClosed())
    assert types(exchange) == ["thinking", "text"]
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "complete"


@pytest.mark.parametrize("edited", [True, False])
def test_redacted_thinking_passes(edited: bool) -> None:
    exchange = opened(ALL)
    sealed = [messages.begun(1, type="redacted_thinking", data="ZGF0YQ=="), messages.over(1)]
    come(exchange, *messages.thought(0, MAIL if edited else "so"), *sealed, *messages.text(2, "Done."), messages.end())
    assert types(exchange) == ["redacted_thinking", "text"] if edited else ["thinking", "redacted_thinking", "text"]


@pytest.mark.parametrize("stream", [True, False])
def test_no_value_comes_back_in_it_and_its_signature_fits(stream: bool) -> None:
    """It names people by their placeholders, as the model has written it."""
    block = {"type": "thinking", "thinking": "<EMAIL_1> is it.", "signature": "c2ln"}
    if stream:
        exchange = opened(NAMED + ALL, f"I am {MAIL}")
        come(exchange, *messages.thought(0, "<EMA", "IL_1> is it."), *messages.text(1, "To <EMAIL", "_1>."))
        come(exchange, messages.end())
        message = messages.read(exchange.out.joined)
    else:
        body = messages.whole(block, {"type": "text", "text": "To <EMAIL_1>."})
        played = messages.reply(NAMED + ALL, body, messages.request(f"I am {MAIL}", stream=False))
        assert played.reply is not None
        message = json.loads(played.reply.body)
    assert message["content"] == [block, {"type": "text", "text": f"To {MAIL}."}]


def test_g08_thinking_of_a_history_that_a_rule_edits_goes_with_its_signature() -> None:
    thought: dict[str, Any] = {"type": "thinking", "thinking": f"I ask {MAIL} today. ", "signature": "c2ln"}
    calm = {**thought, "thinking": "So be it. "}
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thought, calm, {"type": "text", "text": f"Ask {MAIL} now."}]},
        {"role": "assistant", "content": [thought]},
    ]
    exchange = Exchange(MESSAGES, plan(CONTENT.replace("midstream", "ingress").replace("content", "assistant")))
    body = {"model": "claude", "max_tokens": 9, "stream": True, "messages": history}
    exchange.send(RequestReceived(json.dumps(body).encode()))
    assert exchange.out.forwarded is not None
    sent = json.loads(exchange.out.forwarded)["messages"]
    assert sent[1]["content"] == [calm, {"type": "text", "text": "Ask [EMAIL] now."}]
    assert sent[2]["content"] == "[thinking withheld]"
