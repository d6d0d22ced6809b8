"""Names and types."""

from __future__ import annotations

import pytest

from checkstream.core.cel import types
from checkstream.core.cel.ast import Call, Ident, Literal
from checkstream.core.cel.check import MAX_FAULTS, MAX_LOOPS, check
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.values import EvalError, TypeValue
from checkstream.core.match.regex import TextRegex

VARIABLES = {
    "context": types.DYN,
    "request.model": types.STRING,
    "request.temperature": types.DOUBLE,
    "scores": types.map_of(types.STRING, types.DOUBLE),
    "tokens": types.INT,
    "names": types.list_of(types.STRING),
    "at": types.TIMESTAMP,
}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("context.user.segment == 'retail' && tokens > 5", "bool"),
        ("scores.x", "double"),
        ("scores['x'] > 1", "bool"),
        ("request.model + 'a'", "string"),
        ("names.map(n, size(n))", "list(int)"),
        ("names.transformMap(i, n, n)", "map(int, string)"),
        ("scores.filter(k, scores[k] > 0.5)", "list(string)"),
        ("context.list.map(x, x)", "list(dyn)"),
        ("true ? [] : [1]", "list(int)"),
        ("context.a + 1", "int"),
        ("context.a + context.b", "dyn"),
        ("[1, 'a']", "list(dyn)"),
        ("at.getHours('UTC')", "int"),
        ("has(context.a)", "bool"),
        ("type(1)", "type"),
    ],
)
def test_an_expression_has_its_type(text: str, kind: str) -> None:
    checked = check(parse(text), VARIABLES)
    assert not checked.faults
    assert str(checked.type) == kind


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("contxt.user", 0, "unknown name `contxt.user`"),
        ("request.modle == 'x'", 0, "unknown name `request.modle`"),
        ("has(request.model)", 4, "unknown name `request`"),
        ("siez(names)", 0, "unknown function `siez`"),
        ("tokens + 1.0", 7, "`+` doesn't take int and double"),
        ("tokens == '5'", 7, "`==` doesn't take int and string"),
        ("names && true", 0, "an operand of `&&` is list(string), not bool"),
        ("tokens ? 1 : 2", 0, "what stands before `?` is int, not bool"),
        ("true ? 1 : 'a'", 5, "`?:` comes to int or string"),
        ("tokens.x", 7, "a value of type int has no field `x`"),
        ("tokens.all(x, true)", 7, "a loop over int"),
        ("names.all(x, size(x))", 13, "what is asked of each element is int, not bool"),
        ("{1.5: 1}", 1, "a double is no key"),
        ("{1: 2}.x", 7, "keys of `map(int, int)` are no text"),
        ("names.matches('a')", 6, "`matches` doesn't take list(string) and string"),
        ("request.model.matches(request.model)", 30, "`matches` takes a written text"),
        ("request.model.matches('(')", 22, "pattern at character 1: "),
        ("at.getHours('Europe/Berlin')", 12, "no such zone: `Europe/Berlin`"),
        ("contains('a', 'b')", 0, "`contains` is asked of a value"),
        ("'1'.int()", 4, "`int` is not asked of a value"),
        ("size(1, 2)", 0, "`size` doesn't take 2 operands"),
        ("-5u", 0, "`-` doesn't take uint"),
    ],
)
def test_a_fault_says_where_and_what(text: str, position: int, reason: str) -> None:
    faults = check(parse(text), VARIABLES).faults
    assert [fault.position for fault in faults] == [position]
    assert faults[0].reason.startswith(reason)


def test_a_fault_says_what_to_do() -> None:
    advice = {
        text: check(parse(text), VARIABLES).faults[0].advice
        for text in ("request.modle", "tokens + 1.0", "siez(names)", "nothing", "'a'.size() + names")
    }
    assert advice == {
        "request.modle": "did you mean `request.model`?",
        "tokens + 1.0": "make both the same, as in `int(...)`",
        "siez(names)": "did you mean `size`?",
        "nothing": "known are `at`, `context`, `names`, `request.model`, `request.temperature`, `scores`, `tokens`",
        "'a'.size() + names": "it takes int and int, or uint and uint, or double and double, or string and string, "
        "or bytes and bytes, or list(A) and list(A), ...",
    }


def test_all_faults_are_found_in_the_order_of_the_text() -> None:
    checked = check(parse("unknown && tokens.x == 1 || 'a'.matches('[') || 1 + 'b' == 2"), VARIABLES)
    assert [fault.position for fault in checked.faults] == [0, 18, 40, 50]
    assert len(check(parse(" + ".join(["u"] * 40)), VARIABLES).faults) == MAX_FAULTS


def test_names_are_resolved_from_the_longest_and_from_within_the_container() -> None:
    names = {"a.b.c": types.INT, "a.b": types.map_of(types.STRING, types.STRING), "p.q.a": types.INT, "a": types.STRING}
    assert check(parse("a.b.c"), names).expr == Ident(4, "a.b.c")
    assert check(parse("a.b.d"), names).type == types.STRING
    assert check(parse("a"), names, container="p.q.r").expr == Ident(0, "p.q.a")
    assert check(parse(".a"), names, container="p.q.r").type == types.STRING
    assert check(parse("a.b.c + 1"), names).variables == {"a.b.c"}


def test_a_loops_variable_hides_others_unless_a_dot_stands_before() -> None:
    checked = check(parse("names.exists(tokens, tokens == 'a' && .tokens == 1)"), VARIABLES)
    assert not checked.faults
    assert checked.variables == {"names", "tokens"}


def test_types_and_regular_expressions_become_constants() -> None:
    assert check(parse("int"), {}).expr == Literal(0, TypeValue("int"))
    found = check(parse("'a'.matches('b+')"), {}).expr
    assert isinstance(found, Call)
    assert found.arguments[1] == Literal(12, TextRegex("b+"))


def test_a_faulty_part_comes_to_an_error() -> None:
    found = check(parse("f(1)"), {}).expr
    assert found == Literal(0, EvalError("unknown function `f`"))


def test_loops_nest_so_deep_and_no_deeper() -> None:
    def nested(levels: int) -> str:
        return "".join(f"names.all(x{level}, " for level in range(levels)) + "true" + ")" * levels

    assert not check(parse(nested(MAX_LOOPS)), VARIABLES).faults
    assert "nest deeper" in check(parse(nested(MAX_LOOPS + 1)), VARIABLES).faults[0].reason
