"""What is read from a judge's words, however it said them."""

from __future__ import annotations

import math

import pytest

from checkstream.grounding.entailment import p_yes, p_yes_of_text
from checkstream.grounding.replies import MAX_CHARS, first_object, number


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ('Sure!\n```json\n{"a": 1}\n```', {"a": 1}),
        ('{"a": "}{"} {"b": 2}', {"a": "}{"}),
        ('{"a": "\\"}"}', {"a": '"}'}),
        ('{not json} {"a": 1}', {"a": 1}),
        ('{ {"a": 1}', {"a": 1}),
        ('{"a": [1, 2, {"b": 3', {"a": [1, 2]}),
        ('{"a": {"b": 1}, "c": "x', {"a": {"b": 1}}),
        ('{"a": 1, "b', {"a": 1}),
        ("{}", {}),
        ('{"a": [1, 2,], "b": "x,}",}', {"a": [1, 2], "b": "x,}"}),
        ('{"a": [1,\n ], "b', {"a": [1]}),
        ('<think>{"a": 0}</think>\n{"a": 1}', {"a": 1}),
    ],
)
def test_the_first_object_is_found_and_what_broke_off_is_closed(reply: str, expected: object) -> None:
    assert first_object(reply) == expected


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "no",
        "[1]",
        "{",
        '{"a"',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a":' * 5000,
        "{" * 50_000,
        "{]" * 50_000,
        "}" * 99,
        '<think>{"a": 1}',
    ],
)
def test_garbage_is_nothing(reply: str) -> None:
    assert first_object(reply) is None


def test_only_the_beginning_of_an_endless_reply_is_read() -> None:
    assert first_object(" " * MAX_CHARS + '{"a": 1}') is None
    assert first_object('{"a": "' + "x" * MAX_CHARS) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [(1, 1.0), ("0.5", 0.5), (" 2 ", 2.0), (-1.5, -1.5), (10**400, None), ("nan", None), ("1e999", None)],
)
def test_numbers_are_finite(value: object, expected: float | None) -> None:
    assert number(value) == expected


@pytest.mark.parametrize("value", [True, None, [], {}, "one", math.inf, math.nan])
def test_what_is_no_number_is_nothing(value: object) -> None:
    assert number(value) is None


def test_logarithms_that_no_model_gives_break_nothing() -> None:
    assert p_yes([("YES", math.nan)]).error
    assert p_yes([("<think>", 0.0)]).error
    assert not p_yes([("UN", -0.1), ("The", -3.0)]).error
    assert p_yes([("YES", 5.0)]).low == 1.0
    assert p_yes([("NO", -math.inf)]).high == 0.0


@pytest.mark.parametrize("reply", ["", "  ", '"', "\n\n"])
def test_a_reply_without_words_says_neither(reply: str) -> None:
    assert p_yes_of_text(reply).low == 0.5
