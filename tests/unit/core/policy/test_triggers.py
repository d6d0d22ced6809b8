from __future__ import annotations

import pytest

from checkstream.core.policy.fields import Fields
from checkstream.core.policy.nodes import Source, open_source, read_nodes
from checkstream.core.policy.triggers import (
    FLAT_KEYS,
    MAX_GROUP_DEPTH,
    MAX_PHRASES,
    WrittenGroup,
    read_triggers,
)


def read(written: str) -> tuple[WrittenGroup | None, Source]:
    source = open_source("f.yaml", written)
    root = read_nodes(source)
    assert root is not None
    rule = Fields(source, root, "a rule", optional=("triggers", *FLAT_KEYS, "match"))
    return read_triggers(rule), source


def sound(written: str) -> WrittenGroup:
    group, source = read(written)
    assert not source.faults
    assert group is not None
    return group


def test_flat_lists_are_one_group() -> None:
    group = sound("entities: [EMAIL]\nphrases: [a, b]\nmatch: all\n")
    assert group.kind == "all"
    assert group.items == ()
    assert [entity.name.value for entity in group.detectors.entities] == ["EMAIL"]
    assert [phrase.value for phrase in group.detectors.phrases] == ["a", "b"]


def test_any_is_what_flat_lists_mean() -> None:
    assert sound("phrases: [a]\n").kind == "any"


def test_a_tree_of_groups() -> None:
    group = sound("triggers: {all: [{any: [{phrases: [a]}, {entities: [EMAIL]}]}, {not: {phrases: [b]}}]}\n")
    assert group.kind == "all"
    first, second = group.items
    assert (first.kind, [item.kind for item in first.items]) == ("any", ["any", "any"])
    assert (second.kind, second.items[0].detectors.phrases[0].value) == ("not", "b")
    assert group.count == 3


def test_a_rule_may_have_no_triggers() -> None:
    assert read("{}\n")[0] is None


def test_thresholds_by_condition() -> None:
    (trigger,) = sound(
        "classifiers: [{name: t, fpr: 0.5, when: [{condition: 'true', threshold: 0.9}, {condition: x, fpr: 0.1}]}]"
    ).detectors.classifiers
    first, second = trigger.cases
    assert first.threshold is not None
    assert (first.condition.value, first.threshold.value, first.fpr) == ("true", 0.9, None)
    assert second.fpr is not None
    assert (second.condition.value, second.threshold, second.fpr.value) == ("x", None, 0.1)


def nested(depth: int) -> str:
    return "triggers: " + "{not: " * (depth - 1) + "{phrases: [a]}" + "}" * (depth - 1) + "\n"


def test_groups_nest_up_to_the_cap() -> None:
    sound(nested(MAX_GROUP_DEPTH))
    group, source = read(nested(MAX_GROUP_DEPTH + 1))
    assert group is None
    assert len(source.faults) == 1


def test_long_lists_of_phrases_are_read_and_longer_ones_refused() -> None:
    phrases = ", ".join(f"p{number}" for number in range(MAX_PHRASES))
    assert len(sound(f"phrases: [{phrases}]\n").detectors.phrases) == MAX_PHRASES
    assert read(f"phrases: [{phrases}, more]\n")[1].faults


@pytest.mark.parametrize(
    "written",
    [
        "triggers: word\n",
        "triggers: ~\n",
        "triggers: {not: [{phrases: [a]}]}\n",
        "triggers: {any: {phrases: [a]}}\n",
        "triggers: {}\n",
        "triggers: {phrases: []}\n",
        "triggers: {phrases: [a], match: all}\n",
        "classifiers: [{name: t, when: []}]\n",
        "classifiers: [{name: t, when: [{condition: '', threshold: 1}]}]\n",
        "classifiers: [{name: t, when: [{condition: a, threshold: 1, fpr: 1}]}]\n",
        "classifiers: [{threshold: 1}]\n",
        "patterns: [{name: a}]\n",
        "match: all\n",
        "match: none\nphrases: [a]\n",
    ],
)
def test_what_is_no_group_is_reported(written: str) -> None:
    assert read(written)[1].faults
