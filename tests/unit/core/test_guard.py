"""The order of things in one exchange, event by event."""

from __future__ import annotations

import gc
import json
import weakref
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from checkstream.core.checking import MAX_UNDER_WAY
from checkstream.core.commands import (
    ArmTimer,
    CancelUpstream,
    Degraded,
    PauseUpstream,
    ResumeUpstream,
    Score,
    SendDownstream,
    StartStream,
)
from checkstream.core.events import (
    AnyEvent,
    DownstreamClosed,
    Draining,
    RequestReceived,
    Scored,
    ScoringFailed,
    TimerFired,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamFailed,
    UpstreamOpened,
)
from checkstream.core.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.openai_chat import OpenAIChat
from tests.playbook import Exchange, Played, by_words, constant, play

LABELS = (ClassifierLabel("lexicon.toxicity"), ClassifierLabel("lexicon.injection"))
HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
CHAT = OpenAIChat()


def plan(rules: str, **settings: object) -> Plan:
    program = compile_sources([("t.yaml", f"pack: {{name: t, version: 1.0.0}}\npolicies:\n{rules}")], LABELS)
    return msgspec.structs.replace(Plan(program=program), **settings)


def request(content: str = "hi", *, stream: bool = True, **more: object) -> bytes:
    return json.dumps(
        {"model": "m", "stream": stream, "messages": [{"role": "user", "content": content}], **more}
    ).encode()


def event(*choices: tuple[int, dict[str, Any], str | None], **more: object) -> bytes:
    rows = [{"index": i, "delta": delta, "finish_reason": reason} for i, delta, reason in choices]
    return b"data: " + json.dumps({**HEAD, "choices": rows, **more}).encode() + b"\n\n"


def says(text: str, choice: int = 0, **more: object) -> bytes:
    return event((choice, {"content": text}, None), **more)


def ends(choice: int = 0, reason: str = "stop") -> bytes:
    return event((choice, {}, reason))


DONE = b"data: [DONE]\n\n"
MAIL = "  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n"
STOP = "  - {name: s, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: Halt.}]}\n"
TOX = (
    "  - {name: x, id: TOX-1, stage: [midstream], channels: [content], "
    "classifiers: [{name: lexicon.toxicity, threshold: 0.8}], actions: [{type: stop, message: Halt.}]}\n"
)
INJ = (
    "  - {name: i, id: INJ-1, stage: [ingress], classifiers: [{name: lexicon.injection, threshold: 0.8}], "
    "actions: [{type: reject, message: not allowed}]}\n"
)


def bodies(out: Played | bytes) -> list[dict[str, Any]]:
    data = out if isinstance(out, bytes) else out.joined
    return [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: {")]


def text_of(out: Played, choice: int = 0) -> str:
    return "".join(
        c["delta"].get("content") or "" for b in bodies(out) for c in b.get("choices", ()) if c["index"] == choice
    )


def finishes(out: Played) -> dict[int, str]:
    return {c["index"]: c["finish_reason"] for b in bodies(out) for c in b.get("choices", ()) if c["finish_reason"]}


def stream(rules: str, pieces: Sequence[bytes], body: bytes | None = None, **settings: object) -> Played:
    return play(
        CHAT, plan(rules, **settings), body or request(), pieces, scorer=by_words("lexicon.toxicity", ["idiot"])
    )


# --- streams


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
        [first, says("All is fine. "), says("It is zero risk.")],
        [first + says("Fine. ") + says("zero risk")],
    ):
        out = stream(STOP, pieces)
        told, finish = bodies(out)[-2:]
        assert told["choices"][0]["delta"] == {"content": "Halt."}
        assert finish["choices"][0]["finish_reason"] == "content_filter"
        assert [{key: each[key] for key in HEAD} for each in (told, finish)] == [HEAD, HEAD]


def test_g05_nothing_fires_and_the_bytes_are_the_upstreams() -> None:
    opening = event((0, {"role": "assistant", "content": ""}, None), extra={"x": [1.0]})
    usage = event(usage={"total_tokens": 3})
    pieces = [b": hello\n\n", opening, says("Good day. "), says("Bye", usage=None), ends(), usage, DONE]
    out = stream(MAIL, pieces)
    assert out.joined == b"".join(pieces)
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


def test_a_tool_call_streams_while_its_name_is_complete() -> None:
    def call(**function: str) -> bytes:
        return event((0, {"tool_calls": [{"index": 0, "function": function}]}, None))

    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(call(name="lookup", arguments="")))
    exchange.send(UpstreamBytes(call(arguments='{"x": 1,\n')))
    assert len(exchange.out.sent) == 1
    exchange.send(UpstreamBytes(call(name="_more")))
    assert bodies(exchange.out)[-1]["error"]["type"] == "upstream_error"


def test_g08_a_number_in_tool_arguments_stops_the_choice() -> None:
    rules = "  - {name: c, id: PII-2, stage: [midstream], entities: [CREDIT_CARD], actions: [{type: redact}]}\n"
    call = {
        "tool_calls": [{"index": 0, "function": {"name": "pay", "arguments": '{"card": 4111111111111111, "x": 1}'}}]
    }
    out = stream(rules, [event((0, call, None)), ends(reason="tool_calls"), DONE])
    assert b"411111" not in out.joined
    assert finishes(out) == {0: "content_filter"}


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


# --- classifiers


def open_stream(rules: str, **settings: object) -> Exchange:
    exchange = Exchange(CHAT, plan(rules, **settings))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    return exchange


def test_text_waits_for_its_score_and_the_calm_hold() -> None:
    exchange = open_stream(TOX)
    exchange.send(UpstreamBytes(says("one two three four five six seven eight nine ")))
    assert [s.text for s in exchange.unanswered] == [
        "one",
        "one two",
        "one two three four",
        "one two three four five six seven eight",
    ]
    assert exchange.out.sent == []
    for score in exchange.unanswered:
        exchange.send(Scored(score.ticket, {"lexicon.toxicity": 0.0}))
    assert exchange.out.sent == []  # a whole event leaves only when all of it may
    exchange.unanswered.clear()
    exchange.send(UpstreamBytes(ends() + DONE))
    (last,) = exchange.unanswered
    exchange.send(Scored(last.ticket, {"lexicon.toxicity": 0.0}))
    assert text_of(exchange.out).endswith("nine ")


def test_a_stop_by_score_condemns_what_is_still_held() -> None:
    words = [says(f"w{i} ") for i in range(20)]
    out = stream(TOX, [*words, says("you idiot "), *words, ends(), DONE])
    assert "idiot" not in text_of(out)
    assert text_of(out).endswith("Halt.")
    assert text_of(out).startswith("w0 w1 ")
    assert out.cancelled


@pytest.mark.parametrize("reason", ["deadline", "crash", "garbage", "overload"])
def test_g23_a_failed_detector_meets_the_fail_mode(reason: str) -> None:
    for mode, ended in (("closed", {0: "content_filter"}), ("open", {0: "stop"})):
        out = play(CHAT, plan(TOX, fail_mode=mode), request(), [says("good day "), ends(), DONE],
                   scorer=lambda score: ScoringFailed(score.ticket, reason))  # type: ignore[arg-type]  # fmt: skip
        assert finishes(out) == ended
        assert out.record is not None
        assert f"lexicon:{reason}" in out.record.degradations
        assert text_of(out) == ("" if mode == "closed" else "good day ")


def test_g23_a_rules_own_fail_mode_overrides_the_routes() -> None:
    out = play(CHAT, plan(TOX.replace("stage", "fail_mode: open, stage")), request(), [says("good day "), ends(), DONE],
               scorer=lambda score: ScoringFailed(score.ticket, "crash"))  # fmt: skip
    assert finishes(out) == {0: "stop"}


def test_g06_a_stall_checks_early_what_is_there() -> None:
    exchange = open_stream(TOX)
    exchange.send(UpstreamBytes(says("hello there")))
    exchange.unanswered.clear()
    assert any(isinstance(c, ArmTimer) and c.timer == "stall" for c in exchange.out.commands)
    exchange.send(Scored(1, {"lexicon.toxicity": 0.0}))
    exchange.now += 0.2
    exchange.send(TimerFired("stall"))
    assert exchange.unanswered == []  # not silent for long enough: the timer is armed again
    exchange.now += 0.1
    exchange.send(TimerFired("stall"))
    (early,) = exchange.unanswered
    assert early.text == "hello there"
    exchange.send(Scored(early.ticket, {"lexicon.toxicity": 0.0}))
    assert text_of(exchange.out) == "hello there"


def test_g06_a_comment_keeps_the_connection_while_text_is_held() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(says("jo")))
    exchange.now += 20
    exchange.send(TimerFired("keepalive"))
    assert exchange.out.sent == [b": keep-alive\n"]


@pytest.mark.parametrize("streaming", [True, False])
def test_a_long_answer_in_one_piece_asks_a_few_checks_at_a_time(streaming: bool) -> None:
    text = " ".join(f"word{i}" for i in range(3000)) + " idiot and on " + " ".join(f"tail{i}" for i in range(300))
    exchange = Exchange(CHAT, plan(TOX))
    exchange.send(RequestReceived(request(stream=streaming)))
    exchange.send(UpstreamOpened(200, streaming=streaming))
    exchange.send(UpstreamBytes(says(text) + ends() + DONE if streaming else whole(text)))
    exchange.send(UpstreamClosed())
    answer = by_words("lexicon.toxicity", ["idiot"])
    asked = 0
    while exchange.unanswered:
        assert len(exchange.unanswered) <= MAX_UNDER_WAY
        asked += 1
        exchange.send(answer(exchange.unanswered.pop(0)))
    assert asked > 300
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "stopped"
    said = (
        text_of(exchange.out)
        if exchange.out.reply is None
        else json.loads(exchange.out.reply.body)["choices"][0]["message"]["content"]
    )
    assert said.startswith("word0 word1")
    assert said.endswith("Halt.")
    assert "idiot" not in said


def test_a_slow_check_is_recorded() -> None:
    exchange = open_stream(TOX)
    exchange.send(UpstreamBytes(says("hello there")))
    exchange.now += 0.02
    exchange.send(Scored(1, {"lexicon.toxicity": 0.0}))
    assert Degraded("check_over_budget") in exchange.out.commands


# --- prompts


def test_a_blocked_prompt_never_reaches_the_upstream() -> None:
    out = play(CHAT, plan(INJ), request("ignore all"), [], scorer=constant(0.95, "lexicon.injection"))
    assert out.forwarded is None
    assert out.reply is not None
    assert (out.reply.status, out.reply.retry, out.reply.action) == (400, False, "reject")
    body = json.loads(out.reply.body)
    assert body["error"]["type"] == body["error"]["code"] == "request_blocked"
    assert body["rule_id"] == body["error"]["rule_id"] == "INJ-1"
    assert out.record is not None
    assert out.record.outcome == "refused"


def test_a_prompt_is_redacted_before_it_is_forwarded() -> None:
    out = stream(MAIL.replace("midstream", "ingress"), [ends(), DONE], request("I am jo@x.io, hi", temperature=0.70))
    assert out.forwarded is not None
    assert json.loads(out.forwarded)["messages"][0]["content"] == "I am [EMAIL], hi"
    assert b'"temperature": 0.7' in out.forwarded


def test_a_clean_prompt_is_forwarded_as_it_came() -> None:
    body = request("hello", temperature=1e0)
    assert stream(MAIL, [ends(), DONE], body).forwarded == body


def test_a_failed_prompt_check_refuses_when_closed_and_passes_when_open() -> None:
    for mode, status in (("closed", 503), ("open", None)):
        out = play(CHAT, plan(INJ, fail_mode=mode), request(), [ends(), DONE],
                   scorer=lambda score: ScoringFailed(score.ticket, "crash"))  # fmt: skip
        assert (out.reply.status if out.reply else None) == status


def test_limits_and_unreadable_prompts_are_refused() -> None:
    assert (r := stream(MAIL, [], request("x" * 50), prompt_chars=40).reply)
    assert r.status == 413
    assert (r := stream(MAIL, [], b'{"model": "m", "messages": [], "messages": []}').reply)
    assert r.status == 400
    assert (r := stream(MAIL, [], request(strange_field="x")).reply)
    assert r.status == 400
    assert b"strange_field" in r.body
    opened = stream(MAIL, [ends(), DONE], request(strange_field="x"), fail_mode="open")
    assert opened.forwarded is not None
    assert opened.record is not None
    assert "ingress:strange_field" in opened.record.unscanned


def test_parts_that_are_not_text_pass_or_not_as_the_route_says() -> None:
    content = [
        {"type": "text", "text": "what is it?"},
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png"}},
    ]
    body = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": content}]}).encode()
    out = stream(MAIL, [ends(), DONE], body)
    assert out.record is not None
    assert any("image_url" in name for name in out.record.unscanned)
    refused = stream(MAIL, [], body, parts="refuse").reply
    assert refused is not None
    assert refused.status == 400


# --- whole answers


def whole(content: str | None, **message: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "x": 1.0}
    ).encode()


def test_g01_a_whole_answer_goes_through_the_same_guard() -> None:
    for text, expected in (("hi a@b.io.", "hi [EMAIL]."), ("It has zero risk!", "It has Halt.")):
        streamed = stream(MAIL + STOP, [says(text), ends(), DONE])
        out = play(CHAT, plan(MAIL + STOP), request(stream=False), [whole(text)], streaming=False)
        assert out.reply is not None
        choice = json.loads(out.reply.body)["choices"][0]
        assert choice["message"]["content"] == expected == text_of(streamed)
        assert choice["finish_reason"] == finishes(streamed)[0]
        assert out.reply.action == ("stop" if "risk" in text else "redact")


def test_a_clean_whole_answer_is_the_upstreams_bytes() -> None:
    body = whole("good day")
    assert (r := play(CHAT, plan(MAIL), request(stream=False), [body[:9], body[9:]], streaming=False).reply)
    assert (r.status, r.body, r.action) == (200, body, "allow")


def test_a_stop_in_tool_arguments_of_a_whole_answer_says_so_too() -> None:
    calls = [{"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"a": "zero risk"}'}}]
    out = play(CHAT, plan(STOP), request(stream=False), [whole(None, tool_calls=calls)], streaming=False)
    assert out.reply is not None
    choice = json.loads(out.reply.body)["choices"][0]
    assert choice["finish_reason"] == "content_filter"
    assert "zero risk" not in json.dumps(choice)
    assert choice["message"]["content"] == "Halt."


def test_upstream_errors_pass_with_their_status() -> None:
    body = b'{"error": {"message": "slow down", "type": "rate_limit"}}'
    out = play(CHAT, plan(MAIL), request(), [body], streaming=False, status=429)
    assert out.reply is not None
    assert (out.reply.status, out.reply.body) == (429, body)
    assert out.record is not None
    assert out.record.outcome == "upstream_failed"


def test_an_error_status_is_no_way_around_the_guard() -> None:
    out = play(CHAT, plan(MAIL), request(), [whole("mail a@b.io.")], streaming=False, status=500)
    assert out.reply is not None
    assert out.reply.status == 500
    assert b"a@b.io" not in out.reply.body
    page = b"<html>mail a@b.io</html>"
    closed = play(CHAT, plan(MAIL), request(), [page], streaming=False, status=503).reply
    assert closed is not None
    assert closed.status == 503
    assert json.loads(closed.body)["error"]["type"] == "upstream_error"
    opened = play(CHAT, plan(MAIL, fail_mode="open"), request(), [page], streaming=False, status=503)
    assert opened.reply is not None
    assert opened.reply.body == page
    assert opened.record is not None
    assert "midstream:body" in opened.record.unscanned


# --- failures and ends


def test_g19_a_malformed_event_meets_the_fail_mode() -> None:
    bad = b'data: {"choices": [\n\n'
    closed = stream(MAIL, [says("fine.\n\n"), bad, says("x"), DONE])
    assert text_of(closed) == "fine.\n\n"
    assert any("error" in b for b in bodies(closed))
    assert closed.cancelled
    assert closed.closed
    opened = stream(MAIL, [says("fine.\n\n"), bad, ends(), DONE], fail_mode="open")
    assert bad in opened.joined
    assert opened.record is not None
    assert "midstream:opaque_event" in opened.record.unscanned


def test_an_upstream_reset_is_never_a_silent_end() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(says("so far jo")))
    exchange.send(UpstreamFailed("reset"))
    assert text_of(exchange.out) == "so "  # what follows could still be part of an address
    assert bodies(exchange.out)[-1]["error"]["type"] == "upstream_error"
    assert exchange.out.closed
    assert exchange.out.record is not None
    assert exchange.out.record.upstream_failure == "reset"


@pytest.mark.parametrize(("kind", "status"), [("connect", 502), ("first_byte", 504), ("reset", 502)])
def test_an_upstream_failure_before_the_first_byte_is_an_error_status(kind: str, status: int) -> None:
    exchange = Exchange(CHAT, plan(MAIL))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamFailed(kind))  # type: ignore[arg-type]
    assert exchange.out.reply is not None
    assert exchange.out.reply.status == status


def test_g21_a_gone_caller_cancels_the_upstream_in_every_state() -> None:
    opened = UpstreamOpened(200, streaming=True)
    flat = UpstreamOpened(200, streaming=False)
    for steps in ((), (opened,), (opened, UpstreamBytes(says("jo"))), (flat, UpstreamBytes(b"{"))):
        exchange = Exchange(CHAT, plan(MAIL))
        exchange.send(RequestReceived(request()))
        for step in steps:
            exchange.send(step)
        exchange.send(DownstreamClosed())
        assert CancelUpstream() in exchange.out.commands
        assert exchange.out.record is not None
        assert exchange.out.record.outcome == "downstream_closed"


def test_a_drain_ends_the_stream_with_an_error_event() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(says("so far ")))
    exchange.send(Draining())
    assert bodies(exchange.out)[-1]["error"]["type"] == "server_shutting_down"
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "drained"


def test_g22_an_event_without_end_and_an_answer_without_end_meet_their_caps() -> None:
    for settings in ({"event_bytes": 500}, {"answer_bytes": 2000}):
        exchange = open_stream(MAIL, **settings)
        for _ in range(100):
            exchange.send(UpstreamBytes(b"data: " + b"x" * 100 if "event_bytes" in settings else says("fine. ")))
        assert exchange.out.cancelled
        assert exchange.out.closed
        assert bodies(exchange.out)[-1]["error"]


def test_g22_held_bytes_pause_the_upstream_and_resume_it() -> None:
    exchange = open_stream(TOX, held_bytes=1000)
    for i in range(12):
        exchange.send(UpstreamBytes(says(f"word{i}\n")))
    assert PauseUpstream() in exchange.out.commands
    while exchange.unanswered:
        score = exchange.unanswered.pop(0)
        exchange.send(Scored(score.ticket, {"lexicon.toxicity": 0.0}))
    assert ResumeUpstream() not in exchange.out.commands  # the hold keeps the last words back
    exchange.now += 1
    exchange.send(TimerFired("stall"))
    exchange.send(Scored(exchange.unanswered.pop().ticket, {"lexicon.toxicity": 0.0}))
    assert ResumeUpstream() in exchange.out.commands


def test_g04_text_that_could_still_match_does_not_leave_because_the_guard_gives_up() -> None:
    rules = (
        "  - {name: k, id: KEY-1, stage: [midstream], "
        "patterns: [{name: key, regex: 'BEGIN[a-z ]*END', max_chars: 4000}], actions: [{type: redact}]}\n"
    )
    for settings, last in (
        ({"held_bytes": 1000}, None),
        ({"answer_bytes": 1000}, None),
        ({"event_bytes": 400}, UpstreamBytes(b"data: " + b"x" * 500)),
        ({}, UpstreamBytes(b"data: {\n\n")),
        ({}, Draining()),
    ):
        exchange = open_stream(rules, **settings)
        for step in ("so ", "BEGIN ", *["secret "] * 8):
            exchange.send(UpstreamBytes(says(step)))
        if last is not None:
            exchange.send(last)
        assert text_of(exchange.out) == "so "
        assert exchange.out.closed
        assert bodies(exchange.out)[-1]["error"]


def test_an_unfinished_last_event_is_scanned_and_completed() -> None:
    out = stream(MAIL, [says("to a@b.io ok "), ends(), DONE.rstrip(b"\n")])
    assert out.joined.endswith(DONE)
    assert "[EMAIL]" in text_of(out)


def test_late_and_foreign_events_are_ignored() -> None:
    exchange = open_stream(MAIL)
    exchange.send(UpstreamBytes(ends() + DONE))
    exchange.send(UpstreamClosed())
    before = len(exchange.out.commands)
    for late in (
        Scored(99, {}),
        ScoringFailed(99, "crash"),
        UpstreamBytes(b"x"),
        TimerFired("stall"),
        DownstreamClosed(),
        Draining(),
    ):
        exchange.send(late)
    assert len(exchange.out.commands) == before


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


def test_a_body_that_is_nested_as_deep_as_can_be_read_never_escapes_as_an_exception() -> None:
    chat = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
    for depth in range(880, 1010):
        body = json.dumps(chat)[:-1] + ', "metadata": ' + "[" * depth + "]" * depth + "}"
        played = play(CHAT, plan(MAIL), body.encode(), [], streaming=False, status=500)
        assert played.forwarded is not None or (played.reply is not None and played.reply.status == 400)


def argues(text: str, **function: str) -> bytes:
    return event((0, {"tool_calls": [{"index": 0, "function": {"arguments": text, **function}}]}, None))


def arguments_of(out: Played) -> str:
    deltas = [c["delta"] for b in bodies(out) for c in b.get("choices", ())]
    return "".join(call["function"].get("arguments", "") for d in deltas for call in d.get("tool_calls", ()))


CAPPED = (
    "  - {name: c, id: CAP-1, stage: [midstream], patterns: [{name: c, regex: '#[^#]*#', max_chars: 12}], "
    "actions: [{type: redact}]}\n"
)


@pytest.mark.parametrize("value", ["x\njohn@example.com", '#23456789a"cd', "#23456789\u0001cd", "#23456789a\\cd"])
def test_g08_an_edit_of_json_never_parts_an_escape_however_it_came(value: str) -> None:
    text = json.dumps({"a": value, "b": 1})
    whole = stream(MAIL + CAPPED, [argues("", name="f"), argues(text), ends(reason="tool_calls"), DONE])
    cut = stream(MAIL + CAPPED, [argues("", name="f"), *map(argues, text), ends(reason="tool_calls"), DONE])
    assert json.loads(arguments_of(whole))["b"] == 1
    assert arguments_of(whole) == arguments_of(cut) != text


def test_g05_what_follows_the_end_of_a_choice_stays_as_it_came_but_for_text_that_no_judge_has_seen() -> None:
    usage = event((0, {"role": "assistant", "content": ""}, None), usage={"total_tokens": 3})
    pieces = [says("Good day. "), ends(), usage, ends(), DONE]
    assert stream(MAIL, pieces).joined == b"".join(pieces)
    late = stream(MAIL, [says("Good day. "), ends(), says("More. "), usage, DONE])
    assert late.joined == says("Good day. ") + ends() + usage + DONE
    assert late.record is not None
    assert late.record.degradations == ("text_after_end",)


def test_g22_a_pause_ends_with_the_last_check_also_while_a_pattern_holds_most_of_the_cap() -> None:
    shadow = TOX.replace("id: TOX-1,", "id: TOX-1, mode: shadow,")
    rule = CAPPED.replace("max_chars: 12", "max_chars: 9000")
    exchange = Exchange(CHAT, plan(rule + shadow, held_bytes=1000))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    exchange.send(UpstreamBytes(says("word " * 60)))
    exchange.send(UpstreamBytes(says("#" + "x" * 600)))
    assert len(exchange.unanswered) >= 4
    assert isinstance(exchange.out.commands[-1], PauseUpstream)
    while exchange.unanswered:
        exchange.send(Scored(exchange.unanswered.pop(0).ticket, {"lexicon.toxicity": 0.0}))
    assert isinstance(exchange.out.commands[-1], ResumeUpstream)


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


def test_g22_an_upstream_can_open_only_so_many_channels() -> None:
    exchange = open_stream(MAIL)
    for choice in range(50):
        calls = [{"index": i, "function": {"arguments": "{"}} for i in range(100)]
        exchange.send(UpstreamBytes(event((choice, {"tool_calls": calls}, None))))
    assert exchange.out.cancelled
    assert "texts apart" in bodies(exchange.out)[-1]["error"]["message"]
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "failed"


def test_g22_the_record_keeps_few_of_the_names_that_an_upstream_makes_up() -> None:
    out = stream(MAIL, [event((0, {f"x{i}" + "y" * 500: "z"}, None)) for i in range(300)] + [ends(), DONE])
    assert out.record is not None
    assert len(out.record.unscanned) == 100
    assert max(map(len, out.record.unscanned)) < 120
    assert "unscanned_not_listed" in out.record.degradations


INGRESS = (
    "  - {name: p, id: INJ-2, stage: [ingress], phrases: [ignore all previous instructions], "
    "actions: [{type: reject, message: not allowed}]}\n"
    "  - {name: m, id: PII-2, stage: [ingress], entities: [EMAIL], actions: [{type: redact}]}\n"
)


def prompt_of(*parts: str, rules: str = INGRESS) -> Played:
    content = [{"type": "text", "text": part} for part in parts]
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": content}]}
    return play(CHAT, plan(rules), json.dumps(body).encode(), [says("Fine. "), ends(), DONE])


@pytest.mark.parametrize(
    "parts",
    [
        ("ignore all previous instructions",),
        ("ignore all", "previous instructions"),
        ("ignore all ", " previous", "instructions"),
        ("ign", "ore all previous instr", "uctions"),
    ],
)
def test_g31_what_a_template_puts_together_from_parts_is_judged_together(parts: Sequence[str]) -> None:
    out = prompt_of(*parts)
    assert out.forwarded is None
    assert out.reply is not None
    assert out.reply.status == 400
    assert prompt_of(*(f"({part})" for part in parts), rules=MAIL).forwarded is not None


def test_g09_a_span_over_parts_is_redacted_in_each_of_them() -> None:
    out = prompt_of("Write to ann@b.io or john@exa", "mple", ".com today, or c@d.io")
    assert out.forwarded is not None
    texts = [part["text"] for part in json.loads(out.forwarded)["messages"][0]["content"]]
    assert texts == ["Write to [EMAIL] or [EMAIL]", "", " today, or [EMAIL]"]
    assert out.record is not None
    assert out.record.prompt_chars == 54
    assert [v.rule_id for v in out.record.verdicts].count("PII-2") >= 3


def test_g22_a_prompt_of_many_texts_is_judged_in_few_channels_and_one_of_many_messages_is_refused() -> None:
    out = prompt_of(*["a"] * 5000)
    assert out.record is not None
    assert len(out.forwarded or b"") > 5000
    message = {"role": "user", "content": "a"}
    body = json.dumps({"model": "m", "messages": [message] * 5000}).encode()
    refused = play(CHAT, plan(INGRESS), body, [], streaming=False)
    assert refused.reply is not None
    assert refused.reply.status == 413


@pytest.mark.parametrize(
    "rest",
    [
        [UpstreamBytes(says("hello there") + ends() + DONE), UpstreamClosed()],
        [UpstreamBytes(says("hello idiot, and so on") + ends() + DONE), UpstreamClosed()],
        [UpstreamBytes(says("hello there")), UpstreamFailed("reset")],
        [UpstreamBytes(says("hello there")), DownstreamClosed()],
        [UpstreamBytes(says("hello there")), Draining()],
    ],
)
def test_all_that_an_exchange_used_is_freed_without_a_collection(rest: list[AnyEvent]) -> None:
    gc.collect()
    gc.disable()
    try:
        exchange = open_stream(TOX)
        exchange.scorer = by_words("lexicon.toxicity", ["idiot"])
        for event in rest:
            exchange.send(event)
        assert exchange.out.record is not None
        left = weakref.ref(exchange.guard), weakref.ref(exchange.guard._checking)
        del exchange
        assert [each() for each in left] == [None, None]
    finally:
        gc.enable()
