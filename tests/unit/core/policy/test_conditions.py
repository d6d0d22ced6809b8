"""What each fault of a condition says stands in `policies/errors/`; here: what a sound condition reads."""

from __future__ import annotations

import pytest

from checkstream.core.cel.code import Assembler
from checkstream.core.cel.machine import run
from checkstream.core.cel.values import EvalError, Value, from_json
from checkstream.core.policy.classifiers import ClassifierLabel, ModelEntity
from checkstream.core.policy.conditions import MAX_COST, Condition, Names, read_condition
from checkstream.core.policy.nodes import Place, Placed, Source
from checkstream.core.policy.program import Signal, Variable
from checkstream.core.policy.signals import entity_signal
from checkstream.core.policy.variables import REQUEST_FIELDS, ROOTS, STREAM_FIELDS, variable_of

PHRASE = Signal(kind="phrase", name="zero risk", regex="(?i)zero\\s{1,8}risk")
PATTERN = Signal(kind="pattern", name='odd "name"', regex='a"b', max_chars=3)
NAMES = Names(
    classifiers=(
        ClassifierLabel("lexicon.toxicity"),
        ClassifierLabel("small.injection"),
        ClassifierLabel("big.injection"),
        ModelEntity("PERSON", "ner", 0.5),
        ModelEntity("EMAIL", "ner", 0.5),
    ),
    findings={PHRASE.name: (PHRASE,), PATTERN.name: (PATTERN,)},
)
TOXICITY = Signal(kind="classifier", name="lexicon.toxicity")
INJECTION = Signal(kind="classifier", name="small.injection")
EMAIL = entity_signal("EMAIL")
PERSON = Signal(kind="entity", name="PERSON", model="ner", threshold=0.5)


def read(text: str, roots: tuple[str, ...] = ROOTS) -> tuple[Condition | None, Source]:
    source = Source("f.yaml", text)
    return read_condition(source, Placed(text, Place(1, 1)), NAMES, roots, "a condition"), source


def sound(text: str) -> Condition:
    condition, source = read(text)
    assert [fault.reason for fault in source.faults] == []
    assert condition is not None
    return condition


def variables(condition: Condition) -> list[Variable]:
    signals = list(dict.fromkeys(condition.reads))
    assembler = Assembler()
    assembler.add(condition.expr)
    return [variable_of(name, signals.index) for name in assembler.build().variables]


@pytest.mark.parametrize(
    ("text", "variable", "signals"),
    [
        ("context.a.b == 1", Variable(kind="context"), ()),
        ("request.model == 'm'", Variable(kind="request", name="model"), ()),
        ("request['model'] == 'm'", Variable(kind="request", name="model"), ()),
        ("request.metadata.team == 'm'", Variable(kind="request", name="metadata"), ()),
        ("'a' in request.tools", Variable(kind="request", name="tools"), ()),
        ("has(request.temperature)", Variable(kind="given", name="temperature"), ()),
        ("stream.tokens > 5", Variable(kind="stream", name="tokens"), ()),
        ("scores.toxicity > 0.5", Variable(kind="score", signal=0), (TOXICITY,)),
        ("scores.lexicon.toxicity > 0.5", Variable(kind="score", signal=0), (TOXICITY,)),
        ("scores['lexicon.toxicity'] > 0.5", Variable(kind="score", signal=0), (TOXICITY,)),
        ("scores['lexicon']['toxicity'] > 0.5", Variable(kind="score", signal=0), (TOXICITY,)),
        ("scores.lexicon > 0.5", Variable(kind="score", signal=0), (TOXICITY,)),
        ("scores.small.injection > 0.5", Variable(kind="score", signal=0), (INJECTION,)),
        ("has(scores.toxicity)", Variable(kind="scored", signal=0), (TOXICITY,)),
        ("has(scores.small.injection)", Variable(kind="scored", signal=0), (INJECTION,)),
        ("findings.EMAIL > 2", Variable(kind="count", signal=0), (EMAIL,)),
        ("findings['zero risk'] == 0", Variable(kind="count", signal=0), (PHRASE,)),
        ("findings['zero   risk'] == 0", Variable(kind="count", signal=0), (PHRASE,)),
        ("findings['odd \"name\"'] == 0", Variable(kind="count", signal=0), (PATTERN,)),
        ("has(findings.EMAIL)", Variable(kind="found", signal=0), (EMAIL,)),
        ("findings.PERSON > 2", Variable(kind="count", signal=0), (PERSON,)),
        ("findings['ner.PERSON'] > 2", Variable(kind="count", signal=0), (PERSON,)),
        (
            "findings['ner.EMAIL'] == 1",
            Variable(kind="count", signal=0),
            (Signal(kind="entity", name="EMAIL", model="ner", threshold=0.5),),
        ),
    ],
)
def test_each_name_is_a_variable_of_the_program(text: str, variable: Variable, signals: tuple[Signal, ...]) -> None:
    condition = sound(text)
    assert condition.text == text
    assert condition.reads == signals
    assert variables(condition) == [variable]


@pytest.mark.parametrize("field", REQUEST_FIELDS)
def test_every_field_of_the_request_can_be_read_and_asked_for(field: str) -> None:
    assert variables(sound(f"dyn(request.{field}) == 1")) == [Variable(kind="request", name=field)]
    assert variables(sound(f"has(request.{field})")) == [Variable(kind="given", name=field)]


@pytest.mark.parametrize("field", STREAM_FIELDS)
def test_every_field_of_the_stream_can_be_read_and_is_always_there(field: str) -> None:
    assert variables(sound(f"dyn(stream.{field}) == 1")) == [Variable(kind="stream", name=field)]
    assert variables(sound(f"has(stream.{field})")) == []


def test_what_reads_scores_is_known() -> None:
    assert sound("has(scores.toxicity) || findings.EMAIL > 0").reads_scores
    assert not sound("findings.EMAIL > 0 && stream.risk > 0.5").reads_scores
    assert sound("findings.PERSON > 0").reads_scores


def value(text: str, context: object) -> Value:
    condition = sound(text)
    assembler = Assembler()
    start = assembler.add(condition.expr)
    code = assembler.build()
    return run(code.instructions, code.constants, start, lambda _: from_json(context))


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("context.user.segment == 'retail'", {"user": {"segment": "retail"}}, True),
        ("has(context.user) && context.user.vulnerable", {}, False),
        ("context.tags.exists(t, t.startsWith('vip'))", {"tags": ["a", "vip-1"]}, True),
        ("context.items.all(i, i.price < 10.0)", {"items": [{"price": 9.5}, {"price": 3}]}, True),
        ("'a' in context", {"a": 1}, True),
        ("context.scores.context == 1", {"scores": {"context": 1}}, True),
        (".context.a == 1", {"a": 1}, True),
    ],
)
def test_conditions_on_the_context_run(text: str, context: object, expected: object) -> None:
    assert value(text, context) == expected


def test_a_key_that_is_not_there_is_an_error_that_the_caller_decides_on() -> None:
    assert isinstance(value("context.user.segment == 'retail'", {}), EvalError)


def test_the_names_of_loops_are_their_own() -> None:
    assert value("context.list.all(model, model > 1)", {"list": [2, 3]}) is True


@pytest.mark.parametrize(
    "text",
    [
        "context.a == 'x' && context.b in ['a', 'b'] && !(context.c == 'y') || context.d > 3 && context.e != 4",
        "context.tags.exists(t, t == 'vip')",
        "request.tools.exists(t, t.startsWith('pay_') || t.startsWith('wire_'))",
        "context.note.matches('(?i)urgent|asap')",
        "size(context.cart) > 10 && timestamp(context.at).getHours('+01:00') < 8",
    ],
)
def test_what_people_write_is_cheap_enough(text: str) -> None:
    assert sound(text).cost <= MAX_COST


def test_loops_within_loops_cost_too_much() -> None:
    assert sound("context.a.all(x, context.b.all(y, x != y))").cost > MAX_COST


def test_only_the_roots_that_are_allowed_can_be_read() -> None:
    for text in ("scores.toxicity > 0.1", "findings.EMAIL > 0", "stream.tokens > 1"):
        condition, source = read(text, ("context", "request"))
        assert condition is None
        assert len(source.faults) == 1
    assert read("context.a == request.model", ("context", "request"))[0] is not None


@pytest.mark.parametrize(
    "text",
    [
        "scores",
        "size(findings) > 0",
        "request == {}",
        "stream.tokens.x == 1",
        "scores.toxicity.x == 1",
        "has(scores)",
        "has(context)",
        "scores[1] > 0.5",
        "findings[context.a] > 1",
        "@score == 1",
        "`context` == 1",
        "context.request(1)",
        "context.all(findings, true)",
        "[1].map(stream, stream)",
        "google.x",
        "1",
        "'true'",
        "null",
        "context",
        "type(1)",
    ],
)
def test_what_is_no_condition_is_refused(text: str) -> None:
    condition, source = read(text)
    assert condition is None
    assert source.faults
    assert all(fault.advice for fault in source.faults)
