from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import pytest

from checkstream.core.cel.values import from_json
from checkstream.core.events import EntityFound
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.explain import Circumstances, RuleReport, explain
from checkstream.core.policy.vm import exchange_facts
from checkstream.core.terms import Span, Stage, StreamFacts

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
    return {
        report.rule_id: report
        for report in explain(PROGRAM, Stage.MIDSTREAM, channel, text, Circumstances(scores=scores or {}))
    }


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
    assert found["BOTH"].reason == (
        "it asks for all(phrase:zero risk, classifier:toy.alpha): "
        "phrase:zero risk found at 0..9; classifier:toy.alpha no score was given"
    )
    assert found["SCORE"].reason == "classifier:toy.alpha no score was given"
    assert found["MAIL"].reason == "none of its patterns, phrases and entities was found"


def test_other_channels() -> None:
    assert reports("joe@example.com", "reasoning")["MAIL"].reason == "the rule reads content, not reasoning"
    with pytest.raises(KeyError):
        reports("x", "user")


def test_scores_that_no_rule_reads_change_nothing() -> None:
    assert reports("x", scores={"toy.other": 1.0}) == reports("x")


RICH = """pack: {name: p, version: 1.0.0}
policies:
  - name: adult
    id: AGE
    stage: midstream
    entities: [EMAIL]
    conditions: [context.user.age < 18, 'request.model == "m"']
    actions: [{type: redact}]
  - name: exception
    id: OUT
    stage: midstream
    entities: [EMAIL]
    conditions: [context.vip]
    priority: 5
    actions: [{type: allow}]
  - name: tree
    id: TREE
    stage: midstream
    triggers: {all: [{entities: [EMAIL]}, {any: [{phrases: [alpha]}, {phrases: [beta]}]}]}
    actions: [{type: redact}]
  - name: cases
    id: CASE
    stage: midstream
    classifiers: [{name: alpha, threshold: 0.4, when: [{condition: context.user.age < 18, threshold: 0.2},
      {condition: context.user.age > 60, threshold: 0.9}]}]
    actions: [{type: stop}]
  - name: absent
    id: ABSENT
    stage: midstream
    enabled_when: context.user.age > 60
    entities: [EMAIL]
    actions: [{type: redact}]
  - name: some
    id: SOME
    stage: midstream
    enforce_share: 0
    entities: [EMAIL]
    actions: [{type: redact}]
  - name: bare
    id: BARE
    stage: ingress
    conditions: [context.user.age < 18]
    actions: [{type: lower_temp}]
  - name: long
    id: LONG
    stage: egress
    conditions: [stream.tokens > 2]
    actions: [{type: log_event}]
  - name: warned
    id: WARNED
    stage: egress
    channels: [content]
    triggers:
      all:
        - entities: [EMAIL]
        - not: {classifiers: [{name: alpha, threshold: 0.5, when: [{condition: request.model == "m", threshold: 0.9}]}]}
        - not: {phrases: [sample]}
    actions: [{type: log_event}]
"""
LANGUAGE = compile_sources([("r.yaml", RICH)], [ClassifierLabel("toy.alpha")])


def explained(
    context: Mapping[str, object],
    *,
    stage: Stage = Stage.MIDSTREAM,
    text: str = "mail joe@example.com",
    score: float = 0.5,
    fail_mode: Literal["open", "closed"] = "closed",
) -> dict[str, RuleReport]:
    exchange, _ = exchange_facts(
        LANGUAGE, from_json(dict(context)), {"model": "m"}, who=("app", "u"), fail_mode=fail_mode
    )
    circumstances = Circumstances(
        scores={"toy.alpha": score}, exchange=exchange, stream=StreamFacts(tokens=5), fail_mode=fail_mode
    )
    channel = "user" if stage is Stage.INGRESS else "content"
    return {report.rule_id: report for report in explain(LANGUAGE, stage, channel, text, circumstances)}


def test_each_condition_is_shown_with_its_value() -> None:
    child, adult = explained({"user": {"age": 9}})["AGE"], explained({"user": {"age": 30}})["AGE"]
    assert child.outcome == "fired"
    assert child.reason == (
        'entity:EMAIL found at 5..20; `context.user.age < 18` is true; `request.model == "m"` is true'
    )
    assert adult.outcome == "not_fired"
    assert adult.reason == "`context.user.age < 18` is false"
    assert [condition.value for condition in adult.conditions] == ["false", "true"]


def test_a_condition_that_cannot_be_decided_says_why_and_what_the_fail_mode_made_of_it() -> None:
    closed, opened = explained({}), explained({}, fail_mode="open")
    assert (closed["AGE"].outcome, closed["AGE"].undecided) == ("fired", True)
    assert "`context.user.age < 18` is undecided (no such key: user" in closed["AGE"].reason.replace("`user`", "user")
    assert closed["AGE"].reason.endswith("it can't be decided, and the fail mode lets it count")
    assert opened["AGE"].outcome == "not_fired"
    assert opened["AGE"].reason.endswith("it can't be decided, and the fail mode lets it pass")
    assert closed["OUT"].outcome == "not_fired"  # an exception is never made on a guess


def test_a_tree_of_triggers_says_what_it_asks_for_and_what_was_there() -> None:
    report = explained({"user": {"age": 30}})["TREE"]
    assert report.outcome == "not_fired"
    assert report.reason.startswith("it asks for all(entity:EMAIL, any(phrase:alpha, phrase:beta)): entity:EMAIL found")
    assert "phrase:alpha not found" in report.reason
    assert explained({"user": {"age": 30}}, text="joe@example.com beta")["TREE"].outcome == "fired"


@pytest.mark.parametrize(
    ("age", "score", "outcome", "said"),
    [
        (9, 0.3, "fired", "score 0.3 >= threshold 0.2"),
        (30, 0.3, "not_fired", "score 0.3 < threshold 0.4 that conditions choose here"),
        (30, 0.5, "fired", "score 0.5 >= threshold 0.4 that conditions choose here"),
        (70, 0.5, "not_fired", "score 0.5 < threshold 0.9 that conditions choose here"),
    ],
)
def test_the_threshold_that_conditions_choose_is_shown(age: int, score: float, outcome: str, said: str) -> None:
    report = explained({"user": {"age": age}}, score=score)["CASE"]
    assert report.outcome == outcome
    assert said in report.reason


def test_rules_that_take_no_part_say_so() -> None:
    young = explained({"user": {"age": 9}})
    assert young["ABSENT"].reason == "`enabled_when` leaves the rule out of this exchange"
    assert explained({"user": {"age": 70}})["ABSENT"].outcome == "fired"
    assert young["SOME"].outcome == "shadow"
    assert young["SOME"].reason.endswith("`enforce_share: 0` leaves this caller out")


def test_rules_without_triggers_are_decided_where_they_run() -> None:
    young = {"user": {"age": 9}}
    assert explained(young, stage=Stage.INGRESS)["BARE"].outcome == "fired"
    assert explained({"user": {"age": 30}}, stage=Stage.INGRESS)["BARE"].outcome == "not_fired"
    assert explained(young)["BARE"].reason == "the rule runs at ingress, not at midstream"
    assert explained(young, stage=Stage.EGRESS)["LONG"].reason == "`stream.tokens > 2` is true"


@pytest.mark.parametrize(
    ("score", "text", "outcome", "said"),
    [
        (0.6, "joe@example.com", "fired", "score 0.6 < threshold 0.9 that conditions choose here"),
        (0.6, "joe@example.com", "fired", "holds: entity:EMAIL found at 0..15"),
        (0.6, "joe@example.com", "fired", "phrase:sample not found"),
        (0.95, "joe@example.com", "not_fired", "score 0.95 >= threshold 0.9 that conditions choose here"),
        (0.6, "joe@example.com sample", "not_fired", "phrase:sample found at 16..22"),
    ],
)
def test_what_must_not_stand_there_is_shown_either_way(score: float, text: str, outcome: str, said: str) -> None:
    report = explained({}, stage=Stage.EGRESS, text=text, score=score)["WARNED"]
    assert report.outcome == outcome
    assert said in report.reason


def test_a_score_counts_within_not_from_the_threshold_that_conditions_choose() -> None:
    low, high = (explained({}, stage=Stage.EGRESS, score=score)["WARNED"].triggers[1] for score in (0.6, 0.95))
    assert ((low.held, low.counts_from), (high.held, high.counts_from)) == ((False, 0.9), (True, 0.9))


def test_explaining_leaves_the_scores_as_they_were() -> None:
    young = {"user": {"age": 9}}
    reports = [explained(young, score=score)["CASE"].triggers[0] for score in (0.1, 0.3)]
    assert [(report.score, report.held, report.counts_from) for report in reports] == [
        (0.1, False, 0.2),
        (0.3, True, 0.2),
    ]


@pytest.mark.parametrize(
    ("fail_mode", "outcome", "said"),
    [
        ("closed", "fired", "`enabled_when` lets the rule in (it can't be decided: no such key: `user`"),
        ("open", "not_fired", "leaves the rule out of this exchange (it can't be decided: no such key: `user`"),
    ],
)
def test_an_enabled_when_that_cannot_be_decided_says_so(
    fail_mode: Literal["open", "closed"], outcome: str, said: str
) -> None:
    report = explained({}, fail_mode=fail_mode)["ABSENT"]
    assert report.outcome == outcome
    assert said in report.reason


def test_a_condition_that_cannot_be_decided_says_how_to_make_it_definite() -> None:
    advice = "write `has(context.user) && has(context.user.age) && ...` if that is to mean no"
    assert explained({})["AGE"].conditions[0].advice == advice
    assert advice in explained({})["AGE"].reason
    assert explained({"user": {"age": "x"}})["AGE"].conditions[0].advice == ""


def test_what_models_have_found_counts_as_what_is_searched_does() -> None:
    text = """pack: {name: p, version: 1.0.0}
policies:
  - {name: a, id: PER, stage: midstream, entities: [PERSON], actions: [{type: redact}]}
"""
    made = compile_sources([("p.yaml", text)], [ModelEntity("PERSON", "ner", 0.5)])
    answer = "So said Ann."
    entities = (EntityFound("PERSON", 8, 11, 0.9), EntityFound("PERSON", 0, 2, 0.1), EntityFound("OTHER", 3, 7, 0.9))
    (report,) = explain(made, Stage.MIDSTREAM, "content", answer, Circumstances(entities=entities))
    assert (report.outcome, report.triggers[0].spans) == ("fired", (Span(8, 11),))
    assert report.reason == "entity:PERSON found at 8..11"
    (report,) = explain(made, Stage.MIDSTREAM, "content", answer)
    assert report.outcome == "not_fired"
