"""Rules that don't hold text: they read it behind the release, know as much as others, and change nothing else."""

from __future__ import annotations

import json

import pytest

from checkstream.core.commands import Score
from checkstream.core.events import AnyEvent, ScoringFailed
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import Played, Scorer, by_words, play

CHAT = SURFACES["openai.chat"]
LABELS = (ClassifierLabel("toy.risk", 0.9),)
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"
RISK = """  - name: stop
    id: STOP-1
    stage: midstream
    channels: [content]
    classifiers: [{name: toy.risk}]
    actions: [{type: stop}]
  - name: risky
    id: LOG-1
    stage: midstream
    channels: [content]
    mode: shadow
    phrases: [zebra]
    conditions: [stream.risk > 0.3]
    actions: [{type: redact}]
  - name: end
    id: END-1
    stage: egress
    conditions: [stream.risk > 0.3]
    actions: [{type: inject_disclaimer, text: Beware.}]
"""
WAITING = """  - name: {0}
    id: {0}
    stage: egress
    channels: [content]
    triggers: {{all: [{{phrases: [{0}]}}, {{not: {{phrases: [nothing]}}}}]}}
    actions: [{{type: inject_disclaimer, text: "{0}!"}}]
"""


def run(rules: str, text: str, scorer: Scorer | None = None, *, size: int = 7, **more: object) -> Played:
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": True} | more
    choices = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in pieces]
    events = [{"id": "x", "choices": [choice]} for choice in choices]
    events.append({"id": "x", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    stream = [b"data: " + json.dumps(event).encode() + b"\n\n" for event in events]
    plan = Plan(program=compile_sources([("p.yaml", HEAD + rules)], LABELS))
    return play(CHAT, plan, json.dumps(asked).encode(), [*stream, b"data: [DONE]\n\n"], scorer=scorer)


def content(played: Played) -> str:
    bodies = [json.loads(line[6:]) for line in played.joined.decode().splitlines() if line.startswith("data: {")]
    return "".join(choice["delta"].get("content") or "" for body in bodies for choice in body.get("choices", ()))


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_g03_the_risk_that_others_scores_make_is_known_behind_the_release(size: int) -> None:
    words = "one two three four five six seven eight "
    text = f"zebra {words * 9}zebra mild {words}zebra"
    played = run(RISK, text, by_words("toy.risk", ["mild"], hit=0.6), size=size)
    assert played.record is not None
    verdicts = [verdict for verdict in played.record.verdicts if verdict.rule_id == "LOG-1"]
    assert [verdict.spans[0].start for verdict in verdicts] == [text.rindex("zebra")]
    assert content(played) == f"{text}\n\nBeware."


def test_without_scores_there_is_no_risk() -> None:
    played = run(RISK, "A zebra and more of the same.", by_words("toy.risk", ()))
    assert content(played) == "A zebra and more of the same."
    assert played.record is not None
    assert not played.record.verdicts


def test_many_findings_of_one_rule_that_waits_leave_room_for_those_of_another() -> None:
    played = run(WAITING.format("alpha") + WAITING.format("omega"), "alpha " * 1200 + "omega", size=4000)
    assert content(played).endswith("omega\n\nalpha!\n\nomega!")
    assert played.record is not None
    assert "findings_not_decided" in played.record.degradations


def fails(score: Score) -> AnyEvent:
    return ScoringFailed(score.ticket, "deadline")


@pytest.mark.parametrize(("share", "said"), [("0", "Hello, you all."), ("1", "")])
def test_g23_a_failed_detector_stops_nothing_for_a_rule_that_is_only_recorded_here(share: str, said: str) -> None:
    rule = f"""  - name: stop
    id: STOP-1
    stage: midstream
    channels: [content]
    enforce_share: {share}
    classifiers: [{{name: toy.risk}}]
    actions: [{{type: stop}}]
"""
    assert content(run(rule, "Hello, you all.", fails)) == said


def test_a_value_that_a_rule_condemns_only_as_it_is_cut_short_is_not_written() -> None:
    rules = """  - {name: words, id: WORD-1, stage: midstream, phrases: [zebra], actions: [{type: redact}]}
  - name: names
    id: NAME-1
    conditions: ["true"]
    actions: [{type: inject_disclaimer, text: "For {context.name}."}]
"""
    played = run(rules, "Hello.", checkstream={"context": {"name": "x" * 194 + " zebraic"}})
    assert content(played) == "Hello.\n\nFor [REDACTED]."


@pytest.mark.parametrize(("share", "said"), [("0", "zebra"), ("1", "[REDACTED]")])
def test_a_rule_that_is_only_recorded_here_condemns_no_value_of_a_text(share: str, said: str) -> None:
    rules = f"""  - name: words
    id: WORD-1
    stage: midstream
    enforce_share: {share}
    phrases: [zebra]
    actions: [{{type: redact}}]
  - name: names
    id: NAME-1
    conditions: ["true"]
    actions: [{{type: inject_disclaimer, text: "For {{context.name}}."}}]
"""
    played = run(rules, "Hello.", checkstream={"context": {"name": "zebra"}})
    assert content(played) == f"Hello.\n\nFor {said}."
