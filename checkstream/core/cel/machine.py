"""Run code over values.

Nothing is raised: an expression comes to a value, or to an `EvalError`. The code must have passed `verify`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from checkstream.core.cel.arithmetic import has_field, listed, mapped, refused, selected
from checkstream.core.cel.ast import Fold
from checkstream.core.cel.code import Instruction, Op
from checkstream.core.cel.functions import FUNCTIONS
from checkstream.core.cel.values import EvalError, Value, key_value, map_key

LOOP_BUDGET: Final = 10_000
"""Elements that one run may visit in all its loops together."""
FREE_OF_CHARGE: Final = 64
"""A visit counts once more for each so many instructions of the loop's body, and characters or elements of what is
worked on in it or kept: no loop takes long or fills the memory, whoever wrote the code."""
_SIZED: Final = frozenset({str, bytes, tuple, dict})

# Plain numbers, as the code holds them: comparing with members of the enumeration would take twice the time.
_LOAD, _CONST, _SELECT, _CALL1, _CALL2 = int(Op.LOAD), int(Op.CONST), int(Op.SELECT), int(Op.CALL1), int(Op.CALL2)
_SKIP_FALSE, _SKIP_TRUE, _AND, _OR = int(Op.SKIP_FALSE), int(Op.SKIP_TRUE), int(Op.AND), int(Op.OR)
_RETURN, _LOCAL, _GUARD, _BRANCH, _JUMP = int(Op.RETURN), int(Op.LOCAL), int(Op.GUARD), int(Op.BRANCH), int(Op.JUMP)
_HAS, _LIST, _MAP, _KEEP = int(Op.HAS), int(Op.LIST), int(Op.MAP), int(Op.KEEP)
_BEGIN, _NEXT, _STEP, _END = int(Op.BEGIN), int(Op.NEXT), int(Op.STEP), int(Op.END)
_RUNS: Final = tuple(function.run for function in FUNCTIONS)
_DONE: Final = object()
_EXHAUSTED: Final = -1


def run(  # noqa: C901, PLR0912, PLR0915 - one loop without calls is what makes it fast
    code: Sequence[Instruction],
    constants: Sequence[Any],
    start: int,
    load: Callable[[int], Value],
    *,
    budget: int = LOOP_BUDGET,
) -> Value:
    """Run the expression at `start` and return what it comes to.

    Args:
        code: Instructions that `verify` has passed.
        constants: The constants that they name.
        start: Where the expression starts.
        load: Returns the value of a variable by its number; an `EvalError` when it has none.
        budget: Elements that loops may visit before the run is given up with an error.
    """
    stack: list[Any] = []
    push, pop = stack.append, stack.pop
    loops: _Loops | None = None
    variables: Sequence[Any] = ()
    place = start
    while True:
        op, argument = code[place]
        place += 1
        if op == _LOAD:
            push(load(argument))
        elif op == _CONST:
            push(constants[argument])
        elif op == _SELECT:
            holder = stack[-1]
            try:
                stack[-1] = holder[constants[argument]]
            except (KeyError, TypeError):  # not there, or no map: strings and tuples take no text as an index
                stack[-1] = selected(holder, constants[argument])
        elif op == _CALL2:
            other = pop()
            if loops is not None:
                loops.charge(stack[-1], other)
            stack[-1] = _RUNS[argument](stack[-1], other)
        elif op == _SKIP_FALSE:
            if stack[-1] is False:
                place = argument
        elif op == _AND:
            other = pop()
            stack[-1] = other if stack[-1] is True and other is True else _conjunction(stack[-1], other)
        elif op == _SKIP_TRUE:
            if stack[-1] is True:
                place = argument
        elif op == _OR:
            other = pop()
            stack[-1] = other if stack[-1] is False and other is False else _disjunction(stack[-1], other)
        elif op == _CALL1:
            stack[-1] = _RUNS[argument](stack[-1])
        elif op == _LOCAL:
            push(variables[argument])
        elif op == _RETURN:
            return pop()  # type: ignore[no-any-return]
        elif op == _BRANCH:
            if pop() is not True:
                place = argument
        elif op == _JUMP:
            place = argument
        elif op == _GUARD:
            if type(stack[-1]) is not bool:
                stack[-1] = refused("_?_:_", stack[-1])
                place = argument
        elif op == _HAS:
            stack[-1] = has_field(stack[-1], constants[argument])
        else:
            if loops is None:
                loops = _Loops(code, stack, budget)
                variables = loops.variables
            place = loops.carry_out(op, argument, place)
            if place == _EXHAUSTED:
                return EvalError("the loops visit too many elements")


def _conjunction(one: Value, other: Value) -> Value:
    return False if one is False or other is False else refused("_&&_", one, other)


def _disjunction(one: Value, other: Value) -> Value:
    return True if one is True or other is True else refused("_||_", one, other)


class _Loop:
    """A loop under way."""

    __slots__ = ("elements", "fold", "pairs", "slot", "total")

    def __init__(self, elements: Iterator[Any], argument: int, slot: int) -> None:
        self.elements = elements
        self.fold = argument // 2
        self.pairs = argument % 2
        self.slot = slot
        self.total: Any = (True, False, 0, [], {})[self.fold]


class _Loops:
    """The rarer instructions: loops, and what makes lists and maps."""

    __slots__ = ("_budget", "_code", "_open", "_stack", "variables")

    def __init__(self, code: Sequence[Instruction], stack: list[Any], budget: int) -> None:
        self._code = code
        self._stack = stack
        self._budget = budget
        self._open: list[_Loop] = []
        self.variables: list[Any] = []

    def charge(self, one: Any, other: Any) -> None:
        """Count the size of two values that are worked on."""
        if type(one) in _SIZED:
            self._budget -= len(one) // FREE_OF_CHARGE
        if type(other) in _SIZED:
            self._budget -= len(other) // FREE_OF_CHARGE

    def carry_out(self, op: int, argument: int, place: int) -> int:
        """Carry out the instruction before `place` and return the place of the next one, or `_EXHAUSTED`."""
        if op == _NEXT:
            return self._next(argument, place)
        if op == _STEP:
            loop = self._open[-1]
            decided = self._collect(loop) if loop.fold >= Fold.LIST else self._test(loop)
            return place if decided else argument
        if op == _KEEP:
            if self._stack[-1] is True:
                return place
            self._stack.append(None)
            return argument
        if op == _BEGIN:
            return self._begin(argument, place)
        if op == _END:
            self._stack.append(_result(self._open.pop()))
            return place
        count = argument if op == _LIST else 2 * argument
        first = len(self._stack) - count
        taken = self._stack[first:]
        del self._stack[first:]
        self._stack.append(listed(taken) if op == _LIST else mapped(taken))
        return place

    def _begin(self, leave: int, place: int) -> int:
        source = self._stack.pop()
        argument = self._code[leave - 1][1]
        elements: Iterator[Any]
        if type(source) is tuple:
            elements = iter(enumerate(source)) if argument % 2 else iter(source)
        elif type(source) is dict:
            elements = ((key_value(key), value) if argument % 2 else key_value(key) for key, value in source.items())
        else:
            self._stack.append(refused("a loop", source))
            return leave
        slot = 2 * len(self._open)
        del self.variables[slot:]
        self.variables += (None, None)
        self._open.append(_Loop(elements, argument, slot))
        return place

    def _next(self, end: int, place: int) -> int:
        loop = self._open[-1]
        element: Any = next(loop.elements, _DONE)
        if element is _DONE:
            return end
        self._budget -= 1 + (end - place) // FREE_OF_CHARGE
        if self._budget < 0:
            return _EXHAUSTED
        if loop.pairs:
            self.variables[loop.slot], self.variables[loop.slot + 1] = element
        else:
            self.variables[loop.slot] = element
        return place

    def _test(self, loop: _Loop) -> bool:
        """Take the truth of one element; return whether the rest can't change the result."""
        found = self._stack.pop()
        if loop.fold == Fold.ONE:
            if type(found) is not bool:
                loop.total = refused("exists_one", found)
                return True
            loop.total += found
            return False
        # The value that decides: false for `all`, true for `exists`. An error counts only when nothing decides.
        deciding = loop.fold == Fold.EXISTS
        if found is deciding:
            loop.total = deciding
            return True
        if type(found) is not bool and type(loop.total) is bool:
            loop.total = refused("a loop", found)
        return False

    def _collect(self, loop: _Loop) -> bool:
        """Take the truth and the result of one element; return whether an error has decided."""
        value, kept = self._stack.pop(), self._stack.pop()
        if kept is False:
            return False
        if kept is not True or type(value) is EvalError:
            loop.total = refused("a loop", kept, value)
            return True
        self.charge(kept, value)
        if loop.fold == Fold.LIST:
            loop.total.append(value)
        else:
            loop.total[map_key(self.variables[loop.slot])] = value
        return False


def _result(loop: _Loop) -> Value:
    total = loop.total
    if loop.fold == Fold.LIST:
        return tuple(total) if type(total) is list else total
    if loop.fold == Fold.ONE and type(total) is not EvalError:
        return bool(total == 1)
    return total  # type: ignore[no-any-return]
