"""What LANGUAGE.md says in words of undecided conditions and of egress rules, held against exchanges."""

from __future__ import annotations

from pathlib import Path

import pytest

from checkstream.core.policy.compile import compile_sources
from checkstream.trial.cases import Case, Expect
from checkstream.trial.run import run_case

PAGE = (Path(__file__).parents[2] / "policies" / "LANGUAGE.md").read_text(encoding="utf-8")
_TABLE = PAGE.partition("| condition | a caller who says nothing of the user |\n|---|---|\n")[2].partition("\n\n")[0]
ROWS = [
    (condition.strip("` ").replace("\\|", "|"), said.strip(" |"))
    for condition, _, said in (row.removeprefix("| ").partition("` | ") for row in _TABLE.splitlines())
]
EGRESS = """pack: {name: p, version: 1.0.0}
policies:
  - {name: a, id: RED, stage: midstream, channels: [content], entities: [EMAIL], actions: [{type: redact}]}
  - {name: b, id: STOP, stage: midstream, channels: [content], phrases: [stopword], actions: [{type: stop}]}
  - {name: c, id: E-RED, stage: egress, channels: [content], entities: [EMAIL], actions: [{type: log_event}]}
  - {name: d, id: E-STOP, stage: egress, channels: [content], phrases: [stopword], actions: [{type: log_event}]}
  - {name: e, id: E-LATER, stage: egress, channels: [content], phrases: [later], actions: [{type: log_event}]}
"""


def of_condition(condition: str, context: dict[str, object], *, fires: bool, undecided: bool) -> None:
    policy = f"""pack: {{name: p, version: 1.0.0}}
policies:
  - name: a
    id: A
    phrases: [hello]
    stage: ingress
    conditions: ['{condition}']
    actions: [{{type: reject}}]
"""
    case = Case(
        name="n",
        prompt="hello",
        context=context,
        expect=Expect(
            action="reject" if fires else "allow",
            fired=("A",) if fires else (),
            record={"degradations": ["rule_undecided:A"] if undecided else []},
        ),
    )
    result = run_case(case, compile_sources([("p.yaml", policy)], ()), ())
    assert result.passed, result.mismatches


def test_the_table_has_its_three_rows() -> None:
    assert [said.partition(":")[0] for _, said in ROWS] == ["undecided", "not retail", "retail"]


@pytest.mark.parametrize(("condition", "said"), ROWS)
@pytest.mark.parametrize("context", [{}, {"user": {}}])
def test_a_condition_is_as_decided_as_its_row_says(condition: str, said: str, context: dict[str, object]) -> None:
    undecided = said.startswith("undecided")
    of_condition(condition, context, fires=undecided or said == "retail", undecided=undecided)


@pytest.mark.parametrize(("condition", "_said"), ROWS)
def test_of_a_caller_who_says_it_every_row_says_the_same(condition: str, _said: str) -> None:
    of_condition(condition, {"user": {"segment": "retail"}}, fires=True, undecided=False)
    of_condition(condition, {"user": {"segment": "other"}}, fires=False, undecided=False)


def test_has_of_a_field_alone_is_undecided_where_what_it_stands_in_is_not_there() -> None:
    of_condition("has(context.user.segment)", {}, fires=True, undecided=True)
    of_condition("has(context.user.segment)", {"user": {}}, fires=False, undecided=False)


@pytest.mark.parametrize(
    ("answer", "action", "fired", "output"),
    [
        ("mail joe@example.com later", "redact", ("RED", "E-RED", "E-LATER"), "mail [EMAIL] later"),
        ("mail joe@example.com and stopword, later", "stop", ("RED", "STOP", "E-RED"), None),
    ],
)
def test_egress_rules_read_what_the_model_wrote_as_far_as_it_was_released(
    answer: str, action: str, fired: tuple[str, ...], output: str | None
) -> None:
    case = Case(name="n", answer=answer, expect=Expect(action=action, fired=fired, output=output))
    result = run_case(case, compile_sources([("p.yaml", EGRESS)], ()), ())
    assert result.passed, result.mismatches
