"""Policies, events and answers of one exchange, for tests that play it through a `Guard`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import msgspec

from checkstream.core.events import RequestReceived, UpstreamOpened
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.openai.chat import OpenAIChat
from tests.playbook import Exchange, Played, by_words, play

LABELS = (
    ClassifierLabel("lexicon.toxicity"),
    ClassifierLabel("lexicon.injection"),
    ModelEntity("PERSON", "ner", 0.5),
    ModelEntity("LOCATION", "ner", 0.5),
)
HEAD = {"id": "c1", "object": "chat.completion.chunk", "created": 7, "model": "m"}
CHAT = OpenAIChat()


def plan(rules: str, **settings: object) -> Plan:
    program = compile_sources([("t.yaml", f"pack: {{name: t, version: 1.0.0}}\npolicies:\n{rules}")], LABELS)
    return msgspec.structs.replace(Plan(program=program), **settings)


def request(content: str = "hi", *, stream: bool = True, **more: object) -> bytes:
    return json.dumps(
        {"model": "m", "stream": stream, "messages": [{"role": "user", "content": content}], **more}
    ).encode()


def event(*choices: tuple[int, dict[str, Any], str | None], **more: object) -> bytes:
    rows = [{"index": i, "delta": delta, "finish_reason": reason} for i, delta, reason in choices]
    return b"data: " + json.dumps({**HEAD, "choices": rows, **more}).encode() + b"\n\n"


def says(text: str, choice: int = 0, **more: object) -> bytes:
    return event((choice, {"content": text}, None), **more)


def ends(choice: int = 0, reason: str = "stop") -> bytes:
    return event((choice, {}, reason))


DONE = b"data: [DONE]\n\n"
_ENVELOPE = {"id", "object", "created", "model", "system_fingerprint", "choices"}
MAIL = "  - {name: m, id: PII-1, stage: [midstream], entities: [EMAIL], actions: [{type: redact}]}\n"
STOP = "  - {name: s, id: STOP-1, stage: [midstream], phrases: [zero risk], actions: [{type: stop, message: Halt.}]}\n"
TOX = (
    "  - {name: x, id: TOX-1, stage: [midstream], channels: [content], "
    "classifiers: [{name: lexicon.toxicity, threshold: 0.8}], actions: [{type: stop, message: Halt.}]}\n"
)
INJ = (
    "  - {name: i, id: INJ-1, stage: [ingress], classifiers: [{name: lexicon.injection, threshold: 0.8}], "
    "actions: [{type: reject, message: not allowed}]}\n"
)


def bodies(out: Played | bytes) -> list[dict[str, Any]]:
    """Return the events, without what they tell of what rules have done."""
    rest = [(body, {name: value for name, value in body.items() if name != "checkstream"}) for body in _events(out)]
    return [body for whole, body in rest if len(body) == len(whole) or body.keys() - _ENVELOPE]


def told(out: Played | bytes) -> list[dict[str, Any]]:
    """Return what the caller was told of what rules have done."""
    return [body["checkstream"] for body in _events(out) if "checkstream" in body]


def _events(out: Played | bytes) -> list[dict[str, Any]]:
    data = out if isinstance(out, bytes) else out.joined
    return [json.loads(line[6:]) for line in data.split(b"\n") if line.startswith(b"data: {")]


def text_of(out: Played, choice: int = 0) -> str:
    return "".join(
        c["delta"].get("content") or "" for b in bodies(out) for c in b.get("choices", ()) if c["index"] == choice
    )


def finishes(out: Played) -> dict[int, str]:
    return {c["index"]: c["finish_reason"] for b in bodies(out) for c in b.get("choices", ()) if c["finish_reason"]}


def stream(rules: str, pieces: Sequence[bytes], body: bytes | None = None, **settings: object) -> Played:
    return play(
        CHAT, plan(rules, **settings), body or request(), pieces, scorer=by_words("lexicon.toxicity", ["idiot"])
    )


def open_stream(rules: str, **settings: object) -> Exchange:
    exchange = Exchange(CHAT, plan(rules, **settings))
    exchange.send(RequestReceived(request()))
    exchange.send(UpstreamOpened(200, streaming=True))
    return exchange


def whole(content: str | None, **message: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "x": 1.0}
    ).encode()


CAPPED = (
    "  - {name: c, id: CAP-1, stage: [midstream], patterns: [{name: c, regex: '#[^#]*#', max_chars: 12}], "
    "actions: [{type: redact}]}\n"
)
