"""Reading expressions."""

from __future__ import annotations

import pytest

from checkstream.core.cel.ast import Call, Expr, Ident, ListExpr, Literal, MapExpr, Select, parts
from checkstream.core.cel.syntax import MAX_CHARS, MAX_DEPTH, parse
from checkstream.errors import ExpressionError


def shape(expr: Expr) -> str:
    """Write a tree with all its brackets."""
    if isinstance(expr, Literal):
        return repr(expr.value)
    if isinstance(expr, Ident):
        return expr.name
    if isinstance(expr, Select):
        return f"{'has ' * expr.test}{shape(expr.operand)}.{expr.field}"
    below = " ".join(shape(part) for part in parts(expr))
    return f"{expr.function if isinstance(expr, Call) else type(expr).__name__}({below})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a + b * c - d", "_-_(_+_(a _*_(b c)) d)"),
        ("a || b && c", "_||_(a _&&_(b c))"),
        ("a < b == c", "_==_(_<_(a b) c)"),
        ("a + 1 in b", "@in(_+_(a 1) b)"),
        ("a ? b : c ? d : e", "_?_:_(a b _?_:_(c d e))"),
        ("!a.b[0].c(d)", "!_(c(_[_](a.b 0) d))"),
        ("-x", "-_(x)"),
        ("- 5", "-5"),
        ("a - 5", "_-_(a 5)"),
        ("--5", "-_(-5)"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("-1u", "-_(1u)"),
        ("[1, a,]", "ListExpr(1 a)"),
        ("{'a': 1, b: c,}", "MapExpr('a' 1 b c)"),
        (".a.b", ".a.b"),
        ("a.package.`b-c`", "a.package.b-c"),
        ("(((a)))", "a"),
    ],
)
def test_operators_bind_as_the_grammar_says(text: str, tree: str) -> None:
    assert shape(parse(text)) == tree


def test_a_row_of_ands_is_a_flat_tree_in_order() -> None:
    assert shape(parse("a && b && c && d")) == "_&&_(_&&_(a b) _&&_(c d))"


def test_nodes_stand_where_a_fault_of_them_is_shown() -> None:
    expr = parse("first + second.field")
    assert isinstance(expr, Call)
    assert [expr.position, *(part.position for part in parts(expr))] == [6, 0, 15]


def test_empty_lists_and_maps_are_read() -> None:
    assert parse("[]") == ListExpr(0, ())
    assert parse("{}") == MapExpr(0, ())


@pytest.mark.parametrize(
    ("text", "position", "reason"),
    [
        ("", 0, "the expression ends too early"),
        ("a +", 3, "the expression ends too early"),
        ("a b", 2, "`b` stands where an operator or the end is expected"),
        ("(a", 2, "the expression ends too early"),
        ("a.1", 1, "`.1` stands where an operator or the end is expected"),
        ("a.(b)", 2, "`(` stands where the name of a field is expected"),
        ("[1 2]", 3, "`2` stands where `]` is expected"),
        ("{1}", 2, "`}` stands where `:` is expected"),
        ("a ? b", 5, "the expression ends too early"),
        ("package + 1", 0, "`package` is a reserved word"),
        ("a.b{c: 1}", 3, "messages can't be made"),
        ("!-a", 1, "`!` and `-` stand together"),
        ("9223372036854775808", 0, "a number passes the range of int"),
        ("-(9223372036854775808)", 2, "a number passes the range of int"),
    ],
)
def test_what_is_not_in_the_language_is_refused_at_its_place(text: str, position: int, reason: str) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    assert (raised.value.position, raised.value.reason) == (position, reason)


def test_length_and_depth_have_limits() -> None:
    parse("a" * MAX_CHARS)
    with pytest.raises(ExpressionError, match="an expression of 4001 characters"):
        parse("a" * (MAX_CHARS + 1))
    parse("(" * (MAX_DEPTH - 1) + "a" + ")" * (MAX_DEPTH - 1))
    parse("a" + " + a" * (MAX_DEPTH - 1))
    for text in ("(" * MAX_DEPTH + "a" + ")" * MAX_DEPTH, "a" + " + a" * MAX_DEPTH, "a" + ".a" * MAX_DEPTH):
        with pytest.raises(ExpressionError, match=f"deeper than {MAX_DEPTH} levels"):
            parse(text)
