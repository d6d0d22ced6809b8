"""Law: the compiled program and a slow, obvious reading of the rules say the same of any facts."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from checkstream.core.policy import vm
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_policies
from checkstream.core.policy.program import HOLDING_ACTIONS, Program
from checkstream.core.policy.syntax import load_policies
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS, Facts, Stage

Written = dict[str, Any]
PHRASES = ("zero risk", "free money", "act now")
LABELS = ("toy.alpha", "toy.beta")
CLASSIFIERS = tuple(ClassifierLabel(name) for name in LABELS)
SCORES = st.sampled_from((0.0, 0.25, 0.5, 0.75, 1.0))
STAGE_OF_ACTION = {
    "redact": ("ingress", "midstream"),
    "stop": ("midstream",),
    "reject": ("ingress",),
    "allow": ("ingress", "midstream"),
    "log_event": ("ingress", "midstream", "egress"),
}
CHANNELS_OF_STAGE = {"ingress": INGRESS_CHANNELS, "midstream": ANSWER_CHANNELS, "egress": ANSWER_CHANNELS}


@st.composite
def rules(draw: st.DrawFn, number: int) -> Written:
    """One rule as plain data, before it is written as YAML."""
    phrases = draw(st.lists(st.sampled_from(PHRASES), unique=True, max_size=3))
    labels = draw(st.lists(st.sampled_from(LABELS), unique=True, max_size=2, min_size=0 if phrases else 1))
    action = draw(st.sampled_from(sorted(STAGE_OF_ACTION)))
    stages = draw(st.lists(st.sampled_from(STAGE_OF_ACTION[action]), unique=True, min_size=1))
    reachable = [set(CHANNELS_OF_STAGE[stage]) for stage in stages]
    channels = draw(st.lists(st.sampled_from(sorted(set().union(*reachable))), unique=True))
    if channels and any(not reach & set(channels) for reach in reachable):
        channels = []
    several = len(phrases) + len(labels) > 1
    return {
        "id": f"R-{number}",
        "phrases": phrases,
        "scores": {label: draw(SCORES) for label in labels},
        "action": action,
        "stages": stages,
        "channels": channels,
        "mode": draw(st.sampled_from(("enforce", "shadow", "disabled"))),
        "match": draw(st.sampled_from(("any", "all"))) if several else "any",
    }


def as_yaml(rule: Written) -> str:
    lines = [f"  - name: r\n    id: {rule['id']}\n    mode: {rule['mode']}\n    match: {rule['match']}"]
    lines.append(f"    stage: [{', '.join(rule['stages'])}]\n    actions: [{{type: {rule['action']}}}]")
    if rule["phrases"]:
        lines.append(f"    phrases: [{', '.join(rule['phrases'])}]")
    if rule["channels"]:
        lines.append(f"    channels: [{', '.join(rule['channels'])}]")
    if rule["scores"]:
        items = ", ".join(f"{{name: {name}, threshold: {value}}}" for name, value in rule["scores"].items())
        lines.append(f"    classifiers: [{items}]")
    return "\n".join(lines)


def oracle(rule: Written, where: tuple[str, str], seen: set[str], scores: dict[str, float], came: str) -> bool:
    """Does the rule fire when `came` has just been found or scored? Read straight off the language's document."""
    stage, channel = where
    if rule["mode"] == "disabled" or stage not in rule["stages"] or channel not in CHANNELS_OF_STAGE[stage]:
        return False
    if rule["channels"] and channel not in rule["channels"]:
        return False
    holds = {phrase: phrase in seen for phrase in rule["phrases"]}
    holds |= {label: label in scores and scores[label] >= limit for label, limit in rule["scores"].items()}
    if came not in holds or not holds[came]:
        return False
    return rule["match"] == "any" or all(holds.values())


def build(drawn: list[Written]) -> Program:
    text = "pack: {name: p, version: 1.0.0}\npolicies:\n" + "\n".join(as_yaml(rule) for rule in drawn)
    return compile_policies(load_policies([("p.yaml", text)]), CLASSIFIERS)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_the_machine_agrees_with_the_oracle(data: st.DataObject) -> None:
    drawn = [data.draw(rules(number)) for number in range(data.draw(st.integers(1, 4)))]
    program = build(drawn)
    stage = data.draw(st.sampled_from(sorted(CHANNELS_OF_STAGE)))
    channel = data.draw(st.sampled_from(CHANNELS_OF_STAGE[stage]))
    seen = data.draw(st.sets(st.sampled_from(PHRASES)))
    scores = data.draw(st.dictionaries(st.sampled_from(LABELS), SCORES))
    numbers = {signal.name: number for number, signal in enumerate(program.signals)}
    facts = Facts(
        stage=Stage(stage),
        channel=channel,
        seen={numbers[name] for name in seen if name in numbers},
        scores={numbers[name]: score for name, score in scores.items() if name in numbers},
    )
    scope = program.scope(Stage(stage), channel)
    for name, number in numbers.items():
        expected = tuple(
            index for index, rule in enumerate(drawn) if oracle(rule, (stage, channel), seen, scores, came=name)
        )
        assert vm.run(program, scope, facts, number) == expected


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_scopes_hold_what_enforced_rules_condemn_and_nothing_else(data: st.DataObject) -> None:
    drawn = [data.draw(rules(number)) for number in range(data.draw(st.integers(1, 4)))]
    program = build(drawn)
    for (stage, channel), scope in program.scopes.items():
        here = [
            rule
            for rule in drawn
            if rule["mode"] != "disabled"
            and stage in rule["stages"]
            and (not rule["channels"] or channel in rule["channels"])
        ]
        holding = [rule for rule in here if rule["mode"] == "enforce" and rule["action"] in HOLDING_ACTIONS]
        hold = {name for rule in holding for name in rule["phrases"]}
        held = {*hold, *(LABELS if any(rule["scores"] for rule in holding) else ())}
        triggers = [{*rule["phrases"], *rule["scores"]} for rule in here]
        together = [names for rule, names in zip(here, triggers, strict=True) if rule["match"] == "all"]
        apart = {name for names in together if not names <= held for name in names}
        watch = {name for rule in here for name in rule["phrases"]} - hold | (apart & {*PHRASES})
        assert {pattern.name for pattern in scope.hold.patterns} == hold
        assert {pattern.name for pattern in scope.watch.patterns} == watch
        asks = any(rule["scores"] for rule in here)
        assert bool(scope.hold_classifiers) == any(rule["scores"] for rule in holding)
        assert {*scope.hold_classifiers, *scope.watch_classifiers} == ({"toy"} if asks else set())
        twice = bool({*scope.hold_classifiers} & {*scope.watch_classifiers})
        assert twice == bool(scope.hold_classifiers and apart & {*LABELS})


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_equal_policies_have_equal_hashes_and_a_changed_threshold_changes_it(data: st.DataObject) -> None:
    drawn = [data.draw(rules(number)) for number in range(2)]
    program = build(drawn)
    assert program.hash == build(drawn).hash
    scored = [rule for rule in drawn if rule["scores"]]
    if scored:
        label = next(iter(scored[0]["scores"]))
        scored[0]["scores"][label] = 0.33
        assert program.hash != build(drawn).hash
