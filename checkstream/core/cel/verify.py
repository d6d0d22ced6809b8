"""Prove that code is safe to run, whoever wrote it.

Code that passes stays within its constants, variables, functions and stack, has its stack at one height at each
instruction whichever way it came there, goes back only from a loop's STEP to its own NEXT, and ends in RETURN. With the
machine's budget for loops, each run of it ends.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from checkstream.core.cel.ast import Fold
from checkstream.core.cel.check import MAX_LOOPS
from checkstream.core.cel.code import Code, Op
from checkstream.core.cel.functions import FUNCTIONS
from checkstream.core.cel.values import (
    INT_MAX,
    INT_MIN,
    MAX_NESTING,
    TIMESTAMP_MAX,
    TIMESTAMP_MIN,
    UINT_MAX,
    Duration,
    EvalError,
    Timestamp,
    TypeValue,
    Uint,
)
from checkstream.core.match.regex import TextRegex
from checkstream.errors import CodeInvalid

MAX_INSTRUCTIONS: Final = 1_000_000
MAX_STACK: Final = 8192
_OPS: Final = len(Op)
# A map is made of keys and values, so its loop has two variables.
_FOLDS: Final = frozenset(2 * fold + pairs for fold in Fold for pairs in (0, 1)) - {2 * Fold.MAP}


class _Loop(msgspec.Struct, frozen=True):
    """A loop around an instruction."""

    begin: int
    leave: int
    """The instruction after its END."""
    height: int
    """Of the stack below what its body pushes."""
    end: int
    """The argument of its END."""

    @property
    def results(self) -> int:
        """How many values its STEP pops."""
        return 2 if self.end // 2 >= Fold.LIST else 1


class _State(msgspec.Struct, frozen=True):
    """What holds whenever an instruction is reached."""

    height: int
    loops: tuple[_Loop, ...] = ()


def verify(code: Code, starts: Iterable[int]) -> None:
    """Check the constants, and every expression that starts at one of `starts`.

    Raises:
        CodeInvalid: the code is not safe to run.
    """
    if len(code.instructions) > MAX_INSTRUCTIONS:
        raise CodeInvalid(f"{len(code.instructions)} instructions; at most {MAX_INSTRUCTIONS} are run")
    for name in code.variables:
        if type(name) is not str:
            raise CodeInvalid("the name of a variable is no text")
    for constant in code.constants:
        if type(constant) is not EvalError or type(constant.reason) is not str:
            _check_constant(constant, MAX_NESTING)
    for start in sorted(set(starts)):
        if type(start) is not int or not 0 <= start < len(code.instructions):
            raise CodeInvalid(f"an expression starts at {start}, outside of the code")
        if start and code.instructions[start - 1][0] != Op.RETURN:
            raise CodeInvalid(f"an expression starts at {start}, within another one")
        _Walk(code, start).walk()


def _check_constant(value: Any, levels: int) -> None:
    """Check that a constant is a value.

    Raises:
        CodeInvalid: it is none.
    """
    kind = type(value)
    sound = (
        kind in {bool, str, bytes, float, type(None), TextRegex}
        or (kind is int and INT_MIN <= value <= INT_MAX)
        or (kind is Uint and 0 <= value <= UINT_MAX)
        or (kind is TypeValue and type(value.name) is str)
        or (kind is Duration and type(value.nanos) is int and INT_MIN <= value.nanos <= INT_MAX)
        or (kind is Timestamp and type(value.nanos) is int and TIMESTAMP_MIN <= value.nanos <= TIMESTAMP_MAX)
    )
    if kind in {tuple, dict} and levels:
        for item in value if kind is tuple else value.values():
            _check_constant(item, levels - 1)
        sound = kind is tuple or all(_is_key(key) for key in value)
    if not sound:
        raise CodeInvalid(f"a constant of type `{kind.__name__}` is no value")


def _is_key(key: Any) -> bool:
    kind = type(key)
    if kind is tuple:
        return len(key) == 1 and type(key[0]) is bool
    return kind is str or (kind is int and INT_MIN <= key <= INT_MAX) or (kind is Uint and 0 <= key <= UINT_MAX)


class _Walk:
    """Goes once through one expression and keeps what holds at the instructions ahead."""

    def __init__(self, code: Code, start: int) -> None:
        self._code = code
        self._place = start
        self._end = next(
            (place for place in range(start, len(code.instructions)) if code.instructions[place][0] == Op.RETURN), -1
        )
        self._ahead: dict[int, _State] = {start: _State(0)}

    def walk(self) -> None:
        """Check each instruction up to RETURN.

        Raises:
            CodeInvalid: see `verify`.
        """
        if self._end < 0:
            raise CodeInvalid(f"the expression at {self._place} never returns")
        while self._place <= self._end:
            state = self._ahead.pop(self._place, None)
            if state is None:
                raise self._wrong("nothing leads there")
            op, argument = self._read(self._place)
            self._instruction(op, argument, state)
            self._place += 1

    def _wrong(self, reason: str) -> CodeInvalid:
        return CodeInvalid(f"instruction {self._place}: {reason}")

    def _read(self, place: int) -> tuple[Op, int]:
        """Return the instruction at `place`.

        Raises:
            CodeInvalid: it is none.
        """
        instruction: Any = self._code.instructions[place]
        if type(instruction) is not tuple or len(instruction) != 2:
            raise self._wrong("is no pair")
        op, argument = instruction
        if type(op) is not int or type(argument) is not int or not 0 <= op < _OPS or argument < 0:
            raise self._wrong("has no such operation")
        return Op(op), argument

    def _go(self, target: int, height: int, loops: tuple[_Loop, ...]) -> None:
        """Note what holds at `target`, which lies ahead.

        Raises:
            CodeInvalid: it doesn't, or something else holds there too.
        """
        if not self._place < target <= self._end:
            raise self._wrong(f"leads to {target}")
        if not 0 <= height <= MAX_STACK:
            raise self._wrong("takes more from the stack than is there, or puts too much on it")
        state = _State(height, loops)
        if self._ahead.setdefault(target, state) != state:
            raise self._wrong(f"comes to {target} with another stack")

    def _instruction(self, op: Op, argument: int, state: _State) -> None:
        """Check one instruction and note what it leads to.

        Raises:
            CodeInvalid: it is not safe.
        """
        if op is Op.RETURN:
            if state.height != 1 or state.loops:
                raise self._wrong("returns with more or less than one value")
        elif op is Op.BEGIN:
            self._begin(argument, state)
        elif op in {Op.NEXT, Op.STEP, Op.END}:
            if not state.loops or not self._belongs(op, argument, state.height, state.loops[-1]):
                raise self._wrong("belongs to another loop, or to none")
            self._looped(op, argument, state)
        else:
            taken, jump_takes = self._effect(op, argument, state.loops)
            if state.height < taken[0]:
                raise self._wrong("takes more from the stack than is there")
            if op is not Op.JUMP:
                self._go(self._place + 1, state.height + taken[1], state.loops)
            if jump_takes is not None:
                self._go(argument, state.height + jump_takes, state.loops)

    def _belongs(self, op: Op, argument: int, height: int, loop: _Loop) -> bool:
        """Return whether an instruction stands at its place in the loop around it, with the right stack."""
        if op is Op.NEXT:
            return loop.begin == self._place - 1 and height == loop.height
        if op is Op.STEP:
            at_place = self._place == loop.leave - 2 and argument == loop.begin + 1
            return at_place and height - loop.results == loop.height
        return self._place == loop.leave - 1 and height == loop.height

    def _looped(self, op: Op, argument: int, state: _State) -> None:
        """Note what NEXT, STEP or END leads to.

        Raises:
            CodeInvalid: something else holds there too.
        """
        height, loops, following = state.height, state.loops, self._place + 1
        if op is Op.NEXT:
            self._go(following, height, loops)
            self._go(argument, height, loops)
        elif op is Op.STEP:
            self._go(following, loops[-1].height, loops)
        else:
            self._go(following, height + 1, loops[:-1])

    def _begin(self, leave: int, state: _State) -> None:
        """Check the shape of a loop.

        Raises:
            CodeInvalid: it is not that of a loop.
        """
        if not self._place + 4 <= leave <= self._end or state.height < 1:
            raise self._wrong("begins a loop without an end, or without a range")
        if len(state.loops) == MAX_LOOPS:
            raise self._wrong(f"loops nest deeper than {MAX_LOOPS}")
        closing, argument = self._read(leave - 1)
        if self._read(self._place + 1) != (Op.NEXT, leave - 1) or closing is not Op.END or argument not in _FOLDS:
            raise self._wrong("begins a loop without NEXT and END")
        loop = _Loop(self._place, leave, state.height - 1, argument)
        self._go(self._place + 1, loop.height, (*state.loops, loop))
        self._go(leave, state.height, state.loops)

    def _effect(self, op: Op, argument: int, loops: tuple[_Loop, ...]) -> tuple[tuple[int, int], int | None]:
        """Return what an instruction needs on the stack and how it changes its height, here and where it jumps.

        Raises:
            CodeInvalid: its argument is out of bounds.
        """
        constants = self._code.constants
        if op in _BOUNDLESS:
            return _BOUNDLESS[op]
        if op is Op.LIST or op is Op.MAP:
            count = min(argument, MAX_STACK) * (1 if op is Op.LIST else 2)
            return (count, 1 - count), None
        if op is Op.LOAD:
            sound, effect = argument < len(self._code.variables), (0, 1)
        elif op is Op.CONST:
            sound, effect = argument < len(constants), (0, 1)
        elif op is Op.SELECT or op is Op.HAS:
            sound, effect = argument < len(constants) and type(constants[argument]) is str, (1, 0)
        elif op is Op.LOCAL:
            depth, second = divmod(argument, 2)
            sound, effect = depth < len(loops) and (not second or loops[depth].end % 2 == 1), (0, 1)
        else:
            arity = 1 if op is Op.CALL1 else 2
            sound, effect = argument < len(FUNCTIONS) and FUNCTIONS[argument].arity == arity, (arity, 1 - arity)
        if not sound:
            raise self._wrong(f"{op.name} names what is not there")
        return effect, None


_BOUNDLESS: Final[dict[Op, tuple[tuple[int, int], int | None]]] = {
    Op.AND: ((2, -1), None),
    Op.OR: ((2, -1), None),
    Op.SKIP_FALSE: ((1, 0), 0),
    Op.SKIP_TRUE: ((1, 0), 0),
    Op.GUARD: ((1, 0), 0),
    Op.BRANCH: ((1, -1), -1),
    Op.JUMP: ((0, 0), 0),
    Op.KEEP: ((1, 0), 1),
}
"""Needed on the stack, change of its height, and that change where it jumps."""
