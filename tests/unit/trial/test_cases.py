from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkstream.errors import CasesError
from checkstream.trial.cases import Case, Scored, read_cases

RULES = {"R-1", "R-2"}
LABELS = ("toy.alpha", "toy.beta", "PERSON")


def read(text: str | bytes) -> tuple[Case, ...]:
    return tuple(case.value for case in read_cases("t.yaml", text, RULES, LABELS))


def faults(text: str | bytes) -> list[str]:
    with pytest.raises(CasesError) as caught:
        read(text)
    return [f"{fault.line}:{fault.column}: {fault.reason}; {fault.advice}" for fault in caught.value.faults]


def one(rest: str) -> str:
    return f"cases:\n  - name: one\n{rest}    expect: {{action: allow}}\n"


def test_a_case_with_everything_is_read() -> None:
    (case,) = read(
        """
cases:
  - name: all of it
    prompt: [{role: system, content: Be brief.}, {role: user, content: Hi}]
    answers: [one, two]
    channel: content
    tools: [search]
    temperature: 0.7
    model: big
    context: {user: {age: 17, tags: [a, b]}, vip: true}
    documents: [plain, {title: t, text: words}]
    caller: app1
    user: u-1
    confirmed: [R-1]
    scores: [{contains: bad, scores: {toy.alpha: 0.9}}, {scores: {toy.beta: 1}}]
    entities: {PERSON: [Ann, Joe Doe]}
    stream: true
    expect:
      action: redact
      rule_id: R-1
      fired: [R-1]
      shadow: []
      output: [one, "[REDACTED]"]
      status: 200
      forwarded: {temperature: 0.3, "messages[0].content": Be brief., user: null}
      record: {outcome: complete, regulation: GDPR}
"""
    )
    assert case.texts == ("one", "two")
    assert case.scores == (
        Scored(contains="bad", scores={"toy.alpha": 0.9}),
        Scored(contains="", scores={"toy.beta": 1.0}),
    )
    assert case.context == {"user": {"age": 17, "tags": ["a", "b"]}, "vip": True}
    assert case.expect.output == ("one", "[REDACTED]")
    assert case.expect.forwarded == {"temperature": 0.3, "messages[0].content": "Be brief.", "user": None}
    assert case.rules == {"R-1"}


@pytest.mark.parametrize(
    ("rest", "kind"),
    [
        ("    prompt: p\n", "user"),
        ("    answer: a\n", "content"),
        ("    prompt: p\n    channel: system\n", "system"),
        ("    prompt: p\n    answer: a\n    channel: reasoning\n", "reasoning"),
    ],
)
def test_the_channel_is_the_answers_if_there_is_one(rest: str, kind: str) -> None:
    assert read(one(rest))[0].kind == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "1:1: cases: missing; add it"),
        ("cases: []\n", "1:8: cases: "),
        ("- a\n", "1:1: expected a mapping"),
        (one("    prmpt: p\n"), "3:5: cases[0].prmpt: not known here; did you mean `prompt`?"),
        (one("    answer: a\n    answers: [b]\n"), "4:14: `answer` and `answers` stand together"),
        (one("    prompt: []\n"), "`prompt` has no message"),
        (one("    answer: a\n    channel: user\n"), "4:14: answers have no channel `user`"),
        (one("    prompt: p\n    channel: content\n"), "4:14: prompts without an answer have no channel `content`"),
        (one("    channel: document\n"), "`channel: document` needs a `prompt`"),
        (one("    prompt: [{role: user, content: a}]\n    channel: system\n"), "which have roles"),
        (one("    prompt: [{role: robot, content: a}]\n"), "`robot` is not known here"),
        (one("    temperature: hot\n"), "expected a number"),
        (one("    temperature: 7\n"), "cases[0].temperature"),
        (one("    scores: {toy.alhpa: 0.5}\n"), "there is no score `toy.alhpa`; did you mean `toy.alpha`?"),
        (one("    scores: [{scores: {toy.gamma: 0.5}}]\n"), "there is no score `toy.gamma`"),
        (one("    scores: {PERSON: 0.5}\n"), "there is no score `PERSON`; known: toy.alpha, toy.beta"),
        (one("    entities: {PERSN: [Ann]}\n"), "there is no entity of a model `PERSN`; did you mean `PERSON`?"),
        (one("    entities: {toy.alpha: [Ann]}\n"), "there is no entity of a model `toy.alpha`"),
        (one("    entities: {PERSON: []}\n"), "entities.PERSON"),
        (one("    entities: {PERSON: ['']}\n"), "entities.PERSON[0]"),
        (one("    scores: {toy.alpha: 1.5}\n"), "cases[0].scores.toy.alpha"),
        (one("    confirmed: [R-9]\n"), "there is no rule `R-9`; did you mean"),
        (
            "cases:\n  - name: one\n    expect: {action: redcat}\n",
            "there is no action `redcat`; did you mean `redact`?",
        ),
        ("cases:\n  - name: one\n    expect: {action: redact, rule_id: R-3}\n", "there is no rule `R-3`"),
        ("cases:\n  - name: one\n    expect: {action: allow, fired: [X]}\n", "there is no rule `X`; known: R-1, R-2"),
        ("cases:\n  - name: one\n    expect: {action: allow, shadow: [X]}\n", "there is no rule `X`"),
        ("cases:\n  - name: one\n    expect: {action: allow, record: {outcmoe: x}}\n", "did you mean `outcome`?"),
        ('cases:\n  - name: one\n    expect: {action: allow, forwarded: {"a[x]": 1}}\n', "`a[x]` is no path"),
        ("cases:\n  - name: one\n    expect: {action: allow, output: [a, b]}\n", "2 outputs for 0 choices"),
        (
            "cases:\n  - name: one\n    prompt: p\n    channel: document\n    expect: {action: allow, output: p}\n",
            "a document has no output",
        ),
        ("cases:\n  - name: one\n", "cases[0].expect: missing"),
        (one("    prompt: p\n") + "  - name: one\n    expect: {action: allow}\n", "the case `one` stands twice"),
        ("cases: &a\n  - name: one\n", "anchor `&a` is not allowed"),
        (b"cases: \xff", "not valid UTF-8"),
        (one("    prompt: no\n"), "means a boolean to some YAML readers"),
    ],
)
def test_what_is_wrong_is_said_in_its_place(text: str | bytes, said: str) -> None:
    assert any(said in fault for fault in faults(text)), faults(text)


def test_all_faults_of_a_file_are_reported_at_once() -> None:
    text = (
        one("    answer: a\n    channel: user\n    scores: {toy.x: 0.5}\n") + "  - name: two\n    expect: {action: x}\n"
    )
    assert [fault.partition(": ")[0] for fault in faults(text)] == ["4:14", "5:14", "8:22"]


def test_a_file_beyond_all_bounds_is_refused() -> None:
    assert "longer than" in faults("cases:\n" + "#" * 600_000)[0]
    assert "nested deeper" in faults("cases: " + "[" * 200)[0]


@given(st.recursive(st.none() | st.booleans() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3)))
def test_any_yaml_is_read_or_refused(value: object) -> None:
    text = f"cases:\n  - name: one\n    context: {{a: {value!r}}}\n    expect: {{action: allow, output: {value!r}}}\n"
    with contextlib.suppress(CasesError):
        assert len(read(text)) == 1
