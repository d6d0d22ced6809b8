"""What each fault says stands in `policies/errors/`; here: which signals the names of a sound rule mean."""

from __future__ import annotations

import pytest

from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.conditions import Names
from checkstream.core.policy.detectors import GROUPS, TriggerCheck
from checkstream.core.policy.fields import Fields
from checkstream.core.policy.groups import AllOf, AnyOf, Group, Leaf, Not, Trigger
from checkstream.core.policy.nodes import Source, open_source, read_nodes
from checkstream.core.policy.program import Signal
from checkstream.core.policy.signals import entity_signal
from checkstream.core.policy.triggers import FLAT_KEYS, WrittenGroup, read_triggers

LABELS = (
    ClassifierLabel("toy.alpha", 0.4, ((0.01, 0.9), (0.1, 0.6))),
    ClassifierLabel("toy.beta"),
    ModelEntity("PERSON", "ner", 0.6),
    ModelEntity("EMAIL", "ner", 0.5),
    ModelEntity("PLACE", "ner", 0.5),
    ModelEntity("PLACE", "maps", 0.5),
)


def written(text: str) -> tuple[WrittenGroup, Source]:
    source = open_source("f.yaml", text)
    root = read_nodes(source)
    assert root is not None
    group = read_triggers(Fields(source, root, "a rule", optional=("triggers", *FLAT_KEYS, "match")))
    assert group is not None
    return group, source


def resolve(text: str) -> tuple[Group | None, tuple[Trigger, ...]]:
    group, source = written(text)
    check = TriggerCheck(source, LABELS, Names(classifiers=LABELS, findings={}))
    resolved = check.group(group)
    assert [fault.reason for fault in source.faults] == []
    return resolved, check.triggers


def test_flat_lists_come_in_one_order() -> None:
    group, triggers = resolve(
        "classifiers: [{name: alpha}]\nphrases: [a  b]\npatterns: [{name: p, regex: 'x{2}'}]\nentities: [EMAIL]\n"
    )
    assert [trigger.signal.title for trigger in triggers] == [
        "entity:EMAIL",
        "pattern:p",
        "phrase:a b",
        "classifier:toy.alpha",
    ]
    assert group == AnyOf((Leaf(0), Leaf(1), Leaf(2), Leaf(3)))


def test_all_of_flat_lists_needs_each_of_them() -> None:
    assert resolve("phrases: [a, b]\nmatch: all\n")[0] == AllOf((Leaf(0), Leaf(1)))


def test_a_list_within_a_group_is_any_of_it() -> None:
    group, triggers = resolve("triggers: {all: [{phrases: [a, b]}, {phrases: [c]}, {not: {phrases: [d, e]}}]}\n")
    assert group == AllOf((AnyOf((Leaf(0), Leaf(1))), Leaf(2), Not(AnyOf((Leaf(3), Leaf(4))))))
    assert [trigger.signal.name for trigger in triggers] == ["a", "b", "c", "d", "e"]


def test_equal_triggers_are_one_and_other_thresholds_are_others() -> None:
    group, triggers = resolve(
        "triggers: {any: [{all: [{phrases: [a]}, {classifiers: [{name: alpha, threshold: 0.5}]}]},"
        " {all: [{phrases: [A, a]}, {classifiers: [{name: alpha, threshold: 0.7}]}]}]}\n"
    )
    assert [(trigger.signal.name, trigger.threshold) for trigger in triggers] == [
        ("a", None),
        ("toy.alpha", 0.5),
        ("A", None),
        ("toy.alpha", 0.7),
    ]
    assert group == AnyOf((AllOf((Leaf(0), Leaf(1))), AllOf((AnyOf((Leaf(2), Leaf(0))), Leaf(3)))))


def model_entity(name: str, model: str, threshold: float) -> Signal:
    return Signal(kind="entity", name=name, model=model, threshold=threshold)


@pytest.mark.parametrize(
    ("name", "signal"),
    [
        ("PERSON", model_entity("PERSON", "ner", 0.6)),
        ("ner.PERSON", model_entity("PERSON", "ner", 0.6)),
        ("maps.PLACE", model_entity("PLACE", "maps", 0.5)),
        ("EMAIL", entity_signal("EMAIL")),
        ("ner.EMAIL", model_entity("EMAIL", "ner", 0.5)),
    ],
)
def test_an_entity_is_the_validators_where_there_is_one_else_a_models(name: str, signal: Signal) -> None:
    _, (trigger,) = resolve(f"entities: [{name}]\n")
    assert (trigger.signal, trigger.threshold) == (signal, None)


def test_both_detectors_of_an_entity_may_stand_together() -> None:
    _, triggers = resolve("entities: [EMAIL, ner.EMAIL]\n")
    assert [(trigger.signal.title, trigger.signal.model) for trigger in triggers] == [
        ("entity:EMAIL", None),
        ("entity:EMAIL", "ner"),
    ]


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ("PLACE", "entity `PLACE` can mean what more than one model finds; write one of `ner.PLACE`, `maps.PLACE`"),
        ("PERSN", "there is no entity `PERSN`; did you mean `PERSON`?"),
        ("toy.alpha", "there is no entity `toy.alpha`; LANGUAGE.md lists the entities"),
        ("PERSON, ner.PERSON", "entity `PERSON` stands twice in the rule; keep one"),
    ],
)
def test_an_entity_that_is_not_clear_is_refused(names: str, said: str) -> None:
    group, source = written(f"entities: [{names}]\n")
    TriggerCheck(source, LABELS, Names(classifiers=LABELS, findings={})).group(group)
    assert [f"{fault.reason}; {fault.advice}" for fault in source.faults] == [said]


@pytest.mark.parametrize("name", GROUPS)
def test_groups_of_entities_are_all_of_the_group(name: str) -> None:
    _, triggers = resolve(f"entities: ['group:{name}']\n")
    members = {entity.name for entity in ENTITIES.values() if entity.group == name}
    assert {trigger.signal.name for trigger in triggers} == members


@pytest.mark.parametrize(
    ("classifier", "name", "threshold"),
    [
        ("{name: alpha}", "toy.alpha", 0.4),
        ("{name: toy.alpha, threshold: 0.7}", "toy.alpha", 0.7),
        ("{name: alpha, fpr: 0.05}", "toy.alpha", 0.9),
        ("{name: alpha, fpr: 0.5}", "toy.alpha", 0.6),
        ("{name: toy.beta, threshold: 1}", "toy.beta", 1.0),
    ],
)
def test_scores_and_their_thresholds(classifier: str, name: str, threshold: float) -> None:
    _, (trigger,) = resolve(f"classifiers: [{classifier}]\n")
    assert (trigger.signal, trigger.threshold, trigger.cases) == (Signal(kind="classifier", name=name), threshold, ())


def test_thresholds_by_condition_keep_their_order() -> None:
    _, (trigger,) = resolve(
        "classifiers: [{name: alpha, when: [{condition: context.a == 1, threshold: 0.9},"
        " {condition: findings.EMAIL > 0, fpr: 0.1}]}]\n"
    )
    assert trigger.threshold == 0.4
    assert [threshold for _, threshold in trigger.cases] == [0.9, 0.6]
