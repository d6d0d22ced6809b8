"""An `allow` rule sets aside whatever is decided over its span, now or later, and whoever decides it."""

from __future__ import annotations

import json

import pytest

from checkstream.core.commands import StreamRecord
from checkstream.core.exchange.guard import Plan
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.wire.surfaces import SURFACES
from tests.playbook import by_words, play

LABELS = (ClassifierLabel("toy.risk", 0.5),)
ALLOWED = "  - {name: ours, id: OK-1, priority: 5, patterns: [{name: ours, regex: 'mail joe@example\\.com now'}], actions: [{type: allow}]}\n"  # noqa: E501
RULES = {
    "a disclaimer": "entities: [EMAIL], stage: midstream, actions: [{type: inject_disclaimer, text: Mind it.}]",
    "a rule of egress": "entities: [EMAIL], stage: egress, actions: [{type: inject_disclaimer, text: Mind it.}]",
    "a rule that waits for a check": (
        "entities: [EMAIL], stage: midstream, conditions: ['scores.toy.risk < 0.5'], actions: [{type: redact}]"
    ),
    "a redaction": "entities: [EMAIL], stage: midstream, actions: [{type: redact}]",
}


def answered(rule: str, text: str) -> tuple[str, StreamRecord]:
    return answered_under(
        f"pack: {{name: p, version: 1.0.0}}\npolicies:\n{ALLOWED}  - {{name: r, id: R-1, {rule}}}\n", text
    )


def answered_under(rules: str, text: str) -> tuple[str, StreamRecord]:
    plan = Plan(program=compile_sources([("p.yaml", rules)], LABELS))
    request = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()
    message = {"role": "assistant", "content": text}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode()
    chat = SURFACES["openai.chat"]
    played = play(chat, plan, request, [body], streaming=False, scorer=by_words("toy.risk", ()))
    assert played.reply is not None
    assert played.record is not None
    return json.loads(played.reply.body)["choices"][0]["message"]["content"], played.record


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_exception_sets_aside_whatever_is_decided_over_its_span(rule: str) -> None:
    text = "Please mail joe@example.com now, or wait."
    said, record = answered(rule, text)
    assert said == text
    assert {v.rule_id: v.excepted_by for v in record.verdicts} == {"OK-1": None, "R-1": "OK-1"}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_what_lies_outside_of_its_span_is_not_excepted(rule: str) -> None:
    text = "Please mail joe@example.com now, or mail ann@example.com soon."
    said, record = answered(rule, text)
    assert said != text
    assert [v.excepted_by for v in record.verdicts if v.rule_id == "R-1"] == ["OK-1", None]


@pytest.mark.parametrize(("units", "left"), [(20, 41), (200, 0)])
def test_where_very_many_findings_chain_an_exception_sets_nothing_aside_that_it_does_not_cover(
    units: int, left: int
) -> None:
    """What is between them would count as excepted, too, if they were one exception."""
    rules = """pack: {name: p, version: 1.0.0}
policies:
  - {name: ours, id: OK-1, priority: 5, patterns: [{name: ours, regex: xay}], actions: [{type: allow}]}
  - {name: more, id: OK-2, priority: 5, patterns: [{name: more, regex: yax}], actions: [{type: allow}]}
  - {name: each, id: R-1, patterns: [{name: each, regex: a}], actions: [{type: redact, style: text, text: o}]}
"""
    said, _ = answered_under(rules, "xay" + "axay" * units)
    assert said.count("a") == left


@pytest.mark.parametrize(("most", "said"), [(399, "[X]"), (400, "xaya")])
def test_where_very_many_findings_chain_all_of_them_count(most: int, said: str) -> None:
    rules = f"""pack: {{name: p, version: 1.0.0}}
policies:
  - {{name: one, id: R-1, patterns: [{{name: one, regex: xay}}], conditions: [findings.one > {most}], actions: [{{type: redact, style: text, text: "[X]"}}]}}
  - {{name: other, id: OK-2, patterns: [{{name: other, regex: yax}}], actions: [{{type: allow}}]}}
"""  # noqa: E501
    text, _ = answered_under(rules, "xaya" * 400)
    assert text.startswith(said)


def test_where_very_many_findings_chain_none_is_spared_for_what_it_says() -> None:
    """What is between them was not allowed."""
    rules = """pack: {name: p, version: 1.0.0}
policies:
  - {name: one, id: R-1, triggers: {entities: [EMAIL], allow: {values: ["a@b.co"]}}, actions: [{type: redact}]}
  - {name: other, id: R-2, patterns: [{name: other, regex: 'co, a'}], actions: [{type: allow}]}
"""
    few, _ = answered_under(rules, ", ".join(["a@b.co"] * 20))
    assert few == ", ".join(["a@b.co"] * 20)
    many, _ = answered_under(rules, ", ".join(["a@b.co"] * 300))
    assert "a@b.co" not in many
