from __future__ import annotations

import pytest

from checkstream.core.policy.program import Allow, InjectDisclaimer, LogEvent, Redact, Reject, Stop
from checkstream.core.policy.syntax import load_policies, read_policies
from checkstream.errors import PolicyError

FULL = """pack: {name: fca-consumer-duty, version: 1.2.0}
policies:
  - name: consumer_duty_promotional_balance
    id: FCA-012
    stage: [midstream]
    channels: [content]
    mode: shadow
    classifiers: [{name: promo_balance, threshold: 0.75}, {name: other, fpr: 0.01}, {name: third}]
    patterns: [{name: guaranteed, regex: '(?i)guaranteed returns?', max_chars: 64}]
    phrases: [zero risk, "can't lose"]
    entities: [EMAIL, CREDIT_CARD]
    match: all
    conditions:
      - context.user.segment == "retail_customer"
    actions:
      - {type: inject_disclaimer, text: Capital at risk. Terms apply., position: end}
      - {type: log_event, severity: medium}
    priority: -5
    metadata: {regulation: FCA PRIN 2A.2.1, citation: "https://handbook.fca.org.uk/handbook/PRIN/2A/", severity: high}
    tags: [finance, uk]
    fail_mode: open
"""


def test_the_form_of_the_interface_is_read_whole() -> None:
    (pack,) = load_policies([("p.yaml", FULL)])
    assert (pack.name, pack.version) == ("fca-consumer-duty", "1.2.0")
    (rule,) = pack.rules
    assert (rule.name.value, rule.id.value, rule.mode, rule.priority) == (
        "consumer_duty_promotional_balance",
        "FCA-012",
        "shadow",
        -5,
    )
    assert [stage.value for stage in rule.stages] == ["midstream"]
    assert [channel.value for channel in rule.channels] == ["content"]
    first, second, third = rule.classifiers
    assert first.threshold is not None
    assert first.threshold.value == 0.75
    assert second.fpr is not None
    assert second.fpr.value == 0.01
    assert third.threshold is third.fpr is None
    (pattern,) = rule.patterns
    assert (pattern.name.value, pattern.regex.value, pattern.max_chars) == (
        "guaranteed",
        "(?i)guaranteed returns?",
        64,
    )
    assert [phrase.value for phrase in rule.phrases] == ["zero risk", "can't lose"]
    assert [entity.value for entity in rule.entities] == ["EMAIL", "CREDIT_CARD"]
    assert rule.match is not None
    assert rule.match.value == "all"
    assert [condition.value for condition in rule.conditions] == ['context.user.segment == "retail_customer"']
    assert [action.value for action in rule.actions] == [
        InjectDisclaimer(text="Capital at risk. Terms apply.", position="end"),
        LogEvent(severity="medium"),
    ]
    assert rule.metadata.regulation == "FCA PRIN 2A.2.1"
    assert rule.metadata.severity == "high"
    assert rule.tags == ("finance", "uk")
    assert rule.fail_mode == "open"
    assert not rule.incomplete


def one_rule(actions: str) -> str:
    return (
        f"pack: {{name: p, version: 1.0.0}}\npolicies:\n  - {{name: r, id: R-1, phrases: [x], actions: [{actions}]}}\n"
    )


@pytest.mark.parametrize(
    ("written", "action"),
    [
        ("{type: allow}", Allow()),
        ("{type: reject}", Reject()),
        ("{type: reject, status: 403, message: No.}", Reject(status=403, message="No.")),
        ("{type: redact}", Redact()),
        ("{type: redact, text: ''}", Redact(text="")),
        ("{type: stop}", Stop()),
        ("{type: stop, message: Bye}", Stop(message="Bye")),
        ("{type: inject_disclaimer, text: T}", InjectDisclaimer(text="T", position="end")),
        ("{type: inject_disclaimer, text: T, position: start}", InjectDisclaimer(text="T", position="start")),
        ("{type: log_event}", LogEvent()),
        ("{severity: critical, type: log_event}", LogEvent(severity="critical")),
    ],
)
def test_actions(written: str, action: object) -> None:
    (pack,) = load_policies([("p.yaml", one_rule(written))])
    assert pack.rules[0].actions[0].value == action


@pytest.mark.parametrize(
    "written",
    [
        "{type: inject_disclaimer}",
        "{type: inject_disclaimer, text: T, position: middle}",
        "{type: reject, status: 399}",
        "{type: [redact]}",
        "{type: allow, text: x}",
        "{type: ~}",
        "[redact]",
    ],
)
def test_actions_that_are_not(written: str) -> None:
    with pytest.raises(PolicyError):
        load_policies([("p.yaml", one_rule(written))])


def test_one_stage_needs_no_list() -> None:
    text = one_rule("{type: redact}").replace("phrases:", "stage: midstream, phrases:")
    (pack,) = load_policies([("p.yaml", text)])
    assert [stage.value for stage in pack.rules[0].stages] == ["midstream"]


def test_all_faults_of_all_files_at_once_and_what_can_be_read_is() -> None:
    broken = FULL.replace("mode: shadow", "mode: shadwo").replace("match: all", "match: some")
    packs, faults = read_policies([("a.yaml", broken), ("b.yaml", "policies: ["), ("c.yaml", FULL)])
    assert [(fault.file, fault.line) for fault in faults] == [("a.yaml", 7), ("a.yaml", 12), ("b.yaml", 1)]
    assert [pack.source.name for pack in packs] == ["a.yaml", "c.yaml"]
    assert packs[0].rules[0].incomplete
    assert not packs[1].rules[0].incomplete


def test_bytes_and_text_are_read_alike() -> None:
    assert load_policies([("p", FULL)])[0].rules == load_policies([("p", FULL.encode())])[0].rules
