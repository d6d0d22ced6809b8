"""A tool call reaches the caller whole, decided and valid, or not at all (G35).

Frameworks mend half a call and run it. So whatever an answer holds, wherever a rule or the upstream ends it and however
it was cut: what a client puts together of a call is JSON and says what the upstream said but for the edits, or it is
not there.
"""

from __future__ import annotations

import functools
import json
from itertools import pairwise
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkstream.core.commands import PauseUpstream
from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamFailed, UpstreamOpened
from tests.chance import examples
from tests.guarded import CHAT, DONE, bodies, event, finishes, open_stream, plan, request, stream, text_of, whole
from tests.playbook import Exchange, Played, play

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


@given(JSON_CONTENT, st.integers(1, 9), st.booleans())
def test_g35_a_stop_puts_no_words_of_its_rule_into_an_object(value: dict[str, Any], size: int, streaming: bool) -> None:
    """Some clients mend half an object, and would take the words for one of its values."""
    text = json.dumps(value | {"last": "zero risk"})
    said = structured(text, size, streaming=streaming)
    assert said == json.dumps(cleaned(value) | {"last": ""})[:-2]
    assert structured("Zero risk, or none.", size, streaming=streaming) == "Halt."  # no object has begun


def structured(text: str, size: int, *, streaming: bool) -> str:
    """Return what a caller gets of a text, having asked for JSON."""
    asked = request(response_format={"type": "json_object"}, stream=streaming)
    if not streaming:
        played = play(CHAT, plan(RULES), asked, [whole(text)], streaming=False)
        assert played.reply is not None
        choice = json.loads(played.reply.body)["choices"][0]
        assert choice["finish_reason"] == "content_filter"
        return str(choice["message"]["content"])
    out = stream(
        RULES, [event((0, {"content": text[at : at + size]}, None)) for at in range(0, len(text), size)], asked
    )
    assert finishes(out)[0] == "content_filter"
    return text_of(out)


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


REASONS = st.sampled_from(
    ["tool_calls", "stop", "length", "content_filter", "max_tokens", "insufficient_system_resource", None]
)
CALM = "  - {name: c, id: PII-2, stage: [midstream], entities: [CREDIT_CARD], actions: [{type: redact}]}\n"
MENDED = st.sampled_from(['{"a": 1,}', '{"a": }', "{'a': 1}", '{"a": True}', '{"a": 1} {"b"', '{"a": "x" "y"}'])
"""What frameworks make another call of, by taking characters off its end."""


def answered(message: dict[str, Any], reason: str | None, *, streaming: bool, size: int = 3) -> Played:
    """Play an answer with these calls; a stream gives their arguments in pieces."""
    if not streaming:
        body = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": reason}]}
        return play(CHAT, plan(CALM), request(stream=False), [json.dumps(body).encode()], streaming=False)
    pieces: list[dict[str, Any]] = [{"role": "assistant", "content": message["content"]}]
    for call in [*message.get("tool_calls", ()), message.get("function_call")]:
        if call is None:
            continue
        form = next((form for form in ("function", "custom") if form in call), None)
        told = call if form is None else call[form]
        (name,) = told.keys() - {"name"}
        if form and len(told["name"]) % 2 == size % 2:
            head = {"index": call.get("index", 0), "id": call.get("id"), "type": form}
            pieces.append({"tool_calls": [head if size % 3 else {**head, form: {}}]})
        elif form is None and size % 3 == 0:
            pieces.append({"function_call": {}})
        for at in range(-size, len(told[name]), size):
            said = {"name": told["name"], name: ""} if at < 0 else {name: told[name][at : at + size]}
            piece = {"index": call.get("index", 0), form: said} if form else said
            pieces.append({"tool_calls": [piece]} if form else {"function_call": piece})
    events = [event((0, piece, None)) for piece in pieces]
    return stream(CALM, [*events, *([event((0, {}, reason))] if reason else []), DONE])


def calls_of(out: Played) -> list[tuple[str, str]]:
    """Return the names and arguments of the calls that a client puts together, function calls of old last."""
    found: dict[Any, list[str]] = {}
    replies = bodies(out) if out.reply is None else [msgspec.json.decode(out.reply.body)]
    for choice in (choice for body in replies for choice in body["choices"]):
        said = choice.get("delta") or choice.get("message") or {}
        listed = [(call.get("index", i), call) for i, call in enumerate(said.get("tool_calls") or ())]
        for number, call in [
            *listed,
            *([(9, {"function": said["function_call"]})] if said.get("function_call") else []),
        ]:
            told = call.get("function") or call.get("custom") or {}
            known = found.setdefault(number, ["", ""])
            known[0] += told.get("name") or ""
            known[1] += told.get("arguments") or told.get("input") or ""
    return [(name, arguments) for _, (name, arguments) in sorted(found.items())]


@st.composite
def messages(draw: st.DrawFn) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """Return a message that calls tools, and form, name and arguments of its calls; the last one may be torn."""
    forms = draw(st.lists(st.sampled_from(["function", "custom"]), max_size=3))
    legacy = not forms or draw(st.booleans())
    calls = []
    for number, form in enumerate([*forms, *(["legacy"] if legacy else [])]):
        text = json.dumps(draw(ARGUMENTS.filter(lambda value: str(CARD) not in str(value))))
        if form != "custom" and draw(st.integers(0, 3)) == 0:
            text = draw(MENDED)
        if number == len(forms) + legacy - 1:
            text = text[: draw(st.integers(0, len(text)))]
        calls.append((form, f"f{number}", text))
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.sampled_from([None, "I call. "]))}
    tools = [
        {"index": i, "id": f"c{i}", form: {"name": name, "input" if form == "custom" else "arguments": text}}
        for i, (form, name, text) in enumerate(calls[: len(forms)])
    ]
    message |= {"tool_calls": tools} if tools else {}
    message |= {"function_call": {"name": calls[-1][1], "arguments": calls[-1][2]}} if legacy else {}
    return message, calls


def is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except ValueError:
        return False
    return True


@given(messages(), REASONS, st.booleans(), st.integers(1, 9))
def test_g35_what_the_upstream_breaks_off_is_no_call(
    made: tuple[dict[str, Any], list[tuple[str, str, str]]], reason: str | None, streaming: bool, size: int
) -> None:
    message, calls = made
    out = answered(message, reason, streaming=streaming, size=size)
    orderly = reason in {"tool_calls", "stop"} or (reason is None and not streaming)
    expected = []
    for number, (form, name, text) in enumerate(calls):
        whole = orderly or number < len(calls) - 1
        if form != "custom" and text:
            whole = is_json(text) and (whole or text.startswith(("{", "[", '"')))
        expected += [(name, text)] if whole else []
    assert calls_of(out) == expected
    assert out.record is not None
    said = out.joined if out.reply is None else out.reply.body
    if len(expected) < len(calls):
        word = {"length": "length", "max_tokens": "length", "content_filter": "content_filter", None: "no_end"}
        kind = "not_json" if orderly else word.get(reason, "other")
        assert f"call_withheld:{kind}" in out.record.degradations
        assert f'"call_withheld:{kind}"'.encode() in said, "the caller is told"
        assert b"a tool call was withheld" in said
        if orderly and reason and not expected:
            assert b'"tool_calls"' not in said, "a finish reason that says that tools are called, and none is"
    else:
        assert not out.record.degradations
        assert b"withheld" not in said


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize(
    "text", ["amount=1000, to=", '\ufeff{"a":1', '```json\n{"a": 1}\n```', "{}{}", "pay", "'{}'", '"a']
)
def test_g35_arguments_of_a_function_that_are_no_json_are_no_call(text: str, streaming: bool) -> None:
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "pay", "arguments": text}}
    out = answered(
        {"role": "assistant", "content": None, "tool_calls": [call]}, "tool_calls", streaming=streaming, size=5
    )
    assert calls_of(out) == []
    assert out.record is not None
    assert "call_withheld:not_json" in out.record.degradations


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("text", ['{"a":1', '{"a": 1}', ""])
@pytest.mark.parametrize("form", ["tool_calls", "function_call"])
def test_g35_a_call_where_no_client_of_the_kind_looks_for_one_never_leaves(
    form: str, text: str, streaming: bool
) -> None:
    function = {"name": "pay", "arguments": text}
    call = {"tool_calls": [{"index": 0, "id": "c0", "type": "function", "function": function}]}
    said = {"role": "assistant", "content": "Hello."}
    stray = {**said, **(call if form == "tool_calls" else {"function_call": function})}
    names = ("delta", "message") if streaming else ("message", "delta")
    choice = {"index": 0, names[0]: said, names[1]: stray, "finish_reason": "tool_calls"}
    body = json.dumps({"id": "c1", "model": "m", "choices": [choice]}).encode()
    pieces = [b"data: " + body + b"\n\n"] * 2 + [DONE] if streaming else [body]
    out = play(CHAT, plan(CALM), request(stream=streaming), pieces, streaming=streaming)
    left = out.joined if out.reply is None else out.reply.body
    assert b"Hello." in left
    assert b"pay" not in left
    assert out.record is not None
    assert "stray_call_dropped" in out.record.degradations
    reasons = finishes(out) if out.reply is None else {0: json.loads(left)["choices"][0]["finish_reason"]}
    assert reasons == {0: "stop"}


def test_g35_a_call_that_is_withheld_leaves_an_answer_of_a_form_alone() -> None:
    call = {"index": 0, "id": "c0", "type": "function", "function": {"name": "pay", "arguments": '{"a": 1, "b'}}
    pieces = [event((0, {"content": "{}"}, None)), event((0, {"tool_calls": [call]}, "length")), DONE]
    out = play(CHAT, plan(CALM), request(response_format={"type": "json_object"}), pieces)
    assert (text_of(out), calls_of(out), finishes(out)) == ("{}", [], {0: "length"})
    assert out.record is not None
    assert {"call_withheld:length", "text_not_added:structured_answer"} <= set(out.record.degradations)


def test_g35_calls_of_custom_tools_that_come_by_turns_are_whole_only_if_another_has_begun_behind_them() -> None:
    turns = [(0, "ls"), (1, "cat"), (0, " -l"), (2, "rm -rf /tm")]
    pieces = [
        event(
            (
                0,
                {
                    "tool_calls": [
                        {"index": i, "custom": {"name": "sh" if i in (1, 2) or text == "ls" else None, "input": text}}
                    ]
                },
                None,
            )
        )
        for i, text in turns
    ]
    assert calls_of(stream(CALM, [*pieces, event((0, {}, "length")), DONE])) == [("sh", "ls -l"), ("sh", "cat")]
    torn = stream(CALM, [*pieces[:3], event((0, {}, "length")), DONE])
    assert calls_of(torn) == [], "either may have gone on"


JOINED = """\
  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL, CREDIT_CARD], actions: [{type: redact}]}
"""


ruled = functools.cache(plan)


def called(*arguments: dict[str, Any], rules: str = JOINED, streamed: bool = True) -> list[dict[str, Any]]:
    """Return the arguments of the calls that reach the caller."""
    calls = [
        {"index": at, "id": f"c{at}", "type": "function", "function": {"name": "pay", "arguments": json.dumps(each)}}
        for at, each in enumerate(arguments)
    ]
    if streamed:
        pieces = [*(event((0, {"tool_calls": [call]}, None)) for call in calls), event((0, {}, "tool_calls")), DONE]
        out = play(CHAT, ruled(rules), request(), pieces)
        told, _, _ = assembled(out.joined)
        return [json.loads(text) for _, text in told.values()]
    said = {"role": "assistant", "content": None, "tool_calls": calls}
    body = {"choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}]}
    out = play(CHAT, ruled(rules), request(stream=False), [json.dumps(body).encode()], streaming=False)
    assert out.reply is not None
    message = json.loads(out.reply.body)["choices"][0]["message"]
    return [json.loads(call["function"]["arguments"]) for call in message.get("tool_calls") or ()]


SECRETS = st.sampled_from(["4111111111111111", "4111 1111 1111 1111", "john.doe@example.com"])


@settings(max_examples=examples(60), deadline=None)
@given(SECRETS, st.data(), st.booleans())
def test_g35_a_value_cut_over_members_of_calls_leaves_in_no_call(
    secret: str, data: st.DataObject, streamed: bool
) -> None:
    places = data.draw(st.lists(st.integers(4, len(secret) - 4), min_size=1, max_size=3, unique=True).map(sorted))
    parts = [secret[low:high] for low, high in pairwise([0, *places, len(secret)])]
    parts = [part.strip() for part in parts]
    calls: list[dict[str, Any]] = [{}]
    for at, part in enumerate(parts):
        if "@" in secret and data.draw(st.booleans()):
            calls.append({})
        calls[-1][f"part{at}"] = part
    calls = [call for call in calls if call]
    assume("@" in secret or "".join(parts) == secret.replace(" ", ""))
    left = called(*calls, {"other": "(fine)"}, streamed=streamed)
    assert left[-1] == {"other": "(fine)"}
    assert secret.replace(" ", "") not in "".join(str(part) for call in left for part in call.values()).replace(" ", "")
    if "@" not in secret or "@" in parts[-1][:1]:
        assert left == [{"other": "(fine)"}]


def test_a_call_with_a_value_and_words_beside_it_is_edited_and_not_withheld() -> None:
    mail = {"to": "bob@example.com", "text": "Hi", "card": "4111 1111 1111 1111", "n": 3}
    assert called(mail) == [{"to": "[EMAIL]", "text": "Hi", "card": "[CREDIT_CARD]", "n": 3}]


@pytest.mark.parametrize("parts", [["41111111", "11111111", "fine"], ["AKIAIOSF", "ODNN7EXAMPLE", "fine", "x"]])
def test_g35_a_word_behind_a_cut_value_does_not_hide_it(parts: list[str]) -> None:
    rules = JOINED.replace("EMAIL", "AWS_ACCESS_KEY")
    assert called({f"p{at}": part for at, part in enumerate(parts)}, rules=rules) == []


def test_a_rule_that_stops_ends_the_choice_for_what_calls_say_together() -> None:
    out_rules = JOINED.replace("{type: redact}", "{type: stop, message: Halt.}")
    assert called({"a": "john.doe@exam"}, {"b": "ple.com"}, rules=out_rules) == []


def test_g35_a_number_in_groups_over_two_calls_is_one_and_ids_of_two_calls_are_none() -> None:
    assert called({"a": "4111 1111"}, {"b": "1111 1111"}) == []
    calls = [{"id": "41111111"}, {"id": "11111111"}]
    assert called(*calls) == calls


def test_innocent_calls_leave_as_they_came() -> None:
    calls: list[dict[str, Any]] = [
        {"year": 2026, "month": 11, "day": 23, "zip": "10115"},
        {"id": "12345678"},
        {"id": "12345679", "q": "a"},
    ]
    assert called(*calls) == calls
