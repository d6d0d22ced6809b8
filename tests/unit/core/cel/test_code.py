"""Compiling and showing code."""

from __future__ import annotations

from checkstream.core.cel.ast import AND, NOT, OR, Call, Ident, Literal, balanced
from checkstream.core.cel.check import check
from checkstream.core.cel.code import Assembler, disassemble
from checkstream.core.cel.machine import run
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.types import DYN, STRING
from checkstream.core.cel.values import EvalError, Uint
from checkstream.core.cel.verify import verify

VARIABLES = {"context": DYN, "request.model": STRING}


def test_the_lines_of_an_expression_name_their_operands() -> None:
    assembler = Assembler()
    assembler.add(check(parse("1"), {}).expr)
    start = assembler.add(
        check(parse("request.model == 'a' ? has(context.x) : [1, 2].exists(x, x in [context, 1])"), VARIABLES).expr
    )
    assert disassemble(assembler.build(), start) == [
        "0002  LOAD        request.model",
        "0003  CONST       'a'",
        "0004  CALL2       _==_",
        "0005  GUARD       -> 0020",
        "0006  BRANCH      -> 0010",
        "0007  LOAD        context",
        "0008  HAS         'x'",
        "0009  JUMP        -> 0020",
        "0010  CONST       [1, 2]",
        "0011  BEGIN       -> 0020",
        "0012  NEXT        -> 0019",
        "0013  LOCAL       loop 0, variable 0",
        "0014  LOAD        context",
        "0015  CONST       1",
        "0016  LIST        2",
        "0017  CALL2       @in",
        "0018  STEP        -> 0012",
        "0019  END         exists, 1 variable",
        "0020  RETURN",
    ]


def test_constants_are_shared_only_by_what_is_the_same() -> None:
    assembler = Assembler()
    for text in (
        "1",
        "1u",
        "1.0",
        "true",
        "0.0",
        "-0.0",
        "'a'",
        "b'a'",
        "[1]",
        "[1.0]",
        "{1: 1}",
        "{true: 1}",
        "1",
        "[1]",
    ):
        assembler.add(check(parse(text), {}).expr)
    constants = assembler.build().constants
    assert [repr(value) for value in constants] == [
        repr(value) for value in (1, Uint(1), 1.0, True, 0.0, -0.0, "a", b"a", (1,), (1.0,), {1: 1}, {(True,): 1})
    ]


def test_variables_are_shared_by_all_expressions() -> None:
    assembler = Assembler()
    starts = [
        assembler.add(check(parse(text), VARIABLES).expr) for text in ("request.model", "context", ".request.model")
    ]
    code = assembler.build()
    assert code.variables == ("request.model", "context")
    verify(code, starts)
    assert [run(code.instructions, code.constants, start, [7, 8].__getitem__) for start in starts] == [7, 8, 7]


def test_trees_made_by_hand_are_compiled_without_a_check() -> None:
    triggers = [Ident(0, f"trigger {number}") for number in range(40)]
    expr = Call(0, NOT, None, (balanced(AND, [balanced(OR, triggers), Literal(0, value=True)]),))
    assembler = Assembler()
    start = assembler.add(expr)
    code = assembler.build()
    verify(code, [start])
    assert code.variables == tuple(trigger.name for trigger in triggers)
    assert run(code.instructions, code.constants, start, lambda number: number == 39) is False
    assert run(code.instructions, code.constants, start, lambda _: False) is True


def test_a_function_that_is_not_there_comes_to_an_error() -> None:
    assembler = Assembler()
    start = assembler.add(Call(0, "f", None, (Literal(0, 1),)))
    code = assembler.build()
    assert run(code.instructions, code.constants, start, lambda _: None) == EvalError("no function `f`")


def test_a_map_that_is_none_is_left_to_the_machine() -> None:
    assembler = Assembler()
    start = assembler.add(check(parse("{1: 2, 1u: 3}"), {}).expr)
    code = assembler.build()
    assert run(code.instructions, code.constants, start, lambda _: None) == EvalError("a key stands twice in a map")
