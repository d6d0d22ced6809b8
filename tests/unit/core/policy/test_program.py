from __future__ import annotations

import pytest

from checkstream.core.policy.action import (
    Allow,
    AnyAction,
    InjectDisclaimer,
    LogEvent,
    Redact,
    Reject,
    RequireConfirmation,
    RewriteSpan,
    SafeMode,
    Stop,
)
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.program import RuleMeta, Signal, Variable
from checkstream.core.terms import Stage

HOLDING = (
    *(Allow(), Reject(), RequireConfirmation(), Redact(), RewriteSpan(), Stop(), SafeMode()),
    InjectDisclaimer(text="t", position="after_sentence"),
)


def rule(mode: str, *actions: AnyAction) -> RuleMeta:
    return RuleMeta(
        id="R",
        name="r",
        pack="p",
        version="1",
        stages=frozenset({Stage.MIDSTREAM}),
        channels=frozenset({"content"}),
        mode=mode,  # type: ignore[arg-type]
        actions=actions,
        triggers=(3,),
        thresholds=(None,),
        reads=(5, 3),
    )


def test_placeholders_and_titles() -> None:
    assert Signal(kind="entity", name="EMAIL", regex="x").placeholder == "[EMAIL]"
    for kind in ("pattern", "phrase", "classifier"):
        assert Signal(kind=kind, name="n").placeholder == "[REDACTED]"
    assert Signal(kind="phrase", name="zero risk").title == "phrase:zero risk"
    assert Signal(kind="classifier", name="toy.alpha").classifier == "toy"
    person = Signal(kind="entity", name="PERSON", model="ner", threshold=0.5)
    assert (person.title, person.placeholder, person.classifier) == ("entity:PERSON", "[PERSON]", "ner")
    assert Signal(kind="entity", name="EMAIL", regex="x").classifier == ""


@pytest.mark.parametrize(
    "action",
    [
        Allow(),
        Reject(),
        RequireConfirmation(),
        Redact(),
        RewriteSpan(),
        Stop(),
        SafeMode(),
        InjectDisclaimer(text="t", position="after_sentence"),
    ],
    ids=lambda action: action.name,
)
def test_text_waits_for_enforced_rules_that_end_change_or_except_it(action: AnyAction) -> None:
    assert rule("enforce", action).holds
    assert rule("enforce", LogEvent(), action).holds
    assert not rule("shadow", action).holds
    assert not rule("disabled", action).holds


def test_text_does_not_wait_for_rules_that_record_or_add_at_the_end() -> None:
    assert not rule("enforce", LogEvent(), InjectDisclaimer(text="t")).holds


def test_what_an_exception_finds_is_not_condemned() -> None:
    assert rule("enforce", Redact()).condemns
    assert not rule("enforce", Allow(), LogEvent()).condemns
    assert not rule("shadow", Redact()).condemns


def test_a_rule_needs_what_it_asks_for_and_what_its_conditions_read() -> None:
    assert rule("enforce", Redact()).needs == {3, 5}


def test_variables_have_titles() -> None:
    assert Variable(kind="context").title == "context"
    assert Variable(kind="request", name="model").title == "request.model"
    assert Variable(kind="given", name="user").title == "given.user"
    assert Variable(kind="count", signal=3).title == "count(3)"


TEXT = """pack: {{name: p, version: 1.0.0}}
policies:
  - {{name: r, id: R-1, mode: {mode}, stage: {stage}, phrases: [zero risk], actions: [{{type: safe_mode}}]}}
"""


@pytest.mark.parametrize(
    ("mode", "stage", "turns"),
    [("enforce", "midstream", True), ("shadow", "midstream", False), ("enforce", "ingress", False)],
)
def test_a_program_turns_answers_where_a_rule_may_have_them_continued(mode: str, stage: str, *, turns: bool) -> None:
    assert compile_sources([("p.yaml", TEXT.format(mode=mode, stage=stage))]).turns == turns


def test_a_stage_has_its_own_channels_only() -> None:
    program = compile_sources([], [ClassifierLabel("toy.alpha")])
    assert len(program.scopes) == 17
    with pytest.raises(KeyError):
        program.scope(Stage.INGRESS, "content")
