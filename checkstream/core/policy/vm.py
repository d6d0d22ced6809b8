"""The machine that runs a program over facts.

A rule is looked at only when one of its signals has come. It fires when that signal holds for the
rule (found, or scored at or above the rule's threshold) and so do the others that the rule's `match`
asks for. The machine changes nothing; equal facts give equal answers.
"""

from __future__ import annotations

from collections.abc import Sequence

from checkstream.core.policy.program import Instruction, Op, Program, Scope
from checkstream.core.terms import Facts


def run(program: Program, scope: Scope, facts: Facts, signal: int) -> tuple[int, ...]:
    """Return the indexes of the rules of `scope` that `signal` fires, in the program's order.

    Args:
        program: The program that `scope` belongs to.
        scope: The stage and kind of channel that the facts are about.
        facts: All that is known, `signal` included.
        signal: What has just been found or scored.
    """
    entries = scope.rules.get(signal)
    if not entries:
        return ()
    code, constants = program.code, program.constants
    return tuple(entry.rule for entry in entries if _holds(code, constants, entry.start, facts))


def _holds(code: Sequence[Instruction], constants: Sequence[float], start: int, facts: Facts) -> bool:
    """Run the code from `start` to its RETURN."""
    stack: list[bool | float | None] = []
    seen, scores = facts.seen, facts.scores
    place = start
    while True:
        op, argument = code[place]
        place += 1
        if op == Op.SEEN:
            stack.append(argument in seen)
        elif op == Op.SCORE:
            stack.append(scores.get(argument))
        elif op == Op.CONST:
            stack.append(constants[argument])
        elif op == Op.AT_LEAST:
            threshold, score = stack.pop(), stack.pop()
            stack.append(score is not None and threshold is not None and score >= threshold)
        elif op == Op.JUMP_IF_FALSE:
            if stack[-1]:
                stack.pop()
            else:
                place = argument
        else:
            return bool(stack.pop())
