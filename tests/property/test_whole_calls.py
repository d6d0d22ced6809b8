"""A tool call reaches the caller whole, decided and valid, or not at all (G35).

Frameworks mend half a call and run it. So whatever an answer holds, wherever a rule or the upstream ends it and however
it was cut: what a client puts together of a call is JSON and says what the upstream said but for the edits, or it is
not there.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.commands import PauseUpstream
from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamFailed, UpstreamOpened
from tests.guarded import CHAT, DONE, bodies, event, open_stream, plan, request
from tests.playbook import Exchange

CARD = 4111111111111111
RULES = """\
  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}
  - {name: c, id: PII-2, stage: [midstream], entities: [CREDIT_CARD], actions: [{type: redact, numbers: json_null}]}
  - {name: s, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: Halt.}]}
  - {name: t, id: STOP-2, stage: [midstream], channels: [tool_arguments], phrases: [drop all], actions: [{type: stop}]}
"""
VALUES = st.sampled_from(["ok", "bob@example.com", "a zero risk b", "drop all", 'say "hi"\\n', "é"]) | st.sampled_from(
    [1, -2.5e3, CARD, True, None]
)
ARGUMENTS = st.dictionaries(
    st.sampled_from(["to", "card", "n", "bob@example.com"]), VALUES | st.lists(VALUES, max_size=2)
)
CALLS = st.lists(st.tuples(st.sampled_from(["pay", "send_mail"]), ARGUMENTS), min_size=1, max_size=3)


def cleaned(value: Any) -> Any:
    """Return arguments as the rules that edit leave them."""
    match value:
        case dict():
            return {cleaned(name): cleaned(inner) for name, inner in value.items()}
        case list():
            return [cleaned(inner) for inner in value]
        case str():
            return value.replace("bob@example.com", "[EMAIL]")
    return None if value == CARD and value is not True else value


def stops(value: object) -> bool:
    text = json.dumps(value)
    return "zero risk" in text or "drop all" in text


def assembled(data: bytes) -> tuple[dict[int, tuple[str, str]], set[str | None], bool]:
    """Return the calls that a client puts together, the finish reasons, and whether it was told of an error."""
    calls: dict[int, list[str]] = {}
    finishes, failed = set(), False
    for body in bodies(data):
        failed = failed or "error" in body
        for choice in body.get("choices", ()):
            finishes.add(choice["finish_reason"])
            for call in choice["delta"].get("tool_calls", ()):
                told = calls.setdefault(call["index"], ["", ""])
                told[0] += call["function"].get("name") or ""
                told[1] += call["function"].get("arguments") or ""
    return {index: (name, arguments) for index, (name, arguments) in calls.items()}, finishes, failed


def events_of(calls: list[tuple[str, Any]], sizes: list[int], data: st.DataObject) -> list[bytes]:
    """Return the events of an answer that calls tools, its arguments cut into pieces."""
    found = [event((0, {"role": "assistant", "content": None}, None))]
    if data.draw(st.booleans()):
        found.append(event((0, {"content": "I call. "}, None)))
    for index, (name, arguments) in enumerate(calls):
        begin = {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": ""}}
        found.append(event((0, {"tool_calls": [begin]}, None)))
        text, at = json.dumps(arguments), 0
        while at < len(text):
            size = sizes[len(found) % len(sizes)]
            piece = {"index": index, "function": {"arguments": text[at : at + size]}}
            found.append(event((0, {"tool_calls": [piece]}, None)))
            at += size
    return found


@given(CALLS, st.lists(st.integers(1, 9), min_size=1, max_size=4), st.data())
def test_g35_a_call_leaves_whole_decided_and_valid_or_not_at_all(
    calls: list[tuple[str, Any]], sizes: list[int], data: st.DataObject
) -> None:
    events = [*events_of(calls, sizes, data), event((0, {}, "tool_calls")), DONE]
    broken = data.draw(st.none() | st.integers(0, len(events) - 1))
    exchange = open_stream(RULES)
    for each in events[:broken]:
        if not exchange.out.cancelled:
            exchange.send(UpstreamBytes(each))
    if not exchange.out.cancelled:
        exchange.send(UpstreamFailed("reset") if broken is not None else UpstreamClosed())
    got, finishes, failed = assembled(exchange.out.joined)
    for index, (name, arguments) in got.items():
        assert (name, json.loads(arguments)) == (calls[index][0], cleaned(calls[index][1]))
        assert not stops(calls[index][1])
    if broken is None:
        first_stop = next((i for i, (_, arguments) in enumerate(calls) if stops(arguments)), len(calls))
        assert set(got) == set(range(first_stop)), "what is before the stop has come, nothing behind it has"
        assert finishes - {None} == ({"content_filter"} if first_stop < len(calls) else {"tool_calls"})
        assert not failed
    else:
        assert failed or "content_filter" in finishes


@given(CALLS)
def test_g35_a_whole_answer_has_the_calls_that_the_stream_has(calls: list[tuple[str, Any]]) -> None:
    exchange = Exchange(CHAT, plan(RULES))
    exchange.send(RequestReceived(request(stream=False)))
    exchange.send(UpstreamOpened(200, streaming=False))
    tools = [
        {"id": f"c{i}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": None, "tool_calls": tools}
    body = {
        "id": "x",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
    exchange.send(UpstreamBytes(json.dumps(body).encode()))
    exchange.send(UpstreamClosed())
    assert exchange.out.reply is not None
    (choice,) = msgspec.json.decode(exchange.out.reply.body)["choices"]
    first_stop = next((i for i, (_, arguments) in enumerate(calls) if stops(arguments)), len(calls))
    got = choice["message"].get("tool_calls") or []
    assert [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in got] == [
        (name, cleaned(arguments)) for name, arguments in calls[:first_stop]
    ]
    assert choice["finish_reason"] == ("tool_calls" if first_stop == len(calls) else "content_filter")


@given(CALLS, st.integers(1, 5))
def test_g35_calls_that_come_in_turns_leave_whole_or_not_at_all(calls: list[tuple[str, Any]], size: int) -> None:
    texts = [json.dumps(arguments) for _, arguments in calls]
    exchange = open_stream(RULES)
    for at in range(0, max(map(len, texts)), size):
        pieces = [
            {"index": i, "function": {"arguments": text[at : at + size], **({} if at else {"name": calls[i][0]})}}
            for i, text in enumerate(texts)
        ]
        if not exchange.out.cancelled:
            exchange.send(UpstreamBytes(event((0, {"tool_calls": pieces}, None))))
    if not exchange.out.cancelled:
        exchange.send(UpstreamBytes(event((0, {}, "tool_calls")) + DONE))
    for index, (name, arguments) in assembled(exchange.out.joined)[0].items():
        assert (name, json.loads(arguments)) == (calls[index][0], cleaned(calls[index][1]))
        assert not stops(calls[index][1])


def test_g35_of_calls_in_one_event_the_blocked_one_is_taken_out() -> None:
    calls = [
        {"index": i, "id": f"c{i}", "type": "function", "function": {"name": "run", "arguments": arguments}}
        for i, arguments in enumerate(['{"x": 1}', '{"x": "drop all"}', "{}"])
    ]
    exchange = open_stream(RULES)
    exchange.send(UpstreamBytes(event((0, {"tool_calls": calls}, "tool_calls")) + DONE))
    assert assembled(exchange.out.joined)[:2] == ({0: ("run", '{"x": 1}')}, {None, "content_filter"})


def test_g35_a_call_that_is_blocked_says_why_and_leaves_the_role() -> None:
    exchange = open_stream(RULES)
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "run", "arguments": '{"x": "drop all"}'}}
    exchange.send(
        UpstreamBytes(event((0, {"role": "assistant", "tool_calls": [call]}, None)) + event((0, {}, "tool_calls")))
    )
    first, reason, finish = bodies(exchange.out)
    assert first["choices"][0]["delta"] == {"role": "assistant"}
    assert reason["choices"][0]["delta"] == {"content": "[a tool call was withheld by policy: STOP-2]"}
    assert finish["choices"][0]["finish_reason"] == "content_filter"


def test_g35_a_call_too_long_to_wait_for_meets_the_fail_mode() -> None:
    def pieces() -> list[bytes]:
        begin = {"index": 0, "id": "c0", "type": "function", "function": {"name": "run", "arguments": '{"x": "'}}
        more = {"index": 0, "function": {"arguments": "a b c d "}}
        return [event((0, {"tool_calls": [begin]}, None)), *[event((0, {"tool_calls": [more]}, None))] * 20]

    closed = open_stream(RULES, call_bytes=2000)
    opened = open_stream(RULES, call_bytes=2000, fail_mode="open")
    for each in pieces():
        for exchange in (closed, opened):
            if not exchange.out.cancelled:
                exchange.send(UpstreamBytes(each))
    (error,) = bodies(closed.out)
    assert error["error"]["code"] == "held_too_large"
    assert "tool_calls" not in str(bodies(closed.out))
    assert assembled(opened.out.joined)[0][0][1].startswith('{"x": "a b c d ')
    opened.send(UpstreamClosed())
    assert opened.out.record is not None
    assert "calls_not_whole" in opened.out.record.degradations


def test_g35_a_call_that_waits_pauses_nobody_and_costs_no_room_of_other_text() -> None:
    exchange = open_stream(RULES, held_bytes=1000)
    call = {
        "index": 0,
        "id": "c0",
        "type": "function",
        "function": {"name": "run", "arguments": '{"x": "' + "a " * 900},
    }
    exchange.send(UpstreamBytes(event((0, {"tool_calls": [call]}, None))))
    more = {"index": 0, "function": {"arguments": '"}'}}
    exchange.send(UpstreamBytes(event((0, {"tool_calls": [more]}, None)) + event((0, {}, "tool_calls")) + DONE))
    assert not any(isinstance(command, PauseUpstream) for command in exchange.out.commands)
    assert len(assembled(exchange.out.joined)[0][0][1]) == 1800 + len('{"x": ""}')


JSON_CONTENT = st.dictionaries(
    st.sampled_from(["to", "card"]), VALUES.filter(lambda value: not stops(value)), max_size=3
)


@given(JSON_CONTENT, st.integers(1, 9), st.booleans())
def test_g35_content_of_a_wanted_form_stays_json(value: dict[str, Any], size: int, fenced: bool) -> None:
    text = json.dumps(value)
    exchange = Exchange(CHAT, plan(RULES))
    exchange.send(RequestReceived(request(response_format={"type": "json_object"})))
    exchange.send(UpstreamOpened(200, streaming=True))
    told = f"```json\n{text}\n```" if fenced else text
    for at in range(0, len(told), size):
        exchange.send(UpstreamBytes(event((0, {"content": told[at : at + size]}, None))))
    exchange.send(UpstreamBytes(event((0, {}, "stop")) + DONE))
    said = "".join(choice["delta"].get("content") or "" for b in bodies(exchange.out) for choice in b["choices"])
    if fenced:
        assert "bob@example.com" not in said
        assert str(CARD) not in said
    else:
        assert json.loads(said) == cleaned(value)


@pytest.mark.parametrize("last", [b"", DONE])
def test_g35_a_call_that_is_cut_off_leaves_nothing_though_the_stream_ends_in_order(last: bytes) -> None:
    calls = [
        {"index": i, "id": f"c{i}", "type": "function", "function": {"name": "pay", "arguments": arguments}}
        for i, arguments in enumerate(['{"x": 1}', '{"amount": 1000, "ca'])
    ]
    exchange = open_stream(RULES)
    exchange.send(UpstreamBytes(event((0, {"tool_calls": calls}, None)) + last))
    exchange.send(UpstreamClosed())
    assert assembled(exchange.out.joined)[0] == {0: ("pay", '{"x": 1}')}
