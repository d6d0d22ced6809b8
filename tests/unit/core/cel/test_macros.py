"""Macros."""

from __future__ import annotations

import pytest

from checkstream.core.cel.ast import Call, Comprehension, Fold, Ident, Literal, Select
from checkstream.core.cel.syntax import parse
from checkstream.errors import ExpressionError


def test_has_is_a_test_of_a_field() -> None:
    assert parse("has(a.b)") == Select(6, Ident(4, "a"), "b", test=True)


def test_loops_stand_for_folds() -> None:
    found = [parse(text) for text in ("r.all(x, c)", "r.exists(x, c)", "r.exists_one(x, c)", "r.existsOne(x, y, c)")]
    assert [(loop.fold, loop.variables) for loop in found if isinstance(loop, Comprehension)] == [
        (Fold.ALL, ("x",)),
        (Fold.EXISTS, ("x",)),
        (Fold.ONE, ("x",)),
        (Fold.ONE, ("x", "y")),
    ]


def test_a_filter_keeps_its_variable_and_a_map_keeps_all() -> None:
    kept, made = parse("r.filter(x, c)"), parse("r.map(x, e)")
    assert isinstance(kept, Comprehension)
    assert isinstance(made, Comprehension)
    assert (kept.step, kept.result) == (Ident(12, "c"), Ident(9, "x"))
    assert (made.step, made.result) == (Literal(2, value=True), Ident(9, "e"))


def test_other_numbers_of_arguments_are_plain_calls() -> None:
    for text in ("r.all(x)", "has(a, b)", "a.has(b)", "all(x, y)", "r.filter(x, y, z)"):
        assert isinstance(parse(text), Call)


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("has(a)", 0),
        ("has(has(a.b))", 0),
        ("r.all(1, c)", 6),
        ("r.map(a.b, c)", 8),
        ("r.all(.x, c)", 6),
        ("r.all(x, x, c)", 9),
    ],
)
def test_arguments_that_no_macro_takes_are_refused(text: str, position: int) -> None:
    with pytest.raises(ExpressionError) as raised:
        parse(text)
    assert raised.value.position == position
    assert raised.value.advice
