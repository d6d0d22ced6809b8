from __future__ import annotations

import msgspec
import pytest

from checkstream.core import events
from checkstream.core.commands import Score
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.trial import run as module
from checkstream.trial.cases import Case, Expect, Scored, read_cases
from checkstream.trial.run import Result, run_case
from checkstream.trial.script import Cut, answer_pieces

POLICY = b"""pack: {name: t, version: 1.0.0}
policies:
  - {name: mail, id: MAIL, stage: [midstream], entities: [EMAIL], actions: [{type: redact}],
     metadata: {regulation: GDPR}}
  - {name: tox, id: TOX, stage: [midstream], channels: [content],
     classifiers: [{name: toy.alpha, threshold: 0.5}], actions: [{type: stop, message: Enough.}]}
  - {name: word, id: WORD, stage: [ingress], phrases: [forbidden], actions: [{type: reject}]}
  - {name: key, id: KEY, stage: [ingress], phrases: [secret], actions: [{type: redact}]}
  - {name: shade, id: SHADE, stage: [midstream], phrases: [shade], mode: shadow, actions: [{type: redact}]}
"""
PROGRAM = compile_sources([("t", POLICY)], (ClassifierLabel("toy.alpha"), ClassifierLabel("toy.beta")))
LABELS = ("toy.alpha", "toy.beta")
MAIL = "Write to joe@example.com today."


def result(expect: Expect, **case: object) -> Result:
    return run_case(Case(name="n", expect=expect, **case), PROGRAM, LABELS, splits=6)  # type: ignore[arg-type]


def fields(expect: Expect, **case: object) -> set[str]:
    return {mismatch.field for mismatch in result(expect, **case).mismatches}


def redacted(**changes: object) -> Expect:
    return msgspec.structs.replace(
        Expect(action="redact", rule_id="MAIL", fired=("MAIL",), shadow=(), output="Write to [EMAIL] today."), **changes
    )


def test_a_case_that_says_what_happens_passes() -> None:
    expect = redacted(status=200, record={"outcome": "complete", "regulation": "GDPR", "stage": "midstream"})
    assert result(expect, answer=MAIL).passed


def test_fields_of_the_record_that_are_lists_are_compared_as_a_file_writes_them() -> None:
    text = """cases:
  - name: lists
    answer: Write to joe@example.com today.
    expect:
      action: redact
      rule_id: MAIL
      output: Write to [EMAIL] today.
      record: {triggers: ["entity:EMAIL"], spans: [{start: 9, end: 24}], degradations: [], confidence: 1.0}
"""
    (case,) = read_cases("t.yaml", text, ["MAIL"], LABELS)
    assert run_case(case.value, PROGRAM, LABELS).mismatches == ()
    (wrong,) = read_cases("t.yaml", text.replace("end: 24", "end: 25"), ["MAIL"], LABELS)
    assert {mismatch.field for mismatch in run_case(wrong.value, PROGRAM, LABELS).mismatches} == {"record.spans"}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"action": "allow"}, "action"),
        ({"rule_id": "TOX"}, "rule_id"),
        ({"fired": ()}, "fired"),
        ({"fired": ("MAIL", "TOX")}, "fired"),
        ({"shadow": ("SHADE",)}, "shadow"),
        ({"output": MAIL}, "output"),
        ({"output": None}, "output"),
        ({"status": 400}, "status"),
        ({"record": {"outcome": "stopped"}}, "record.outcome"),
        ({"record": {"regulation": None}}, "record.regulation"),
        ({"forwarded": {"model": "x"}}, "forwarded.model"),
        ({"forwarded": {"nothing": 1}}, "forwarded.nothing"),
    ],
)
def test_each_expectation_can_fail(change: dict[str, object], field: str) -> None:
    assert fields(redacted(**change), answer=MAIL) == {field}


def test_an_output_left_out_is_the_text_unchanged() -> None:
    assert result(Expect(action="allow"), answer="Nothing here.").passed
    assert result(Expect(action="allow"), prompt="Nothing here.").passed
    assert fields(Expect(action="redact"), prompt="a secret") == {"output"}
    assert result(Expect(action="redact", output="a [REDACTED]"), prompt="a secret").passed


def test_a_stop_may_leave_its_output_out_and_is_held_to_it_when_it_does_not() -> None:
    scores = {"toy.alpha": 0.9}
    assert result(Expect(action="stop", rule_id="TOX"), answer="Bad.", scores=scores).passed
    assert result(Expect(action="stop", output="Enough."), answer="Bad.", scores=scores).passed
    assert fields(Expect(action="stop", output="Bad."), answer="Bad.", scores=scores) == {"output"}


def test_scores_are_given_by_what_stands_in_the_window() -> None:
    scores = (Scored(contains="bad", scores={"toy.alpha": 0.9}), Scored(scores={"toy.beta": 1.0}))
    assert result(Expect(action="stop"), answer="really bad", scores=scores).passed
    assert result(Expect(action="allow"), answer="really good", scores=scores).passed


def test_a_refused_prompt_forwards_nothing() -> None:
    expect = Expect(
        action="reject", rule_id="WORD", status=400, forwarded={"model": None}, record={"outcome": "refused"}
    )
    assert result(expect, prompt="forbidden").passed
    assert fields(msgspec.structs.replace(expect, output="forbidden"), prompt="forbidden") == {"output"}


def test_every_choice_has_its_own_output() -> None:
    expect = Expect(action="redact", output=("Write to [EMAIL] today.", "Fine."))
    assert result(expect, answers=(MAIL, "Fine.")).passed
    swapped = msgspec.structs.replace(expect, output=("Fine.", "Write to [EMAIL] today."))
    assert fields(swapped, answers=(MAIL, "Fine.")) == {"output"}


def test_shadow_rules_are_told_from_enforced_ones() -> None:
    assert result(Expect(action="allow", fired=(), shadow=("SHADE",)), answer="some shade").passed


def test_tools_are_compared_by_name() -> None:
    assert result(Expect(action="allow", forwarded={"tools": ["a", "b"]}), prompt="p", tools=("a", "b")).passed
    assert fields(Expect(action="allow", forwarded={"tools": ["a"]}), prompt="p", tools=("a", "b")) == {
        "forwarded.tools"
    }


def test_true_is_not_one() -> None:
    assert fields(Expect(action="allow", forwarded={"n": True}), answers=("a", "b")) == {"forwarded.n"}


def test_an_answer_that_depends_on_its_cut_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = answer_pieces

    def torn(case: Case, cut: Cut, turn: int = 0) -> list[bytes]:
        said = pieces(case, cut, turn)
        return [piece.replace(b"today", b"later") for piece in said] if cut.name == "stream" else said

    monkeypatch.setattr(module, "answer_pieces", torn)
    found = result(redacted(), answer=MAIL).mismatches
    assert {mismatch.field for mismatch in found} >= {
        "output",
        "same output however it is cut (whole)",
        "same text however it is cut (stream)",
    }


def test_a_guard_whose_verdicts_depend_on_the_cut_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = module._answer

    calls = iter(range(1000))

    def moody(case: Case, labels: tuple[str, ...], score: Score) -> events.Scored:
        scored = answer(case, labels, score)
        scores = scored.scores | ({"toy.alpha": 0.9} if next(calls) > 3 else {})
        return events.Scored(scored.ticket, scores)

    monkeypatch.setattr(module, "_answer", moody)
    assert any(field.startswith("same verdicts") for field in fields(Expect(action="allow"), answer="Fine."))


def test_what_rules_did_is_shown_beside_a_failure() -> None:
    found = result(redacted(action="allow"), answer=MAIL)
    assert found.verdicts == ("MAIL redact midstream:content/0/0 9..24 (entity:EMAIL)",)


def test_an_answer_without_text_is_an_output_without_text() -> None:
    assert result(Expect(action="allow", fired=()), answer="").passed
    assert result(Expect(action="allow", fired=()), answers=("", "x", "")).passed
    assert fields(Expect(action="allow", output="x"), answer="") == {"output"}
    assert result(Expect(action="reject", output=""), prompt="forbidden").passed


def test_what_an_error_told_the_caller_is_shown() -> None:
    refused = result(Expect(action="allow"), prompt="x", context={"a": 10**30})
    assert "too large" in refused.error
    assert result(Expect(action="redact"), answer="x").error == ""
