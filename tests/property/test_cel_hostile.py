"""Laws about texts and code that nobody meant well: refused with the error that is documented, or run to an end."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from checkstream.core.cel import types
from checkstream.core.cel.check import check
from checkstream.core.cel.code import Assembler, Code, Op, disassemble
from checkstream.core.cel.cost import MOST, worst_cost
from checkstream.core.cel.functions import FUNCTIONS
from checkstream.core.cel.machine import run
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.values import Duration, EvalError, Timestamp, TypeValue, Uint, Value, from_json, type_name
from checkstream.core.cel.verify import verify
from checkstream.core.match.regex import TextRegex
from checkstream.errors import CodeInvalid, ExpressionError
from tests.chance import examples

VARIABLES = {"i": types.INT, "s": types.STRING, "m": types.DYN, "names": types.list_of(types.STRING)}
BOUND: dict[str, Value] = {"i": 3, "s": "abc", "m": {"a": (1, 2.5, None)}, "names": ("x", "y")}
PIECES = (
    *(
        "(",
        ")",
        "[",
        "]",
        "{",
        "}",
        ".",
        ",",
        "?",
        ":",
        "&&",
        "||",
        "!",
        "-",
        "+",
        "*",
        "/",
        "%",
        "==",
        "<",
        "in ",
        "//",
    ),
    *(
        " ",
        "\n",
        "'",
        '"',
        "'''",
        "r'",
        "b'",
        'br"',
        "\\",
        "\\x",
        "\\u12",
        "`",
        "0",
        "1u",
        "0x",
        "9" * 25,
        "1e999",
        ".5",
    ),
    *("i", "s", "m", "names", "true", "null", "has(", "all(x,", "map(x,x)", "exists(", "size(", "matches('", "package"),
    *("\0", "\ud800", "é", "🐱", "=", "&", "$"),
)
DEEP = ("(", "[", "{1:", "!", "-", "i.a", "i[", "1+", "a?b:", "a&&", "[1].map(x,", "size(", "'", "m.", "1*(", "a||!(")


def outcome(text: str) -> Value:
    """Carry an expression through everything, as a policy would."""
    checked = check(parse(text), VARIABLES)
    assert 0 < worst_cost(checked, {}) <= MOST
    assembler = Assembler()
    start = assembler.add(checked.expr)
    code = assembler.build()
    verify(code, [start])
    assert disassemble(code, start)[-1].endswith("RETURN")
    return run(code.instructions, code.constants, start, lambda number: absent(code, number))


def absent(code: Code, number: int) -> Value:
    return BOUND.get(code.variables[number], EvalError("absent"))


@settings(max_examples=examples(500))
@given(st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
@example("\ud800")
@example("'\\ud800'")
@example("'\\U00110000'")
@example("m[")
@example("x.map(")
@example("0x")
@example("1.e5")
@example("[1].all(1, true)")
@example("s.matches('(')")
@example("s.matches('" + "(" * 1000 + "')")
@example("b'\udfff'")
def test_any_text_is_refused_in_the_documented_way_or_comes_to_a_value(text: str) -> None:
    refused = None
    try:
        got = outcome(text)
    except ExpressionError as error:
        refused = error
    if refused is not None:
        assert 0 <= refused.position <= len(text)
        assert refused.reason
    else:
        assert type(got) is EvalError or type_name(got) != "error"


@pytest.mark.parametrize("piece", DEEP)
@pytest.mark.parametrize("closing", ["", ")", "1", "]"])
def test_no_depth_passes_the_stack_of_python(piece: str, closing: str) -> None:
    for count in (10, 47, 48, 49, 96, 97, 400, 3900 // len(piece)):
        for middle in ("", "1", "m"):
            try:
                outcome((piece * count + middle + closing * count)[:4000])
            except ExpressionError:
                continue


def test_a_chain_that_has_no_brackets_may_be_long() -> None:
    assert outcome(" || ".join(["i == 1"] * 390) + " || true") is True
    assert outcome(" && ".join(["i == 3"] * 390)) is True


def test_texts_that_grow_in_loops_are_given_up() -> None:
    doubled = "['" + "a" * 64 + "']" + ".map(x, x + x)" * 14
    assert outcome(doubled + ".size() == 1") == EvalError("what `+` makes is too long")
    nested = "[1]" + ".map(x, [x, x])" * 40
    assert isinstance(outcome(f"{nested} == {nested}"), EvalError)


def test_loops_within_loops_are_given_up() -> None:
    ten = "[1,2,3,4,5,6,7,8,9,10]"
    text = f"{ten}.all(a, {ten}.all(b, {ten}.all(c, {ten}.all(d, {ten}.all(e, a + b + c + d + e > 0)))))"
    assert outcome(text) == EvalError("the loops visit too many elements")


EXPRESSIONS = (
    "i + 1 < 9 ? s.size() == 3 : m.a.exists(x, x == 2.5)",
    "names.map(x, x + 'a').filter(y, y.startsWith('x')) == ['xa'] && has(m.a)",
    "m.a.transformMap(k, v, k > 0, v)[1] == 2.5 || !(i in [1, i, 3])",
    "{'a': i, s: names}.all(k, names.exists_one(n, n == k))",
    "s.matches('b+') && type(m) == map && [i, m] != [1u, null]",
)
CONSTANTS = st.sampled_from(
    (
        *(None, True, 1, Uint(2), 1.5, "a", b"a", (1, "a"), {"a": 1, (True,): 2}, Timestamp(0), Duration(1)),
        *(TypeValue("int"), TextRegex("a"), EvalError("none"), float("nan")),
    )
)
INSTRUCTIONS = st.tuples(st.integers(0, len(Op) - 1), st.integers(0, 12) | st.integers(0, len(FUNCTIONS)))


def assembled() -> tuple[Code, list[int]]:
    assembler = Assembler()
    starts = [assembler.add(check(parse(text), VARIABLES).expr) for text in EXPRESSIONS]
    return assembler.build(), starts


def test_what_the_assembler_makes_is_sound() -> None:
    code, starts = assembled()
    verify(code, starts)
    assert [run(code.instructions, code.constants, start, lambda number: absent(code, number)) for start in starts] == [
        True,
        True,
        True,
        False,
        True,
    ]


CODE, STARTS = assembled()


@st.composite
def mutated(draw: st.DrawFn) -> tuple[Code, int]:
    """Sound code with a few instructions changed, put in, taken out or swapped."""
    instructions: list[Any] = list(CODE.instructions)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(instructions) - 1))
        op, argument = instructions[place]
        way = draw(st.integers(0, 5))
        if way == 0:
            instructions[place] = draw(INSTRUCTIONS)
        elif way == 1:
            instructions[place] = (op, max(0, argument + draw(st.integers(-4, 4))))
        elif way == 2:
            instructions[place] = (draw(st.integers(0, len(Op) - 1)), argument)
        elif way == 3:
            instructions.insert(place, draw(INSTRUCTIONS))
        elif way == 4 and len(instructions) > 1:
            del instructions[place]
        else:
            other = draw(st.integers(0, len(instructions) - 1))
            instructions[place], instructions[other] = instructions[other], instructions[place]
    constants = list(CODE.constants)
    for place in range(len(constants)):
        if draw(st.integers(0, 4)) == 0:
            constants[place] = draw(CONSTANTS)
    return Code(tuple(instructions), tuple(constants), CODE.variables), draw(st.sampled_from(STARTS))


@settings(max_examples=examples(2000))
@given(mutated(), st.sampled_from((None, True, 1, "a", (1, 2), {"a": (1,)}, EvalError("none"))))
def test_changed_code_is_refused_or_runs_to_a_value(changed: tuple[Code, int], value: Value) -> None:
    code, start = changed
    try:
        verify(code, [start])
    except CodeInvalid:
        return
    run(code.instructions, code.constants, start, lambda _: value, budget=1000)
    disassemble(code, start)


@settings(max_examples=examples(1000))
@given(st.lists(INSTRUCTIONS, max_size=12), st.lists(CONSTANTS, max_size=4))
def test_code_of_chance_is_refused_or_runs_to_a_value(
    instructions: list[tuple[int, int]], constants: list[Any]
) -> None:
    code = Code((*instructions, (int(Op.RETURN), 0)), tuple(constants), ("v",))
    try:
        verify(code, [0])
    except CodeInvalid:
        return
    run(code.instructions, code.constants, 0, [("a", 1)].__getitem__, budget=1000)


def nested(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(), nested))
def test_any_json_is_a_value_or_one_error(value: Any) -> None:
    got = from_json(value)
    assert type(got) is EvalError or type_name(got) != "error"
