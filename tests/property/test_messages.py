"""The Messages API: whatever blocks a stream has, wherever it is cut, what leaves is legal and holds no secret."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests import messages
from tests.chance import examples
from tests.drawn import CALM, RISK, Draw, split
from tests.guarded import MAIL as REDACT
from tests.guarded import STOP, plan
from tests.messages import MAIL, MESSAGES, answer, begun, call, delta, event, head, over, read, request, said
from tests.messages import text as text_block
from tests.messages import thought as thinking_block
from tests.playbook import Played, play
from tests.property.test_every_string_is_text import (
    NAMES,
    PLAN,
    SECRETS,
    assert_unheard,
    holds,
    nests,
    spelled,
    strings,
)


def cut(draw: Draw, text: str) -> list[str]:
    """Return a text in pieces, some of which may be empty."""
    edges = sorted({0, len(text), *draw(st.lists(st.integers(0, len(text)), max_size=4))})
    return [text[low:high] for low, high in itertools.pairwise(edges)]


@st.composite
def blocks(draw: Draw, texts: st.SearchStrategy[str] = CALM) -> list[dict[str, Any]]:
    """Return blocks of a whole answer."""
    found: list[dict[str, Any]] = []
    for number in range(draw(st.integers(1, 5))):
        said = draw(texts)
        match draw(st.sampled_from(["text", "thinking", "tool_use", "redacted", "server"])):
            case "text":
                found.append({"type": "text", "text": said})
            case "thinking":
                found.append({"type": "thinking", "thinking": said, "signature": "c2ln"})
            case "redacted":
                found.append({"type": "redacted_thinking", "data": "ZGF0YQ=="})
            case "tool_use":
                found.append({"type": "tool_use", "id": f"toolu_{number}", "name": "f", "input": {"q": said}})
            case "server":
                made = {"type": "server_tool_use", "id": f"srv_{number}", "name": "web_search", "input": {"q": said}}
                result = {"type": "web_search_result", "title": "T", "url": "https://h/x", "encrypted_content": "ZW5j"}
                found += [made, {"type": "web_search_tool_result", "tool_use_id": f"srv_{number}", "content": [result]}]
    return found


def streamed(draw: Draw, found: Sequence[dict[str, Any]]) -> bytes:
    """Return the stream in which a model says these blocks."""
    made: list[list[bytes]] = []
    for index, block in enumerate(found):
        match block["type"]:
            case "text":
                made.append(text_block(index, *cut(draw, block["text"])))
            case "thinking":
                made.append(thinking_block(index, *cut(draw, block["thinking"])))
            case "tool_use" | "server_tool_use":
                pieces = cut(draw, json.dumps(block["input"]))
                made.append(call(index, block["name"], *pieces, form=block["type"], id=block["id"]))
            case _:
                made.append([begun(index, **block), over(index)])
        if draw(st.booleans()):
            made.append([event("ping")])
    return answer(*made, reason="tool_use" if any(block["type"] == "tool_use" for block in found) else "end_turn")


def whole_of(found: Sequence[dict[str, Any]]) -> bytes:
    called = any(block["type"] == "tool_use" for block in found)
    return messages.whole(*found, reason="tool_use" if called else "end_turn")


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_g05_a_calm_message_leaves_as_it_came(data: st.DataObject) -> None:
    found = data.draw(blocks())
    raw = streamed(data.draw, found)
    out = play(MESSAGES, plan(REDACT), request(), split(data.draw, raw))
    assert out.joined == raw
    assert read(raw)["content"] == found
    body = whole_of(found)
    assert messages.reply(REDACT, body).reply.body == body  # type: ignore[union-attr]


_BESIDE = st.text(st.sampled_from(' ,\n\U0001f600"\\{}'), max_size=6)  # no letters: within a word there is no phrase
SAYS = st.tuples(_BESIDE, st.sampled_from(["", MAIL, RISK, "john.doe", "@example.com", "zero ", "risk"]), _BESIDE).map(
    "".join
)


@settings(max_examples=examples(300), deadline=None)
@given(st.data(), st.sampled_from([REDACT, STOP, REDACT + STOP]))
def test_g35_an_edited_message_is_a_legal_sequence_without_what_was_condemned(data: st.DataObject, rules: str) -> None:
    found = data.draw(blocks(SAYS))
    raw = streamed(data.draw, found)
    played = play(MESSAGES, plan(rules), request(), split(data.draw, raw))
    message = read(played.joined)
    assert_clean(rules, message, found)
    body = messages.reply(rules, whole_of(found)).reply
    assert body is not None
    answered = json.loads(body.body)
    assert_clean(rules, answered, found)
    assert (message["stop_reason"] == "refusal") == (answered["stop_reason"] == "refusal")
    if message["stop_reason"] == "refusal":
        assert {name: message["usage"][name] for name in ("input_tokens",)} == {"input_tokens": 7}
    elif rules == REDACT:
        assert said(message) == said(answered)
        assert thoughts(message) == thoughts(answered)
        assert message["stop_reason"] == answered["stop_reason"]
    called = [block["id"] for block in message["content"] if "input" in block]
    told = [block["tool_use_id"] for block in message["content"] if "tool_use_id" in block]
    assert set(told) <= set(called), "no result without its call"


def thoughts(message: dict[str, Any]) -> list[dict[str, Any]]:
    return [block for block in message["content"] if block["type"] == "thinking"]


def assert_clean(rules: str, message: dict[str, Any], found: Sequence[dict[str, Any]]) -> None:
    wanted = [*([MAIL] if "EMAIL" in rules else []), *([RISK] if RISK in rules else [])]
    thought = "".join(block.get("thinking", "") for block in message["content"])
    for secret in wanted:
        assert secret not in json.dumps(message)
        assert secret not in said(message)
        assert secret not in thought
    assert all(block in found for block in thoughts(message)), "it leaves as the model wrote it, or not at all"


def _text_delta(**more: Any) -> bytes:
    return event("content_block_delta", index=0, delta={"type": "text_delta", "text": " fine, "}, **more)


_SAID: dict[str, Any] = {"type": "text_delta", "text": " fine, "}
PUTS: dict[str, Callable[[str, Any], bytes]] = {
    "event": lambda name, value: event("content_block_delta", index=0, delta=_SAID, **{f"x_{name}": value}),
    "delta": lambda name, value: event("content_block_delta", index=0, delta={**_SAID, f"x_{name}": value}),
    "citation": lambda name, value: delta(0, "citations_delta", citation={"type": "char_location", name: value}),
    "signature": lambda _, value: delta(0, "signature_delta", signature=value),
    "of another type": lambda name, value: delta(0, "compaction_delta", **{f"x_{name}": value}),
    "type": lambda _, value: event("content_block_delta", index=0, delta={"type": value, "text": "fine, "}),
    "thinking": lambda _, value: delta(0, "thinking_delta", thinking=_text(value)),
    "text": lambda _, value: delta(0, "text_delta", text=_text(value)),
    "number": lambda name, value: event("content_block_stop", index=0, **{f"x_{name}": value}),
    "block": lambda name, value: over(0) + begun(1, type="text", text="", **{f"x_{name}": value}) + over(1),
    "block text": lambda _, value: over(0) + begun(1, type="text", text=_text(value)) + over(1),
    "block type": lambda _, value: over(0) + begun(1, type=value, tool_use_id=value) + over(1),
    "data": lambda _, value: over(0) + begun(1, type="redacted_thinking", data=value) + over(1),
    "call id": lambda _, value: over(0) + begun(1, type="tool_use", id=value, name="f", input={}) + over(1),
    "call name": lambda _, value: over(0) + begun(1, type="tool_use", id="t", name=_text(value), input={}) + over(1),
    "call input": lambda name, value: over(0) + begun(1, type="tool_use", id="t", name="f", input={name: value}),
    "call field": lambda name, value: over(0) + begun(1, type="tool_use", id="t", name="f", **{f"x_{name}": value}),
    "result": lambda _, value: over(0) + begun(1, type="web_search_tool_result", tool_use_id="t", content=value),
    "result field": lambda name, value: over(0) + begun(1, type="mcp_tool_result", **{f"x_{name}": value}) + over(1),
    "ping": lambda name, value: event("ping", **{name: value}),
    "stop_reason": lambda _, value: over(0) + event("message_delta", delta={"stop_reason": _text(value)}),
    "stop_sequence": lambda _, value: over(0) + event("message_delta", delta={"stop_sequence": value}),
    "end field": lambda name, value: over(0) + event("message_delta", delta={name: value}, usage={name: value}),
    "error": lambda name, value: event("error", error={"type": "api_error", "message": _text(value), name: value}),
}  # fmt: skip


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def respelled(raw: bytes, draw: Draw) -> bytes:
    """Return events whose JSON is spelled in another way that says the same."""
    lines = []
    for line in raw.split(b"\n"):
        body = spelled(json.loads(line[6:]), draw).encode() if line.startswith(b"data: ") else b""
        lines.append(b"data: " + body if body else line)
    return b"\n".join(lines)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_g34_a_secret_anywhere_in_an_event_of_a_message_never_leaves(data: st.DataObject) -> None:
    secret, place = data.draw(st.sampled_from(SECRETS)), data.draw(st.sampled_from(sorted(PUTS)))
    value = data.draw(nests(secret))
    # What a tool is given is text: no view reads numbers in it as the codes of characters.
    assume(place != "call input" or any(holds(text, secret) for _, text in strings(value)))
    made = respelled(PUTS[place](data.draw(NAMES), value), data.draw)
    before = [head(), begun(0, type="text", text=""), *(_text_delta() for _ in range(data.draw(st.integers(0, 3))))]
    raw = b"".join([*before, made, *(_text_delta() for _ in range(data.draw(st.integers(0, 2))))])
    out = play(MESSAGES, PLAN, request(), split(data.draw, raw + messages.end()))
    assert out.closed
    assert_unheard(secret, out)


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_g34_a_secret_anywhere_in_a_whole_message_never_leaves(data: st.DataObject) -> None:
    secret, name = data.draw(st.sampled_from(SECRETS)), data.draw(NAMES)
    value = data.draw(nests(secret))
    block: dict[str, Any] = data.draw(
        st.sampled_from([
            {"type": "text", "text": _text(value)},
            {"type": "text", "text": "fine", f"x_{name}": value},
            {"type": "text", "text": "fine", "citations": [{"type": "page_location", name: value}]},
            {"type": "thinking", "thinking": _text(value), "signature": "c2ln"},
            {"type": "thinking", "thinking": "hm", "signature": value},
            {"type": "redacted_thinking", "data": value},
            {"type": "tool_use", "id": value, "name": "f", "input": {}},
            {"type": "tool_use", "id": "t", "name": _text(value), "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": "t", "content": value},
            {"type": value, name: value},
        ])
    )  # fmt: skip
    more = data.draw(st.sampled_from([{}, {name: value}, {"usage": {name: value}}, {"stop_sequence": value}]))
    body = spelled(json.loads(messages.whole(block, **more)), data.draw).encode()
    status = data.draw(st.sampled_from([200, 200, 400, 529]))
    out = play(MESSAGES, PLAN, request(stream=False), [body], streaming=False, status=status)
    assert out.reply is not None
    assert_unheard(secret, out)


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_g34_a_secret_cut_over_the_events_of_a_message_never_leaves(data: st.DataObject) -> None:
    secret = data.draw(st.sampled_from([*SECRETS, "4242424242424242"]))
    place = data.draw(st.sampled_from(["text", "thinking", "partial_json", "citation", "field", "two blocks"]))
    made: list[bytes] = []
    for count, piece in enumerate(cut(data.draw, data.draw(st.sampled_from([f"so {secret} it is", secret])))):
        match place:
            case "text" | "thinking":
                made.append(delta(0, f"{place}_delta", **{place: piece}))
            case "partial_json":
                made.append(delta(0, "input_json_delta", partial_json=piece))
            case "citation":
                made.append(delta(0, "citations_delta", citation={"type": "char_location", "cited_text": piece}))
            case "field":
                made.append(event("content_block_delta", index=0, delta={**_SAID, "x": piece}))
            case _:
                made += [over(count), begun(count + 1, type="text", text=piece)]
    first = {
        "thinking": {"type": "thinking", "thinking": ""},
        "partial_json": {"type": "tool_use", "id": "t", "name": "f"},
    }
    raw = b"".join([head(), begun(0, **first.get(place, {"type": "text", "text": ""})), *made, messages.end()])
    out = play(MESSAGES, PLAN, request(), split(data.draw, raw))
    assert_unheard(secret, out)


def kinds(out: Played) -> Iterator[str]:
    return (body["type"] for body in messages.events(out.joined))


@pytest.mark.parametrize("place", sorted(PUTS))
def test_g34_every_place_of_a_message_is_read(place: str) -> None:
    raw = b"".join([head(), begun(0, type="text", text=""), PUTS[place]("field", SECRETS[0]), messages.end()])
    out = play(MESSAGES, PLAN, request(), [raw])
    assert_unheard(SECRETS[0], out)
    assert "message_start" in set(kinds(out))
