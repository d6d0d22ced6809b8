"""Proving code safe."""

from __future__ import annotations

from typing import Any

import pytest

from checkstream.core.cel.ast import Fold
from checkstream.core.cel.check import check
from checkstream.core.cel.code import Assembler, Code, Op
from checkstream.core.cel.functions import NUMBER_OF
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.values import EvalError, TypeValue, Uint
from checkstream.core.cel.verify import MAX_STACK, verify
from checkstream.errors import CodeInvalid

RETURN = (int(Op.RETURN), 0)
CONST = (int(Op.CONST), 0)
EQUAL = (int(Op.CALL2), NUMBER_OF["_==_/2"])
ANY = 2 * Fold.EXISTS


def op(kind: Op, argument: int = 0) -> tuple[int, int]:
    return int(kind), argument


LOOP = [CONST, op(Op.BEGIN, 6), op(Op.NEXT, 5), op(Op.LOCAL, 0), op(Op.STEP, 2), op(Op.END, ANY), RETURN]


def replaced(place: int, kind: Op, argument: int = 0) -> list[tuple[int, int]]:
    return [*LOOP[:place], op(kind, argument), *LOOP[place + 1 :]]


def code(instructions: list[Any], constants: tuple[Any, ...] = ("a",)) -> Code:
    return Code(tuple(instructions), constants, ("v",))


def test_sound_code_passes() -> None:
    verify(code([CONST, RETURN]), [0])
    verify(code(LOOP), [0])
    verify(code([CONST, CONST, EQUAL, RETURN, CONST, RETURN]), [0, 4])


@pytest.mark.parametrize(
    ("instructions", "reason"),
    [
        ([], "an expression starts at 0, outside of the code"),
        ([CONST], "the expression at 0 never returns"),
        ([RETURN], "returns with more or less than one value"),
        ([CONST, CONST, RETURN], "returns with more or less than one value"),
        ([op(Op.CONST, 1), RETURN], "CONST names what is not there"),
        ([op(Op.LOAD, 1), RETURN], "LOAD names what is not there"),
        ([op(Op.LOCAL, 0), RETURN], "LOCAL names what is not there"),
        ([CONST, op(Op.SELECT, 3), RETURN], "SELECT names what is not there"),
        ([op(Op.SELECT, 0), RETURN], "takes more from the stack"),
        ([CONST, EQUAL, RETURN], "takes more from the stack"),
        ([CONST, (int(Op.CALL1), NUMBER_OF["_==_/2"]), RETURN], "CALL1 names what is not there"),
        ([CONST, op(Op.CALL1, 10_000), RETURN], "CALL1 names what is not there"),
        ([op(Op.LIST, 1), RETURN], "takes more from the stack"),
        ([op(Op.LIST, 10**30), RETURN], "takes more from the stack"),
        ([CONST, op(Op.MAP, 1), RETURN], "takes more from the stack"),
        ([(99, 0), RETURN], "has no such operation"),
        ([(1, -1), RETURN], "has no such operation"),
        ([("1", 0), RETURN], "has no such operation"),
        ([(True, 0), RETURN], "has no such operation"),
        ([(1, 0, 0), RETURN], "is no pair"),
        ([CONST, op(Op.JUMP, 0), RETURN], "leads to 0"),
        ([CONST, op(Op.JUMP, 1), RETURN], "leads to 1"),
        ([CONST, op(Op.JUMP, 3), RETURN, CONST, RETURN], "leads to 3"),
        ([CONST, op(Op.JUMP, 3), CONST, RETURN], "nothing leads there"),
        ([CONST, op(Op.SKIP_FALSE, 3), CONST, RETURN], "comes to 3 with another stack"),
        ([CONST, op(Op.BRANCH, 2), RETURN], "returns with more or less than one value"),
        ([CONST] * (MAX_STACK + 1) + [RETURN], "puts too much on it"),
        (replaced(1, Op.BEGIN, 7), "begins a loop without an end"),
        (replaced(1, Op.BEGIN, 4), "begins a loop without an end"),
        (replaced(2, Op.NEXT, 4), "begins a loop without NEXT and END"),
        (replaced(3, Op.LOCAL, 1), "LOCAL names what is not there"),
        (replaced(3, Op.LOCAL, 2), "LOCAL names what is not there"),
        (replaced(3, Op.JUMP, 5), "nothing leads there"),
        (replaced(3, Op.JUMP, 6), "comes to 6 with another stack"),
        (replaced(4, Op.STEP, 1), "belongs to another loop, or to none"),
        (replaced(4, Op.STEP, 3), "belongs to another loop, or to none"),
        (replaced(5, Op.END, 10), "begins a loop without NEXT and END"),
        (replaced(5, Op.END, 2 * Fold.MAP), "begins a loop without NEXT and END"),
        (replaced(5, Op.END, 2 * Fold.LIST), "belongs to another loop, or to none"),
        ([CONST, op(Op.END, ANY), RETURN], "belongs to another loop, or to none"),
        ([CONST, op(Op.NEXT, 2), RETURN], "belongs to another loop, or to none"),
        ([CONST, op(Op.STEP, 0), RETURN], "belongs to another loop, or to none"),
    ],
)
def test_what_could_leave_its_bounds_is_refused(instructions: list[Any], reason: str) -> None:
    with pytest.raises(CodeInvalid) as raised:
        verify(code(instructions), [0])
    assert reason in str(raised.value)


def test_an_expression_begins_at_its_beginning() -> None:
    verify(code([CONST, RETURN, CONST, RETURN]), [2])
    with pytest.raises(CodeInvalid, match="within another one"):
        verify(code([CONST, RETURN, CONST, CONST, EQUAL, RETURN]), [0, 3])


def test_loops_nest_no_deeper_than_the_compiler_lets_them() -> None:
    def nested(levels: int) -> list[tuple[int, int]]:
        heads = [
            instruction
            for level in range(levels)
            for instruction in (
                CONST,
                op(Op.BEGIN, 3 * levels + 1 + 2 * (levels - level)),
                op(Op.NEXT, 3 * levels + 2 * (levels - level)),
            )
        ]
        tails = [
            instruction
            for level in reversed(range(levels))
            for instruction in (op(Op.STEP, 3 * level + 2), op(Op.END, ANY))
        ]
        return [*heads, CONST, *tails, RETURN]

    verify(code(nested(8)), [0])
    with pytest.raises(CodeInvalid, match="loops nest deeper than 8"):
        verify(code(nested(9)), [0])


@pytest.mark.parametrize(
    "constant",
    [
        object(),
        [1],
        2**63,
        Uint(2**64),
        TypeValue(1),  # type: ignore[arg-type]
        (EvalError("within"),),
        {1.5: 1},
        {True: 1},
        {(1,): 1},
        {"a": object()},
        {2**64: 1},
        EvalError(1),  # type: ignore[arg-type]
    ],
)
def test_a_constant_that_is_no_value_is_refused(constant: object) -> None:
    with pytest.raises(CodeInvalid):
        verify(code([CONST, RETURN], (constant,)), [0])


def test_a_constant_that_nests_for_ever_is_refused() -> None:
    deep: Any = ()
    for _ in range(100_000):
        deep = (deep,)
    with pytest.raises(CodeInvalid):
        verify(code([CONST, RETURN], (deep,)), [0])


def test_much_code_of_many_expressions_passes() -> None:
    assembler = Assembler()
    expr = check(parse("[1].map(x, x > 0 ? 'a' : 'b').exists(y, y == 'a') && {'a': 1}.a == 1"), {}).expr
    starts = [assembler.add(expr) for _ in range(300)]
    verify(assembler.build(), starts)
