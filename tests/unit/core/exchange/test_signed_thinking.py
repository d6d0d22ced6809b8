"""Thinking that a model has signed: it leaves as the model wrote it, or its block not at all."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from checkstream.core.commands import ArmTimer
from checkstream.core.events import RequestReceived, TimerFired, UpstreamBytes, UpstreamClosed, UpstreamOpened
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


@pytest.mark.parametrize("stream", [True, False])
def test_g17_the_record_counts_what_has_left(stream: bool) -> None:
    """As many characters as of an answer that has never had the block."""
    released = []
    for thoughts in ([f"Is it {MAIL}? No. ", "So. "], ["So. "]):
        if stream:
            exchange = opened(ALL)
            for number, text in enumerate(thoughts):
                come(exchange, *messages.thought(number, text[:8], text[8:]))
            come(exchange, *messages.text(len(thoughts), "Done."), messages.end())
            exchange.send(UpstreamClosed())
            record = exchange.out.record
        else:
            blocks = [{"type": "thinking", "thinking": text, "signature": "c2ln"} for text in thoughts]
            record = messages.reply(ALL, messages.whole(*blocks, {"type": "text", "text": "Done."})).record
        assert record is not None
        released.append(record.released_chars)
    assert released[0] == released[1]


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


def test_the_late_end_of_a_block_that_went_is_none_of_the_next_one() -> None:
    """Some servers end all blocks at the end of the message."""
    exchange = opened(ALL)
    thought, said = messages.thought(0, f"So {MAIL} "), messages.text(1, "One. ", "Two. ")
    come(exchange, *thought[:-1], *said[:2], thought[-1], *said[2:], messages.end())
    assert messages.read(exchange.out.joined)["content"] == [{"type": "text", "text": "One. Two. "}]


@pytest.mark.parametrize("text", ["I could drop all of it, and more of it than that. ", "I could go on, and "])
def test_g17_of_a_thought_that_breaks_off_nothing_counts_as_sent(text: str) -> None:
    """A rule ends the message in one long event of it, or the upstream ends the stream there."""
    exchange = opened(STOP)
    come(exchange, *messages.thought(0, text)[:-2])
    exchange.send(UpstreamClosed())
    bare = opened(STOP)
    bare.send(UpstreamClosed())
    assert exchange.out.record is not None
    assert bare.out.record is not None
    assert exchange.out.record.released_chars == bare.out.record.released_chars


def test_g22_a_block_too_long_to_be_held_goes_and_the_message_goes_on() -> None:
    exchange = opened(plan(ALL, call_bytes=4096))
    come(exchange, *messages.thought(0, *["so it is, and "] * 400), *messages.thought(1, "Well. "))
    come(exchange, *messages.text(2, "Done."), messages.end())
    exchange.send(UpstreamClosed())
    assert types(exchange) == ["thinking", "text"]
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "complete"
    assert "thinking_withheld:too_long" in exchange.out.record.degradations
    assert b'"reason":"thinking_withheld:too_long"' in exchange.out.joined, "the caller is told"


@pytest.mark.parametrize("said", ["so it is, and ", f"I write to {MAIL} and "], ids=["calm", "edited"])
def test_a_caller_who_waits_for_it_sees_that_the_stream_lives_and_the_record_says_how_long(said: str) -> None:
    exchange = opened(plan(ALL, keepalive_ms=2000))
    for piece in messages.thought(0, *[said] * 60):
        exchange.now += 0.5
        come(exchange, piece)
        for timer in [each.timer for each in exchange.out.commands if isinstance(each, ArmTimer)][-1:]:
            exchange.send(TimerFired(timer))
    assert exchange.out.joined.count(b": ") >= 5
    come(exchange, *messages.text(1, "Done."), messages.end())
    exchange.send(UpstreamClosed())
    assert exchange.out.record is not None
    assert exchange.out.record.held_ms > 25_000


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


BESIDE = [
    pytest.param({"signature": MAIL}, id="signature"),
    pytest.param({"signature": "c2ln", "x_note": f"for {MAIL} now"}, id="field that nobody knows"),
]


@pytest.mark.parametrize("beside", BESIDE)
@pytest.mark.parametrize("rules", [ALL, ALL.replace("entities", "channels: [extra], entities")], ids=["all", "extra"])
def test_g08_a_block_goes_when_anything_in_it_is_edited(beside: dict[str, str], rules: str) -> None:
    """The API takes a block back as it was, or not at all."""
    block = {"type": "thinking", "thinking": "So. ", **beside}
    text = {"type": "text", "text": " Done."}
    exchange = opened(rules)
    given = {name: value for name, value in block.items() if name not in {"thinking", "signature"}}
    come(
        exchange,
        messages.begun(0, **{"type": "thinking", "thinking": "", "signature": "", **given}),
        messages.delta(0, "thinking_delta", thinking="So. "),
        messages.delta(0, "signature_delta", signature=beside["signature"]),
        messages.over(0),
        *messages.text(1, " Done."),
        messages.end(),
    )
    whole = messages.reply(rules, messages.whole(block, text))
    assert whole.reply is not None
    for message in (messages.read(exchange.out.joined), json.loads(whole.reply.body)):
        assert message["content"] == [text]
    if "extra" in rules:
        return
    history = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": [block, text]}]
    assert forwarded(ALL.replace("midstream", "ingress"), history)["messages"][1]["content"] == [text]


def forwarded(rules: str, history: Sequence[object], **more: Any) -> dict[str, Any]:
    exchange = Exchange(MESSAGES, plan(rules))
    body = {"model": "claude", "max_tokens": 9, "stream": True, "messages": history, **more}
    exchange.send(RequestReceived(json.dumps(body).encode()))
    assert exchange.out.forwarded is not None
    sent: dict[str, Any] = json.loads(exchange.out.forwarded)
    return sent


@pytest.mark.parametrize("style", ["label", "surrogate"])
def test_g38_placeholders_in_thinking_mean_the_same_in_the_next_turn(style: str) -> None:
    """The model has signed what it said of them, and the caller's SDK sends it back."""
    rules = NAMED.replace("pseudonymise}", f"pseudonymise, style: {style}}}") + ALL
    asked = {"role": "user", "content": f"I am {MAIL}."}
    name = forwarded(rules, [asked])["messages"][0]["content"][5:-1]
    assert name != MAIL
    thought = {"type": "thinking", "thinking": f"The user is {name} here.", "signature": "c2ln"}
    answer = {"role": "assistant", "content": [thought, {"type": "text", "text": f"Hello {MAIL}."}]}
    sent = forwarded(rules, [asked, answer, {"role": "user", "content": "Who am I?"}])["messages"]
    assert sent[0]["content"] == f"I am {name}."
    assert sent[1]["content"] == [thought, {"type": "text", "text": f"Hello {name}."}]


LOOP: list[dict[str, Any]] = [
    {"role": "user", "content": "pay it"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "pay", "input": {"a": 1}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}]},
]
THINKS = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


def test_an_agent_goes_on_though_its_thought_was_taken_out() -> None:
    """The API refuses results of a call without the thought before it, unless the model isn't to think."""
    assert "thinking" not in forwarded(ALL, LOOP, **THINKS)
    thought = {"type": "thinking", "thinking": f"It is {MAIL} now.", "signature": "c2ln"}
    call = {"role": "assistant", "content": [thought, *LOOP[1]["content"]]}
    sent = forwarded(ALL.replace("midstream", "ingress"), [LOOP[0], call, LOOP[2]], **THINKS)
    assert sent["messages"] == LOOP
    assert "thinking" not in sent


def test_the_record_names_what_went_with_the_thought() -> None:
    thought = {"type": "thinking", "thinking": f"It is {MAIL} now.", "signature": "c2ln"}
    exchange = Exchange(MESSAGES, plan(ALL.replace("midstream", "ingress")))
    call = {"role": "assistant", "content": [thought, *LOOP[1]["content"]]}
    body = {"model": "claude", "max_tokens": 9, "messages": [LOOP[0], call, LOOP[2]], **THINKS}
    exchange.send(RequestReceived(json.dumps(body).encode()))
    exchange.send(UpstreamOpened(200, streaming=False))
    exchange.send(UpstreamBytes(messages.whole({"type": "text", "text": "Done."})))
    exchange.send(UpstreamClosed())
    assert exchange.out.record is not None
    assert exchange.out.record.removed == ("thinking",)


def test_g05_a_turn_of_several_calls_keeps_what_it_asks_for_while_a_thought_of_it_is_left() -> None:
    """The model has thought once, before the first call; the API wants that, and `thinking` with it."""
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}
    first = {"role": "assistant", "content": [thought, *LOOP[1]["content"]]}
    for history in (
        [LOOP[0], first, LOOP[2], LOOP[1], LOOP[2]],
        [LOOP[0], {"role": "assistant", "content": [thought]}, *LOOP[1:]],
        [LOOP[0], {"role": "assistant", "content": [{"type": "text", "text": "I see."}, *first["content"]]}, LOOP[2]],
    ):
        assert forwarded(ALL, history, **THINKS)["thinking"] == THINKS["thinking"]
    earlier = [LOOP[0], first, LOOP[2], {"role": "assistant", "content": "Paid."}]
    assert "thinking" not in forwarded(ALL, [*earlier, *LOOP], **THINKS), "a thought of another turn is none of this"


@pytest.mark.parametrize(
    ("content", "more"),
    [
        ([{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}, *LOOP[1]["content"]], THINKS),
        ([{"type": "redacted_thinking", "data": "ZGF0YQ=="}, *LOOP[1]["content"]], THINKS),
        ([{"type": "text", "text": "No."}], THINKS),
        (LOOP[1]["content"], {"thinking": {"type": "adaptive"}}),
    ],
    ids=["thought", "sealed", "no call", "adaptive"],
)
def test_g05_thinking_stays_asked_for_where_the_api_takes_it(content: list[Any], more: dict[str, Any]) -> None:
    history = [LOOP[0], {"role": "assistant", "content": content}, LOOP[2]]
    assert forwarded(ALL, history, **more)["thinking"] == more["thinking"]


def test_g08_thinking_of_a_history_that_a_rule_edits_goes_with_its_signature() -> None:
    thought: dict[str, Any] = {"type": "thinking", "thinking": f"I ask {MAIL} today. ", "signature": "c2ln"}
    calm = {**thought, "thinking": "So be it. "}
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thought, calm, {"type": "text", "text": f"Ask {MAIL} now."}]},
        {"role": "assistant", "content": [thought]},
    ]
    sent = forwarded(CONTENT.replace("midstream", "ingress").replace("content", "assistant"), history)["messages"]
    assert sent[1]["content"] == [calm, {"type": "text", "text": "Ask [EMAIL] now."}]
    assert sent[2]["content"] == "[thinking withheld]"
