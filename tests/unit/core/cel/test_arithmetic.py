"""Operators."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from checkstream.core.cel.arithmetic import MAX_SIZE, add, contained, indexed, listed, mapped, refused
from checkstream.core.cel.functions import FUNCTIONS
from checkstream.core.cel.values import Duration, EvalError, Timestamp, TypeValue, Uint
from checkstream.core.match.regex import TextRegex
from tests.cel_cases import come_to

EVERYTHING: tuple[Any, ...] = (
    *(
        True,
        0,
        -(2**63),
        Uint(0),
        Uint(2**64 - 1),
        0.0,
        -1.5,
        float("nan"),
        float("inf"),
        "",
        "a",
        "\ud800",
        b"",
        b"\xff",
    ),
    *(None, (), (1, "a"), {}, {"a": 1, (True,): 2}, Timestamp(0), Timestamp(253402300799 * 10**9), Duration(-(2**63))),
    *(TypeValue("int"), EvalError("first"), TextRegex("a")),
)


def test_no_function_raises_whatever_it_is_given() -> None:
    for function in FUNCTIONS:
        for operands in itertools.product(EVERYTHING, repeat=function.arity):
            found = function.run(*operands)
            failed = [operand for operand in operands if type(operand) is EvalError]
            if failed and function.name != "dyn":
                assert type(found) is EvalError, (function.key, operands)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7 / -2", -3),
        ("-7 % 2", -1),
        ("7 % -2", 1),
        ("7u / 2u", Uint(3)),
        ("'a' + 'b'", "ab"),
        ("[1] + [2]", (1, 2)),
        ("b'a' + b'b'", b"ab"),
        ("-1.0 / 0.0", float("-inf")),
        ("1 in {1u: 2}", True),
        ("true in {1: 2}", False),
        ("[1, 2][1.0]", 2),
        ("{true: 1}[true]", 1),
        ("timestamp(1) - timestamp(0) == duration('1s')", True),
        ("!(1 < 1.5 && 2u > 1)", False),
    ],
)
def test_an_operator_makes_what_it_should(text: str, value: object) -> None:
    found = come_to(text)
    assert (type(found), found) == (type(value), value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("9223372036854775807 + 1", "a number passes the range of int"),
        ("0u - 1u", "a number passes the range of uint"),
        ("1 / 0", "divide by zero"),
        ("1u % 0u", "modulus by zero"),
        ("dyn(1) + 1.0", "no such overload: _+_ of int, double"),
        ("dyn(1) < 'a'", "no such overload: _<_ of int, string"),
        ("[1][1]", "index out of range"),
        ("[1][-1]", "index out of range"),
        ("[1][dyn(0.5)]", "an index is a whole number"),
        ("{'a': 1}['b']", "no such key"),
        ("{'a': 1}.b", "no such key: `b`"),
        ("dyn(1).b", "no such overload: selection of a field of int"),
        ("dyn(1) in dyn(2)", "no such overload: @in of int, int"),
        ("duration('292y')", "not a duration; write it as `90s` or `1h30m`"),
    ],
)
def test_what_has_no_value_says_why(text: str, reason: str) -> None:
    assert come_to(text) == EvalError(reason)


def test_the_first_error_among_operands_is_the_result() -> None:
    assert refused("f", 1, EvalError("a"), EvalError("b")) == EvalError("a")


def test_what_plus_makes_has_an_end() -> None:
    half = "a" * (MAX_SIZE // 2)
    assert add(half, half) == half * 2
    assert isinstance(add(half, half + "a"), EvalError)


def test_an_element_equals_by_worth_also_within_lists() -> None:
    assert contained((1.0,), ((Uint(1),),)) is True
    assert contained("a", ("b", 1, None)) is False
    assert contained(float("nan"), (float("nan"),)) is False
    assert indexed((1, 2), Uint(1)) == 2


def test_a_list_or_map_with_an_error_in_it_is_that_error() -> None:
    assert listed([1, EvalError("a")]) == EvalError("a")
    assert mapped(["k", EvalError("a")]) == EvalError("a")
    assert mapped([EvalError("k"), 1]) == EvalError("k")
    assert mapped([1, "a", Uint(1), "b"]) == EvalError("a key stands twice in a map")
    assert mapped([1.0, "a"]) == EvalError("a double is no key of a map")
    assert mapped([None, "a"]) == EvalError("a null_type is no key of a map")
    assert mapped([True, 1, 1, 2]) == {(True,): 1, 1: 2}
