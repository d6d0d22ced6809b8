"""A value that is cut over messages of a history, or over the texts of an answer: nobody who reads them gets it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from tests.chance import examples
from tests.guarded import CHAT, DONE, bodies, ends, event, open_stream, plan, request
from tests.playbook import Exchange, play

RULES = """  - name: m
    id: PII-1
    stage: [{stage}]
    entities: [EMAIL, CREDIT_CARD, US_SSN, AWS_ACCESS_KEY, IBAN]
    phrases: [zebra crossing]
    actions: [{{type: redact}}]
"""
INGRESS, MIDSTREAM = (plan(RULES.format(stage=stage)) for stage in ("ingress", "midstream"))
SECRETS = (
    "john.doe@example.com",
    "4111111111111111",
    "4111 1111 1111 1111",
    "123-45-6789",
    "AKIAIOSFODNN7EXAMPLQ",
    "DE89 3704 0044 0532 0130 00",
    "zebra crossing",
)
PHRASE = SECRETS[-1]
LEADS = st.sampled_from(["", "It is ", "Take this: ", "a long sentence of words, more than are read at an edge. " * 5])
TAILS = st.sampled_from(["", ".", " and that is all.", ", thanks. " + "More words follow here. " * 12])


@st.composite
def cut(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Return a secret, and texts over which it is cut; a space at a cut stands in neither."""
    secret = draw(st.sampled_from(SECRETS))
    places = sorted(draw(st.sets(st.integers(1, len(secret) - 1), min_size=1, max_size=3)))
    parts = [secret[low:high] for low, high in zip([0, *places], [*places, len(secret)], strict=True)]
    spaced = all(secret[place - 1] == " " or secret[place] == " " for place in places)
    parts = [part.strip() for part in parts] if spaced else parts
    if not all(part.strip() for part in parts):
        parts = [secret[: places[0]], secret[places[0] :]]
    parts[0] = draw(LEADS) + parts[0]
    parts[-1] += draw(TAILS)
    return secret, parts


def squeezed(text: str) -> str:
    return "".join(text.split())


@settings(max_examples=examples(80), deadline=None)
@given(cut(), st.sampled_from(["user", "assistant", "tool", "system"]), st.booleans())
def test_g31_a_value_cut_over_messages_is_not_forwarded(said: tuple[str, list[str]], role: str, between: bool) -> None:
    secret, parts = said
    assume(secret != PHRASE)  # what is said over several turns is known by its risk
    messages: list[dict[str, Any]] = []
    for part in parts:
        more = {"tool_call_id": "call_1"} if role == "tool" else {}
        messages.append({"role": role, "content": part, **more})
        if between:
            messages.append({"role": "user" if role == "assistant" else "assistant", "content": "Go on, please."})
    body = json.dumps({"model": "m", "stream": True, "messages": messages}).encode()
    exchange = Exchange(CHAT, INGRESS)
    exchange.send(RequestReceived(body))
    assert exchange.out.forwarded is not None
    sent = [each for each in json.loads(exchange.out.forwarded)["messages"] if each["role"] == role]
    assert all(each["content"] for each in sent), "no message becomes empty"
    assert squeezed(secret) not in squeezed("".join(each["content"] for each in sent))


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(
        st.sampled_from(
            [
                "What is 12 times 12?",
                "144",
                "mail ann@example.com",
                "And 1984?",
                "1. first\n2. second",
                "Thanks!",
                "ok",
                "2024-11-23",
                "order 1234 5678",
                "2,500 EUR",
                "Yes",
                "/home/x/a.py",
                "4111",
            ]
        ),
        min_size=2,
        max_size=9,
    )
)
def test_g05_messages_that_only_stand_beside_each_other_go_on_as_they_came(said: list[str]) -> None:
    messages = [{"role": "user", "content": each} for each in said if "@" not in each]
    messages += [{"role": "user", "content": "Go on."}]
    body = json.dumps({"model": "m", "stream": True, "messages": messages}).encode()
    assert play(CHAT, INGRESS, body, [ends(), DONE]).forwarded == body


FIELDS = {"content": "content", "reasoning_content": "reasoning_content", "refusal": "refusal", "arguments": "tool"}


def delta(field: str, text: str, number: int) -> dict[str, Any]:
    if field == "arguments":
        call = {"name": "note", "arguments": json.dumps({"text": text})}
        return {"tool_calls": [{"index": number, "id": f"c{number}", "type": "function", "function": call}]}
    return {field: text}


def read_in_order(out: bytes | Sequence[dict[str, Any]]) -> str:
    """Return all that is said, in the order in which it comes; calls say what their strings say."""
    said = list[str]()
    for body in bodies(out) if isinstance(out, bytes) else out:
        for choice in body.get("choices", ()):
            told = choice.get("delta") or choice.get("message") or {}
            for name, value in told.items():
                if name == "tool_calls":
                    said += [json.loads(call["function"]["arguments"])["text"] for call in value]
                elif name in FIELDS and isinstance(value, str):
                    said.append(value)
    return "".join(said)


@settings(max_examples=examples(60), deadline=None)
@given(cut(), st.data())
def test_g34_a_value_cut_over_the_texts_of_an_answer_never_leaves_whole(
    said: tuple[str, list[str]], data: st.DataObject
) -> None:
    secret, parts = said
    fields: list[str] = []
    for _ in parts:
        names = [name for name in FIELDS if not fields or name != fields[-1]]
        fields.append(data.draw(st.sampled_from(names)))
    exchange = open_stream(RULES.format(stage="midstream"))
    for number, (field, part) in enumerate(zip(fields, parts, strict=True)):
        at = data.draw(st.integers(0, len(part))) if field != "arguments" else 0
        for piece in (part[:at], part[at:]):
            if piece:
                exchange.send(UpstreamBytes(event((0, delta(field, piece, number), None))))
    exchange.send(UpstreamBytes(ends(reason="tool_calls" if "arguments" in fields else "stop")))
    exchange.send(UpstreamBytes(DONE))
    exchange.send(UpstreamClosed())
    assert squeezed(secret) not in squeezed(read_in_order(exchange.out.joined))


@settings(max_examples=examples(60), deadline=None)
@given(cut(), st.permutations(["reasoning_content", "content", "refusal"]))
def test_g34_a_value_cut_over_the_texts_of_a_whole_answer_never_leaves_whole(
    said: tuple[str, list[str]], fields: list[str]
) -> None:
    secret, parts = said
    message: dict[str, Any] = {"role": "assistant", "content": None}
    message |= dict(zip(fields, [*parts[: len(fields) - 1], "".join(parts[len(fields) - 1 :])], strict=False))
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    exchange = Exchange(CHAT, MIDSTREAM)
    exchange.send(RequestReceived(request(stream=False)))
    exchange.send(UpstreamOpened(200, streaming=False))
    exchange.send(UpstreamBytes(json.dumps(body).encode()))
    exchange.send(UpstreamClosed())
    assert exchange.out.reply is not None
    got = json.loads(exchange.out.reply.body)
    assert squeezed(secret) not in squeezed(read_in_order([got]))
    message = got["choices"][0]["message"]
    order = "".join(message.get(name) or "" for name in fields)
    assert squeezed(secret) not in squeezed(order)


@pytest.mark.parametrize("thought", ["So john", "It is 42", "It is 4111 1111", "see a@b", "That is all"])
def test_what_is_said_leaves_as_it_comes_whatever_thoughts_end_with(thought: str) -> None:
    exchange = open_stream(RULES.format(stage="midstream"))
    exchange.send(UpstreamBytes(event((0, {"reasoning_content": thought}, None))))
    for word in ("Hello ", "there. ", "More ", "words. "):
        exchange.send(UpstreamBytes(event((0, {"content": word}, None))))
    assert read_in_order(exchange.out.joined).startswith(f"{thought}Hello there. ")


def test_texts_that_speak_in_turns_cost_little_each() -> None:
    exchange = open_stream(RULES.format(stage="midstream"))
    for _ in range(200):
        exchange.send(UpstreamBytes(event((0, {"reasoning_content": "some thought 12 "}, None))))
        exchange.send(UpstreamBytes(event((0, {"content": "some words, said. "}, None))))
    exchange.send(UpstreamBytes(ends()))
    exchange.send(UpstreamBytes(DONE))
    assert read_in_order(exchange.out.joined).count("some thought 12 some words, said. ") == 200
