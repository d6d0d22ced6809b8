"""Trees."""

from __future__ import annotations

from checkstream.core.cel.ast import AND, Call, Expr, Ident, Literal, Select, balanced, parts, transform
from checkstream.core.cel.syntax import parse

EVERYTHING = "has(a.b) && [a, {a: a.c}].map(x, a > x, f(a, a.g(a))) == (a ? a : a[a]) || r.all(x, a)"


def names(expr: Expr) -> list[str]:
    own = [expr.name] if isinstance(expr, Ident) else []
    return own + [name for part in parts(expr) for name in names(part)]


def test_a_transformation_reaches_every_node_and_keeps_all_else() -> None:
    expr = parse(EVERYTHING)
    assert transform(expr, lambda node: node) == expr
    renamed = transform(expr, lambda node: Ident(node.position, "b") if node == Ident(node.position, "a") else node)
    assert names(expr).count("a") > 10
    assert names(renamed) == ["b" if name == "a" else name for name in names(expr)]


def test_nodes_are_changed_from_below() -> None:
    def change(node: Expr) -> Expr:
        if isinstance(node, Select) and node.operand == Ident(0, "scores"):
            return Ident(node.position, f"score {node.field}")
        if isinstance(node, Call) and any(isinstance(part, Ident) for part in parts(node)):
            return Literal(node.position, "seen")
        return node

    assert transform(parse("scores.x > 1"), change) == Literal(9, "seen")


def test_operands_are_joined_in_order_and_flat() -> None:
    operands = [Ident(place, f"v{place}") for place in range(1000)]
    expr = balanced(AND, operands)
    assert names(expr) == [f"v{place}" for place in range(1000)]
    depth, level = 0, [expr]
    while level:
        depth, level = depth + 1, [part for node in level for part in parts(node)]
    assert depth == 11
    assert balanced(AND, operands[:1]) is operands[0]
