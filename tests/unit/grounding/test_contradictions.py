"""Contradictions inside an answer, kind by kind."""

from __future__ import annotations

import pytest

from checkstream.grounding.contradictions import contradiction
from checkstream.grounding.quantities import quantities
from checkstream.grounding.sentences import sentences


def found(answer: str) -> str:
    return contradiction(answer, sentences(answer))


def test_the_first_kind_in_the_order_of_the_design_is_told() -> None:
    timeline = "It was founded in 2022. It has been active since 2019."
    states = "The museum is open. It has permanently closed."
    answers = "Yes, that is so. No, that is not so."
    assert found(f"{answers} {states} {timeline}") == "Timeline conflict: started in 2022 but active since 2019"
    assert found(f"{answers} {states}") == "Contradictory status statements"
    assert found(answers) == "Contradictory yes/no statements"
    assert found("") == ""


@pytest.mark.parametrize(
    "answer",
    [
        "The shop is open until nine and is closed on public holidays.",
        "The shop is open daily. It is closed for lunch.",
        "The question is open to debate. The case is closed.",
        "The project is open-source. The office has closed.",
        "He opened the door. She closed it.",
        "The museum's garden is open. The museum's cafe has closed.",
    ],
)
def test_what_is_no_status_contradicts_nothing(answer: str) -> None:
    assert found(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "There is no fee. Yes, there is a desk.",
        "Yes/no questions are easy.",
        "No one came. Yes, I was there.",
        "Yes. Section No. 4 applies.",
        "Choose yes, or no, as you like.",
        "Is it free? Yes. Is it late? No.",
    ],
)
def test_yes_and_no_that_answer_nothing_contradict_nothing(answer: str) -> None:
    assert found(answer) == ""


@pytest.mark.parametrize(
    ("answer", "values"),
    [
        ("Acme has 5,000 employees.", [("employee", 5000.0)]),
        ("Acme has 1.5 million users.", [("user", 1_500_000.0)]),
        ("The ticket costs $12.50 today.", [("$today", 12.5)]),
        ("The rate is 4.2%.", [("%", 4.2)]),
        ("The rate is 4.2 %.", [("%", 4.2)]),
        ("Acme was founded in 2001 with 5 employees.", [("employee", 5.0)]),
        ("It rose from 5 to 7.", []),
        ("Acme has at least 5 offices.", []),
        ("5 employees work there.", []),
    ],
)
def test_values_of_a_sentence_are_read(answer: str, values: list[tuple[str, float]]) -> None:
    assert [(value.unit, value.value) for value in quantities(answer, sentences(answer))] == values


@pytest.mark.parametrize(
    "answer",
    [
        "Acme has 50 employees in Berlin. Acme has 5,000 employees worldwide.",
        "Acme has 50 employees in Berlin. Acme has 5,000 employees.",
        "The plan costs $5. The plan costs $500 for enterprises.",
    ],
)
def test_values_of_different_scope_do_not_conflict(answer: str) -> None:
    assert found(answer) == ""


@pytest.mark.parametrize(
    "answer",
    [
        "Acme has 50 employees in Berlin. Acme has 5,000 employees in Berlin.",
        "Acme has 50 employees in total. Acme has 5,000 employees.",
    ],
)
def test_values_of_one_scope_conflict(answer: str) -> None:
    assert found(answer) == "Conflicting numerical values"


def test_long_answers_are_read_in_time_that_grows_with_them() -> None:
    assert found("Yes. No 1. It has 5 rooms since 2001 open closed. " * 4000) in {"", "Contradictory status statements"}
