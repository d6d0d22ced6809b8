"""The order of things in one streamed exchange, event by event."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from checkstream.core.commands import Observe, Score, SendDownstream, StartStream
from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamOpened
from checkstream.core.wire import sse
from tests.guarded import (
    CAPPED,
    CHAT,
    DONE,
    HEAD,
    MAIL,
    STOP,
    TOX,
    bodies,
    ends,
    event,
    finishes,
    open_stream,
    plan,
    request,
    says,
    stream,
    text_of,
)
from tests.playbook import Exchange, Played


@pytest.mark.parametrize(
    "opening",
    [
        {"id": "", "object": "", "created": 0, "model": "", "choices": [{"index": 0, "delta": {}}]},  # Azure's
        {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": {"role": "assistant"}}]},
    ],
)
def test_events_of_ours_have_the_ids_of_the_answer_though_its_first_event_has_none(opening: dict[str, Any]) -> None:
    first = b"data: " + json.dumps(opening).encode() + b"\n\n"
    for pieces in (
        [first, says("All is fine. "), says("It is zero risk."), ends()],
        [first + says("Fine. ") + says("zero risk") + ends()],
    ):
        out = stream(STOP, pieces)
        told, finish = bodies(out)[-2:]
        assert told["choices"][0]["delta"] == {"content": "Halt."}
        assert finish["choices"][0]["finish_reason"] == "content_filter"
        assert [{key: each[key] for key in HEAD} for each in (told, finish)] == [HEAD, HEAD]


def test_g05_nothing_fires_and_the_bytes_are_the_upstreams() -> None:
    opening = event((0, {"role": "assistant", "content": ""}, None), extra={"x": [1.0]})
    usage = event(usage={"total_tokens": 3})
    pieces = [opening, says("Good day. "), says("Bye", usage=None), ends(), usage, DONE]
    out = stream(MAIL, [b": hello\n\n", *pieces])
    assert out.joined == sse.KEEP_ALIVE + b"".join(pieces)
    assert out.closed
    assert out.record is not None
    assert (out.record.action, out.record.outcome) == ("allow", "complete")
    assert "midstream:content" in out.record.scanned


def test_g04_an_address_over_three_events_is_redacted_and_no_part_of_it_leaves() -> None:
    out = stream(MAIL, [says("Write to jo"), says("hn@exam"), says("ple.com now."), ends(), DONE])
    assert text_of(out) == "Write to [EMAIL] now."
    assert b"john" not in out.joined
    assert finishes(out) == {0: "stop"}
    assert out.record is not None
    assert [v.rule_id for v in out.record.verdicts] == ["PII-1"]
    assert out.record.verdicts[0].spans[0] == msgspec.convert(
        {"start": 9, "end": 25}, type(out.record.verdicts[0].spans[0])
    )
    assert out.record.findings[0].detector == "entity:EMAIL"


def test_a_benign_word_waits_only_until_it_ends() -> None:
    exchange = Exchange(CHAT, plan(MAIL))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(says("Good")))
    assert exchange.out.sent == []
    exchange.send(UpstreamBytes(says(" day")))
    assert text_of(exchange.out) == "Good"
    exchange.send(UpstreamBytes(says(".\n")))
    assert text_of(exchange.out) == "Good day.\n"


def test_g16_a_stop_sends_message_finish_usage_and_terminator_and_cancels() -> None:
    body = request(stream_options={"include_usage": True})
    out = stream(STOP, [says("This has zero risk"), says(" for you"), says("."), ends(), DONE], body)
    assert text_of(out) == "This has Halt."
    assert finishes(out) == {0: "content_filter"}
    assert out.cancelled
    usage = [b for b in bodies(out) if b.get("usage")]
    assert len(usage) == 1
    assert usage[0]["choices"] == []
    assert "checkstream_estimated" in json.dumps(usage[0])
    assert out.joined.endswith(DONE)
    assert out.record is not None
    assert out.record.outcome == "stopped"
    assert bodies(out)[0]["id"] == bodies(out)[-1]["id"] == "c1"


def test_a_cut_off_is_timed_from_when_the_text_came_that_was_held() -> None:
    exchange = open_stream(STOP)
    for after, piece in ((0.0, says("all is fine ")), (1.0, says("with zero")), (0.25, says(" risk for you"))):
        exchange.now += after
        exchange.send(UpstreamBytes(piece))
    timed = [
        each.value for each in exchange.out.commands if isinstance(each, Observe) and each.metric.startswith("cut")
    ]
    assert timed == [0.25]


def test_a_stream_that_nothing_cuts_off_is_not_timed_as_such() -> None:
    out = stream(STOP, [says("all is fine"), ends(), DONE])
    assert not [each for each in out.commands if isinstance(each, Observe) and each.metric == "cutoff_seconds"]


def test_g14_stopping_one_choice_leaves_the_other_running() -> None:
    pieces = [
        says("zero risk", 0),
        says("one ", 1),
        says(" ok", 0),
        says("two", 1),
        ends(1),
        ends(0),
        event(usage={"n": 1}),
        DONE,
    ]
    out = stream(STOP, pieces, request(n=2))
    assert (text_of(out, 0), text_of(out, 1)) == ("Halt.", "one two")
    assert finishes(out) == {0: "content_filter", 1: "stop"}
    assert not out.cancelled
    assert bodies(out)[-1]["usage"] == {"n": 1}
    assert out.joined.endswith(DONE)


def test_the_last_choice_stopped_by_policy_cancels_the_upstream() -> None:
    out = stream(STOP, [says("fine ", 1), ends(1), says("zero risk.", 0), says("more", 0)], request(n=2))
    assert out.cancelled
    assert finishes(out) == {0: "content_filter", 1: "stop"}


def test_another_choice_overtakes_a_held_one_and_usage_does_not() -> None:
    exchange = Exchange(CHAT, plan(MAIL))
    exchange.send(RequestReceived(request(n=2)))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(says("jo", 0) + says("ok then.\n", 1) + event(usage={"n": 1})))
    assert [b["choices"][0]["index"] for b in bodies(exchange.out)] == [1]
    exchange.send(UpstreamBytes(ends(0)))
    assert [bool(b.get("usage")) for b in bodies(exchange.out)] == [False, False, True, False]


def test_g13_each_channel_is_scanned() -> None:
    call = {
        "tool_calls": [
            {"index": 0, "id": "t", "type": "function", "function": {"name": "send", "arguments": '{"to": "a@b.'}}
        ]
    }
    rest: dict[str, Any] = {"tool_calls": [{"index": 0, "function": {"arguments": 'io", "n": 1}'}}]}
    pieces = [event((0, {"reasoning_content": "mail a@b.io "}, None)), event((0, {"refusal": "no a@b.io "}, None)),
              event((0, call, None)), event((0, rest, None)), ends(reason="tool_calls"), DONE]  # fmt: skip
    out = stream(MAIL, pieces)
    assert b"a@b" not in out.joined
    arguments = "".join(
        t["function"].get("arguments", "")
        for b in bodies(out) for c in b["choices"] for t in c["delta"].get("tool_calls", ())
    )  # fmt: skip
    assert json.loads(arguments) == {"to": "[EMAIL]", "n": 1}
    assert finishes(out) == {0: "tool_calls"}


def test_a_name_that_goes_on_behind_its_arguments_is_no_call() -> None:
    def call(**function: str) -> bytes:
        return event((0, {"tool_calls": [{"index": 0, "function": function}]}, None))

    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(call(name="lookup", arguments="")))
    exchange.send(UpstreamBytes(call(arguments='{"x": 1,\n')))
    assert not exchange.out.sent
    exchange.send(UpstreamBytes(call(name="_more")))
    (error,) = bodies(exchange.out)
    assert error["error"]["type"] == "upstream_error"


@pytest.mark.parametrize(("numbers", "card"), [("label", "[CREDIT_CARD]"), ("json_null", None)])
def test_g08_a_number_in_tool_arguments_becomes_a_string_or_null(numbers: str, card: str | None) -> None:
    redact = f"{{type: redact, numbers: {numbers}}}"
    rules = f"  - {{name: c, id: PII-2, stage: [midstream], entities: [CREDIT_CARD], actions: [{redact}]}}\n"
    call = {
        "tool_calls": [{"index": 0, "function": {"name": "pay", "arguments": '{"card": 4111111111111111, "x": 1}'}}]
    }
    out = stream(rules, [event((0, call, None)), ends(reason="tool_calls"), DONE])
    assert finishes(out) == {0: "tool_calls"}
    (arguments,) = (
        call["function"]["arguments"]
        for body in bodies(out)
        for choice in body.get("choices", ())
        for call in choice["delta"].get("tool_calls", ())
    )
    assert json.loads(arguments) == {"card": card, "x": 1}


def test_a_disclaimer_stands_at_the_end_once_and_before_the_finish() -> None:
    rules = (
        "  - {name: d, id: D-1, stage: [midstream], phrases: [returns], "
        "actions: [{type: inject_disclaimer, text: Capital at risk., position: end}]}\n"
    )
    out = stream(rules, [says("returns and "), says("returns."), ends(), DONE])
    assert text_of(out) == "returns and returns.\n\nCapital at risk."
    assert finishes(out) == {0: "stop"}
    assert [v.rule_id for v in out.record.verdicts] == ["D-1", "D-1"] if out.record else False


def test_a_disclaimer_asked_for_by_the_prompt_stands_before_the_answer() -> None:
    rules = (
        "  - {name: d, id: D-1, stage: [ingress], phrases: [invest], "
        "actions: [{type: inject_disclaimer, text: No advice., position: start}]}\n"
    )
    out = stream(rules, [says(""), says("Buy bonds."), ends(), DONE], request("how do I invest?"))
    assert text_of(out) == "No advice.\n\nBuy bonds."


def test_g07_egress_rules_add_to_what_was_released() -> None:
    rules = STOP + (
        "  - {name: e, id: E-1, stage: [egress], phrases: [funds], "
        "actions: [{type: inject_disclaimer, text: See terms., position: end}]}\n"
    )
    out = stream(rules, [says("Some funds have zero risk "), says("and funds"), ends(), DONE])
    assert text_of(out) == "Some funds have Halt.\n\nSee terms."


def test_a_shadow_rule_records_and_changes_nothing() -> None:
    out = stream(MAIL.replace("stage", "mode: shadow, stage"), [says("jo"), says("hn@example.com."), ends(), DONE])
    assert text_of(out) == "john@example.com."
    assert out.sent[0] == says("jo")
    assert out.record is not None
    assert [(v.rule_id, v.mode) for v in out.record.verdicts] == [("PII-1", "shadow")]
    assert out.record.action == "allow"


def test_an_allow_rule_of_higher_priority_is_an_exception_and_recorded() -> None:
    rules = (
        f"{MAIL}  - {{name: a, id: OK-1, stage: [midstream], priority: 5, "
        "phrases: [help@ours.org], actions: [{type: allow}]}\n"
    )
    out = stream(rules, [says("Ask help@ours.org or a@b.io."), ends(), DONE])
    assert text_of(out) == "Ask help@ours.org or [EMAIL]."
    assert out.record is not None
    assert [v.excepted_by for v in out.record.verdicts if v.rule_id == "PII-1"] == ["OK-1", None]


def test_g15_log_probabilities_that_come_before_their_text_do_not_leave() -> None:
    tokens = {"content": [{"token": "john@ex", "logprob": -0.1, "bytes": [106], "top_logprobs": []}]}
    early = {**HEAD, "choices": [{"index": 0, "delta": {"content": ""}, "logprobs": tokens, "finish_reason": None}]}
    plain = {**HEAD, "choices": [{"index": 0, "delta": {"content": ""}, "logprobs": {"content": []}}]}
    pieces = [b"data: " + json.dumps(one).encode() + b"\n\n" for one in (plain, early)]
    out = stream(MAIL, [*pieces, says("john@example.com\n"), ends(), DONE])
    assert b"john" not in out.joined
    assert out.joined.startswith(pieces[0])
    assert text_of(out) == "[EMAIL]\n"
    assert out.record is not None
    assert "midstream:choice.logprobs" in out.record.unscanned


def test_the_stream_starts_before_its_first_event() -> None:
    out = stream(MAIL, [says("a b "), ends(), DONE])
    kinds = [type(c) for c in out.commands if isinstance(c, StartStream | SendDownstream | Score)]
    assert kinds[0] is StartStream


def test_g14_a_stop_does_not_end_a_choice_that_has_not_begun() -> None:
    pieces = [says("zero risk now"), says("Other. ", 1), ends(1), DONE]
    out = stream(STOP, pieces, request(n=2))
    assert not out.cancelled
    assert text_of(out, 0) == "Halt."
    assert text_of(out, 1) == "Other. "
    assert stream(STOP, pieces).cancelled


def argues(text: str, **function: str) -> bytes:
    return event((0, {"tool_calls": [{"index": 0, "function": {"arguments": text, **function}}]}, None))


def arguments_of(out: Played) -> str:
    deltas = [c["delta"] for b in bodies(out) for c in b.get("choices", ())]
    return "".join(call["function"].get("arguments", "") for d in deltas for call in d.get("tool_calls", ()))


@pytest.mark.parametrize("value", ["x\njohn@example.com", '#23456789a"cd', "#23456789\u0001cd", "#23456789a\\cd"])
def test_g08_an_edit_of_json_never_parts_an_escape_however_it_came(value: str) -> None:
    text = json.dumps({"a": value, "b": 1})
    whole = stream(MAIL + CAPPED, [argues("", name="f"), argues(text), ends(reason="tool_calls"), DONE])
    cut = stream(MAIL + CAPPED, [argues("", name="f"), *map(argues, text), ends(reason="tool_calls"), DONE])
    assert json.loads(arguments_of(whole))["b"] == 1
    assert arguments_of(whole) == arguments_of(cut) != text


def test_a_rule_that_needs_all_of_its_triggers_sees_also_those_that_another_rule_holds_text_for() -> None:
    rules = (
        "  - {name: r, id: R-1, stage: [midstream], phrases: [alpha], actions: [{type: redact}]}\n"
        "  - {name: l, id: L-1, stage: [midstream], match: all, phrases: [alpha, beta], actions: [{type: log_event}]}\n"
        "  - {name: a, id: L-2, stage: [midstream], phrases: [alpha], actions: [{type: log_event}]}\n"
        "  - {name: t, id: L-3, stage: [midstream], channels: [content], match: all, phrases: [beta], "
        "classifiers: [{name: lexicon.toxicity, threshold: 0.8}], actions: [{type: log_event}]}\n"
    )
    pieces = [says("alpha and "), says("beta and idiot. "), ends(), DONE]
    for body in (rules, rules + TOX.replace("type: stop, message: Halt.", "type: redact")):
        out = stream(body, pieces)
        assert out.record is not None
        fired = [verdict.rule_id for verdict in out.record.verdicts]
        assert sorted(set(fired) - {"TOX-1"}) == ["L-1", "L-2", "L-3", "R-1"]
        assert [fired.count(rule) for rule in ("R-1", "L-1", "L-2", "L-3")] == [1, 1, 1, 1]
        assert [finding.detector for finding in out.record.findings] == ["phrase:alpha", "phrase:beta"]


def test_g01_a_stopped_choice_waits_for_the_disclaimers_that_its_text_asks_for() -> None:
    rules = STOP + (
        "  - {name: d, id: FCA-1, stage: [egress], channels: [content], "
        "classifiers: [{name: lexicon.toxicity, threshold: 0.8}], actions: [{type: inject_disclaimer, text: Care.}]}\n"
    )
    text = "You idiot. It has zero risk and more."
    for pieces in ([says(text), ends(), DONE], [*map(says, text), ends(), DONE]):
        out = stream(rules, [b"".join(pieces)] if len(pieces) == 3 else pieces)
        assert text_of(out) == "You idiot. It has Halt.\n\nCare."
        assert finishes(out) == {0: "content_filter"}
        assert out.closed
