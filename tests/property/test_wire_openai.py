"""Laws of the OpenAI surfaces: edits change their text and nothing else, whatever the JSON looks like."""

from __future__ import annotations

import contextlib
import copy
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.terms import Unit
from checkstream.core.wire import sse
from checkstream.core.wire.openai.chat import OpenAIChat
from checkstream.core.wire.openai.completions import OpenAICompletions
from checkstream.core.wire.surface import Edit, Surface
from checkstream.errors import RequestInvalid, WireError
from tests.chance import examples

CHAT, TEXT = OpenAIChat(), OpenAICompletions()
words = st.text(max_size=8)
scalars = st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False) | words
anything = st.recursive(scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3))
deltas = st.fixed_dictionaries(
    {},
    optional={
        "role": st.just("assistant"),
        "content": words | st.none(),
        "refusal": words | st.none(),
        "reasoning": words,
        "tool_calls": st.lists(
            st.fixed_dictionaries(
                {"function": st.fixed_dictionaries({}, optional={"name": words, "arguments": words})},
                optional={"index": st.integers(0, 3)},
            ),
            max_size=2,
        ),
        "extra": anything,
    },
)
choices = st.lists(
    st.fixed_dictionaries(
        {"delta": deltas},
        optional={"finish_reason": st.sampled_from([None, "stop"]), "logprobs": anything, "text": words},
    ),
    max_size=3,
)


@st.composite
def events(draw: st.DrawFn) -> tuple[dict[str, Any], bytes]:
    found = draw(choices)
    for position, choice in enumerate(found):
        choice["index"] = position * 2 % 3
    body = {"id": "c", "choices": found, "usage": draw(st.none() | st.just({"total_tokens": 1}))}
    spaced = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\t", " : ")]))
    text = json.dumps(body, ensure_ascii=draw(st.booleans()), separators=spaced)
    return body, sse.encode(text.encode(), "error")


def put(body: Any, path: tuple[str | int, ...], value: str) -> None:
    for key in path[:-1]:
        body = body[key]
    body[path[-1]] = value


@settings(max_examples=examples(150), deadline=None)
@given(events(), st.data())
def test_g05_an_edit_changes_its_texts_and_the_logprobs_beside_them(
    event: tuple[dict[str, Any], bytes], data: st.DataObject
) -> None:
    _, raw = event
    for surface in (CHAT, TEXT):
        unit = surface.read_event(sse.parse(raw))
        body = json.loads(sse.parse(unit.raw).data or b"")  # without log probabilities of text that comes later
        texts = {i: data.draw(words) for i, delta in enumerate(unit.deltas) if delta.text and data.draw(st.booleans())}
        expected = copy.deepcopy(body)
        for i, text in texts.items():
            if text != unit.deltas[i].text:
                put(expected, unit.deltas[i].path, text)
                for choice in expected["choices"]:
                    if choice["index"] == unit.deltas[i].channel.choice and "logprobs" in choice:
                        choice["logprobs"] = None
        out = surface.write_event(unit, Edit(texts))
        assert out.startswith(b"event: error\ndata: ")
        assert json.loads(sse.parse(out).data or b"") == expected
        if expected == body:
            assert out == unit.raw
        again = surface.read_event(sse.parse(out))
        edited = [(d.channel, d.path, texts.get(i, d.text)) for i, d in enumerate(unit.deltas)]
        assert [(d.channel, d.path, d.text) for d in again.deltas if d.text] == [delta for delta in edited if delta[2]]


SECRET = "zebra"
NAMES = ("content", "reasoning_content", "refusal", "text", "name", "arguments", "logprobs", "delta", "choices", "0")
decoys = st.recursive(
    st.sampled_from([SECRET, "content", "delta", 0, None]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)


def spelled(value: object, data: st.DataObject) -> str:
    """Return `value` as JSON with any white space, members in any order, and names spelled with any escapes."""
    gap = data.draw(st.sampled_from(["", " ", "\t", " \r"]))
    if isinstance(value, dict):
        items = data.draw(st.permutations(list(value.items())))
        members = (f"{gap}{escaped(name, data)}{gap}:{gap}{spelled(inner, data)}" for name, inner in items)
        return "{" + ",".join(members) + gap + "}"
    if isinstance(value, list):
        return "[" + ",".join(f"{gap}{spelled(inner, data)}{gap}" for inner in value) + "]"
    return escaped(value, data) if isinstance(value, str) else json.dumps(value)


def escaped(text: str, data: st.DataObject) -> str:
    at = data.draw(st.integers(-9, len(text) - 1)) if text else -1
    return json.dumps(text) if at < 0 else f'"{text[:at]}\\u{ord(text[at]):04x}{text[at + 1 :]}"'


@settings(max_examples=examples(250), deadline=None)
@given(
    st.sampled_from(["content", "reasoning_content", "refusal", "name", "arguments", "parts", "text"]),
    st.dictionaries(st.sampled_from(NAMES), decoys, max_size=3),
    st.dictionaries(st.sampled_from(NAMES), decoys, max_size=3),
    st.data(),
)
def test_g34_an_edit_goes_to_the_value_that_was_read_and_to_no_look_alike(
    kind: str, around: dict[str, Any], beside: dict[str, Any], data: st.DataObject
) -> None:
    surface: OpenAIChat | OpenAICompletions = TEXT if kind == "text" else CHAT
    made: dict[str, Any] = {kind: SECRET}
    if kind in {"name", "arguments"}:
        made = {"tool_calls": [{"index": 0, "function": {kind: SECRET}}]}
    if kind == "parts":
        made = {"content": [SECRET]}
    choice = {"x": around, "index": 0, **(made if surface is TEXT else {"delta": {"x": beside, **made}})}
    raw = sse.encode(spelled({"y": beside, "choices": [choice], "z": around}, data).encode())
    unit = surface.read_event(sse.parse(raw))
    place = next(i for i, delta in enumerate(unit.deltas) if delta.channel.kind != "extra")
    expected = json.loads(sse.parse(raw).data or b"")
    put(expected, unit.deltas[place].path, "[X]")
    out = surface.write_event(unit, Edit({place: "[X]"}))
    assert json.loads(sse.parse(out).data or b"") == expected


@settings(max_examples=examples(100), deadline=None)
@given(events(), st.frozensets(st.integers(0, 2)))
def test_g14_nothing_of_a_dropped_choice_remains(event: tuple[dict[str, Any], bytes], dropped: frozenset[int]) -> None:
    _, raw = event
    unit = CHAT.read_event(sse.parse(raw))
    body = json.loads(sse.parse(unit.raw).data or b"")
    out = CHAT.write_event(unit, Edit({}, dropped))
    kept = [choice for choice in body["choices"] if choice["index"] not in dropped]
    if out:
        assert json.loads(sse.parse(out).data or b"") == body | {"choices": kept}
    else:
        assert body["choices"]
        assert not kept
        assert not unit.usage


@settings(max_examples=examples(150), deadline=None)
@given(anything | st.fixed_dictionaries({"choices": st.lists(st.dictionaries(words, anything), max_size=2)}))
def test_g19_any_json_is_read_or_refused(value: object) -> None:
    raw = json.dumps(value).encode()
    for surface in (CHAT, TEXT):
        for read in (surface.read_whole, lambda data, s=surface: s.read_event(sse.parse(sse.encode(data)))):
            try:
                unit = read(raw)
            except WireError:
                continue
            assert isinstance(unit, Unit)
        with contextlib.suppress(RequestInvalid):
            surface.read_request(raw)


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=40) | st.text('{}[]",:\\u0d8dcae0129 \nntfx', max_size=40).map(str.encode))
def test_g19_any_bytes_are_read_or_refused(raw: bytes) -> None:
    for surface in (CHAT, TEXT):
        _refusing(surface, raw)


def _refusing(surface: Surface, raw: bytes) -> None:
    for read in (
        surface.read_whole,
        surface.read_request,
        lambda data: surface.read_event(sse.parse(sse.encode(data))),
    ):
        with contextlib.suppress(WireError):
            read(raw)


messages = st.lists(
    st.fixed_dictionaries(
        {"role": st.sampled_from(["system", "user", "assistant", "tool"])},
        optional={
            "content": words | st.lists(st.builds(lambda t: {"type": "text", "text": t}, words), max_size=3),
            "name": words,
        },
    ),
    min_size=1,
    max_size=4,
)


@settings(max_examples=examples(100), deadline=None)
@given(messages, st.booleans(), st.data())
def test_g31_a_request_edit_changes_its_texts_only(
    found: list[dict[str, Any]], extended: bool, data: st.DataObject
) -> None:
    body: dict[str, Any] = {"messages": found, "stop": ["x"], "temperature": 0.5}
    sent = ({"checkstream": {"documents": ["d"]}} if extended else {}) | body
    request = CHAT.read_request(json.dumps(sent).encode())
    texts = {i: data.draw(words) for i in range(len(request.unit.deltas)) if data.draw(st.booleans())}
    expected = copy.deepcopy(body)
    for i, text in texts.items():
        if request.unit.deltas[i].path[0] != "checkstream":
            put(expected, request.unit.deltas[i].path, text)
    assert json.loads(CHAT.write_request(request, texts)) == expected
