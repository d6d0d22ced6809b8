"""Ollama's streams and answers: calm ones leave as they came, and a secret anywhere in one never leaves."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.surfaces import SURFACES
from tests.chance import examples
from tests.guarded import STOP, plan
from tests.playbook import Played, play
from tests.property.test_every_string_is_text import CALM, NAMES, RULES, SECRETS, spelled

PLAN = plan(RULES)
STOPS = plan(STOP)
SURFACE = st.sampled_from(["ollama.chat", "ollama.generate"])
REQUESTS: dict[str, dict[str, Any]] = {
    "ollama.chat": {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
    "ollama.generate": {"model": "m", "prompt": "hi"},
}
HEAD = {"model": "m", "created_at": "2025-01-01T10:00:00.123Z"}
MEMBERS = [
    "x", "message", "response", "thinking", "done_reason", "created_at", "model", "context", "logprobs", "error",
    "role", "tool_calls", "total_duration", "done",
]  # fmt: skip
END = {"done": True, "done_reason": "stop", "total_duration": 5, "eval_count": 3}


def line(surface: str, text: str, **more: Any) -> dict[str, Any]:
    said = {"message": {"role": "assistant", "content": text}} if surface == "ollama.chat" else {"response": text}
    return {**HEAD, **said, "done": False, **more}


def lines(*bodies: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(body, ensure_ascii=False).encode() + b"\n" for body in bodies)


def run(surface: str, data: list[bytes], *, streaming: bool = True, of: Any = PLAN) -> Played:
    request = json.dumps({**REQUESTS[surface], "stream": streaming}).encode()
    return play(SURFACES[surface], of, request, data, streaming=streaming)


def heard(out: Played) -> list[dict[str, Any]]:
    """Return what a client of Ollama's gets: the lines, as Python splits them."""
    data = out.joined if out.reply is None else out.reply.body
    return [json.loads(each) for each in data.decode().splitlines() if each]


def cut(draw: Callable[..., Any], data: bytes) -> list[bytes]:
    places = sorted({0, len(data), *draw(st.lists(st.integers(0, len(data)), max_size=6))})
    return [data[start:end] for start, end in itertools.pairwise(places)]


@given(SURFACE, st.lists(st.sampled_from(["Hello ", "moon", "潮汐", " 🌊", "\n", "x@y "])), st.data())
def test_g05_a_calm_stream_leaves_as_it_came_however_it_is_cut(
    surface: str, texts: list[str], data: st.DataObject
) -> None:
    texts = [text for text in texts if text != "\u2028"]
    stream = lines(*(line(surface, text) for text in texts), line(surface, "", **END))
    out = run(surface, cut(data.draw, stream))
    assert out.joined == stream
    assert out.record is not None
    assert out.record.outcome == "complete"


@given(SURFACE, st.sampled_from(SECRETS), st.integers(1, 30), st.data())
def test_g02_a_secret_in_the_text_is_edited_wherever_it_is_split(
    surface: str, secret: str, at: int, data: st.DataObject
) -> None:
    at %= len(secret)
    pieces = ["I say ", secret[:at], secret[at:], " to you"]
    stream = lines(*(line(surface, piece) for piece in pieces), line(surface, "", **END))
    out = run(surface, cut(data.draw, stream))
    said = "".join(each.get("response") or each.get("message", {}).get("content", "") for each in heard(out))
    assert secret not in said
    assert said.startswith("I say [")
    assert said.endswith("] to you")
    assert heard(out)[-1]["done"] is True


@settings(max_examples=examples(80))
@given(SURFACE, st.sampled_from(SECRETS), st.booleans(), st.lists(NAMES, max_size=3), st.data())
def test_g34_a_secret_anywhere_in_a_line_or_a_body_never_leaves(
    surface: str, secret: str, streaming: bool, path: list[str], data: st.DataObject
) -> None:
    value: Any = data.draw(st.sampled_from([secret, [secret], {secret: "x"}, {"a": secret}, ["ok", {"b": [secret]}]]))
    for name in path:
        value = {name: value, data.draw(NAMES): data.draw(CALM)} if data.draw(st.booleans()) else [value]
    name = data.draw(st.sampled_from(MEMBERS))
    body = line(surface, "Hello ")
    if data.draw(st.booleans()) and isinstance(body.get("message"), dict):
        body["message"][name] = value
    else:
        body[name] = value
    raw = [spelled(each, data.draw).encode() + b"\n" for each in (body, line(surface, "you", **END))]
    out = run(surface, raw if streaming else raw[:1], streaming=streaming)
    text = out.joined if out.reply is None else out.reply.body
    assert secret not in json.dumps(
        json.loads(b"[" + b",".join(text.split(b"\n")).rstrip(b",") + b"]"), ensure_ascii=False
    )


@pytest.mark.parametrize("surface", ["ollama.chat", "ollama.generate"])
@pytest.mark.parametrize("last", [False, True])
def test_g20_a_stop_ends_with_the_word_that_clients_wait_for(surface: str, last: bool) -> None:
    end = [line(surface, " risk at all", **END)] if last else [line(surface, " risk at"), line(surface, "", **END)]
    out = run(surface, [lines(line(surface, "There is zero"), *end)], of=STOPS)
    found = heard(out)
    assert (
        "".join(each.get("response") or each.get("message", {}).get("content", "") for each in found)
        == "There is Halt."
    )
    assert [each["done"] for each in found] == [False] * (len(found) - 1) + [True]
    assert found[-1]["done_reason"] == "content_filter"
    assert found[-2]["checkstream"]["rule_id"] == "STOP-1"


@pytest.mark.parametrize("surface", ["ollama.chat", "ollama.generate"])
def test_g20_what_breaks_off_ends_as_an_error_that_clients_raise(surface: str) -> None:
    out = run(surface, [lines(line(surface, "Hello "), {"error": "out of memory"})])
    assert heard(out)[-1] == {"error": "out of memory"}
    out = run(surface, [lines(line(surface, "Hello ")), b"no json\n"])
    assert "error" in heard(out)[-1]
    assert heard(out)[-1]["code"] == "upstream_error"
