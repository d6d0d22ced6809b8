"""What is JSON stays JSON after any edit, and no leaf changes but those that an edit touches, on every surface."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.events import RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests import continued, messages, responses
from tests.chance import examples
from tests.playbook import Exchange

RULES = """pack: {name: p, version: 1.0.0}
policies:
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact, scope: SCOPE}]}
  - {name: card, id: PII-2, stage: midstream, entities: [CREDIT_CARD], actions: [{type: redact, numbers: NUMBERS}]}
  - {name: word, id: FIN-1, stage: midstream, phrases: [zebra],
     actions: [{type: rewrite_span, words: {zebra: 'a "striped" \\\\ horse'}, scope: span}]}
  - {name: name, id: PII-3, stage: midstream, phrases: [lion king], actions: [{type: redact, style: hash}]}
"""
PLANS = {
    (scope, numbers): Plan(
        program=compile_sources([("p.yaml", RULES.replace("SCOPE", scope).replace("NUMBERS", numbers))])
    )
    for scope in ("span", "sentence")
    for numbers in ("label", "json_null", "0")
}
_SCHEMA = {"type": "object"}
_NAMED = {"name": "n", "schema": _SCHEMA}
FORMS: list[tuple[str, dict[str, Any]]] = [
    ("openai.chat", {"response_format": {"type": "json_object"}}),
    ("openai.chat", {"response_format": {"type": "json_schema", "json_schema": _NAMED}}),
    ("openai.chat", {"guided_json": _SCHEMA}),
    ("openai.chat", {"structured_outputs": {"json": _SCHEMA}}),
    ("openai.completions", {"response_format": {"type": "json_object"}}),
    ("openai.completions", {"guided_json": _SCHEMA}),
    ("openai.responses", {"text": {"format": {"type": "json_schema", **_NAMED}}}),
    ("openai.responses", {"text": {"format": {"type": "json_object"}}}),
    ("openai.responses", {"structured_outputs": {"json": _SCHEMA}}),
    ("anthropic.messages", {"output_config": {"format": {"type": "json_schema", "schema": _SCHEMA}}}),
    ("anthropic.messages", {"output_format": {"type": "json_schema", "schema": _SCHEMA}}),
    ("ollama.chat", {"format": "json"}),
    ("ollama.chat", {"format": _SCHEMA}),
    ("ollama.generate", {"format": "json"}),
    ("ollama.generate", {"format": _SCHEMA}),
]
"""API -> how an answer of a fixed form is asked for there."""
NAMES = sorted({name for name, _ in FORMS})
CALLING = ["openai.chat", "openai.responses", "anthropic.messages", "ollama.chat"]
QUIET = st.sampled_from(
    ["plain", "fine \u00c4rger", 'a "quoted" \\ word', "line\nend", "\U0001f30a", "", True, None, 0.5, 2.25]
)
LOUD = st.sampled_from([
    "joe@example.com", "Ask joe@example.com now.", "4111 1111 1111 1111", 4111111111111111, -4111111111111111,
    "a zebra here",
    "the lion king", "Lion\tKing", "\u200bzebra", "joe\u0040example.com and zebra",
])  # fmt: skip
LEAVES = st.one_of(QUIET, LOUD)
KEYS = st.sampled_from(["name", "city", "note", "Zeit", "\u00e9t\u00e9", "x y"])
VALUES = st.recursive(
    LEAVES, lambda each: st.lists(each, max_size=3) | st.dictionaries(KEYS, each, max_size=3), max_leaves=8
)
OBJECTS = st.dictionaries(KEYS, VALUES, min_size=1, max_size=4)
TEXTS = st.builds(
    lambda value, escapes, indent: json.dumps(value, ensure_ascii=escapes, indent=indent),
    OBJECTS, st.booleans(), st.sampled_from([None, 2]),
)  # fmt: skip
LOUD_TEXTS = ("joe", "4111", "zebra", "lion", "king")


def leaves(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield the place and the value of each leaf."""
    match value:
        case dict():
            for name, each in value.items():
                yield from leaves(each, (*at, name))
        case list():
            for number, each in enumerate(value):
                yield from leaves(each, (*at, number))
        case _:
            yield at, value


def is_quiet(value: Any) -> bool:
    return not any(word in str(value).lower() for word in LOUD_TEXTS)


def held(
    name: str, asked: bytes, answer: bytes, ways: tuple[str, str] | Plan, cut: list[float], *, stream: bool
) -> bytes:
    """Return what the caller gets of an answer."""
    exchange = Exchange(SURFACES[name], ways if isinstance(ways, Plan) else PLANS[ways])
    exchange.send(RequestReceived(asked))
    exchange.send(UpstreamOpened(200, stream))
    edges = sorted({0, len(answer), *(int(each * len(answer)) for each in cut)})
    for one, other in itertools.pairwise(edges):
        exchange.send(UpstreamBytes(answer[one:other]))
    exchange.send(UpstreamClosed())
    assert exchange.out.record is not None
    assert exchange.out.record.outcome == "complete"
    return continued.came(exchange.out)


_BECOMES: dict[str, type] = {"label": str, "json_null": type(None), "0": int}
"""What becomes of a number, as the rule says it; a text stays one."""


def check(before: str, after: str, numbers: str) -> None:
    one, other = dict(leaves(json.loads(before))), dict(leaves(json.loads(after)))
    assert one.keys() == other.keys()
    for place, value in one.items():
        if is_quiet(value):
            assert other[place] == value, place
        else:
            assert is_quiet(other[place]), place
            assert isinstance(other[place], _BECOMES[numbers] if isinstance(value, int) else str), place


CUTS = st.lists(st.floats(0, 1), max_size=5)


@settings(max_examples=examples(60))
@given(st.sampled_from(FORMS), TEXTS, st.booleans(), st.integers(1, 12), CUTS)
def test_g35_text_of_a_fixed_form_stays_json(
    form: tuple[str, dict[str, Any]], text: str, stream: bool, size: int, cut: list[float]
) -> None:
    name, wanted = form
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    asked = continued.request(name, stream=stream, **wanted)
    for ways in PLANS:
        data = held(name, asked, continued.answer(name, pieces, stream=stream), ways, cut, stream=stream)
        check(text, continued.told(name, data, stream=stream)[0], ways[1])


ADDING = """pack: {name: a, version: 1.0.0}
policies:
  - {name: end, id: ADD-1, stage: egress, conditions: ["true"],
     actions: [{type: inject_disclaimer, text: "Mind {this}."}]}
  - {name: near, id: ADD-2, stage: midstream, channels: [content], phrases: [zebra],
     actions: [{type: inject_disclaimer, text: Wild., position: after_sentence}]}
  - {name: must, id: ADD-3, conditions: ["true"], actions: [{type: require_disclaimer, text: By a machine.}]}
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}
"""
ADDS = Plan(program=compile_sources([("p.yaml", ADDING.replace("{this}", "{{this}}"))]))


@settings(max_examples=examples(50))
@given(st.sampled_from(FORMS), TEXTS, st.booleans(), st.integers(1, 12))
def test_g35_nothing_is_added_to_a_text_of_a_fixed_form(
    form: tuple[str, dict[str, Any]], text: str, stream: bool, size: int
) -> None:
    name, wanted = form
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    asked = continued.request(name, stream=stream, **wanted)
    data = held(name, asked, continued.answer(name, pieces, stream=stream), ADDS, [], stream=stream)
    one, other = (dict(leaves(json.loads(each))) for each in (text, continued.told(name, data, stream=stream)[0]))
    assert one.keys() == other.keys()
    for place, value in one.items():
        assert type(value) is type(other[place])
        assert "Mind" not in str(other[place])
        assert "machine" not in str(other[place])


FENCES = st.sampled_from(["```json", "~~~ JSON", "  ```json", "````jsonc"])
OTHER = "Ask joe@example.com. Code:\n```py\nzebra = {1: '\n```\nAnd\n"
LEADS = st.sampled_from(["", "Here it is:\n\n", OTHER, "1. `a`\n"])
FENCED = st.tuples(LEADS, FENCES)


@settings(max_examples=examples(60))
@given(st.sampled_from(NAMES), TEXTS, FENCED, st.booleans(), st.integers(1, 12))
def test_g35_json_in_a_fence_stays_json(name: str, text: str, fenced: tuple[str, str], stream: bool, size: int) -> None:
    lead, fence = fenced
    close = "".join(char for char in fence if char in " `~").rstrip()
    said = f"{lead}{fence}\n{text}\n{close}\nThat is all, says joe@example.com."
    pieces = [said[at : at + size] for at in range(0, len(said), size)]
    asked = continued.request(name, stream=stream)
    for ways in PLANS:
        data = held(name, asked, continued.answer(name, pieces, stream=stream), ways, [], stream=stream)
        left = continued.told(name, data, stream=stream)[0]
        opened, _, rest = left.partition(f"{fence}\n")
        inner, _, after = rest.partition(f"\n{close}\n")
        assert is_quiet(left)
        assert ("py\n" in opened) == ("py\n" in lead)
        if ways[0] == "span":
            check(text, inner, ways[1])
            assert after == "That is all, says [EMAIL]."
        else:  # a sentence is taken out, whatever it goes over
            json.loads(inner)


@given(st.sampled_from(CALLING), TEXTS, st.booleans(), st.integers(1, 12), CUTS)
def test_g35_arguments_of_a_call_stay_json(name: str, text: str, stream: bool, size: int, cut: list[float]) -> None:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    asked = continued.request(name, stream=stream)
    for ways in PLANS:
        data = held(name, asked, called(name, pieces, stream), ways, cut, stream=stream)
        check(text, arguments(name, data, stream), ways[1])


def called(name: str, pieces: list[str], stream: bool) -> bytes:
    """Return an answer that calls `pay` with these arguments."""
    text = "".join(pieces)
    if name == "openai.responses":
        return responses.one(responses.call("pay", text), stream=stream, pieces=pieces)
    if name == "anthropic.messages":
        if stream:
            return messages.answer(messages.call(0, "pay", *pieces), reason="tool_use")
        block = '{"type": "tool_use", "id": "t", "name": "pay", "input": ' + text + "}"
        return messages.whole({"type": "text", "text": "HERE"}).replace(
            b'{"type": "text", "text": "HERE"}', block.encode()
        )
    if name == "ollama.chat":
        call = '{"model": "m", "created_at": "2025-01-01T10:00:00Z", "message": {"role": "assistant", "content": "", '
        call += '"tool_calls": [{"function": {"name": "pay", "arguments": ' + json.dumps(json.loads(text)) + "}}]}, "
        end = '"done": true, "done_reason": "stop"}'
        if not stream:
            return (call + end).encode()
        return (call + '"done": false}\n').encode() + continued.answer(name, [], stream=True)
    function: dict[str, Any] = {"index": 0, "id": "c", "type": "function", "function": {"name": "pay", "arguments": ""}}
    if not stream:
        function["function"] = {"name": "pay", "arguments": text}
        message = {"role": "assistant", "content": None, "tool_calls": [function]}
        return json.dumps(
            {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        ).encode()
    deltas: list[dict[str, Any]] = [{"tool_calls": [function]}]
    deltas += [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in pieces]
    choices: list[dict[str, Any]] = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "tool_calls"})
    events = [json.dumps({"id": "x", "choices": [choice]}) for choice in choices]
    return b"".join(f"data: {event}\n\n".encode() for event in (*events, "[DONE]"))


def arguments(name: str, data: bytes, stream: bool) -> str:
    """Return the arguments of the call that a caller gets."""
    if name == "openai.responses":
        (item,) = (responses.read(data) if stream else responses.parsed(data))["output"]
        return str(item["arguments"])
    if name == "anthropic.messages":
        message = messages.read(data) if stream else json.loads(data)
        return json.dumps(message["content"][0]["input"])
    bodies = data.splitlines() if name == "ollama.chat" and stream else [data]
    if name == "ollama.chat":
        (call,) = (call for body in bodies for call in json.loads(body)["message"].get("tool_calls", ()))
        return json.dumps(call["function"]["arguments"])
    if not stream:
        return str(json.loads(data)["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
    events = [json.loads(line[6:]) for line in data.splitlines() if line.startswith(b"data: {")]
    calls = [
        call for event in events for choice in event["choices"] for call in choice["delta"].get("tool_calls") or ()
    ]
    return "".join(call["function"].get("arguments") or "" for call in calls)


@settings(max_examples=examples(30))
@given(TEXTS, st.sampled_from(["mcp_call", "computer_call", "shell_call"]), st.booleans(), CUTS)
def test_g35_what_calls_of_other_kinds_are_given_stays_json(
    text: str, form: str, stream: bool, cut: list[float]
) -> None:
    given = {"type": "wait", "more": json.loads(text)}
    item: dict[str, Any] = {"id": "x_1", "type": form, "status": "completed"}
    if form == "mcp_call":
        item |= {"name": "pay", "server_label": "bank", "arguments": text}
    else:
        item |= {"call_id": "call_1", "action": given, "pending_safety_checks": []}
    body = responses.one(item, stream=stream, pieces=[text])
    for ways in PLANS:
        data = held("openai.responses", responses.request(stream=stream), body, ways, cut, stream=stream)
        (found,) = (responses.read(data, typed=False) if stream else json.loads(data))["output"]
        if form == "mcp_call":
            check(text, found["arguments"], ways[1])
        else:
            check(json.dumps(given), json.dumps(found["action"]), ways[1])
