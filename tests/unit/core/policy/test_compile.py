from __future__ import annotations

import pytest

from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.compile import compile_policies, compile_sources
from checkstream.core.policy.program import ALWAYS, Program, Waits
from checkstream.core.policy.syntax import load_policies
from checkstream.core.terms import Stage
from checkstream.errors import PolicyError

LABELS = (
    ClassifierLabel("toy.alpha"),
    ClassifierLabel("toy.beta"),
    ClassifierLabel("other.gamma"),
    ModelEntity("PERSON", "ner", 0.5),
)
HEAD = "pack: {name: p, version: 1.0.0}\npolicies:\n"


def program(*rules: str) -> Program:
    body = "".join(f"  - {{name: r, id: R-{number}, {rule}}}\n" for number, rule in enumerate(rules))
    return compile_sources([("p.yaml", HEAD + body)], LABELS)


def starts(compiled: Program, rule: int) -> list[int]:
    return [entry.start for entry in compiled.entries if entry.rule == rule]


def test_equal_detectors_are_one_signal() -> None:
    compiled = program(
        "entities: [EMAIL], phrases: [zero risk], classifiers: [{name: alpha, threshold: 0.5}], "
        "actions: [{type: stop}]",
        "entities: [EMAIL], phrases: [zero  risk], classifiers: [{name: toy.alpha, threshold: 0.7}], "
        "conditions: ['findings.EMAIL > 1'], actions: [{type: log_event}]",
    )
    assert [signal.title for signal in compiled.signals] == [
        "entity:EMAIL",
        "phrase:zero risk",
        "classifier:toy.alpha",
    ]
    assert compiled.rules[0].triggers == compiled.rules[1].triggers == (0, 1, 2)
    assert [rule.thresholds for rule in compiled.rules] == [(None, None, 0.5), (None, None, 0.7)]
    assert compiled.rules[1].reads == (0,)


def test_one_regex_under_two_names_is_two_signals() -> None:
    compiled = program(
        "patterns: [{name: a, regex: foo}, {name: b, regex: foo}], actions: [{type: redact}]",
    )
    assert [signal.title for signal in compiled.signals] == ["pattern:a", "pattern:b"]


def test_a_trigger_that_fires_alone_needs_no_code() -> None:
    compiled = program("phrases: [a b], classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: redact}]")
    assert compiled.code == ()
    assert [(entry.signal, entry.start, entry.floor) for entry in compiled.entries] == [
        (0, ALWAYS, None),
        (1, ALWAYS, 0.5),
    ]
    assert compiled.rules[0].alone
    assert compiled.rules[0].shape == "any"


def test_triggers_that_must_all_hold_share_one_piece_of_code() -> None:
    compiled = program(
        "match: all, phrases: [a b, c d], classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: redact}]",
    )
    assert len(set(starts(compiled, 0))) == 1
    assert not compiled.rules[0].alone
    assert compiled.rules[0].shape == "all(phrase:a b, phrase:c d, classifier:toy.alpha)"


def test_the_code_of_a_list_grows_no_faster_than_the_list() -> None:
    sizes = []
    for count in (50, 100, 200):
        phrases = ", ".join(f"word{number} x" for number in range(count))
        compiled = program(f"match: all, phrases: [{phrases}], actions: [{{type: redact}}]")
        sizes.append(len(compiled.code))
        assert len(compiled.entries) == count
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_a_trigger_at_two_places_of_a_tree_has_an_entry_for_each() -> None:
    compiled = program(
        "triggers: {any: [{all: [{phrases: [a b]}, {phrases: [c d]}]}, {all: [{phrases: [a b]}, {entities: [EMAIL]}]}]}"
        ", actions: [{type: redact}]"
    )
    assert [entry.signal for entry in compiled.entries] == [0, 0, 1, 2]
    assert len(set(starts(compiled, 0))) == 2
    assert compiled.rules[0].shape == "any(all(phrase:a b, phrase:c d), all(phrase:a b, entity:EMAIL))"


def test_what_stands_in_a_not_fires_nothing_itself() -> None:
    compiled = program(
        "stage: egress, triggers: {all: [{phrases: [a b]}, {not: {any: [{phrases: [c d]}, {phrases: [e f]}]}}]}, "
        "actions: [{type: log_event}]"
    )
    assert [entry.signal for entry in compiled.entries] == [0]
    assert compiled.rules[0].triggers == (0, 1, 2)
    assert compiled.rules[0].waits is Waits.END
    assert compiled.rules[0].shape == "all(phrase:a b, not(any(phrase:c d, phrase:e f)))"


@pytest.mark.parametrize(
    ("rule", "waits"),
    [
        ("phrases: [a b], conditions: ['findings.EMAIL == 0']", Waits.NO),
        ("phrases: [a b], conditions: ['scores.alpha > 0.5']", Waits.CHECK),
        ("phrases: [a b], conditions: ['has(scores.alpha)']", Waits.CHECK),
        ("classifiers: [{name: beta, threshold: 0.5}], conditions: ['scores.alpha > 0.5']", Waits.NO),
        ("match: all, phrases: [a b], classifiers: [{name: beta, threshold: 0.5}]", Waits.NO),
    ],
)
def test_what_decisions_wait_for(rule: str, waits: Waits) -> None:
    assert program(f"{rule}, stage: midstream, actions: [{{type: redact}}]").rules[0].waits is waits


def test_a_threshold_with_cases_has_the_lowest_as_its_floor() -> None:
    compiled = program(
        "classifiers: [{name: alpha, threshold: 0.7, when: [{condition: request.stream, threshold: 0.9}, "
        "{condition: 'context.a', threshold: 0.4}]}], actions: [{type: redact}]"
    )
    assert compiled.entries[0].floor == 0.4
    assert compiled.rules[0].thresholds == (0.4,)
    assert compiled.entries[0].start != ALWAYS
    assert compiled.rules[0].alone


def test_equal_expressions_are_compiled_once() -> None:
    rule = "phrases: [a b], conditions: ['request.stream'], enabled_when: request.stream, actions: [{type: redact}]"
    compiled = program(rule, rule)
    first, second = compiled.rules
    assert starts(compiled, 0) == starts(compiled, 1) == [*first.condition_starts]
    assert first.enabled_start == second.enabled_start == first.condition_starts[0]


def test_one_and_a_double_one_are_two_constants() -> None:
    compiled = program(
        "conditions: ['context.a == 1', 'context.b == 1.0', 'context.c == true'], actions: [{type: lower_temp}]"
    )
    assert [type(constant) for constant in compiled.constants if constant == 1] == [int, float, bool]


def test_hash_is_of_what_decides() -> None:
    first = program("phrases: [a b], actions: [{type: redact}]")
    assert first.hash == program("phrases: [a  b], actions: [ {type: redact} ]").hash
    for changed in (
        "phrases: [a c], actions: [{type: redact}]",
        "phrases: [a b], actions: [{type: redact, text: x}]",
        "phrases: [a b], actions: [{type: redact, scope: word}]",
        "phrases: [a b], mode: shadow, actions: [{type: redact}]",
        "phrases: [a b], stage: ingress, actions: [{type: redact}]",
        "phrases: [a b], fail_mode: open, actions: [{type: redact}]",
        "phrases: [a b], enforce_share: 0.5, actions: [{type: redact}]",
        "phrases: [a b], conditions: ['true'], actions: [{type: redact}]",
        "phrases: [a b], metadata: {citation: c}, actions: [{type: redact}]",
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


def test_patterns_that_are_too_much_together_are_a_fault_of_the_policy() -> None:
    rules = [
        f"patterns: [{{name: p{number}, regex: '(?i)(a{number}[a-z]{{1,900}}){{1,9}}', max_chars: 9000}}], "
        "actions: [{type: redact}]"
        for number in range(3)
    ]
    try:
        program(*rules)
    except PolicyError as error:
        assert all(fault.file == "p.yaml" for fault in error.faults)  # noqa: PT017 - it may compile on a later engine


def test_more_code_than_is_loaded_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("checkstream.core.policy.compile.MAX_INSTRUCTIONS", 3)
    with pytest.raises(PolicyError, match="the rules come to 4 instructions, the limit is 3"):
        program("phrases: [a b], conditions: ['findings.EMAIL == 1'], actions: [{type: redact}]")
