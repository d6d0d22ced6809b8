"""The tree of an expression.

Operators are calls under CEL's own names (`_&&_`, `_==_`, `_[_]`, ...). `position` is the code point of the
expression's text that a fault of the node points at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Any, Final

import msgspec

AND: Final = "_&&_"
OR: Final = "_||_"
NOT: Final = "!_"
NEGATE: Final = "-_"
CONDITION: Final = "_?_:_"
INDEX: Final = "_[_]"
EQUAL: Final = "_==_"
MATCHES: Final = "matches"


class Expr(msgspec.Struct, frozen=True):
    """A node of the tree."""

    position: int


class Literal(Expr, frozen=True):
    """A value as it was written."""

    value: Any
    """A `Value`."""


class Ident(Expr, frozen=True):
    """A name. With a dot in front it is a declared variable, also where a loop has a variable of that name."""

    name: str


class Select(Expr, frozen=True):
    """`operand.field`, or `has(operand.field)` when it is a test."""

    operand: Expr
    field: str
    test: bool = False


class Call(Expr, frozen=True):
    """`function(arguments)`, or `target.function(arguments)`."""

    function: str
    target: Expr | None
    arguments: tuple[Expr, ...]

    @property
    def operands(self) -> tuple[Expr, ...]:
        """The target, if any, and the arguments."""
        return self.arguments if self.target is None else (self.target, *self.arguments)


class ListExpr(Expr, frozen=True):
    """`[elements]`."""

    elements: tuple[Expr, ...]


class MapExpr(Expr, frozen=True):
    """`{key: value}`."""

    pairs: tuple[tuple[Expr, Expr], ...]


class Fold(IntEnum):
    """What a comprehension makes of the elements of its range."""

    ALL = 0
    """Whether `step` holds of every element."""
    EXISTS = 1
    """Whether it holds of any."""
    ONE = 2
    """Whether it holds of exactly one."""
    LIST = 3
    """The list of `result` for the elements of which it holds."""
    MAP = 4
    """The map from the keys of which it holds to `result`."""


class Comprehension(Expr, frozen=True):
    """A loop over the elements of a list or the keys of a map."""

    fold: Fold
    variables: tuple[str, ...]
    """One: the element or key. Two: index and element, or key and value."""
    range: Expr
    step: Expr
    """What is asked of each element."""
    result: Expr | None = None
    """What LIST and MAP put together."""


def parts(expr: Expr) -> Iterator[Expr]:
    """Return the nodes right below `expr`, in the order of evaluation."""
    if isinstance(expr, Select):
        yield expr.operand
    elif isinstance(expr, Call):
        yield from expr.operands
    elif isinstance(expr, ListExpr):
        yield from expr.elements
    elif isinstance(expr, MapExpr):
        for key, value in expr.pairs:
            yield key
            yield value
    elif isinstance(expr, Comprehension):
        yield expr.range
        yield expr.step
        if expr.result is not None:
            yield expr.result


def transform(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """Return the tree with every node put through `change`, those below before those above."""

    def below(part: Expr) -> Expr:
        return transform(part, change)

    if isinstance(expr, Select):
        expr = Select(expr.position, below(expr.operand), expr.field, expr.test)
    elif isinstance(expr, Call):
        target = None if expr.target is None else below(expr.target)
        expr = Call(expr.position, expr.function, target, tuple(below(part) for part in expr.arguments))
    elif isinstance(expr, ListExpr):
        expr = ListExpr(expr.position, tuple(below(part) for part in expr.elements))
    elif isinstance(expr, MapExpr):
        expr = MapExpr(expr.position, tuple((below(key), below(value)) for key, value in expr.pairs))
    elif isinstance(expr, Comprehension):
        result = None if expr.result is None else below(expr.result)
        expr = Comprehension(expr.position, expr.fold, expr.variables, below(expr.range), below(expr.step), result)
    return change(expr)


def balanced(function: str, operands: Sequence[Expr], positions: Sequence[int] | None = None) -> Expr:
    """Join operands (at least one) by `AND` or `OR`, whose order of joining changes nothing, as flatly as can be.

    Args:
        function: `AND` or `OR`.
        operands: What is joined, in the order of evaluation.
        positions: Where the operators between them stand; by default each at the operand after it.
    """
    if len(operands) == 1:
        return operands[0]
    places = [operand.position for operand in operands[1:]] if positions is None else list(positions)
    middle = len(operands) // 2
    left = balanced(function, operands[:middle], places[: middle - 1])
    right = balanced(function, operands[middle:], places[middle:])
    return Call(places[middle - 1], function, None, (left, right))
