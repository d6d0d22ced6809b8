"""G2: every byte of a channel's text that is sent comes from the released side of its holdback, at every moment."""

from __future__ import annotations

import ast
import json
from collections import Counter
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from checkstream.core.events import RequestReceived, Scored, TimerFired, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.terms import Channel
from checkstream.core.wire import sse
from checkstream.core.wire.openai.chat import OpenAIChat
from tests.playbook import Exchange

CHAT = OpenAIChat()
PACKAGE = Path(__file__).parents[2] / "checkstream"
RULES = """
pack: {name: law, version: 1.0.0}
policies:
  - {name: mail, id: PII-1, stage: [midstream], entities: [EMAIL, CREDIT_CARD], actions: [{type: redact}]}
  - {name: stop, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop}]}
  - name: code
    id: PAT-1
    stage: [midstream]
    patterns: [{name: code, regex: 'code-[0-9a-z]*;', max_chars: 40}]
    actions: [{type: redact, text: "<c>"}]
  - name: wide
    id: WIDE-1
    stage: [midstream]
    channels: [content, refusal, tool_arguments]
    phrases: [the]
    actions: [{type: redact, style: mask, scope: sentence}]
  - name: soft
    id: SOFT-1
    stage: [midstream]
    channels: [content, tool_arguments]
    phrases: [hello]
    actions: [{type: rewrite_span, editor: lexicon, words: {hello: good day}}]
  - name: tox
    id: TOX-1
    stage: [midstream]
    channels: [content]
    classifiers: [{name: lexicon.toxicity, threshold: 0.8}]
    phrases: [moron]
    actions: [{type: stop}]
"""
PROGRAM = compile_sources([("law.yaml", RULES)], (ClassifierLabel("lexicon.toxicity"),))
REQUEST = b'{"model": "m", "stream": true, "n": 2, "messages": [{"role": "user", "content": "hi"}]}'
HEAD = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
WORDS = st.sampled_from(
    ["hello ", "the ", ". ", "漢。", "a@b.io ", "joe@exa", "mple.org", ", ", "4111 1111 1111 1111", " 12 ", "code-1",
     "2x", "; ", "zero ", "risk ", "idiot ", "moron", "Ärger ", "漢字", "\n", "x" * 30, "é"]
)  # fmt: skip
FIELDS = st.sampled_from(["content", "reasoning_content", "refusal", "arguments"])


WITHHELD = "[a tool call was withheld: the upstream broke off in it]"
"""Stands at the end of a choice in place of its call."""


def saying(choice: int, field: str, text: str) -> bytes:
    delta: dict[str, Any] = {field: text}
    if field == "arguments":
        delta = {"tool_calls": [{"index": 0, "function": {"arguments": json.dumps(text)[1:-1]}}]}
    rows = [{"index": choice, "delta": delta, "finish_reason": None}]
    return b"data: " + json.dumps({**HEAD, "choices": rows}).encode() + b"\n\n"


def opening(choice: int) -> bytes:
    function = {"name": "look_up", "arguments": '{"q": "'}
    rows = [{"index": choice, "delta": {"tool_calls": [{"index": 0, "function": function}]}, "finish_reason": None}]
    return b"data: " + json.dumps({**HEAD, "choices": rows}).encode() + b"\n\n"


def heard(data: bytes) -> dict[Channel, str]:
    """Return the text of each channel in what was sent."""
    texts: dict[Channel, str] = {}
    for frame in sse.Decoder(1 << 20).decode(data):
        for delta in CHAT.read_event(frame).deltas:
            texts[delta.channel] = texts.get(delta.channel, "") + delta.text
    return texts


def assert_released(guard: Guard, sent: bytes) -> None:
    texts = heard(sent)
    for channel, judge in guard._course.answer.judges.items():
        holdback = judge.holdback
        assert texts.pop(channel, "").removesuffix(WITHHELD) == holdback.render(0, holdback.sent), channel
        assert holdback.sent <= holdback.received
        assert holdback.sent <= holdback.cleared
        assert holdback.ended or holdback.sent <= holdback.matches.live
        assert holdback.cut is None or holdback.sent <= holdback.cut
        assert all(holdback.sent <= finding.span.start for finding in holdback.matches.found)
    assert not any(text for text in texts.values() if text != WITHHELD)


STEPS = st.lists(
    st.tuples(st.just("say"), st.integers(0, 1), FIELDS, WORDS)
    | st.tuples(st.sampled_from(["score", "stall", "budget"]), st.integers(0, 3), st.just(""), st.just("")),
    max_size=24,
)


def answer(exchange: Exchange, place: int) -> None:
    score = exchange.unanswered.pop(place % len(exchange.unanswered))
    exchange.send(Scored(score.ticket, {"lexicon.toxicity": 0.9 if "idiot" in score.text else 0.1}))


def happen(exchange: Exchange, step: tuple[str, int, str, str], size: int) -> None:
    """Let one thing happen; bytes of the upstream come in pieces of `size`, each followed by a look."""
    kind, number, field, word = step
    if kind == "say":
        event = saying(number, field, word)
        for at in range(0, len(event), size):
            exchange.send(UpstreamBytes(event[at : at + size]))
            assert_released(exchange.guard, exchange.out.joined)
    elif kind == "score" and exchange.unanswered:
        answer(exchange, number)
    elif kind in {"stall", "budget"}:
        exchange.now += 0.3
        exchange.send(TimerFired("stall" if kind == "stall" else "budget"))


@given(steps=STEPS, on_exceeded=st.sampled_from(["hold", "degrade"]), size=st.integers(1, 400))
def test_g02_what_is_sent_is_at_every_moment_the_released_side_of_each_channel(
    steps: list[tuple[str, int, str, str]], on_exceeded: Any, size: int
) -> None:
    exchange = Exchange(CHAT, Plan(program=PROGRAM, on_exceeded=on_exceeded))
    exchange.send(RequestReceived(REQUEST))
    exchange.send(UpstreamOpened(200, streaming=True))
    for choice in range(2):
        exchange.send(UpstreamBytes(opening(choice)))
    for step in steps:
        if exchange.out.record is None:
            happen(exchange, step, size)
            assert_released(exchange.guard, exchange.out.joined)
    if exchange.out.record is None:
        exchange.send(UpstreamClosed())
    while exchange.unanswered:
        answer(exchange, 0)
        if exchange.out.record is None:  # behind it nothing is left to hold against
            assert_released(exchange.guard, exchange.out.joined)
    assert exchange.out.record is not None


def calls(path: Path, name: str) -> Counter[str]:
    """Return the calls of `name` in a file, as they are written."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return Counter(
        ast.unparse(node)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] == name
    )


def test_g02_bytes_for_the_caller_are_made_in_few_places_from_what_was_released() -> None:
    leaving = PACKAGE / "core/exchange/leaving.py"
    made = {path: sum(found.values()) for path in PACKAGE.rglob("*.py") if (found := calls(path, "SendDownstream"))}
    course, messages = (PACKAGE / f"core/exchange/rpc/{name}.py" for name in ("course", "messages"))
    assert made == {leaving: 1, course: 2}
    assert set(calls(course, "SendDownstream")) == {"SendDownstream(sse.KEEP_ALIVE)", "SendDownstream(data)"}
    assert set(calls(course, "send")) == {"self.send(self.asker.error_event(refusal))"}
    sent = set[str]().union(*(calls(path, "send") for path in messages.parent.glob("*.py") if path != course))
    assert sent == {
        "self._course.send(frame.raw)",  # a message that was judged and stands as it came
        "self._course.send(frame.raw if data is request.unit.raw else sse.reframe(frame.raw, data))",
    }
    told = {call for name in ("leaving", "row") for call in calls(PACKAGE / f"core/exchange/{name}.py", "send")}
    assert told == {
        "self.send(released.data, released.held_s)",
        "self._leaving.send(self._let_go(judge, event), now - event[1])",
        "self._leaving.send(data[0] if len(data) == 1 else b''.join(data), held_s)",  # of `_let_some_go` and the outbox
    }
    assert set(calls(leaving, "_write")) == {
        "self._write(released)",  # what is told to `send`
        "self._write(sse.KEEP_ALIVE)",
        "self._write(data)",  # the closing frames, below
    }
    tree = ast.parse(leaving.read_text(encoding="utf-8"))
    closing = [node for node in ast.walk(tree) if getattr(node, "name", "") in {"close_stream", "_ends"}]
    assigned = [node for each in closing for node in ast.walk(each) if isinstance(node, ast.Assign | ast.AugAssign)]
    into_data = [
        node.value
        for node in assigned
        if ast.unparse(node.target if isinstance(node, ast.AugAssign) else node.targets[0]) == "data"
    ]
    origins = {ast.unparse(value.func if isinstance(value, ast.Call) else value) for value in into_data}
    assert origins == {
        "self._ends",
        "rest.data if rest is not None else b''",  # released
        "course.writer.open_ends",
        "course.writer.sending.result_event",  # what evidence says: numbers, and sentences that were released
        "last.data if last is not None else b''",  # released
        "course.writer.sending.error_event",
        "course.writer.finish",
    }


def test_g02_only_the_relay_writes_to_the_caller_and_only_what_a_command_holds() -> None:
    relay = PACKAGE / "proxy/relay.py"
    assert set(calls(relay, "append")) == {
        "self._out.append(command.data)",
        "self._out.append(self._surface.framing.out(error_event))",
    }
    assert set(calls(relay, "write")) == {
        "transport.write(b'%x\\r\\n%b\\r\\n' % (len(data), data) if self._chunked else data)",
        "self._services.ledger.write(command.record)",
    }
