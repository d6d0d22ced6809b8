"""Macros: calls that stand for a test of a field or a loop."""

from __future__ import annotations

from typing import Final

from checkstream.core.cel.ast import Call, Comprehension, Expr, Fold, Ident, Literal, Select
from checkstream.errors import ExpressionError

_TESTS: Final = {"all": Fold.ALL, "exists": Fold.EXISTS, "exists_one": Fold.ONE, "existsOne": Fold.ONE}
_BUILDERS: Final = {"transformList": Fold.LIST, "transformMap": Fold.MAP}


def expand(call: Call) -> Expr:
    """Return what the call stands for if it is a macro, else the call.

    Raises:
        ExpressionError: it is a macro, and its arguments are not what the macro takes.
    """
    arguments, count = call.arguments, len(call.arguments)
    if call.target is None:
        return _has(call) if call.function == "has" and count == 1 else call
    if call.function in _TESTS and count in {2, 3}:
        return _loop(call, call.target, _TESTS[call.function], (arguments[-1], None), count - 1)
    if call.function == "filter" and count == 2:
        return _loop(call, call.target, Fold.LIST, (arguments[1], arguments[0]), 1)
    every = Literal(call.position, value=True)
    if call.function == "map" and count in {2, 3}:
        return _loop(call, call.target, Fold.LIST, (arguments[1] if count == 3 else every, arguments[-1]), 1)
    if call.function in _BUILDERS and count in {3, 4}:
        step = arguments[2] if count == 4 else every
        return _loop(call, call.target, _BUILDERS[call.function], (step, arguments[-1]), 2)
    return call


def _has(call: Call) -> Expr:
    """Return the test of a field.

    Raises:
        ExpressionError: the argument is no field.
    """
    field = call.arguments[0]
    if not isinstance(field, Select) or field.test:
        raise ExpressionError("`has` asks for a field", call.position, "write `has(value.field)`")
    return Select(field.position, field.operand, field.field, test=True)


def _loop(call: Call, source: Expr, fold: Fold, body: tuple[Expr, Expr | None], variables: int) -> Expr:
    """Return the loop over `source` whose body is `(step, result)`.

    Raises:
        ExpressionError: its variables are no names, or the same name twice.
    """
    names: list[str] = []
    for variable in call.arguments[:variables]:
        if not isinstance(variable, Ident) or variable.name.startswith(".") or variable.name in names:
            raise ExpressionError(
                f"`{call.function}` begins with the name of its variable",
                variable.position,
                "write `list.all(x, x > 0)`",
            )
        names.append(variable.name)
    return Comprehension(call.position, fold, tuple(names), source, *body)
