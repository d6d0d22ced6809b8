from __future__ import annotations

from checkstream.core.policy.action import InjectDisclaimer, LogEvent
from checkstream.core.policy.syntax import RULE_KEYS, load_policies, read_policies

FULL = """pack: {name: fca-consumer-duty, version: 1.2.0}
policies:
  - name: consumer_duty_promotional_balance
    id: FCA-012
    stage: [midstream]
    channels: [content]
    mode: enforce
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
    enabled_when: request.stream
    enforce_share: 0.25
"""


def test_the_form_of_the_interface_is_read_whole() -> None:
    (pack,) = load_policies([("p.yaml", FULL)])
    assert (pack.name, pack.version) == ("fca-consumer-duty", "1.2.0")
    (rule,) = pack.rules
    assert (rule.name.value, rule.id.value, rule.mode, rule.priority) == (
        "consumer_duty_promotional_balance",
        "FCA-012",
        "enforce",
        -5,
    )
    assert [stage.value for stage in rule.stages] == ["midstream"]
    assert [channel.value for channel in rule.channels] == ["content"]
    assert rule.triggers is not None
    assert (rule.triggers.kind, rule.triggers.items) == ("all", ())
    detectors = rule.triggers.detectors
    first, second, third = detectors.classifiers
    assert first.threshold is not None
    assert first.threshold.value == 0.75
    assert second.fpr is not None
    assert second.fpr.value == 0.01
    assert third.threshold is third.fpr is None
    (pattern,) = detectors.patterns
    assert (pattern.name.value, pattern.regex.value, pattern.max_chars) == (
        "guaranteed",
        "(?i)guaranteed returns?",
        64,
    )
    assert [phrase.value for phrase in detectors.phrases] == ["zero risk", "can't lose"]
    assert [entity.name.value for entity in detectors.entities] == ["EMAIL", "CREDIT_CARD"]
    assert [condition.value for condition in rule.conditions] == ['context.user.segment == "retail_customer"']
    assert [action.value for action in rule.actions] == [
        InjectDisclaimer(text="Capital at risk. Terms apply.", position="end"),
        LogEvent(severity="medium"),
    ]
    assert rule.metadata.regulation == "FCA PRIN 2A.2.1"
    assert rule.metadata.severity == "high"
    assert rule.tags == ("finance", "uk")
    assert rule.fail_mode == "open"
    assert rule.enabled_when is not None
    assert rule.enabled_when.value == "request.stream"
    assert rule.enforce_share == 0.25
    assert rule.extends is None
    assert not rule.incomplete


def one_rule(keys: str) -> str:
    return f"pack: {{name: p, version: 1.0.0}}\npolicies:\n  - {{name: r, id: R-1, {keys}}}\n"


def test_one_stage_needs_no_list() -> None:
    text = one_rule("stage: midstream, phrases: [x], actions: [{type: redact}]")
    (pack,) = load_policies([("p.yaml", text)])
    assert [stage.value for stage in pack.rules[0].stages] == ["midstream"]


def test_all_faults_of_all_files_at_once_and_what_can_be_read_is() -> None:
    broken = FULL.replace("mode: enforce", "mode: enforced").replace("match: all", "match: some")
    packs, faults = read_policies([("a.yaml", broken), ("b.yaml", "policies: ["), ("c.yaml", FULL)])
    assert [(fault.file, fault.line) for fault in faults] == [("a.yaml", 7), ("a.yaml", 12), ("b.yaml", 1)]
    assert [pack.source.name for pack in packs] == ["a.yaml", "c.yaml"]
    assert packs[0].rules[0].incomplete
    assert not packs[1].rules[0].incomplete


def test_bytes_and_text_are_read_alike() -> None:
    assert load_policies([("p", FULL)])[0].rules == load_policies([("p", FULL.encode())])[0].rules


def test_a_rule_that_extends_another_needs_only_an_id() -> None:
    (pack,) = load_policies(
        [("p.yaml", "pack: {name: p, version: 1.0.0}\npolicies:\n  - {id: R-2, extends: R-1, mode: shadow}\n")]
    )
    (rule,) = pack.rules
    assert rule.extends is not None
    assert rule.extends.value == "R-1"
    assert rule.given == {"id", "extends", "mode"}


def test_the_keys_of_a_rule_are_known() -> None:
    text = one_rule("phrases: [x], actions: [{type: redact}]")
    (pack,) = load_policies([("p.yaml", text)])
    assert pack.rules[0].given == {"name", "id", "phrases", "actions"}
    assert pack.rules[0].given < set(RULE_KEYS)
