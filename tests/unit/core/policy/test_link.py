from __future__ import annotations

import msgspec
import pytest

from checkstream.core.cel.code import Op
from checkstream.core.cel.values import EvalError
from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.phrases import phrase_refine
from checkstream.core.policy.link import loads_of, pattern_of, steady_of
from checkstream.core.policy.program import Scope, Signal, Variable
from checkstream.core.terms import ANSWER_CHANNELS, ExchangeFacts, Facts, Stage, StreamFacts
from tests.unit.core.policy.test_compile import program


def scope(*rules: str, stage: Stage = Stage.MIDSTREAM, channel: str = "content") -> Scope:
    return program(*rules).scope(stage, channel)


def names(found: Scope) -> tuple[list[str], list[str]]:
    return [pattern.name for pattern in found.hold.patterns], [pattern.name for pattern in found.watch.patterns]


def test_shadow_and_recording_rules_never_hold() -> None:
    found = scope(
        "stage: midstream, mode: shadow, phrases: [a b], classifiers: [{name: gamma, threshold: 0.5}], "
        "actions: [{type: stop}]",
        "stage: midstream, phrases: [c d], actions: [{type: log_event}]",
        "stage: midstream, phrases: [c d, e f], classifiers: [{name: beta, threshold: 0.5}], actions: [{type: redact}]",
        "stage: midstream, mode: disabled, phrases: [g h], actions: [{type: redact}]",
        "stage: midstream, phrases: [i j], actions: [{type: allow}]",
        "stage: midstream, classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: log_event}]",
    )
    assert names(found) == (["c d", "e f", "i j"], ["a b"])
    assert found.hold_classifiers == ("toy",)
    assert found.watch_classifiers == ("other",)
    assert set(found.score_signals) == {"toy.alpha", "toy.beta", "other.gamma"}
    assert found.active == (0, 1, 2, 4, 5)


def test_what_a_condition_reads_is_looked_for_where_its_rule_is_decided() -> None:
    found = scope(
        "phrases: [a b], conditions: ['findings.EMAIL > 0 && scores.gamma < 0.5'], actions: [{type: redact}]",
        "phrases: [c d], conditions: ['findings[\"a b\"] > 0'], actions: [{type: log_event}]",
    )
    assert names(found) == (["a b", "EMAIL"], ["a b", "c d"])
    assert found.hold_classifiers == ("other",)
    assert found.watched == frozenset({1})


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
        **{("egress", channel): (1,) for channel in ANSWER_CHANNELS},
    }


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


@pytest.mark.parametrize(
    ("actions", "mode", "channel", "grain"),
    [
        ("{type: redact}", "enforce", "content", "span"),
        ("{type: redact, scope: word}", "enforce", "content", "word"),
        ("{type: redact, scope: word}", "shadow", "content", "span"),
        ("{type: redact, scope: word}", "enforce", "tool_arguments", "span"),
        ("{type: rewrite_span, words: {a: b}}", "enforce", "content", "sentence"),
        ("{type: redact, scope: word}, {type: rewrite_span, words: {a: b}}", "enforce", "reasoning", "sentence"),
    ],
)
def test_the_grain_is_the_largest_scope_of_an_enforced_edit(actions: str, mode: str, channel: str, grain: str) -> None:
    rule = f"stage: midstream, mode: {mode}, phrases: [a b], actions: [{actions}]"
    assert scope(rule, channel=channel).grain == grain


@pytest.mark.parametrize(
    ("rule", "degradable"),
    [
        ("phrases: [a b], classifiers: [{name: alpha, threshold: 0.5}]", True),
        ("classifiers: [{name: alpha, threshold: 0.5}]", False),
        ("match: all, phrases: [a b], classifiers: [{name: alpha, threshold: 0.5}]", False),
        ("phrases: [a b], conditions: ['scores.alpha > 0.5']", False),
        ("phrases: [a b], classifiers: [{name: alpha, threshold: 0.5}], conditions: ['request.stream']", True),
        ("phrases: [a b]", True),
        ("phrases: [a b], entities: [PERSON]", False),
        ("phrases: [a b], conditions: ['findings.PERSON > 0']", False),
    ],
)
def test_only_a_cheaper_detector_that_fires_alone_may_decide_without_the_score(rule: str, *, degradable: bool) -> None:
    assert scope(f"stage: midstream, {rule}, actions: [{{type: redact}}]").degradable == degradable


def test_what_a_model_finds_is_asked_for_and_not_searched() -> None:
    held = scope("stage: midstream, entities: [PERSON, EMAIL], actions: [{type: redact}]")
    assert names(held) == (["EMAIL"], [])
    assert (held.hold_classifiers, held.watch_classifiers) == (("ner",), ())
    assert list(held.entity_signals) == ["PERSON"]
    watched = scope("stage: midstream, entities: [PERSON], actions: [{type: log_event}]")
    assert (watched.hold_classifiers, watched.watch_classifiers) == ((), ("ner",))


def test_the_scores_that_rules_act_against_make_out_the_risk() -> None:
    stop = "stage: midstream, classifiers: [{name: alpha, threshold: 0.5}], actions: [{type: stop}]"
    read = "stage: midstream, phrases: [a b], conditions: ['scores.gamma > 0.5'], actions: [{type: redact}]"
    add = (
        "stage: midstream, classifiers: [{name: beta, threshold: 0.5}], actions: [{type: require_disclaimer, text: T.}]"
    )
    excepted = "stage: midstream, classifiers: [{name: beta, threshold: 0.5}], actions: [{type: allow}]"
    assert scope(stop, read, add, excepted).risk_labels == {"toy.alpha", "other.gamma"}


def test_a_rule_without_triggers_is_decided_at_one_place_only() -> None:
    compiled = program(
        "conditions: ['true'], actions: [{type: lower_temp}]",
        "stage: egress, conditions: ['true'], actions: [{type: log_event}]",
        "mode: disabled, conditions: ['true'], actions: [{type: lower_temp}]",
    )
    assert [entry.rule for entry in compiled.bare] == [0]
    bare = {key: [entry.rule for entry in found.bare] for key, found in compiled.scopes.items() if found.bare}
    assert bare == {(Stage.EGRESS, "content"): [1]}


def test_texts_that_may_be_required_or_put_in() -> None:
    found = scope(
        "stage: midstream, phrases: [a b], actions: [{type: require_disclaimer, text: t}]",
        "stage: midstream, channels: [content], phrases: [a b], "
        "actions: [{type: inject_disclaimer, text: u, position: after_sentence}]",
        "stage: midstream, mode: shadow, phrases: [a b], actions: [{type: stop}]",
    )
    assert found.requires == ((0, "t"),)
    assert found.inserts
    assert found.changes
    assert not scope("stage: midstream, phrases: [a b], actions: [{type: log_event}]").changes


EXCHANGE = ExchangeFacts(context={"a": 1}, request={"model": "m"})
FACTS = Facts(
    Stage.MIDSTREAM,
    "content",
    EXCHANGE,
    counts={3: 2},
    scores={4: 0.25},
    peaks={4: 0.75},
    stream=StreamFacts(tokens=7, risk=0.5, trend=-0.1, language="de"),
)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        (Variable(kind="context"), {"a": 1}),
        (Variable(kind="request", name="model"), "m"),
        (Variable(kind="request", name="user"), None),
        (Variable(kind="given", name="model"), True),
        (Variable(kind="given", name="user"), False),
        (Variable(kind="found", signal=3), True),
        (Variable(kind="found", signal=5), False),
        (Variable(kind="count", signal=3), 2),
        (Variable(kind="count", signal=5), 0),
        (Variable(kind="score", signal=4), 0.25),
        (Variable(kind="score", signal=5), None),
        (Variable(kind="scored", signal=4), True),
        (Variable(kind="scored", signal=5), False),
        (Variable(kind="peak", signal=4), 0.75),
        (Variable(kind="peak", signal=5), None),
        (Variable(kind="stream", name="tokens"), 7),
        (Variable(kind="stream", name="risk"), 0.5),
        (Variable(kind="stream", name="trend"), -0.1),
        (Variable(kind="stream", name="language"), "de"),
    ],
    ids=lambda value: value.title if isinstance(value, Variable) else "",
)
def test_variables_take_their_values_from_the_facts(variable: Variable, value: object) -> None:
    """None: it is not known, and whoever reads it comes to an error."""
    (load,) = loads_of([variable])
    found = load(FACTS)
    assert (found == value) if value is not None else isinstance(found, EvalError)
    assert type(found) is type(value) or value is None


def test_code_over_the_exchange_alone_is_told_from_code_that_reads_the_text() -> None:
    variables = [Variable(kind="context"), Variable(kind="stream", name="tokens"), Variable(kind="given", name="user")]
    code = [
        *((int(Op.LOAD), 0), (int(Op.RETURN), 0)),
        *((int(Op.LOAD), 2), (int(Op.LOAD), 1), (int(Op.AND), 0), (int(Op.RETURN), 0)),
        *((int(Op.CONST), 1), (int(Op.RETURN), 0)),
    ]
    assert steady_of(code, variables, [0, 2, 6]) == frozenset({0, 6})


def test_a_signal_that_only_another_rule_needs_fires_nothing_here() -> None:
    found = scope(
        "stage: midstream, phrases: [a b], actions: [{type: redact}]",
        "stage: egress, phrases: [c d], actions: [{type: log_event}]",
    )
    assert list(found.rules) == [0]
    assert msgspec.structs.asdict(found.rules[0][0])["rule"] == 0


def test_each_rule_is_decided_by_one_judge_only() -> None:
    found = scope(
        "stage: midstream, phrases: [a b], actions: [{type: redact}]",
        "stage: midstream, match: all, phrases: [a b, c d], actions: [{type: log_event}]",
        "stage: midstream, phrases: [a b, e f], actions: [{type: log_event}]",
    )
    for signal, entries in found.rules.items():
        for entry in entries:
            assert found.decides(entry.rule, signal, leads=True) != found.decides(entry.rule, signal, leads=False)
    assert found.watched == frozenset({1})


def test_signals_are_looked_for_under_their_numbers() -> None:
    signal = Signal(kind="pattern", name="p", regex="x{2}")
    assert pattern_of(7, signal).signal == 7
