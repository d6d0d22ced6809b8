"""G33: no step of reading, checking and forwarding a prompt keeps the event loop for more than 5 ms of CPU."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache

import msgspec
import pytest

from bench.policies import with_classifiers
from checkstream.core.events import RequestReceived
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.hostile import common
from tests.hostile_answers import TEXTS, said_over
from tests.watchdog import answered, everything, guard_of, long_steps, looking_for, steps

CHAT = SURFACES["openai.chat"]
COMPLETIONS = SURFACES["openai.completions"]
MAIL = "write to jane@example.org, card 4111 1111 1111 1111"


def chat(content: object, **more: object) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": content}], **more}).encode()


def messages(*found: Mapping[str, object]) -> bytes:
    return json.dumps({"model": "m", "messages": found}).encode()


def call(number: int, arguments: str) -> Mapping[str, object]:
    return {"id": f"call_{number}", "type": "function", "function": {"name": "f", "arguments": arguments}}


def said(arguments: str) -> Mapping[str, object]:
    return {"role": "assistant", "content": None, "tool_calls": [call(0, arguments)]}


def schema(number: int) -> Mapping[str, object]:
    fields = {"a": {"type": "string", "description": f"what {number} is called"}}
    function = {"name": f"f{number}", "parameters": {"type": "object", "properties": fields}}
    return {"type": "function", "function": function}


DAY, NIGHT = 2, 5


@cache
def bodies(size: int) -> Mapping[str, bytes]:
    """Return requests of so many times some hundred parts."""
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo" + "A" * 9_000_000}}
    text = {"type": "file", "file": {"file_data": "data:text/plain;base64," + "aGVsbG8gd29ybGQg" * (4_000 * size)}}
    deep: object = "end"
    for _ in range(100):
        deep = [deep, "a"]
    return {
        "messages": messages(*({"role": "user", "content": f"number {n}"} for n in range(600 * size))),
        "messages to edit": messages(*({"role": "user", "content": MAIL} for _ in range(160 * size))),
        "parts": chat([{"type": "text", "text": f"part {n}"} for n in range(1200 * size)]),
        "parts to edit": chat([{"type": "text", "text": f"a{n}@example.org"} for n in range(200 * size)]),
        "calls": messages(
            {"role": "assistant", "content": None, "tool_calls": [call(n, "{}") for n in range(800 * size)]}
        ),
        "tools": chat("hi", tools=[schema(n) for n in range(500 * size)]),
        "tools beside an edit": chat(MAIL, tools=[schema(n) for n in range(500 * size)]),
        "fields": chat("hi", **{f"field_{n}": n for n in range(1_600 * size)}),
        "fields of long names": chat("hi", **{f"{n} " + "a word, " * 7000: n for n in range(30 * size)}),
        "names": chat("hi", metadata={f"name {n}": "value" for n in range(2_000 * size)}),
        "ids": chat("hi", stop_token_ids=[12345] * (30_000 * size)),
        "numbers": chat("hi", xx=[123456] * (1_600 * size)),
        "strings": chat("hi", xx=["ab"] * (9_000 * size)),
        "levels": chat("hi", xx=[deep] * (40 * size)),
        "more values than are taken": chat("hi", xx=[""] * 200_000),
        "more messages than are taken": messages(*({"role": "user", "content": "x"} for _ in range(9000))),
        "arguments to edit": messages(said(json.dumps({"a": "u@example.com " * (1600 * size)}))),
        "many arguments to edit": messages(said(json.dumps([f"u{n}@example.com" for n in range(1200 * size)]))),
        "arguments of escapes": messages(said(json.dumps({"a": '"' * (20_000 * size) + " u@example.com"}))),
        "an image": chat([{"type": "text", "text": "what is it?"}, image]),
        "an image beside an edit": chat([{"type": "text", "text": MAIL}, image]),
        "a file of text": chat([text]),
        "letters of two bytes": chat("\u0436\u0430 " * (12_000 * size)),
    }


@pytest.mark.parametrize("kind", sorted(bodies(1)))
@pytest.mark.parametrize("size", [DAY, pytest.param(NIGHT, marks=pytest.mark.nightly)])
def test_g33_no_step_on_a_request_of_many_parts_is_long(kind: str, size: int) -> None:
    received = [RequestReceived(bodies(size)[kind])]
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), received)) == []


@pytest.mark.parametrize("kind", sorted(common(10)))
def test_g33_no_step_on_a_prompt_is_long(kind: str) -> None:
    received = [RequestReceived(chat(common(2500)[kind]))]
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), received)) == []


@pytest.mark.parametrize("kind", ["eyJ", "open key"])
def test_g33_no_step_at_the_cap_of_a_pattern_is_long(kind: str) -> None:
    shipped = Plan(program=compile_sources([("default.yaml", with_classifiers())]))
    received = [RequestReceived(chat(common(9000)[kind]))]
    assert long_steps(lambda: steps(guard_of(CHAT, shipped), received)) == []


@pytest.mark.parametrize("kind", ["edits of one text", "findings that overlap", "messages"])
@pytest.mark.parametrize("size", [DAY, pytest.param(NIGHT, marks=pytest.mark.nightly)])
def test_g33_no_step_on_a_prompt_with_very_many_findings_or_texts_is_long(kind: str, size: int) -> None:
    """All that is done once for each of them is done in steps: noting, writing, freeing, and the record at the end."""
    shipped = Plan(program=compile_sources([("default.yaml", with_classifiers())]))
    kinds = {
        "edits of one text": chat("mail u@ex.io " * (1800 * size)),
        "findings that overlap": chat("postgres://u:p@h/" * (800 * size)),
        "messages": messages(*({"role": "user", "content": f"hi {n}"} for n in range(800 * size))),
    }
    received = answered(kinds[kind], b'{"choices":[]}', streaming=False)
    assert long_steps(lambda: steps(guard_of(CHAT, shipped), received)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("text", ["What is {} and why?", "a{}@ex.io"])
def test_g33_no_step_on_a_prompt_of_as_many_messages_as_may_be_allowed_is_long(text: str) -> None:
    mails = msgspec.structs.replace(looking_for("EMAIL"), prompt_messages=10_000)
    said = [{"role": "user", "content": text.format(number)} for number in range(9900)]
    received = answered(json.dumps({"model": "m", "messages": said}).encode(), b'{"choices":[]}', streaming=False)
    assert long_steps(lambda: steps(guard_of(CHAT, mails), received), runs=3) == []


@pytest.mark.nightly
@pytest.mark.parametrize("kind", sorted(common(10)))
def test_g33_no_step_on_a_long_prompt_is_long(kind: str) -> None:
    shipped = Plan(program=compile_sources([("default.yaml", with_classifiers())]))
    received = [RequestReceived(chat(common(40_000)[kind]))]
    assert long_steps(lambda: steps(guard_of(CHAT, shipped), received)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("name", TEXTS)
def test_g33_no_step_on_a_long_prompt_that_says_one_thing_over_and_over_is_long(name: str) -> None:
    received = [RequestReceived(chat(said_over(name, 400_000).encode("utf-8", "replace").decode()))]
    assert long_steps(lambda: steps(guard_of(CHAT, everything()), received), runs=3) == []


def test_g33_no_step_on_token_ids_is_long() -> None:
    body = json.dumps({"model": "m", "prompt": [7] * 300_000, "stream": True}).encode()
    assert long_steps(lambda: steps(guard_of(COMPLETIONS, everything()), [RequestReceived(body)])) == []
