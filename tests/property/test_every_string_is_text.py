"""A secret anywhere in an answer, in any JSON, spelled and cut in any way: no caller's parser ever finds it."""

from __future__ import annotations

import base64
import contextlib
import copy
import itertools
import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from openai.lib.streaming._deltas import accumulate_delta

from checkstream.core.wire.surfaces import SURFACES
from tests.chance import examples
from tests.guarded import plan
from tests.playbook import Played, play

RULES = """  - name: m
    id: PII-1
    stage: [midstream]
    entities: [EMAIL, CREDIT_CARD, US_SSN, AWS_ACCESS_KEY]
    phrases: [zebra crossing]
    actions: [{type: redact}]
"""
PLAN = plan(RULES)
SECRETS = ["john.doe@example.com", "4111111111111111", "123-45-6789", "AKIAIOSFODNN7EXAMPLQ", "zebra crossing"]
PATHS = ["openai.chat", "openai.completions"]
NAMES = st.sampled_from(
    [
        "record_field",
        "annotations",
        "content",
        "text",
        "delta",
        "message",
        "title",
        "url",
        "x",
        "thinking_blocks",
        "transcript",
        "data",
        "0",
        "logprobs",
        "bytes",
        "token_ids",
        "Content",
        "parsed",
        "index",
        "citations",
    ]
)  # fmt: skip
CALM = st.sampled_from(["", "a", "ok", "see page", "v1.2", 0, 7, 1.5, True, None, "stop"])


def spelled(value: object, draw: Callable[..., Any]) -> str:
    """Return a value as JSON; some characters of its strings are escaped."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{spelled(name, draw)}: {spelled(inner, draw)}" for name, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(spelled(inner, draw) for inner in value) + "]"
    if not isinstance(value, str) or not value:
        return json.dumps(value)
    at = draw(st.integers(-len(value) - 2, len(value) - 1))
    return json.dumps(value) if at < 0 else f'"{_quoted(value[:at])}\\u{ord(value[at]):04x}{_quoted(value[at + 1 :])}"'


def _quoted(text: str) -> str:
    return json.dumps(text)[1:-1]


@st.composite
def nests(draw: st.DrawFn, secret: object) -> Any:
    """Return JSON of any shape with the secret somewhere in it: a string, a part of one, a name, a number."""
    planted = draw(st.sampled_from(["string", "within", "name", "number", "bytes"]))
    value: object = secret
    if planted == "within":
        value = f"{draw(st.sampled_from(['mail ', '(', '']))}{secret}{draw(st.sampled_from([' ok', ')', '.', '']))}"
    elif planted == "name":
        value = {str(secret): draw(CALM)}
    elif planted == "number" and str(secret).isdigit():
        value = draw(st.sampled_from([int(str(secret)), float(str(secret))]))
    elif planted == "bytes" and isinstance(secret, str):
        value = list(secret.encode())
    for _ in range(draw(st.integers(0, 3))):
        if draw(st.booleans()):
            value = {**draw(st.dictionaries(NAMES, CALM, max_size=2)), draw(NAMES): value}
        else:
            value = [*draw(st.lists(CALM, max_size=2)), value, *draw(st.lists(CALM, max_size=1))]
    return value


Put = Callable[[dict[str, Any], dict[str, Any], dict[str, Any], str, Any], object]


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def call(**fields: Any) -> list[dict[str, Any]]:
    return [{"index": 0, **fields}]


def probability(**fields: Any) -> dict[str, Any]:
    return {"content": [{"logprob": 0.0, **fields}]}


def member(of: int, name: str, *, text: bool = False) -> Put:
    """Return what puts a value under a name into the answer (0), the choice (1) or what it says (2)."""

    def put(body: dict[str, Any], choice: dict[str, Any], said: dict[str, Any], _: str, value: Any) -> None:
        (body, choice, said)[of][name] = as_text(value) if text else value

    return put


PLACES: dict[str, Put] = {
    "said": lambda _, choice, said, name, value: (said or choice).update({name: value}),
    "choice": lambda _, choice, __, name, value: choice.update({f"x_{name}": value}),
    "top": lambda body, _, __, name, value: body.update({name: value}),
    "usage": lambda body, _, __, name, value: body.update(usage={"prompt_tokens": 3, name: value}),
    "tool_id": lambda _, __, said, ___, value: said.update(tool_calls=call(id=value)),
    "tool_type": lambda _, __, said, ___, value: said.update(tool_calls=call(type=value)),
    "tool_field": lambda _, __, said, name, value: said.update(tool_calls=call(**{f"x_{name}": value})),
    "function_field": lambda _, __, said, name, value: said.update(tool_calls=call(function={f"x_{name}": value})),
    "arguments": lambda _, __, said, ___, value: said.update(tool_calls=call(function={"arguments": {"q": value}})),
    "function_call": lambda _, __, said, ___, value: said.update(function_call={"name": "f", "arguments": value}),
    "parts": lambda _, __, said, ___, value: said.update(content=[{"text": "code abc"}, {"text": as_text(value)}]),
    "part_field": lambda _, __, said, name, value: said.update(content=[{"text": "see", f"x_{name}": value}]),
    "reasoning_details": lambda _, __, said, name, value: said.update(
        reasoning_details=[{"text": "hm", f"x_{name}": value}, {"text": as_text(value)}]
    ),
    "logprobs": lambda _, choice, __, ___, value: choice.update(logprobs=probability(token=as_text(value))),
    "top_logprobs": lambda _, choice, __, ___, value: choice.update(
        logprobs=probability(token="fine, ", top_logprobs=[{"token": as_text(value), "logprob": -1.0}])
    ),
    "finish_reason": member(1, "finish_reason", text=True),
    **{name: member(1, name) for name in ("stop_reason", "content_filter_results", "token_ids")},
    **{name: member(2, name, text=True) for name in ("role", "refusal", "reasoning")},
    **{name: member(0, name) for name in ("error", "prompt_logprobs", "timings", "provider", "obfuscation", "id")},
    **{name: member(0, name) for name in ("created", "model", "object", "system_fingerprint", "service_tier")},
}


def put(place: str, name: str, value: Any, *, chat: bool, streamed: bool) -> dict[str, Any]:
    """Return an event or a body with a value at a place."""
    said: dict[str, Any] = {"content": "fine, "} if chat else {}
    choice: dict[str, Any] = {"index": 0, "finish_reason": None if streamed else "stop"}
    if not chat:
        choice["text"] = "fine, "
    body: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
    PLACES[place](body, choice, said, name, value)
    if chat:
        choice["delta" if streamed else "message"] = said
    return {**body, "choices": [] if place == "error" else [choice]}


LEAVES = {"name", "str", "int", "float", "bool"}


def strings(value: object) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield what `found` does, but for what lists of bytes spell."""
    return ((path, text) for path, text in found(value) if path and path[-1] in LEAVES)


def found(value: object, path: tuple[object, ...] = ()) -> Iterator[tuple[tuple[object, ...], str]]:
    """Yield every string, number and name of a JSON value, and what lists of bytes spell, with its place."""
    if isinstance(value, dict):
        for name, inner in value.items():
            yield (*path, name, "name"), name
            yield from found(inner, (*path, name))
    elif isinstance(value, list):
        if len(value) > 3 and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
            yield path, bytes(value).decode(errors="replace")
        for i, inner in enumerate(value):
            yield from found(inner, (*path, i))
    elif value is not None:
        whole = isinstance(value, float) and value.is_integer()
        yield (*path, type(value).__name__), str(int(value)) if whole and isinstance(value, float) else str(value)


def replies(out: Played) -> Iterator[Any]:
    """Yield what a caller's parser makes of what left."""
    data = out.joined if out.reply is None else b"data: " + out.reply.body.replace(b"\n", b" ")
    for line in data.split(b"\n"):
        if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
            yield json.loads(line[6:])


def accumulated(out: Played) -> Iterator[str]:
    """Yield every text that openai-python puts together: strings of each choice's delta, and lists by `index`."""
    said: dict[Any, Any] = {}
    for line in out.joined.split(b"\n"):
        for choice in json.loads(line[6:]).get("choices") or () if line.startswith(b"data: {") else ():
            with contextlib.suppress(TypeError, ValueError, RuntimeError):  # it can't join what is of two types
                number = str(choice.get("index"))
                said[number] = accumulate_delta(said.get(number) or {}, copy.deepcopy(choice.get("delta") or {}))
    yield from (text for _, text in found(said))


def by_index(path: tuple[Any, ...], body: Any) -> tuple[object, ...]:
    """Return a path with the `index` of what has one, in place of where it stands."""
    place: list[object] = []
    for name in path[:-1]:
        body = body[name] if isinstance(body, list | dict) else None
        index = body.get("index") if isinstance(body, dict) and isinstance(name, int) else None
        place.append(("index", index) if type(index) is int else name)
    return (*place, path[-1])


def holds(text: str, secret: str) -> bool:
    """Tell whether a secret stands in a text; within a longer number or word there is none, but an address."""
    at = text.find(secret)
    while at >= 0:
        beside = text[max(at - 1, 0) : at] + text[at + len(secret) : at + len(secret) + 1]
        if "@" in secret or not any(char.isalnum() or char == "-" for char in beside):
            return True
        at = text.find(secret, at + 1)
    return False


def assert_unheard(secret: str, out: Played) -> None:
    """No client finds the secret: in one string, in those of one place joined over events, or in those of one index."""
    joined: defaultdict[tuple[object, ...], str] = defaultdict(str)
    for body in replies(out):
        for path, text in found(body):
            assert not holds(text, secret), (path, text)
            joined[path] += text
            if path[-1] == "str" and (place := by_index(path, body)) != path:
                joined[place] += text
    for path, text in joined.items():
        assert not holds(text, secret), (path, text)
    assert not any(holds(text, secret) for text in accumulated(out))
    data = out.joined if out.reply is None else out.reply.body
    assert secret.encode() not in data


@settings(max_examples=examples(400), deadline=None)
@given(st.data())
def test_g34_a_secret_anywhere_in_an_event_or_a_body_never_leaves(data: st.DataObject) -> None:
    path, secret = data.draw(st.sampled_from(PATHS)), data.draw(st.sampled_from(SECRETS))
    place, name = data.draw(st.sampled_from(sorted(PLACES))), data.draw(NAMES)
    streamed = data.draw(st.booleans())
    value = data.draw(nests(secret))
    # What a tool is given is text: no view reads numbers in it as the codes of characters.
    assume(place not in {"arguments", "function_call"} or any(holds(text, secret) for _, text in strings(value)))
    body = put(place, name, value, chat=path == PATHS[0], streamed=streamed)
    raw = spelled(body, data.draw).encode()
    request: dict[str, Any] = {"model": "m", "stream": streamed}
    request |= {"messages": [{"role": "user", "content": "hi"}]} if path == PATHS[0] else {"prompt": "hi"}
    status = data.draw(st.sampled_from([200, 200, 400, 500])) if not streamed else 200
    if streamed:
        calm = put("said", "content" if path == PATHS[0] else "text", "more ", chat=path == PATHS[0], streamed=True)
        events = [calm, calm, None, calm] if data.draw(st.booleans()) else [None]
        pieces = [b"data: " + (raw if event is None else json.dumps(event).encode()) + b"\n\n" for event in events]
        raw = b"".join([*pieces, b"data: [DONE]\n\n"])
    out = play(SURFACES[path], PLAN, json.dumps(request).encode(), [raw], streaming=streamed, status=status)
    assert out.reply is not None or out.closed
    assert_unheard(secret, out)


def cut(text: str, draw: Callable[..., Any]) -> list[str]:
    edges = sorted({0, len(text), *draw(st.lists(st.integers(1, max(len(text) - 1, 1)), max_size=4))})
    return [text[low:high] for low, high in itertools.pairwise(edges)]


NESTED = [
    "said",
    "choice",
    "top",
    "tool_field",
    "part_field",
    "reasoning_details",
    "usage",
    "function_field",
    "timings",
]
JOINED = [
    *NESTED, "role", "tool_id", "tool_type", "id", "model", "system_fingerprint", "service_tier", "provider", "object",
    "obfuscation", "stop_reason", "finish_reason", "top_logprobs", "logprobs", "refusal", "reasoning",
]  # fmt: skip


TEXTS = {"refusal", "reasoning", "reasoning_details"}


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_g34_a_secret_cut_over_events_at_one_place_never_leaves(data: st.DataObject) -> None:
    secret = data.draw(st.sampled_from([*SECRETS, "4242424242424242"]))
    where = data.draw(st.sampled_from(JOINED))
    name = data.draw(st.sampled_from(["record_field", "thinking_blocks", "citations", "x"]))
    nested = data.draw(st.sampled_from(["plain", "list", "object"])) if where in NESTED else "plain"
    events = []
    for piece in cut(data.draw(st.sampled_from([f"so {secret} it is", secret])), data.draw):
        value: object = {"plain": piece, "list": [{"thinking": piece}], "object": {"a": {"b": piece}}}[nested]
        event = put(where, name, value, chat=True, streamed=True)
        between = put("said", "content", "more ", chat=True, streamed=True)
        # A client joins over events that say nothing there, or take away what it knows; one piece may come twice.
        # Of the texts themselves a number that comes twice is a longer one.
        times = st.sampled_from([1] if where in TEXTS else [1, 1, 1, 2])
        events += [event] * data.draw(times) + [between] * data.draw(st.sampled_from([0, 0, 2]))
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    request = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
    out = play(SURFACES[PATHS[0]], PLAN, request, [raw, b"data: [DONE]\n\n"])
    assert_unheard(secret, out)


@settings(max_examples=examples(100), deadline=None)
@given(st.data())
def test_g34_a_secret_cut_over_the_entries_of_a_list_never_leaves(data: st.DataObject) -> None:
    secret, streamed = data.draw(st.sampled_from(SECRETS)), data.draw(st.booleans())
    pieces = cut(data.draw(st.sampled_from([f"so {secret} it is", secret])), data.draw)
    nested = data.draw(st.sampled_from([lambda piece: piece, lambda piece: {"text": piece}, lambda piece: [piece]]))
    lists = [pieces] if data.draw(st.booleans()) or not streamed else [pieces[:1], pieces[1:]]
    where = data.draw(st.sampled_from(["said", "choice", "top", "usage", "timings", "function_field"]))
    events = [
        put(where, "blocks", [nested(piece) for piece in each], chat=True, streamed=streamed) for each in lists if each
    ]
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events) + b"data: [DONE]\n\n"
    request = {"model": "m", "stream": streamed, "messages": [{"role": "user", "content": "hi"}]}
    raw = raw if streamed else json.dumps(events[0]).encode()
    out = play(SURFACES[PATHS[0]], PLAN, json.dumps(request).encode(), [raw], streaming=streamed)
    joined = "".join(text for body in replies(out) for path, text in found(body) if path[-1] == "str" and len(path) > 2)
    assert not holds(joined, secret)
    assert_unheard(secret, out)


@settings(max_examples=examples(60), deadline=None)
@given(st.data())
def test_g34_a_secret_cut_over_entries_of_several_indexes_never_leaves_whole(data: st.DataObject) -> None:
    secret, streamed = data.draw(st.sampled_from(SECRETS)), data.draw(st.booleans())
    where = data.draw(st.sampled_from(["reasoning_details", "blocks"]))
    step = data.draw(st.integers(1, 3))
    entries = [{"index": step * i, "text": piece} for i, piece in enumerate(cut(secret, data.draw))]
    first = data.draw(st.integers(0, len(entries))) if streamed else len(entries)
    lists = [each for each in (entries[:first], entries[first:]) if each]
    bodies = [put("said", where, each, chat=True, streamed=streamed) for each in lists]
    raw = b"".join(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies) + b"data: [DONE]\n\n"
    raw = raw if streamed else json.dumps(bodies[0]).encode()
    request = {"model": "m", "stream": streamed, "messages": [{"role": "user", "content": "hi"}]}
    out = play(SURFACES[PATHS[0]], PLAN, json.dumps(request).encode(), [raw], streaming=streamed)
    told = (text for body in replies(out) for path, text in found(body) if path[-2:] == ("text", "str"))
    assert not holds("".join(told), secret)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.tuples(st.integers(1, 19), st.booleans()), max_size=4), st.sampled_from(["said", "choice", "top"]))
def test_g34_of_a_field_that_nobody_knows_nothing_leaves_that_completes_what_is_condemned(
    cuts: list[tuple[int, bool]], where: str
) -> None:
    """The law of what is held for one event: what stood before an event that did not go on with it may have left.

    Nothing behind the last such event does, so no caller ever has the whole, however often the field stops and goes on.
    """
    secret = SECRETS[0]
    gaps = dict(sorted(cuts))
    edges = [0, *gaps, len(secret)]
    between = put("said", "content", "more ", chat=True, streamed=True)
    events = []
    for low, high in itertools.pairwise(edges):
        events += [put(where, "x_note", secret[low:high], chat=True, streamed=True)]
        events += [between] * gaps.get(high, False)
    raw = b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)
    request = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
    out = play(SURFACES[PATHS[0]], PLAN, request, [raw, b"data: [DONE]\n\n"])
    texts = [(str(path), text) for body in replies(out) for path, text in found(body) if path[-1] == "str"]
    told = "".join(text for path, text in texts if "x_note" in path)
    left = max((place for place, gap in gaps.items() if gap), default=0)
    assert secret[:left].startswith(told.replace("[EMAIL]", ""))


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize("name", ["data", "signature", "encrypted_content", "url", "b64_json"])
def test_g34_bytes_of_no_known_form_are_read_whatever_they_are_called(name: str, streamed: bool) -> None:
    letter = "A letter that goes on for a while before it says something. " * 5
    said = base64.b64encode(f"{letter}To {SECRETS[0]}. {letter}".encode()).decode()
    for text in (said, f"data:image/png;base64,{said}", "QUJD" * 99 + f"/{SECRETS[1]}/" + "QUJD" * 99):
        body = put("said", "blocks", [{name: text}], chat=True, streamed=streamed)
        raw = json.dumps(body).encode()
        request = {"model": "m", "stream": streamed, "messages": [{"role": "user", "content": "hi"}]}
        pieces = [b"data: " + raw + b"\n\n", b"data: [DONE]\n\n"] if streamed else [raw]
        out = play(SURFACES[PATHS[0]], PLAN, json.dumps(request).encode(), pieces, streaming=streamed)
        left = out.joined if out.reply is None else out.reply.body
        assert text.encode() not in left, text


CALM_NEST = st.recursive(
    CALM,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(NAMES.filter(lambda n: n != "index"), inner, max_size=3)
    ),
    max_leaves=8,
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["said", "choice", "top", "usage", "tool_field"]), CALM_NEST), max_size=5))
def test_g05_unknown_fields_in_which_nothing_is_found_leave_as_they_came(found: list[tuple[str, Any]]) -> None:
    events = [
        put(place, f"x_{number % 2}", value, chat=True, streamed=True) for number, (place, value) in enumerate(found)
    ]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})  # calls are whole
    pieces = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    raw = b"".join([*pieces, b"data: [DONE]\n\n"])
    request = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}).encode()
    out = play(SURFACES[PATHS[0]], PLAN, request, [raw])
    assert out.joined == raw


@pytest.mark.parametrize("place", sorted(PLACES))
@pytest.mark.parametrize("streamed", [True, False])
def test_g34_every_place_is_read(place: str, *, streamed: bool) -> None:
    body = put(place, "record_field", SECRETS[0], chat=True, streamed=streamed)
    raw = json.dumps(body).encode()
    request = {"model": "m", "stream": streamed, "messages": [{"role": "user", "content": "hi"}]}
    pieces = [b"data: " + raw + b"\n\n", b"data: [DONE]\n\n"] if streamed else [raw]
    out = play(SURFACES[PATHS[0]], PLAN, json.dumps(request).encode(), pieces, streaming=streamed)
    assert_unheard(SECRETS[0], out)
