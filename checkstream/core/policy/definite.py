"""What to write before a condition so that it can always be decided."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from checkstream.core.cel.ast import Expr, Ident, Select, parts
from checkstream.core.cel.syntax import parse
from checkstream.core.cel.values import Value
from checkstream.errors import ExpressionError


def missing_guard(condition: str, known: Mapping[str, Value]) -> str:
    """Return `has(context.user) && has(context.user.age)` for what a condition reads and what isn't there.

    Args:
        condition: As written.
        known: Name of a variable -> its value, of those that can be asked so.

    Returns:
        The guard, empty when nothing that can be asked for is missing, or when there is no such condition.
    """
    try:
        paths = list(_paths(parse(condition)))
    except ExpressionError:
        return ""
    asked: dict[str, None] = {}
    for root, *fields in paths:
        if root in known and _is_missing(known[root], fields):
            asked |= {f"has({'.'.join((root, *fields[:end]))})": None for end in range(1, len(fields) + 1)}
    return " && ".join(asked)


def _paths(expr: Expr) -> Iterator[tuple[str, ...]]:
    """Yield what is read as `name.field.field`, the longest only; what `has` asks of is read up to its last field."""
    fields: list[str] = []
    node = expr.operand if isinstance(expr, Select) and expr.test else expr
    while isinstance(node, Select) and not node.test:
        fields.append(node.field)
        node = node.operand
    if isinstance(node, Ident) and fields:
        yield (node.name, *reversed(fields))
    elif node is not expr:
        yield from _paths(node)
    else:
        for part in parts(expr):
            yield from _paths(part)


def _is_missing(value: Value, fields: list[str]) -> bool:
    for field in fields:
        if not isinstance(value, Mapping):
            return False  # of another type: to ask for the field would not help
        if field not in value:
            return True
        value = value[field]
    return False
