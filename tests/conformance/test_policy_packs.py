"""The packs that come with the package: they compile, and the cases beside them come out as they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from checkstream.core.actions import Firing, resolve, strictest
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.explain import explain
from checkstream.core.policy.program import Program
from checkstream.core.terms import Channel, Span, Stage

POLICIES = Path(__file__).parents[2] / "policies"
PACKS = sorted(path.parent for path in POLICIES.glob("*/policy.yaml"))
LABELS = (ClassifierLabel("lexicon.toxicity", 0.5), ClassifierLabel("lexicon.injection", 0.5))
CASES = [
    (pack.name, case)
    for pack in PACKS
    for case in yaml.safe_load((pack / "tests.yaml").read_text(encoding="utf-8"))["cases"]
]


def compiled(pack: str) -> Program:
    return compile_sources([(f"builtin:{pack}", (POLICIES / pack / "policy.yaml").read_bytes())], LABELS)


PROGRAMS = {pack.name: compiled(pack.name) for pack in PACKS}


def firings(program: Program, stage: Stage, channel: str, text: str, scores: dict[str, float]) -> list[Firing]:
    """Each rule that fires with each span of its triggers, in the order of the text."""
    found = []
    for rule, report in zip(program.rules, explain(program, stage, channel, text, scores), strict=True):
        if report.outcome in {"fired", "shadow"}:
            for signal, trigger in zip(rule.triggers, report.triggers, strict=True):
                spans = trigger.spans if trigger.threshold is None else (Span(0, len(text)),)
                found += [Firing(rule=rule, signal=program.signals[signal], span=s) for s in spans if trigger.held]
    return sorted(found, key=lambda firing: firing.span)


@pytest.mark.parametrize(("pack", "case"), CASES, ids=[f"{pack}: {case['name']}" for pack, case in CASES])
def test_case(pack: str, case: dict[str, Any]) -> None:
    assert set(case) <= {"name", "prompt", "answer", "channel", "scores", "expect"}
    assert set(case["expect"]) <= {"action", "rule_id", "output"}
    stage, default = (Stage.INGRESS, "user") if "prompt" in case else (Stage.MIDSTREAM, "content")
    text, channel = str(case.get("prompt", case.get("answer"))), case.get("channel", default)
    fired = firings(PROGRAMS[pack], stage, channel, text, case.get("scores", {}))
    outcome = resolve(fired, stage, Channel(channel))
    enforced = [verdict for verdict in outcome.verdicts if verdict.mode == "enforce" and verdict.excepted_by is None]
    action = strictest([verdict.action for verdict in enforced])
    output = text
    for edit in reversed(outcome.edits):
        output = output[: edit.start] + edit.text + output[edit.end :]
    assert action == case["expect"]["action"]
    assert output == case["expect"].get("output", text)
    if action != "allow":
        assert case["expect"]["rule_id"] in {verdict.rule_id for verdict in enforced if verdict.action == action}


def test_every_enforced_rule_of_a_pack_has_a_case() -> None:
    for pack in PACKS:
        expected = {case["expect"].get("rule_id") for name, case in CASES if name == pack.name}
        rules = {rule.id for rule in PROGRAMS[pack.name].rules}
        assert rules - expected == set()


def test_rules_say_where_they_come_from() -> None:
    for program in PROGRAMS.values():
        assert all(rule.severity for rule in program.rules)
        assert all(rule.regulation and rule.citation for rule in program.rules if rule.holds)
