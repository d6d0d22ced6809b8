from __future__ import annotations

import pytest

from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.explain import RuleReport, explain
from checkstream.core.terms import Span, Stage

TEXT = """pack: {name: p, version: 1.0.0}
policies:
  - name: a
    id: MAIL
    stage: midstream
    channels: [content]
    entities: [EMAIL]
    actions: [{type: redact}]
  - name: b
    id: SHADOW
    stage: midstream
    mode: shadow
    phrases: [zero risk]
    actions: [{type: stop}]
  - name: c
    id: BOTH
    stage: midstream
    match: all
    phrases: [zero risk]
    classifiers: [{name: alpha, threshold: 0.5}]
    actions: [{type: stop}]
  - name: d
    id: SCORE
    stage: midstream
    classifiers: [{name: alpha, threshold: 0.7}]
    actions: [{type: stop}]
  - {name: e, id: PROMPT, stage: ingress, phrases: [zero risk], actions: [{type: reject}]}
  - {name: f, id: DISABLED, mode: disabled, phrases: [zero risk], actions: [{type: redact}]}
"""
PROGRAM = compile_sources([("p.yaml", TEXT)], [ClassifierLabel("toy.alpha")])


def reports(text: str, channel: str = "content", scores: dict[str, float] | None = None) -> dict[str, RuleReport]:
    return {report.rule_id: report for report in explain(PROGRAM, Stage.MIDSTREAM, channel, text, scores)}


def test_why_each_rule_fires_or_not() -> None:
    found = reports("mail joe@example.com: zero  risk!", scores={"toy.alpha": 0.6})
    assert {rule: report.outcome for rule, report in found.items()} == {
        "MAIL": "fired",
        "SHADOW": "shadow",
        "BOTH": "fired",
        "SCORE": "not_fired",
        "PROMPT": "out_of_scope",
        "DISABLED": "out_of_scope",
    }
    assert found["MAIL"].reason == "entity:EMAIL found at 5..20"
    assert found["MAIL"].actions == ("redact",)
    assert found["SHADOW"].triggers[0].spans == (Span(22, 32),)
    assert found["BOTH"].reason == "phrase:zero risk found at 22..32; classifier:toy.alpha score 0.6 >= threshold 0.5"
    assert found["SCORE"].reason == "classifier:toy.alpha score 0.6 < threshold 0.7"
    assert found["PROMPT"].reason == "the rule runs at ingress, not at midstream"
    assert found["DISABLED"].reason == "the rule is disabled"


def test_what_is_missing_is_named() -> None:
    found = reports("zero risk")
    assert found["BOTH"].reason == "`match: all` needs what is missing: classifier:toy.alpha no score was given"
    assert found["SCORE"].reason == "classifier:toy.alpha no score was given"
    assert found["MAIL"].reason == "none of its patterns, phrases and entities was found"


def test_other_channels() -> None:
    assert reports("joe@example.com", "reasoning")["MAIL"].reason == "the rule reads content, not reasoning"
    with pytest.raises(KeyError):
        reports("x", "user")


def test_scores_that_no_rule_reads_change_nothing() -> None:
    assert reports("x", scores={"toy.other": 1.0}) == reports("x")
