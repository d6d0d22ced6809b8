"""Any message of several channels under any rules that edit, end or add: streamed and whole it comes to the same."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.events import AnyEvent, RequestReceived, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import Exchange

WORDS = st.sampled_from(["zebra", "lion", "joe@example.com", "fine", "word.", "Yes!", "ape", "a", "b"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
EDITS = ["redact", "redact, scope: word", "redact, scope: sentence", "redact, style: hash", "stop, message: '[S]'"]
ADDS = ["inject_disclaimer, text: END.", "require_disclaimer, text: REQ."]
TRIGGERS = ["phrases: [zebra]", "phrases: [lion]", "phrases: [ape]", "entities: [EMAIL]"]
CHANNELS = ["", "channels: [content], ", "channels: [tool_arguments], ", "channels: [reasoning], "]
LIMIT = """  - name: tools
    id: T-1
    stage: ingress
    conditions: ["true"]
    actions: [{type: constrain_tools, allow: ["read_*"], message: "[No.]"}]
"""


class Message(NamedTuple):
    """What a model says."""

    reasoning: str
    content: str
    calls: list[tuple[str, str]]


CALLS = st.tuples(st.sampled_from(["read_mail", "delete_all"]), TEXTS.map(lambda text: json.dumps({"q": text})))
MESSAGES = st.builds(Message, TEXTS, TEXTS, st.lists(CALLS, max_size=3)).filter(any)


@st.composite
def policies(draw: st.DrawFn) -> str:
    text = "pack: {name: p, version: 1.0.0}\npolicies:\n" + (LIMIT if draw(st.booleans()) else "")
    for number in range(draw(st.integers(1, 3))):
        edits = draw(st.booleans())
        action = draw(st.sampled_from(EDITS if edits else ADDS))
        channels = draw(st.sampled_from(CHANNELS)) if edits else CHANNELS[1]
        trigger = draw(st.sampled_from(TRIGGERS))
        rule = f"stage: midstream, {channels}{trigger}, actions: [{{type: {action}}}]"
        text += f"  - {{name: r, id: R-{number}, {rule}}}\n"
    return text


def call(index: int, name: str, arguments: str) -> dict[str, Any]:
    return {
        "index": index,
        "id": f"c{index}",
        "type": "function",
        "function": {"name": name, "arguments": arguments},
    }


def streamed(message: Message, size: int) -> list[bytes]:
    """Return the events of the message, its texts cut into pieces of some size."""

    def pieces(text: str) -> Sequence[str]:
        return [text[at : at + size] for at in range(0, len(text), size)]

    deltas: list[dict[str, Any]] = [{"reasoning_content": piece} for piece in pieces(message.reasoning)]
    deltas += [{"content": piece} for piece in pieces(message.content)]
    for index, (name, arguments) in enumerate(message.calls):
        deltas.append({"tool_calls": [call(index, name, "")]})
        deltas += [{"tool_calls": [{"index": index, "function": {"arguments": piece}}]} for piece in pieces(arguments)]
    bodies = [
        {"id": "x", "choices": [{"index": 0, "delta": delta, "finish_reason": None if delta else "stop"}]}
        for delta in (*deltas, {})
    ]
    return [*(b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies), b"data: [DONE]\n\n"]


def whole(message: Message) -> bytes:
    said: dict[str, Any] = {"role": "assistant", "content": message.content or None}
    said |= {"reasoning_content": message.reasoning} if message.reasoning else {}
    said |= {"tool_calls": [call(i, *each) for i, each in enumerate(message.calls)]} if message.calls else {}
    return json.dumps({"id": "x", "choices": [{"index": 0, "message": said, "finish_reason": "stop"}]}).encode()


def run(rules: str, streaming: bool, pieces: Sequence[bytes]) -> tuple[object, ...]:
    """Return what the caller gets: reasoning, content, calls that are complete, finish reasons; and how it ended."""
    running = Exchange(SURFACES["openai.chat"], Plan(program=compile_sources([("p.yaml", rules)])))
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": streaming}
    running.send(RequestReceived(json.dumps(asked).encode()))
    events: list[AnyEvent] = [UpstreamOpened(200, streaming), *map(UpstreamBytes, pieces), UpstreamClosed()]
    for event in events:
        if not running.out.cancelled and running.out.record is None:
            running.send(event)
    bodies = [json.loads(line[6:]) for line in running.out.joined.decode().splitlines() if line.startswith("data: {")]
    bodies += [json.loads(running.out.reply.body)] if running.out.reply is not None else []
    texts, finishes, calls = {"reasoning_content": "", "content": ""}, [], dict[int, list[str]]()
    for choice in (choice for body in bodies for choice in body["choices"]):
        part = choice.get("delta") or choice.get("message") or {}
        for name in texts:
            texts[name] += part.get(name) or ""
        finishes += [choice["finish_reason"]] if choice["finish_reason"] else []
        for tool in part.get("tool_calls") or ():
            told = calls.setdefault(tool["index"], ["", ""])
            told[0] += tool["function"].get("name") or ""
            told[1] += tool["function"].get("arguments") or ""
    assert running.out.record is not None
    # A call that a stop has torn has begun in a stream; of a whole answer it is left out.
    complete = [(name, arguments) for name, arguments in calls.values() if arguments.endswith("}")]
    return texts, finishes, complete, running.out.record.action, running.out.record.outcome


@given(rules=policies(), message=MESSAGES, size=st.integers(1, 40))
@settings(deadline=None)
def test_g01_a_message_of_several_channels_comes_to_the_same_streamed_and_whole(
    rules: str, message: Message, size: int
) -> None:
    assert run(rules, True, streamed(message, size)) == run(rules, False, [whole(message)])
