"""The matrix of actions, stages and channels; what each fault says stands in `policies/errors/`."""

from __future__ import annotations

import itertools

import pytest

from checkstream.core.policy.action import Allow, AnyAction, InjectDisclaimer, SafeMode, holds_text
from checkstream.core.policy.placing import (
    ACTION_STAGES,
    POSITION_STAGES,
    action_channels,
    action_stages,
    channels_of,
    stages_of,
)
from checkstream.core.policy.syntax import load_policies
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS, STAGE_CHANNELS, Stage, keeps_back

NEEDED = {
    "constrain_tools": "allow: []",
    "rewrite_span": "words: {a: b}",
    "inject_disclaimer": "text: t",
    "require_disclaimer": "text: t",
    "allow_constrained": "grammar: g",
    "adapt_tone": "instruction: i",
}


def written(action: str) -> str:
    name, _, rest = action.partition(" ")
    keys = ", ".join(key for key in (f"type: {name}", NEEDED.get(name, ""), rest) if key)
    return f"{{{keys}}}"


def action_of(action: str) -> AnyAction:
    text = f"pack: {{name: p, version: 1.0.0}}\npolicies: [{{name: r, id: R-1, actions: [{written(action)}]}}]\n"
    return load_policies([("p.yaml", text)])[0].rules[0].actions[0].value


def place(keys: str, *, bare: bool = False) -> tuple[frozenset[Stage], frozenset[str], list[str]]:
    text = f"pack: {{name: p, version: 1.0.0}}\npolicies:\n  - {{name: r, id: R-1, {keys}}}\n"
    (pack,) = load_policies([("p.yaml", text)])
    (rule,) = pack.rules
    stages = stages_of(pack.source, rule, bare=bare)
    channels = channels_of(pack.source, rule, stages, bare=bare)
    return stages, channels, [fault.reason for fault in pack.source.faults]


def test_every_action_is_in_the_matrix() -> None:
    assert set(ACTION_STAGES) == {action.name for action in AnyAction.__args__}
    assert set(POSITION_STAGES) == {"start", "end", "after_sentence"}
    assert ACTION_STAGES["inject_disclaimer"] == POSITION_STAGES["end"]


def test_what_keeps_text_back_is_what_it_waits_for_without_exceptions_and_changes_of_the_request() -> None:
    for name, stage in itertools.product(ACTION_STAGES, Stage):
        action = action_of(name)
        waits = stage in ACTION_STAGES[name] and holds_text(action) and not isinstance(action, Allow)
        changes_only_the_request = isinstance(action, SafeMode) and stage is Stage.INGRESS
        assert keeps_back(name, stage) == (waits and not changes_only_the_request), (name, stage)
    assert not keeps_back("redact", "elsewhere")


def test_g08_the_whole_matrix_of_actions_and_stages() -> None:
    for action, stage in itertools.product(ACTION_STAGES, Stage):
        _, _, faults = place(f"phrases: [x], stage: {stage}, actions: [{written(action)}]")
        assert bool(faults) == (stage not in ACTION_STAGES[action]), (action, stage)


@pytest.mark.parametrize("position", POSITION_STAGES)
def test_g08_a_disclaimer_is_placed_where_its_position_can_be(position: str) -> None:
    for stage in Stage:
        action = written(f"inject_disclaimer position: {position}")
        _, _, faults = place(f"phrases: [x], stage: {stage}, actions: [{action}]")
        assert bool(faults) == (stage not in POSITION_STAGES[position]), stage


def test_g08_the_whole_matrix_of_actions_and_channels() -> None:
    for action, stage in itertools.product([*ACTION_STAGES, "inject_disclaimer position: after_sentence"], Stage):
        for channel in STAGE_CHANNELS[stage]:
            made = action_of(action)
            if stage not in action_stages(made):
                continue
            keys = f"phrases: [x], stage: {stage}, channels: [{channel}], actions: [{written(action)}]"
            assert bool(place(keys)[2]) == (channel not in action_channels(made, stage)), (action, stage, channel)


def test_actions_that_go_on_with_the_answer_run_on_its_content_only() -> None:
    for action in (SafeMode(), InjectDisclaimer(text="t", position="after_sentence")):
        assert action_channels(action, Stage.MIDSTREAM) == ("content",)
    assert action_channels(SafeMode(), Stage.INGRESS) == INGRESS_CHANNELS
    assert action_channels(InjectDisclaimer(text="t"), Stage.MIDSTREAM) == ANSWER_CHANNELS


@pytest.mark.parametrize(
    ("actions", "stages"),
    [
        ("redact", {"ingress", "midstream"}),
        ("reject", {"ingress"}),
        ("stop", {"midstream"}),
        ("stop, log_event", {"midstream"}),
        ("redact, reject", {"ingress"}),
        ("inject_disclaimer", {"ingress", "midstream"}),
        ("inject_disclaimer position: start", {"ingress"}),
        ("inject_disclaimer position: after_sentence", {"midstream"}),
        ("attribute_sources", {"ingress"}),
        ("require_disclaimer", {"ingress", "midstream"}),
        ("safe_mode", {"ingress", "midstream"}),
        ("safe_mode, lower_temp", {"ingress"}),
        ("log_event", {"ingress", "midstream"}),
    ],
)
def test_default_stages_are_those_that_all_actions_allow(actions: str, stages: set[str]) -> None:
    listed = ", ".join(written(action) for action in actions.split(", "))
    found, _, faults = place(f"phrases: [x], actions: [{listed}]")
    assert not faults
    assert found == stages


def test_default_channels_are_those_on_which_all_actions_run() -> None:
    assert place(f"phrases: [x], actions: [{written('redact')}]")[1] == {*INGRESS_CHANNELS, *ANSWER_CHANNELS}
    assert place(f"phrases: [x], actions: [{written('safe_mode')}]")[1] == {*INGRESS_CHANNELS, "content"}
    assert place(f"phrases: [x], stage: midstream, actions: [{written('safe_mode')}]")[1] == {"content"}


def test_channels_narrow_the_default_stages() -> None:
    for channels, stages in (("[content]", {"midstream"}), ("[user]", {"ingress"}), ("[user, content]", None)):
        found, _, faults = place(f"phrases: [x], channels: {channels}, actions: [{written('redact')}]")
        assert not faults
        assert found == (stages or {"ingress", "midstream"})


def test_a_rule_without_triggers_runs_on_the_request_unless_it_says_egress() -> None:
    lower, log = written("lower_temp"), written("log_event")
    assert place(f"actions: [{lower}]", bare=True) == (frozenset({Stage.INGRESS}), frozenset(), [])
    assert place(f"actions: [{log}]", bare=True)[0] == {Stage.INGRESS}
    both = place(f"stage: [ingress, egress], actions: [{log}]", bare=True)
    assert both == (frozenset({Stage.INGRESS, Stage.EGRESS}), frozenset({"content"}), [])
    assert place(f"stage: egress, channels: [content], actions: [{log}]", bare=True)[2] == []
    assert place(f"stage: egress, channels: [reasoning], actions: [{log}]", bare=True)[2]
    assert place(f"stage: midstream, actions: [{log}]", bare=True)[2]
