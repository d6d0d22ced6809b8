"""What each fault says stands in `policies/errors/`; here: what a sound rule means."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from checkstream.core.policy.capabilities import CHAT, COMPLETIONS, Target
from checkstream.core.policy.check import CheckedRule, check_policies
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.conditions import MAX_COST
from checkstream.core.policy.program import Waits
from checkstream.core.policy.syntax import load_policies
from checkstream.errors import Fault

LABELS = (ClassifierLabel("toy.alpha", 0.4), ClassifierLabel("toy.beta", 0.5))


def check(rules: str, targets: Sequence[Target] = ()) -> tuple[tuple[CheckedRule, ...], tuple[Fault, ...]]:
    text = f"pack: {{name: p, version: 1.0.0}}\npolicies:\n{rules}"
    return check_policies(load_policies([("p.yaml", text)]), LABELS, targets)


def one(keys: str, targets: Sequence[Target] = ()) -> tuple[tuple[CheckedRule, ...], tuple[Fault, ...]]:
    return check(f"  - {{name: r, id: R-1, {keys}}}\n", targets)


def sound(keys: str) -> CheckedRule:
    checked, faults = one(keys)
    assert [fault.reason for fault in faults] == []
    return checked[0]


REDACT = "actions: [{type: redact}]"
LOG = "actions: [{type: log_event}]"


@pytest.mark.parametrize(
    ("keys", "waits"),
    [
        (f"phrases: [x], {REDACT}", Waits.NO),
        (f"phrases: [x], conditions: [context.a == 1, stream.risk > 0.1], {REDACT}", Waits.NO),
        (f"phrases: [x], conditions: [findings.EMAIL > 1], {REDACT}", Waits.NO),
        (f"phrases: [x], conditions: [scores.alpha > 0.5], {REDACT}", Waits.CHECK),
        (f"phrases: [x], conditions: [has(scores.alpha)], {REDACT}", Waits.CHECK),
        (f"classifiers: [{{name: alpha}}], conditions: [scores.beta > 0.5], {REDACT}", Waits.NO),
        (f"phrases: [x], classifiers: [{{name: alpha}}], conditions: [scores.beta > 0.5], {REDACT}", Waits.CHECK),
        (f"stage: ingress, triggers: {{all: [{{phrases: [x]}}, {{not: {{phrases: [y]}}}}]}}, {REDACT}", Waits.END),
        (f"conditions: ['true'], {LOG}", Waits.NO),
        (f"stage: egress, conditions: [scores.alpha > 0.5], {LOG}", Waits.NO),
    ],
)
def test_what_the_decision_waits_for(keys: str, waits: Waits) -> None:
    assert sound(keys).waits == waits


def test_signals_that_conditions_read_are_listed_once_also_those_of_thresholds() -> None:
    rule = sound(
        "classifiers: [{name: alpha, when: [{condition: findings.EMAIL > 0, threshold: 0.9}]}],"
        f" phrases: [x], conditions: [scores.beta > 0.5 && findings.EMAIL > 0, findings.x > 1], {REDACT}"
    )
    assert [signal.title for signal in rule.reads] == ["entity:EMAIL", "classifier:toy.beta", "phrase:x"]
    assert [condition.text for condition in rule.conditions] == [
        "scores.beta > 0.5 && findings.EMAIL > 0",
        "findings.x > 1",
    ]


def test_conditions_may_name_patterns_of_other_rules_of_the_pack_only() -> None:
    rules = (
        "  - {name: a, id: R-1, patterns: [{name: odd, regex: 'o{3}'}], actions: [{type: log_event}]}\n"
        "  - {name: b, id: R-2, phrases: [x], conditions: [findings.odd > 1], actions: [{type: log_event}]}\n"
    )
    checked, faults = check(rules)
    assert not faults
    assert checked[1].reads == (checked[0].triggers[0].signal,)
    packs = [
        (f"{name}.yaml", f"pack: {{name: {name}, version: 1.0.0}}\npolicies:\n{rule}\n")
        for name, rule in zip("ab", rules.splitlines(), strict=True)
    ]
    _, faults = check_policies(load_policies(packs))
    assert [fault.file for fault in faults] == ["b.yaml"]


@pytest.mark.parametrize("stage", ["ingress", "egress"])
def test_not_is_allowed_where_nothing_is_held_midstream(stage: str) -> None:
    sound(f"stage: {stage}, triggers: {{all: [{{phrases: [x]}}, {{not: {{phrases: [y]}}}}]}}, {LOG}")


def test_not_midstream_is_for_rules_that_hold_nothing() -> None:
    tree = "stage: midstream, triggers: {all: [{phrases: [x]}, {not: {phrases: [y]}}]}"
    sound(f"{tree}, {LOG}")
    sound(f"{tree}, mode: shadow, {REDACT}")
    assert one(f"{tree}, {REDACT}")[1]
    assert one(f"{tree}, actions: [{{type: inject_disclaimer, text: t, position: after_sentence}}]")[1]


def test_a_disabled_rule_is_checked_too() -> None:
    assert one(f"mode: disabled, entities: [EMIAL], {REDACT}")[1]


TARGET = Target("r", CHAT, "local", frozenset())
SAFE = "phrases: [x], stage: midstream, channels: [content], actions: [{type: safe_mode}]"


def test_g08_what_a_route_can_not_do_is_refused_by_name() -> None:
    _, (fault,) = one(SAFE, [TARGET])
    assert fault.reason == (
        "the action `safe_mode` of rule `R-1` needs an upstream that can `continue`, which route `r` with upstream"
        " `local` has not"
    )
    assert fault.advice.startswith("add `can: [continue]` to upstream `local` if it does")
    assert one(SAFE, [Target("r", CHAT, "local", frozenset({"continue"}))])[1] == ()
    assert one(f"mode: shadow, {SAFE}", [TARGET])[1]


def test_g08_each_upstream_is_named_once_and_each_route_that_speaks_another_api() -> None:
    targets = [TARGET, Target("s", CHAT, "local", frozenset()), Target("t", CHAT, "far", frozenset())]
    assert len(one(SAFE, targets)[1]) == 2
    tone = "conditions: ['true'], actions: [{type: adapt_tone, instruction: i}]"
    assert one(tone, targets)[1] == ()
    assert len(one(tone, [*targets, Target("u", COMPLETIONS, "local", frozenset())])[1]) == 1


def test_what_is_disabled_or_replaced_needs_nothing_of_a_route() -> None:
    assert one(f"mode: disabled, {SAFE}", [TARGET])[1] == ()
    replaced = f"  - {{name: r, id: R-1, {SAFE}}}\n  - {{id: R-1, extends: R-1, actions: [{{type: stop}}]}}\n"
    checked, faults = check(replaced, [TARGET])
    assert faults == ()
    assert [action.value.name for rule in checked for action in rule.rule.actions] == ["stop"]


def test_rules_keep_the_order_of_the_files_whoever_extends_whom() -> None:
    checked, faults = check(
        "  - {id: R-3, extends: R-2}\n  - {id: R-2, extends: R-1}\n"
        f"  - {{name: r, id: R-1, phrases: [x], {REDACT}}}\n"
    )
    assert not faults
    assert [rule.rule.id.value for rule in checked] == ["R-3", "R-2", "R-1"]


def test_what_is_wrong_with_a_rule_is_not_said_again_of_those_that_extend_it() -> None:
    _, faults = check(
        f"  - {{name: r, id: R-1, entities: [EMIAL], {REDACT}}}\n"
        "  - {id: R-2, extends: R-1}\n  - {id: R-3, extends: R-2, channels: [user, nowhere]}\n"
    )
    assert [(fault.line, fault.reason) for fault in faults] == [
        (3, "there is no entity `EMIAL`"),
        (5, "there is no channel `nowhere`"),
    ]


def test_packs_and_ids_are_unique_over_files() -> None:
    text = (
        "pack: {name: p, version: 1.0.0}\npolicies:\n  - {name: r, id: R-1, phrases: [x], actions: [{type: redact}]}\n"
    )
    _, faults = check_policies(load_policies([("a.yaml", text), ("b.yaml", text)]))
    assert [(fault.file, fault.line) for fault in faults] == [("b.yaml", 0), ("b.yaml", 3)]
    assert faults[1].advice.endswith("the first is at a.yaml:3")


def test_the_expressions_of_a_rule_share_one_account() -> None:
    loop = "'context.list.exists(x, x == 1)'"
    (one_loop,) = sound(f"phrases: [x], conditions: [{loop}], {REDACT}").conditions
    fitting = ", ".join([loop] * (MAX_COST // one_loop.cost))
    sound(f"phrases: [x], conditions: [{fitting}], {REDACT}")
    by_loop = f"classifiers: [{{name: alpha, when: [{{condition: {loop}, threshold: 0.9}}]}}]"
    one_more = {
        "conditions": f"conditions: [{fitting}, {loop}], phrases: [x]",
        "enabled_when": f"conditions: [{fitting}], enabled_when: {loop}, phrases: [x]",
        "when": f"{by_loop}, conditions: [{fitting}]",
    }
    for keys in one_more.values():
        _, faults = one(f"{keys}, {REDACT}")
        assert len(faults) == 1
        assert "with those before it" in faults[0].reason
