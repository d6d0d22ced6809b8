from __future__ import annotations

import pytest

from checkstream.core.policy.action import InjectDisclaimer, LogEvent, Redact
from checkstream.core.policy.extends import MAX_CHAIN, Extended, extend_rules
from checkstream.core.policy.nodes import Place
from checkstream.core.policy.syntax import Pack, load_policies
from checkstream.errors import Fault

BASE = """  - name: base
    id: A-1
    stage: [midstream]
    channels: [content]
    mode: shadow
    phrases: [zero risk, no risk]
    match: any
    conditions: [context.a == 1]
    enabled_when: request.stream
    actions: [{type: redact}, {type: log_event}]
    priority: 7
    metadata: {regulation: r, severity: high}
    tags: [t]
    fail_mode: open
"""


def extend(*files: str) -> tuple[tuple[Extended, ...], list[Fault], tuple[Pack, ...]]:
    heads = [f"pack: {{name: p{number}, version: 1.0.0}}\npolicies:\n{rules}" for number, rules in enumerate(files)]
    packs = load_policies([(f"f{number}.yaml", text) for number, text in enumerate(heads)])
    found = extend_rules(packs)
    return found, [fault for pack in packs for fault in pack.source.faults], packs


def rule(found: tuple[Extended, ...], id_: str) -> Extended:
    (one,) = (item for item in found if item.rule.id.value == id_ and not item.replaced)
    return one


def test_what_a_rule_does_not_say_comes_from_the_other() -> None:
    found, faults, _ = extend(BASE + "  - {id: A-2, extends: A-1}\n")
    assert not faults
    base, made = rule(found, "A-1").rule, rule(found, "A-2").rule
    assert made.id.value == "A-2"
    assert made.name.value == "base"
    assert [stage.value for stage in made.stages] == ["midstream"]
    assert [channel.value for channel in made.channels] == ["content"]
    assert made.triggers is not None
    assert [phrase.value for phrase in made.triggers.detectors.phrases] == ["zero risk", "no risk"]
    assert [condition.value for condition in made.conditions] == ["context.a == 1"]
    assert made.enabled_when is not None
    assert [action.value for action in made.actions] == [Redact(), LogEvent()]
    for field in ("mode", "priority", "metadata", "tags", "fail_mode"):
        assert getattr(made, field) == getattr(base, field)


@pytest.mark.parametrize(
    ("keys", "field", "value"),
    [
        ("name: other", "name", "other"),
        ("mode: enforce", "mode", "enforce"),
        ("priority: 1", "priority", 1),
        ("tags: [u]", "tags", ("u",)),
        ("fail_mode: closed", "fail_mode", "closed"),
        ("enforce_share: 0.5, mode: enforce", "enforce_share", 0.5),
    ],
)
def test_what_a_rule_says_is_its_own(keys: str, field: str, value: object) -> None:
    found, faults, _ = extend(BASE + f"  - {{id: A-2, extends: A-1, {keys}}}\n")
    assert not faults
    said = getattr(rule(found, "A-2").rule, field)
    assert getattr(said, "value", said) == value


def test_lists_and_metadata_are_taken_whole_or_replaced_whole() -> None:
    found, _, _ = extend(
        BASE + "  - {id: A-2, extends: A-1, metadata: {owner: o}, conditions: ['true'], actions: [{type: log_event}]}\n"
    )
    made = rule(found, "A-2").rule
    assert (made.metadata.owner, made.metadata.regulation) == ("o", None)
    assert [condition.value for condition in made.conditions] == ["true"]
    assert [action.value for action in made.actions] == [LogEvent()]


@pytest.mark.parametrize("keys", ["entities: [EMAIL]", "triggers: {entities: [EMAIL]}"])
def test_any_key_of_triggers_replaces_all_of_them(keys: str) -> None:
    found, _, _ = extend(BASE + f"  - {{id: A-2, extends: A-1, {keys}}}\n")
    made = rule(found, "A-2").rule
    assert made.triggers is not None
    assert made.triggers.detectors.phrases == ()
    assert [entity.name.value for entity in made.triggers.detectors.entities] == ["EMAIL"]
    assert "phrases" not in made.given


def test_a_rule_may_extend_one_that_comes_later_or_stands_in_another_file() -> None:
    for files in (("  - {id: A-2, extends: A-1}\n" + BASE,), ("  - {id: A-2, extends: A-1}\n", BASE)):
        found, faults, _ = extend(*files)
        assert not faults
        assert rule(found, "A-2").rule.priority == 7


def test_what_is_taken_over_stands_where_the_rule_asks_for_it() -> None:
    found, _, _ = extend(BASE, "  - {id: A-2, extends: A-1, stage: midstream}\n")
    made = rule(found, "A-2").rule
    assert made.extends is not None
    assert made.actions[0].at == made.extends.at == Place(3, 24)
    assert made.triggers is not None
    assert made.triggers.detectors.phrases[0].at == made.extends.at
    assert made.stages[0].at != made.extends.at
    assert made.id.at == Place(3, 10)


def test_a_rule_of_its_own_id_stands_in_place_of_the_other() -> None:
    found, faults, packs = extend(
        BASE + "  - {id: A-2, extends: A-1}\n",
        "  - {id: A-1, extends: A-1, mode: enforce}\n",
        "  - {id: A-1, extends: A-1, priority: 9}\n",
    )
    assert not faults
    made = rule(found, "A-1")
    assert (made.rule.mode, made.rule.priority, made.pack) == ("enforce", 9, packs[2])
    assert [item.pack.name for item in found if item.replaced] == ["p0", "p1"]
    assert rule(found, "A-2").rule.priority == 9  # the id means the rule in force


def test_a_share_is_not_taken_over_by_a_rule_that_is_not_enforced() -> None:
    base = BASE.replace("mode: shadow", "enforce_share: 0.1")
    found, _, _ = extend(base + "  - {id: A-2, extends: A-1, mode: shadow}\n  - {id: A-3, extends: A-1}\n")
    assert rule(found, "A-2").rule.enforce_share_at is None
    assert rule(found, "A-3").rule.enforce_share == 0.1


def test_chains_reach_to_the_cap_in_any_order() -> None:
    rules = [f"  - {{id: B-{n}, extends: {f'B-{n - 1}' if n else 'A-1'}}}\n" for n in range(MAX_CHAIN + 1)]
    for files in ((BASE + "".join(rules),), ("".join(reversed(rules)) + BASE,)):
        found, faults, _ = extend(*files)
        assert {item.rule.id.value for item in found} == {"A-1", *(f"B-{n}" for n in range(MAX_CHAIN - 1))}
        assert len(faults) == 1
        assert faults[0].reason == f"rules extend each other, more than {MAX_CHAIN} in a row"


def test_thousands_in_a_row_are_refused_without_running_out_of_stack() -> None:
    rules = "".join(f"  - {{id: B-{n}, extends: B-{n + 1}}}\n" for n in range(1_999))
    found, faults, _ = extend(rules)
    assert found == ()
    assert [fault.reason for fault in faults] == ["there is no rule `B-1999`"]


def test_long_lists_are_not_multiplied_without_bound() -> None:
    phrases = ", ".join(f"p{number}" for number in range(10_000))
    rules = "".join(f"  - {{id: B-{n}, extends: A-1}}\n" for n in range(1_000))
    found, faults, _ = extend(f"  - {{name: a, id: A-1, phrases: [{phrases}], actions: [{{type: redact}}]}}\n" + rules)
    assert [fault.reason for fault in faults] == ["rules take over more than 100,000 triggers from each other"]
    assert len(found) == 11


def test_a_circle_is_reported_once_and_those_that_lead_to_it_are_left_out() -> None:
    found, faults, _ = extend(
        "".join(f"  - {{id: {one}, extends: {other}}}\n" for one, other in ("XA", "AB", "BC", "CA")) + BASE
    )
    assert [item.rule.id.value for item in found] == ["A-1"]
    assert [fault.reason for fault in faults] == ["rules extend each other in a circle: `A` -> `B` -> `C` -> `A`"]


def test_only_a_rule_that_extends_its_own_id_stands_in_for_another() -> None:
    found, faults, _ = extend(BASE + "  - {id: A-2, extends: A-1}\n  - {id: A-1, extends: A-2}\n")
    assert [fault.reason for fault in faults] == ["rule id `A-1` stands twice"]
    assert [item.replaced for item in found] == [False, False, False]


def test_a_replacement_and_what_the_first_extends_can_be_a_circle() -> None:
    _, faults, _ = extend(
        "  - {id: A-1, extends: A-2}\n" + BASE.replace("id: A-1", "id: A-2\n    extends: A-1"),
        "  - {id: A-1, extends: A-1}\n",
    )
    assert [fault.reason for fault in faults] == [
        "rules extend each other in a circle: `A-1` -> `A-2` -> `A-1` -> `A-1`"
    ]


def test_inherited_values_keep_what_they_say() -> None:
    base = BASE.replace("{type: redact}", "{type: inject_disclaimer, text: t, position: after_sentence}")
    found, _, _ = extend(base + "  - {id: A-2, extends: A-1}\n")
    assert rule(found, "A-2").rule.actions[0].value == InjectDisclaimer(text="t", position="after_sentence")
