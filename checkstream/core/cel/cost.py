"""What an expression can cost at worst, before it is run.

The unit is one step of the machine. Texts cost a step for each `CHARS_A_STEP` characters that may be read, lists and
maps one for each element, loops the steps of their body for each element of their range.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from checkstream.core.cel.ast import (
    CONDITION,
    INDEX,
    Call,
    Comprehension,
    Expr,
    Fold,
    Ident,
    ListExpr,
    Literal,
    MapExpr,
    Select,
)
from checkstream.core.cel.check import Checked
from checkstream.core.cel.functions import FUNCTIONS, NUMBER_OF

CHARS_A_STEP: Final = 10
MOST: Final = 10**15
"""Greater costs are not told apart."""


class Extent(msgspec.Struct, frozen=True):
    """How large a value can be."""

    length: int = 1
    """Characters, bytes, elements or keys."""
    work: int = 1
    """Steps to read all of it, however deep."""
    element: Extent | None = None
    """That of the elements, or of the keys and values; None when they can be as large as the whole."""

    @property
    def inner(self) -> Extent:
        """How large an element can be."""
        return self.element or self


_SMALL: Final = Extent()
_TEXT: Final = Extent(64, 7)
"""What conversions of numbers and times write."""


def worst_cost(checked: Checked, sizes: Mapping[str, int | Extent], *, default: int = 1024) -> int:
    """Return the greatest number of steps that running the expression can take, at most `MOST`.

    Args:
        checked: The expression.
        sizes: For each variable how large its value can be, as an extent or as a number: the most characters and
            elements that it has, all levels together.
        default: That number for variables that `sizes` doesn't name.
    """
    return min(_Bound(sizes, default).of(checked.expr, {})[0] + 1, MOST)


class _Bound:
    def __init__(self, sizes: Mapping[str, int | Extent], default: int) -> None:
        self._sizes = sizes
        self._default = default

    def of(self, expr: Expr, scope: Mapping[str, Extent]) -> tuple[int, Extent]:
        """Return the steps of `expr`, and how large its value can be."""
        cost, extent = self._of(expr, scope)
        return min(cost, MOST), Extent(min(extent.length, MOST), min(extent.work, MOST), extent.element)

    def _of(self, expr: Expr, scope: Mapping[str, Extent]) -> tuple[int, Extent]:
        if isinstance(expr, Literal):
            return 1, _extent(expr.value)
        if isinstance(expr, Ident):
            if expr.name in scope:
                return 1, scope[expr.name]
            size = self._sizes.get(expr.name.removeprefix("."), self._default)
            return 1, size if isinstance(size, Extent) else Extent(size, size)
        if isinstance(expr, Select):
            cost, extent = self.of(expr.operand, scope)
            return cost + 1, _SMALL if expr.test else extent.inner
        if isinstance(expr, Call):
            return self._call(expr, scope)
        if isinstance(expr, ListExpr):
            return self._holder(expr.elements, len(expr.elements), scope)
        if isinstance(expr, MapExpr):
            return self._holder(tuple(part for pair in expr.pairs for part in pair), len(expr.pairs), scope)
        if isinstance(expr, Comprehension):
            return self._loop(expr, scope)
        raise TypeError(type(expr).__name__)

    def _holder(self, parts: tuple[Expr, ...], length: int, scope: Mapping[str, Extent]) -> tuple[int, Extent]:
        found = [self.of(part, scope) for part in parts]
        work = 1 + sum(extent.work for _, extent in found)
        return 1 + len(parts) + sum(cost for cost, _ in found), Extent(
            length, work, _greatest([extent for _, extent in found])
        )

    def _call(self, expr: Call, scope: Mapping[str, Extent]) -> tuple[int, Extent]:
        found = [self.of(operand, scope) for operand in expr.operands]
        cost, extents = 2 + sum(cost for cost, _ in found), [extent for _, extent in found]
        if expr.function == CONDITION:
            return 4 + found[0][0] + max(found[1][0], found[2][0]), _greatest(extents[1:])
        number = NUMBER_OF.get(f"{expr.function}/{len(extents)}")
        if number is None:
            return cost, _SMALL
        first, last = extents[0], extents[-1]
        work = FUNCTIONS[number].work
        if work == "first":
            cost += first.work
        elif work == "both":
            operands = zip(expr.operands, extents, strict=True)
            written = [extent.work for operand, extent in operands if isinstance(operand, Literal)]
            # A comparison ends with the smaller value; what is written bounds it however large the other is.
            cost += min(written) if written and expr.function != "_+_" else first.work + last.work
        elif work == "search":
            cost += last.length + last.work  # to compare two values takes no more than to read the smaller
        return cost, _made(expr.function, first, last)

    def _loop(self, expr: Comprehension, scope: Mapping[str, Extent]) -> tuple[int, Extent]:
        cost, source = self.of(expr.range, scope)
        # The elements share what is in the whole. All that is bounded here grows at least in step with an element's
        # size, so that the worst of all ranges has everything in one element and next to nothing in the others.
        whole = Extent(max(source.length, source.work), source.work)
        most, _ = self._body(expr, whole, scope)
        least, _ = self._body(expr, _SMALL, scope)
        extent = _SMALL
        if expr.result is not None:
            _, made = self._body(expr, source.inner, scope)
            key = source.inner.work if expr.fold is Fold.MAP else 0
            extent = Extent(source.length, 1 + source.length * (made.work + key), _greatest([made, source.inner]))
        return 3 + cost + most + source.length * (least + 3), extent

    def _body(self, expr: Comprehension, element: Extent, scope: Mapping[str, Extent]) -> tuple[int, Extent]:
        """Return the steps of a loop's body for one element, and how large its result can be."""
        inner = {**scope, **dict.fromkeys(expr.variables, element)}
        cost, _ = self.of(expr.step, inner)
        if expr.result is None:
            return cost, _SMALL
        result, extent = self.of(expr.result, inner)
        return cost + result, extent


def _made(function: str, first: Extent, last: Extent) -> Extent:
    """Return how large what a function makes can be."""
    if function == "_+_":
        element = None if first.element is None or last.element is None else _greatest([first.element, last.element])
        return Extent(first.length + last.length, first.work + last.work, element)
    if function == INDEX:
        return first.inner
    if function == "string":
        return Extent(first.length + _TEXT.length, first.work + _TEXT.work)
    if function == "bytes":
        return Extent(4 * first.length, 4 * first.work)  # UTF-8 has up to 4 bytes for a character
    return first if function == "dyn" else _SMALL


def _greatest(extents: list[Extent]) -> Extent:
    """Return an extent that none of these passes."""
    if not extents:
        return _SMALL
    elements = [extent.element for extent in extents if extent.element is not None]
    return Extent(
        max(extent.length for extent in extents),
        max(extent.work for extent in extents),
        _greatest(elements) if len(elements) == len(extents) else None,
    )


def _extent(value: object) -> Extent:
    return Extent(len(value), 1 + len(value) // CHARS_A_STEP) if isinstance(value, str | bytes) else _SMALL
