"""What each fault says stands in `policies/errors/`; here: what a sound rule means."""

from __future__ import annotations

import itertools

import pytest

from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy.check import ACTION_STAGES, STAGE_CHANNELS, CheckedRule, check_policies
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.syntax import load_policies
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS, Stage
from checkstream.errors import Fault

LABELS = (ClassifierLabel("toy.alpha", 0.4, ((0.01, 0.9),)), ClassifierLabel("toy.beta"))


def check(rule: str) -> tuple[tuple[CheckedRule, ...], tuple[Fault, ...]]:
    text = f"pack: {{name: p, version: 1.0.0}}\npolicies:\n  - {{name: r, id: R-1, {rule}}}\n"
    return check_policies(load_policies([("p.yaml", text)]), LABELS)


def sound(rule: str) -> CheckedRule:
    checked, faults = check(rule)
    assert faults == ()
    return checked[0]


@pytest.mark.parametrize(
    ("actions", "stages"),
    [
        ("{type: redact}", {"ingress", "midstream"}),
        ("{type: reject}", {"ingress"}),
        ("{type: stop}", {"midstream"}),
        ("{type: stop}, {type: log_event}", {"midstream"}),
        ("{type: redact}, {type: reject}", {"ingress"}),
        ("{type: inject_disclaimer, text: t}", {"ingress", "midstream"}),
        ("{type: inject_disclaimer, text: t, position: start}", {"ingress"}),
        ("{type: log_event}", {"ingress", "midstream"}),
    ],
)
def test_default_stages_are_those_that_all_actions_allow(actions: str, stages: set[str]) -> None:
    rule = sound(f"phrases: [x], actions: [{actions}]")
    assert rule.stages == stages
    assert rule.channels == {channel for stage in stages for channel in STAGE_CHANNELS[Stage(stage)]}


def test_channels_narrow_the_default_stages() -> None:
    assert sound("phrases: [x], channels: [content], actions: [{type: redact}]").stages == {"midstream"}
    assert sound("phrases: [x], channels: [user], actions: [{type: redact}]").stages == {"ingress"}
    both = sound("phrases: [x], channels: [user, content], actions: [{type: redact}]")
    assert both.stages == {"ingress", "midstream"}


def test_g08_the_whole_matrix_of_actions_and_stages() -> None:
    extra = {"inject_disclaimer": ", text: t"}
    for action, stage in itertools.product(ACTION_STAGES, STAGE_CHANNELS):
        _, faults = check(f"phrases: [x], stage: {stage}, actions: [{{type: {action}{extra.get(action, '')}}}]")
        assert bool(faults) == (stage not in ACTION_STAGES[action]), (action, stage)


def test_g08_every_channel_of_a_stage_can_be_named() -> None:
    for stage, channels in ((Stage.INGRESS, INGRESS_CHANNELS), (Stage.MIDSTREAM, ANSWER_CHANNELS)):
        for channel in channels:
            rule = sound(f"phrases: [x], stage: {stage}, channels: [{channel}], actions: [{{type: redact}}]")
            assert rule.channels == {channel}


def test_groups_are_all_entities_of_the_group() -> None:
    rule = sound("entities: ['group:secret'], actions: [{type: redact}]")
    names = {trigger.signal.name for trigger in rule.triggers}
    assert names == {entity.name for entity in ENTITIES.values() if entity.group == "secret"}


@pytest.mark.parametrize(
    ("classifier", "name", "threshold"),
    [
        ("{name: alpha}", "toy.alpha", 0.4),
        ("{name: toy.alpha, threshold: 0.7}", "toy.alpha", 0.7),
        ("{name: alpha, fpr: 0.05}", "toy.alpha", 0.9),
        ("{name: toy.beta, threshold: 1}", "toy.beta", 1.0),
    ],
)
def test_classifiers(classifier: str, name: str, threshold: float) -> None:
    (trigger,) = sound(f"classifiers: [{classifier}], actions: [{{type: redact}}]").triggers
    assert (trigger.signal.name, trigger.threshold) == (name, threshold)


def test_a_disabled_rule_is_checked_too() -> None:
    assert check("mode: disabled, entities: [EMIAL], actions: [{type: redact}]")[1]


def test_packs_and_ids_are_unique_over_files() -> None:
    text = (
        "pack: {name: p, version: 1.0.0}\npolicies:\n  - {name: r, id: R-1, phrases: [x], actions: [{type: redact}]}\n"
    )
    _, faults = check_policies(load_policies([("a.yaml", text), ("b.yaml", text)]))
    assert [(fault.file, fault.line) for fault in faults] == [("b.yaml", 0), ("b.yaml", 3)]
    assert faults[1].advice.endswith("the first is at a.yaml:3")
