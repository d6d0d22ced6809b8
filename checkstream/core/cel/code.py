"""Instructions of many expressions in one flat row, with the constants and variables that they share.

An instruction is `(op, argument)`; each works on a stack. An expression is the instructions from its start to the first
RETURN. All jumps go forward; only STEP goes back, to the NEXT of its own loop:

            range                        KEEP next   when the fold is LIST or MAP: the condition stays below,
            BEGIN exit                   result      the result is left out where it doesn't hold
    head    NEXT end                 next
            condition, or KEEP's ->      STEP head
    end     END fold
    exit

`&&`, `||` and `?:` jump over what doesn't matter, so that its errors don't either.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Any, Final

import msgspec

from checkstream.core.cel.arithmetic import mapped
from checkstream.core.cel.ast import (
    AND,
    CONDITION,
    OR,
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
from checkstream.core.cel.functions import FUNCTIONS, NUMBER_OF
from checkstream.core.cel.values import EvalError, Value, key_value, show

Instruction = tuple[int, int]


class Op(IntEnum):
    """What an instruction does; the most frequent come first."""

    LOAD = 0
    """Push variable `argument`."""
    CONST = 1
    """Push constant `argument`."""
    SELECT = 2
    """Pop a map, push the value of its key, which is constant `argument`."""
    CALL2 = 3
    """Pop two operands, push what function `argument` makes of them."""
    SKIP_FALSE = 4
    """Jump to `argument` if the top is false, and leave it there."""
    AND = 5
    """Pop two, push their conjunction."""
    SKIP_TRUE = 6
    """Jump to `argument` if the top is true, and leave it there."""
    OR = 7
    """Pop two, push their disjunction."""
    CALL1 = 8
    """Pop one operand, push what function `argument` makes of it."""
    RETURN = 9
    """Pop the expression's value."""
    LOCAL = 10
    """Push variable `argument % 2` of the loop `argument // 2`, from the outermost."""
    HAS = 11
    """Pop a map, push whether it has the key that is constant `argument`."""
    GUARD = 12
    """Jump to `argument` with an error in place of the top, unless the top is true or false."""
    BRANCH = 13
    """Pop; jump to `argument` if it was not true."""
    JUMP = 14
    """Jump to `argument`."""
    LIST = 15
    """Pop `argument` elements, push their list."""
    MAP = 16
    """Pop `argument` pairs, push their map."""
    BEGIN = 17
    """Pop a range and begin a loop; push an error and jump to `argument` if it is none."""
    NEXT = 18
    """Take the next element; jump to `argument` if there is none."""
    KEEP = 19
    """Jump to `argument` with null on top unless the top is true."""
    STEP = 20
    """Pop what was found of the element; go back to `argument`, or on when the fold is decided."""
    END = 21
    """End a loop and push its result. `argument` is twice the fold, and one more for two variables."""


class Code(msgspec.Struct, frozen=True):
    """Everything that the machine runs."""

    instructions: tuple[Instruction, ...]
    constants: tuple[Any, ...]
    """Values."""
    variables: tuple[str, ...]
    """Names of what `load` is asked for, by number."""


class Assembler:
    """Compiles trees into one `Code`; equal constants and variables are kept once."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._instructions: list[Instruction] = []
        self._constants: dict[Any, int] = {}
        self._values: list[Value] = []
        self._variables: dict[str, int] = {}

    def add(self, expr: Expr) -> int:
        """Compile a tree, resolved by `check` or made by hand, and return where it starts.

        Every `Ident` that no loop around it binds is a variable, by its whole name. A function that doesn't exist
        comes to an error when it is run.
        """
        start = len(self._instructions)
        self._compile(expr, {})
        self._emit(Op.RETURN)
        return start

    def build(self) -> Code:
        """Return all that was compiled so far."""
        return Code(tuple(self._instructions), tuple(self._values), tuple(self._variables))

    def _emit(self, op: Op, argument: int = 0) -> int:
        """Append an instruction and return its place."""
        self._instructions.append((int(op), argument))
        return len(self._instructions) - 1

    def _land(self, place: int) -> None:
        """Make the jump at `place` end here."""
        self._instructions[place] = (self._instructions[place][0], len(self._instructions))

    def _constant(self, value: Value) -> int:
        key = _identity(value)
        if key not in self._constants:
            self._constants[key] = len(self._values)
            self._values.append(value)
        return self._constants[key]

    def _compile(self, expr: Expr, scope: Mapping[str, int]) -> None:
        constant = _folded(expr)
        if constant is not None:
            self._emit(Op.CONST, self._constant(constant[0]))
        elif isinstance(expr, Ident):
            self._ident(expr.name, scope)
        elif isinstance(expr, Select):
            self._compile(expr.operand, scope)
            self._emit(Op.HAS if expr.test else Op.SELECT, self._constant(expr.field))
        elif isinstance(expr, Call):
            self._call(expr, scope)
        elif isinstance(expr, ListExpr):
            for element in expr.elements:
                self._compile(element, scope)
            self._emit(Op.LIST, len(expr.elements))
        elif isinstance(expr, MapExpr):
            for key, value in expr.pairs:
                self._compile(key, scope)
                self._compile(value, scope)
            self._emit(Op.MAP, len(expr.pairs))
        elif isinstance(expr, Comprehension):
            self._loop(expr, scope)

    def _ident(self, name: str, scope: Mapping[str, int]) -> None:
        if name in scope:
            self._emit(Op.LOCAL, scope[name])
        else:
            self._emit(Op.LOAD, self._variables.setdefault(name.removeprefix("."), len(self._variables)))

    def _call(self, expr: Call, scope: Mapping[str, int]) -> None:
        operands = expr.operands
        if expr.function in {AND, OR}:
            skip, join = (Op.SKIP_FALSE, Op.AND) if expr.function == AND else (Op.SKIP_TRUE, Op.OR)
            self._compile(operands[0], scope)
            place = self._emit(skip)
            self._compile(operands[1], scope)
            self._emit(join)
            self._land(place)
            return
        if expr.function == CONDITION:
            self._conditional(operands, scope)
            return
        number = NUMBER_OF.get(f"{expr.function}/{len(operands)}")
        if number is None:
            self._emit(Op.CONST, self._constant(EvalError(f"no function `{expr.function[:80]}`")))
            return
        for operand in operands:
            self._compile(operand, scope)
        self._emit(Op.CALL1 if len(operands) == 1 else Op.CALL2, number)

    def _conditional(self, operands: tuple[Expr, ...], scope: Mapping[str, int]) -> None:
        self._compile(operands[0], scope)
        guard = self._emit(Op.GUARD)
        branch = self._emit(Op.BRANCH)
        self._compile(operands[1], scope)
        jump = self._emit(Op.JUMP)
        self._land(branch)
        self._compile(operands[2], scope)
        self._land(jump)
        self._land(guard)

    def _loop(self, expr: Comprehension, scope: Mapping[str, int]) -> None:
        self._compile(expr.range, scope)
        begin = self._emit(Op.BEGIN)
        head = self._emit(Op.NEXT)
        # A variable is found by its loop's depth, and shadows one of the same name further out.
        depth = 1 + max((local // 2 for local in scope.values()), default=-1)
        inner = {**scope, **{name: 2 * depth + place for place, name in enumerate(expr.variables)}}
        self._compile(expr.step, inner)
        if expr.result is not None:
            keep = self._emit(Op.KEEP)
            self._compile(expr.result, inner)
            self._land(keep)
        self._emit(Op.STEP, head)
        self._land(head)
        self._emit(Op.END, 2 * expr.fold + len(expr.variables) - 1)
        self._land(begin)


def _folded(expr: Expr) -> tuple[Value] | None:
    """Return the value of a tree of literals, in a tuple, or None for any other."""
    if isinstance(expr, Literal):
        return (expr.value,)
    if isinstance(expr, ListExpr):
        elements = [_folded(element) for element in expr.elements]
        values = [element[0] for element in elements if element is not None]
        plain = len(values) == len(elements) and not any(isinstance(value, EvalError) for value in values)
        return (tuple(values),) if plain else None
    if isinstance(expr, MapExpr):
        items = [_folded(part) for pair in expr.pairs for part in pair]
        values = [item[0] for item in items if item is not None]
        made = mapped(values) if len(values) == len(items) else None
        return (made,) if isinstance(made, dict) else None
    return None


def _identity(value: Value) -> Any:
    """Return what two constants share only when they are the same: 1, 1u, 1.0 and true are not, nor 0.0 and -0.0."""
    if isinstance(value, tuple):
        return ("list", *(_identity(element) for element in value))
    if isinstance(value, dict):
        return ("map", *((_identity(key_value(key)), _identity(item)) for key, item in value.items()))
    return (type(value), repr(value) if isinstance(value, float) else value)


JUMPS: Final = frozenset(
    {Op.SKIP_FALSE, Op.SKIP_TRUE, Op.GUARD, Op.BRANCH, Op.JUMP, Op.BEGIN, Op.NEXT, Op.KEEP, Op.STEP}
)


def disassemble(code: Code, start: int) -> list[str]:
    """Return the instructions of the expression at `start`, one a line, with their operands spelled out.

    The code must be sound (`verify`).
    """
    lines: list[str] = []
    place = start
    while True:
        op, argument = code.instructions[place]
        lines.append(f"{place:04}  {Op(op).name:<10}  {_operand(code, Op(op), argument)}".rstrip())
        if op == Op.RETURN:
            return lines
        place += 1


def _operand(code: Code, op: Op, argument: int) -> str:
    if op is Op.LOAD:
        return code.variables[argument]
    if op in {Op.CONST, Op.SELECT, Op.HAS}:
        return show(code.constants[argument])
    if op in {Op.CALL1, Op.CALL2}:
        return FUNCTIONS[argument].name
    if op is Op.LOCAL:
        return f"loop {argument // 2}, variable {argument % 2}"
    if op in JUMPS:
        return f"-> {argument:04}"
    if op in {Op.LIST, Op.MAP}:
        return str(argument)
    if op is Op.END:
        return f"{Fold(argument // 2).name.lower()}, {argument % 2 + 1} variable{'s' * (argument % 2)}"
    return ""
