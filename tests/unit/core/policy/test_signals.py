from __future__ import annotations

import pytest

from checkstream.core.match.entities import ENTITIES
from checkstream.core.policy.fields import Fields
from checkstream.core.policy.nodes import open_source, read_nodes
from checkstream.core.policy.signals import entity_signal, findings_of, phrase_signal
from checkstream.core.policy.triggers import FLAT_KEYS, WrittenGroup, read_triggers


def written(text: str) -> WrittenGroup:
    source = open_source("f.yaml", text)
    root = read_nodes(source)
    assert root is not None
    group = read_triggers(Fields(source, root, "a rule", optional=("triggers", *FLAT_KEYS, "match")))
    assert group is not None
    return group


@pytest.mark.parametrize("name", ENTITIES)
def test_an_entity_is_the_same_signal_wherever_it_is_named(name: str) -> None:
    signal = entity_signal(name)
    assert (signal.title, signal.regex) == (f"entity:{name}", ENTITIES[name].regex)
    assert signal == entity_signal(name)


def test_the_white_space_of_a_phrase_tells_none_apart() -> None:
    assert phrase_signal("zero  risk ") == phrase_signal("zero risk")


def test_what_conditions_may_name_is_every_pattern_and_phrase_of_every_group() -> None:
    one = written("triggers: {all: [{phrases: [a  b]}, {not: {patterns: [{name: p, regex: x}]}}]}\n")
    other = written("phrases: [a b]\npatterns: [{name: p, regex: y}]\nentities: [EMAIL]\n")
    found = findings_of(iter((one, other)))
    assert {name: [signal.regex for signal in signals] for name, signals in found.items()} == {
        "a b": ["(?i)a\\s{1,8}b"],
        "p": ["x", "y"],
    }
