"""Answers that are cut off midstream and go on under stricter parameters, played through a guard."""

from __future__ import annotations

import json
from typing import Any

from checkstream.core.commands import ForwardRequest
from checkstream.core.events import (
    RequestReceived,
    UpstreamBytes,
    UpstreamClosed,
    UpstreamOpened,
)
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import Exchange, Played, Scorer, by_words

CHAT = SURFACES["openai.chat"]


LABELS = (ClassifierLabel("toy.risk", 0.5),)


RULES = """pack: {name: p, version: 1.0.0}
policies:
  - name: turn
    id: SAFE-1
    stage: midstream
    channels: [content]
    phrases: [launder money]
    classifiers: [{name: toy.risk}]
    actions:
      - type: safe_mode
        temperature: 0.2
        bad_words: [launder]
        instruction: Speak of lawful ways only.
        message: "[Stopped.]"
  - {name: mail, id: PII-1, stage: midstream, entities: [EMAIL], actions: [{type: redact}]}
  - {name: end, id: END-1, stage: egress, phrases: [lawful], actions: [{type: inject_disclaimer, text: No advice.}]}
"""


def event(delta: dict[str, Any], finish: str | None = None, number: str = "one") -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    body = {"id": number, "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def stream(*texts: str, number: str = "one") -> list[bytes]:
    return [
        event({"role": "assistant", "content": ""}, number=number),
        *(event({"content": text}, number=number) for text in texts),
        event({}, "stop", number=number),
        b"data: [DONE]\n\n",
    ]


def request(**more: object) -> bytes:
    body = {"model": "m", "messages": [{"role": "user", "content": "How?"}], "temperature": 1.0, "stream": True}
    return json.dumps(body | more).encode()


def exchange(scorer: Scorer | None = None, rules: str = RULES) -> Exchange:
    if scorer is None:
        scorer = by_words("toy.risk", ())
    return Exchange(CHAT, Plan(program=compile_sources([("p.yaml", rules)], LABELS)), scorer)


def content(played: Played) -> str:
    """Return the content of all events, in order."""
    events = [json.loads(line[6:]) for line in played.joined.decode().splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for body in events for choice in body["choices"])


def forwarded(played: Played) -> list[dict[str, Any]]:
    return [json.loads(command.body) for command in played.commands if isinstance(command, ForwardRequest)]


def run(first: list[bytes], second: list[bytes], scorer: Scorer | None = None, rules: str = RULES) -> Played:
    """Feed the first stream until the guard cuts it off, then the second."""
    running = exchange(scorer, rules)
    running.send(RequestReceived(request()))
    running.send(UpstreamOpened(200, streaming=True))
    for piece in first:
        if not running.out.cancelled:
            running.send(UpstreamBytes(piece))
    if not running.out.cancelled and len(forwarded(running.out)) == 1:
        running.send(UpstreamClosed())
    assert len(forwarded(running.out)) == 2
    running.send(UpstreamOpened(200, streaming=True))
    for piece in second:
        if running.out.record is None:
            running.send(UpstreamBytes(piece))
    if running.out.record is None:
        running.send(UpstreamClosed())
    return running.out
