from __future__ import annotations

import pytest

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import phrase_refine
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_policies, compile_sources, pattern_of
from checkstream.core.policy.program import Op, Program
from checkstream.core.policy.syntax import load_policies
from checkstream.core.terms import Stage
from checkstream.errors import PolicyError

LABELS = (ClassifierLabel("toy.alpha"), ClassifierLabel("toy.beta"), ClassifierLabel("other.gamma"))
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"


def program(*rules: str) -> Program:
    body = "".join(f"  - {{name: r, id: R-{number}, {rule}}}\n" for number, rule in enumerate(rules))
    return compile_sources([("p.yaml", HEAD + body)], LABELS)


def test_equal_detectors_are_one_signal() -> None:
    compiled = program(
        "entities: [EMAIL], phrases: [zero risk], classifiers: [{name: alpha, threshold: 0.5}], "
        "actions: [{type: stop}]",
        "entities: [EMAIL], phrases: [zero  risk], classifiers: [{name: toy.alpha, threshold: 0.7}], "
        "actions: [{type: log_event}]",
    )
    assert [signal.title for signal in compiled.signals] == [
        "entity:EMAIL",
        "phrase:zero risk",
        "classifier:toy.alpha",
    ]
    assert compiled.constants == (0.5, 0.7)
    assert compiled.rules[0].triggers == compiled.rules[1].triggers == (0, 1, 2)
    assert [rule.thresholds for rule in compiled.rules] == [(None, None, 0.5), (None, None, 0.7)]


def test_one_regex_under_two_names_is_two_signals() -> None:
    compiled = program(
        "patterns: [{name: a, regex: foo}, {name: b, regex: foo}], actions: [{type: redact}]",
    )
    assert [signal.title for signal in compiled.signals] == ["pattern:a", "pattern:b"]


def test_shadow_and_recording_rules_never_hold() -> None:
    compiled = program(
        "stage: midstream, mode: shadow, phrases: [a b], classifiers: [{name: gamma, threshold: 0.5}], "
        "actions: [{type: stop}]",
        "stage: midstream, phrases: [c d], actions: [{type: log_event}]",
        "stage: midstream, phrases: [c d, e f], classifiers: [{name: beta, threshold: 0.5}], actions: [{type: redact}]",
        "stage: midstream, mode: disabled, phrases: [g h], actions: [{type: redact}]",
        "stage: midstream, phrases: [i j], actions: [{type: allow}]",
        "stage: midstream, classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: log_event}]",
    )
    scope = compiled.scope(Stage.MIDSTREAM, "content")
    assert [pattern.name for pattern in scope.hold.patterns] == ["c d", "e f", "i j"]
    assert [pattern.name for pattern in scope.watch.patterns] == ["a b"]
    assert scope.hold_classifiers == ("toy",)
    assert scope.watch_classifiers == ("other",)
    assert set(scope.score_signals) == {"toy.alpha", "toy.beta", "other.gamma"}
    assert scope.active == (0, 1, 2, 4, 5)


def test_scopes_follow_stages_and_channels() -> None:
    compiled = program(
        "stage: [ingress, midstream], channels: [user, content], phrases: [a b], actions: [{type: redact}]",
        "stage: egress, phrases: [a b], actions: [{type: inject_disclaimer, text: t}]",
    )
    active = {
        (str(stage), channel): scope.active for (stage, channel), scope in compiled.scopes.items() if scope.active
    }
    assert active == {
        ("ingress", "user"): (0,),
        ("midstream", "content"): (0,),
        **{("egress", channel): (1,) for channel in ("content", "refusal", "reasoning", "tool_name", "tool_arguments")},
    }
    assert len(compiled.scopes) == 15
    assert compiled.scope(Stage.INGRESS, "user") is compiled.scope(Stage.INGRESS, "user")
    with pytest.raises(KeyError):
        compiled.scope(Stage.INGRESS, "content")


def test_equal_pattern_sets_are_compiled_once() -> None:
    compiled = program("stage: midstream, phrases: [a b], actions: [{type: redact}]")
    assert compiled.scope(Stage.MIDSTREAM, "content").hold is compiled.scope(Stage.MIDSTREAM, "reasoning").hold


def test_patterns_carry_validators_caps_and_views() -> None:
    compiled = program("entities: [CREDIT_CARD], phrases: [a b], patterns: [{name: p, regex: 'x+', max_chars: 9}], "
                       "actions: [{type: redact}]")  # fmt: skip
    made = {signal.kind: pattern_of(number, signal) for number, signal in enumerate(compiled.signals)}
    card = ENTITIES["CREDIT_CARD"]
    assert (made["entity"].regex, made["entity"].refine, made["entity"].views) == (card.regex, card.refine, card.views)
    assert made["phrase"].refine is phrase_refine
    assert (made["pattern"].max_chars, made["pattern"].refine) == (9, None)


def test_match_all_is_one_piece_of_code_and_match_any_one_for_each_trigger() -> None:
    compiled = program(
        "match: all, phrases: [a b], classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: redact}]",
        "match: any, phrases: [a b], classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: redact}]",
    )
    assert len(set(compiled.entries[0])) == 1
    assert len(set(compiled.entries[1])) == 2
    assert [Op(op).name for op, _ in compiled.code] == [
        *("SEEN", "JUMP_IF_FALSE", "SCORE", "CONST", "AT_LEAST", "RETURN"),
        *("SEEN", "RETURN"),
        *("SCORE", "CONST", "AT_LEAST", "RETURN"),
    ]


def test_hash_is_of_what_decides() -> None:
    first = program("phrases: [a b], actions: [{type: redact}]")
    assert first.hash == program("phrases: [a  b], actions: [ {type: redact} ]").hash
    for changed in (
        "phrases: [a c], actions: [{type: redact}]",
        "phrases: [a b], actions: [{type: redact, text: x}]",
        "phrases: [a b], mode: shadow, actions: [{type: redact}]",
        "phrases: [a b], stage: ingress, actions: [{type: redact}]",
        "phrases: [a b], fail_mode: open, actions: [{type: redact}]",
    ):
        assert program(changed).hash != first.hash
    assert len(first.hash) == 64


def test_no_policies_make_an_empty_program() -> None:
    empty = compile_policies(())
    assert (empty.rules, empty.packs) == ((), ())
    assert not empty.scope(Stage.MIDSTREAM, "content").active


def test_faults_of_form_and_meaning_come_together_in_the_order_of_the_files() -> None:
    bad = HEAD + "  - {name: r, id: R-1, entities: [EMIAL], mode: shadwo, actions: [{type: redact}]}\n"
    with pytest.raises(PolicyError) as raised:
        compile_sources([("b.yaml", bad), ("a.yaml", bad.replace("name: p", "name: q").replace("R-1", "R-2"))])
    assert [(fault.file, fault.column) for fault in raised.value.faults] == [
        *(("b.yaml", 35), ("b.yaml", 49)),
        *(("a.yaml", 35), ("a.yaml", 49)),
    ]


def test_compile_policies_reports_what_check_finds() -> None:
    packs = load_policies([("p.yaml", HEAD + "  - {name: r, id: R-1, entities: [EMIAL], actions: [{type: redact}]}\n")])
    with pytest.raises(PolicyError, match="no entity `EMIAL`"):
        compile_policies(packs)
