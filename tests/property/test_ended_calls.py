"""A rule that ends an answer in any member of a tool call, on any API, streamed and whole: the call is not there.

Calls before it are whole, nothing behind it comes, and a stream comes to what the whole answer comes to (G1, G35).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.wire.surfaces import SURFACES
from tests import messages, responses
from tests.chance import examples
from tests.generated import events
from tests.guarded import DONE, STOP, event, plan
from tests.playbook import Played, play

BAD = "zero risk"
PLANS = {said: plan(rules) for said, rules in {"Halt.": STOP, "": STOP.replace(", message: Halt.", "")}.items()}
WITHHELD = "[a tool call was withheld by policy: STOP-1]"


class Call(NamedTuple):
    """A call of a tool: members that all APIs have, and others of it."""

    id: str
    name: str
    given: dict[str, Any]
    members: dict[str, Any]
    late: bool
    """Of a stream: the others come with the end of the call."""


class Said(NamedTuple):
    """What a client puts together."""

    text: str
    calls: list[tuple[str, str, Any]]
    why: str


Block = str | Call
Made = Callable[[Sequence[Block], bool], list[bytes]]


def pieces(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def chat(blocks: Sequence[Block], stream: bool) -> list[bytes]:
    text = "".join(block for block in blocks if isinstance(block, str))
    calls = [block for block in blocks if isinstance(block, Call)]
    if not stream:
        told = [
            {
                "id": c.id,
                "type": "function",
                "function": {"name": c.name, "arguments": json.dumps(c.given)},
                **c.members,
            }
            for c in calls
        ]
        message = {"role": "assistant", "content": text or None, **({"tool_calls": told} if told else {})}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        return [json.dumps({"id": "c1", "object": "chat.completion", "created": 7, "choices": [choice]}).encode()]
    out = [event((0, {"role": "assistant", "content": piece}, None)) for piece in pieces(text)]
    for i, call in enumerate(calls):
        first, rest = pieces(json.dumps(call.given))
        head = {"index": i, "id": call.id, "type": "function", "function": {"name": call.name, "arguments": first}}
        tail = {"index": i, "function": {"arguments": rest}}
        head, tail = (head, tail | call.members) if call.late else (head | call.members, tail)
        out += [event((0, {"tool_calls": [piece]}, None)) for piece in (head, tail)]
    return [*out, event((0, {}, "tool_calls" if calls else "stop")), DONE]


def ollama(blocks: Sequence[Block], stream: bool) -> list[bytes]:
    text = "".join(block for block in blocks if isinstance(block, str))
    calls = [
        {"id": c.id, "function": {"index": i, "name": c.name, "arguments": c.given}, **c.members}
        for i, c in enumerate(block for block in blocks if isinstance(block, Call))
    ]
    late = any(block.late for block in blocks if isinstance(block, Call))

    def said(*, done: bool = False, **more: Any) -> bytes:
        head = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": done}
        message = {"role": "assistant", "content": "", **more}
        return json.dumps(head | {"message": message} | ({"done_reason": "stop"} if done else {})).encode() + b"\n"

    if not stream:
        return [said(done=True, content=text, **({"tool_calls": calls} if calls else {}))]
    batches = [[call] for call in calls] if late else [calls] if calls else []
    return [said(content=text), *(said(tool_calls=batch) for batch in batches), said(done=True)]


def anthropic(blocks: Sequence[Block], stream: bool) -> list[bytes]:
    reason = "tool_use" if any(isinstance(block, Call) for block in blocks) else "end_turn"
    if not stream:
        content = [
            {"type": "text", "text": block}
            if isinstance(block, str)
            else {"type": "tool_use", "id": block.id, "name": block.name, "input": block.given, **block.members}
            for block in blocks
        ]
        return [messages.whole(*content, reason=reason)]
    out = [messages.head()]
    for i, block in enumerate(blocks):
        if isinstance(block, str):
            out += messages.text(i, *pieces(block))
            continue
        begun, over = ({}, block.members) if block.late else (block.members, {})
        out.append(messages.begun(i, **{"type": "tool_use", "id": block.id, "name": block.name, "input": {}, **begun}))
        out += [messages.delta(i, "input_json_delta", partial_json=piece) for piece in pieces(json.dumps(block.given))]
        over.pop("type", None)
        out.append(messages.event("content_block_stop", index=i, **over))
    return [*out, messages.end(reason)]


def response(blocks: Sequence[Block], stream: bool) -> list[bytes]:
    items = [
        responses.message(block, id=f"msg_{i}")
        if isinstance(block, str)
        else responses.call(block.name, json.dumps(block.given), number=i) | {"call_id": block.id} | block.members
        for i, block in enumerate(blocks)
    ]
    return [responses.answer(*items) if stream else responses.whole(*items)]


MADE: dict[str, Made] = {
    "openai.chat": chat, "ollama.chat": ollama, "anthropic.messages": anthropic, "openai.responses": response,
}  # fmt: skip
ORDERED = ["anthropic.messages", "openai.responses"]
"""APIs whose texts and calls have an order."""


def asked(surface: str, stream: bool) -> bytes:
    said = {"input": "hi"} if surface == "openai.responses" else {"messages": [{"role": "user", "content": "hi"}]}
    return json.dumps({"model": "m", "max_tokens": 64, "stream": stream, **said}).encode()


def heard(surface: str, data: bytes, *, stream: bool) -> Said:
    """Return what a client puts together; a stream that is no legal sequence fails the test."""
    match surface:
        case "anthropic.messages":
            message = messages.read(data) if stream else json.loads(data)
            texts = [block["text"] for block in message["content"] if block["type"] == "text"]
            calls = [(b["id"], b["name"], b["input"]) for b in message["content"] if b["type"] == "tool_use"]
            return Said("".join(texts), calls, message["stop_reason"])
        case "openai.responses":
            answer = responses.read(data, typed=False) if stream else json.loads(data)
            items = [item for item in answer["output"] if item["type"] == "function_call"]
            calls = [(item["call_id"], item["name"], json.loads(item["arguments"])) for item in items]
            return Said(responses.said(answer), calls, answer["status"])
        case "ollama.chat":
            bodies = list(events(surface, data, stream=stream))
            told = [call for body in bodies for call in body["message"].get("tool_calls") or ()]
            calls = [(call["id"], call["function"]["name"], call["function"]["arguments"]) for call in told]
            return Said("".join(body["message"]["content"] for body in bodies), calls, bodies[-1]["done_reason"])
    return of_chat(events(surface, data, stream=stream))


def of_chat(bodies: Iterator[Any]) -> Said:
    text, calls, why = "", dict[int, list[str]](), ""
    for choice in (choice for body in bodies for choice in body["choices"]):
        said = choice.get("delta") or choice.get("message") or {}
        text += said.get("content") or ""
        why = choice["finish_reason"] or why
        for i, call in enumerate(said.get("tool_calls") or ()):
            known = calls.setdefault(call.get("index", i), ["", "", ""])
            told = call["function"]
            known[:] = [
                one + (other or "")
                for one, other in zip(known, (call.get("id"), told.get("name"), told["arguments"]), strict=True)
            ]
    return Said(text, [(key, name, json.loads(given)) for key, name, given in calls.values()], why)


def through(surface: str, blocks: Sequence[Block], *, stream: bool, said: str) -> tuple[Said, Played]:
    """Return what a client gets of an answer under the rule, and what the exchange came to."""
    out = play(SURFACES[surface], PLANS[said], asked(surface, stream), MADE[surface](blocks, stream), streaming=stream)
    data = out.joined if out.reply is None else out.reply.body
    assert BAD.encode() not in data
    return heard(surface, data, stream=stream), out


def call(number: int, **other: Any) -> Call:
    made = Call(f"id_{number}", f"tool_{number}", {"n": number, "of": ["x"]}, {}, late=False)
    return made._replace(**other)


@st.composite
def condemned(draw: st.DrawFn, number: int) -> Call:
    """Return a call that has the phrase in one of its members."""
    place = draw(st.sampled_from(["id", "name", "given", "name within", "member", "within", "member's name", "caller"]))
    text = draw(st.sampled_from([BAD, f"a {BAD}.", f"{BAD}, or"]))
    late = draw(st.booleans())
    match place:
        case "id" | "name":
            return call(number, **{place: text})
        case "given":
            return call(number, given={"n": 1, "of": [text]})
        case "name within":
            return call(number, given={"n": {text: 1}})
    members: dict[str, Any] = {"member": {"note": text}, "within": {"x": {"y": [1, {"z": text}]}}}
    members |= {"member's name": {"x": {text: 1}}, "caller": {"caller": {"type": text}}}
    return call(number, members=members[place], late=late)


TEXTS = st.sampled_from(["Well. ", "I call it now. ", "\u00e9 {"])


@settings(max_examples=examples(250), deadline=None)
@given(st.data(), st.sampled_from(sorted(MADE)), st.sampled_from(sorted(PLANS)))
def test_g35_a_rule_that_ends_an_answer_in_a_call_leaves_no_call_on_any_api(
    data: st.DataObject, surface: str, said: str
) -> None:
    kinds = data.draw(st.lists(st.sampled_from(["text", "call"]), max_size=3))
    after = data.draw(st.lists(st.sampled_from(["text", "call"]), max_size=2))
    if surface not in ORDERED:
        kinds.sort(reverse=True)
        after = [kind for kind in after if kind == "call"]
    before = [data.draw(TEXTS) if kind == "text" else call(i) for i, kind in enumerate(kinds)]
    ended = data.draw(condemned(len(before)))
    behind = [data.draw(TEXTS) if kind == "text" else call(i) for i, kind in enumerate(after, len(before) + 1)]
    blocks = [*before, ended, *behind]
    streamed, out = through(surface, blocks, stream=True, said=said)
    whole, other = through(surface, blocks, stream=False, said=said)
    assert streamed == whole
    assert streamed.calls == [(each.id, each.name, each.given) for each in before if isinstance(each, Call)]
    assert streamed.text == "".join(each for each in before if isinstance(each, str)) + (said or WITHHELD)
    assert out.record is not None
    assert other.record is not None
    assert (out.record.action, out.record.outcome) == (other.record.action, other.record.outcome) == ("stop", "stopped")
    rules = [{verdict.rule_id for verdict in record.verdicts} for record in (out.record, other.record)]
    assert rules == [{"STOP-1"}] * 2


@settings(max_examples=examples(60), deadline=None)
@given(st.data(), st.sampled_from(sorted(MADE)))
def test_g01_calls_that_nothing_is_found_in_come_alike_streamed_and_whole(data: st.DataObject, surface: str) -> None:
    blocks: list[Block] = [data.draw(TEXTS), *(call(i, late=data.draw(st.booleans())) for i in range(1, 3))]
    streamed, _ = through(surface, blocks, stream=True, said="Halt.")
    assert streamed == through(surface, blocks, stream=False, said="Halt.")[0]
    assert streamed.calls == [(f"id_{i}", f"tool_{i}", {"n": i, "of": ["x"]}) for i in (1, 2)]
