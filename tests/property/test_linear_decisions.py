"""G10: what is decided about many findings of one text takes no more than their number of steps.

Work is counted in lines that the core runs, never in time.
"""

from __future__ import annotations

import json
import sys
from types import FrameType
from typing import Any

import pytest

from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, RequestReceived, Scored, UpstreamBytes, UpstreamClosed, UpstreamOpened
from checkstream.core.exchange.guard import Guard, Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import digest

CHAT = SURFACES["openai.chat"]
LABELS = (ClassifierLabel("toy.risk", 0.5),)
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"
NOW = "  - {name: now, id: NOW-1, phrases: [cd], actions: [{type: redact}]}\n"
WHEN_SCORED = """  - name: scored
    id: SCORED-1
    phrases: [ab]
    conditions: [scores.toy.risk < 0.5]
    actions: [{type: redact, text: "[{rule_id}]"}]
"""
AT_THE_END = """  - name: end
    id: END-1
    stage: ingress
    triggers: {all: [{phrases: [ab]}, {not: {phrases: [nothing]}}]}
    actions: [{type: redact}]
"""
REWRITE = """  - name: rewrite
    id: RW-1
    phrases: [cd]
    actions: [{type: rewrite_span, words: {cd: ef}, scope: word}]
"""
EXCEPT = """  - name: except
    id: EXC-1
    phrases: [cd]
    priority: 1
    conditions: [scores.toy.risk < 0.5]
    actions: [{type: allow}]
"""
BEHIND = """  - name: behind
    id: BEHIND-1
    stage: midstream
    channels: [content]
    phrases: [ab]
    actions: [{type: inject_disclaimer, position: after_sentence, text: "Mind {detector}."}]
"""
POLICIES = {
    "waiting for scores beside others": WHEN_SCORED + NOW,
    "waiting for the end beside others": AT_THE_END + NOW,
    "waiting beside rewritten ones": WHEN_SCORED + REWRITE,
    "exceptions that wait": WHEN_SCORED + EXCEPT,
    "texts behind sentences": BEHIND + NOW,
}


def lines_run(rules: str, count: int) -> int:
    """Return how many lines run for a prompt, and a whole answer to it, with `count` times what the rules look for."""
    guard = Guard(surface=CHAT, plan=Plan(program=compile_sources([("p.yaml", HEAD + rules)], LABELS)), digest=digest)
    text = "ab cd. " * count
    message = {"role": "assistant", "content": text}
    answer = {"id": "x", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    asked = {"model": "m", "messages": [{"role": "user", "content": text}]}
    events: list[AnyEvent] = [
        RequestReceived(json.dumps(asked).encode()),
        UpstreamOpened(200, streaming=False),
        UpstreamBytes(json.dumps(answer).encode()),
        UpstreamClosed(),
    ]
    lines = 0

    def trace(frame: FrameType, event: str, _: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace if "/core/" in frame.f_code.co_filename else None

    for event in events:
        waiting = [event]
        while waiting:
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                commands = guard.receive(waiting.pop(0), 1.0)
            finally:
                sys.settrace(before)
            waiting += [Scored(each.ticket, {"toy.risk": 0.1}) for each in commands if isinstance(each, Score)]
    return lines


@pytest.mark.parametrize("kind", sorted(POLICIES))
def test_g10_three_times_the_findings_are_three_times_the_steps(kind: str) -> None:
    few, many = (lines_run(POLICIES[kind], count) for count in (150, 450))
    assert many <= 3.6 * few
