"""The machine that decides rules over facts.

A rule is looked at only when one of its signals has come. It fires when that signal holds for the rule (found, or
scored at or above the rule's threshold) and so do the others that the rule asks for, and its conditions. The machine
changes nothing; equal facts give equal answers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from checkstream.core.cel import machine
from checkstream.core.cel.values import Value
from checkstream.core.policy.program import ALWAYS, Entry, Program, RuleMeta
from checkstream.core.terms import ExchangeFacts, Facts, Stage


class Machine:
    """Decides the rules of one program over the facts of one text."""

    __slots__ = ("_code", "_constants", "_facts", "_known", "_loads", "_off", "_scores", "_steady")

    def __init__(self, program: Program, facts: Facts) -> None:
        """Read `facts` as they are at each decision; they may grow between decisions."""
        self._code = program.code
        self._constants = program.constants
        self._loads = program.loads
        self._facts = facts
        self._scores = facts.scores
        self._off = facts.exchange.off
        self._known = facts.exchange.known
        self._steady = program.steady

    def decide(self, entry: Entry) -> bool | None:
        """Tell whether a rule fires now that its signal has come; None: it can't be decided (the fail mode does)."""
        floor = entry.floor
        if floor is not None and not self._scores.get(entry.signal, -1.0) >= floor:
            return False
        if entry.rule in self._off:
            return False
        start = entry.start
        if start == ALWAYS:
            return True
        value = self._known[start] if start in self._known else self.value(start)
        return value if value is True or value is False else None

    def value(self, start: int) -> Value:
        """Run the code at `start` and return its answer, an `EvalError` when it has none.

        What reads only the context and the request is the same for the whole exchange and is run once.
        """
        if start in self._known:
            return self._known[start]  # type: ignore[no-any-return]
        value = machine.run(self._code, self._constants, start, self._load)
        if start in self._steady:
            self._known[start] = value
        return value

    def _load(self, number: int) -> Value:
        return self._loads[number](self._facts)


def counts_undecided(rule: RuleMeta, fail_mode: str) -> bool:
    """Tell whether a rule that can't be decided counts as if it held; an exception never does."""
    return (rule.fail_mode or fail_mode) == "closed" and not rule.excepts


def exchange_facts(
    program: Program, context: Value, request: Mapping[str, Value], *, who: tuple[str, str], fail_mode: str
) -> tuple[ExchangeFacts, tuple[str, ...]]:
    """Return what holds for a whole exchange, and the ids of the rules whose `enabled_when` could not be decided.

    Args:
        program: The compiled policies.
        context: The caller's facts, a CEL map.
        request: Field of `request` -> its CEL value.
        who: Caller and user: equal ones get an equal share of the rules that are enforced gradually.
        fail_mode: The route's.
    """
    known = ExchangeFacts(context=context, request=request)
    decider = Machine(program, Facts(Stage.INGRESS, "request", known))
    off: set[int] = set()
    undecided: list[str] = []
    for index, rule in enumerate(program.rules):
        if rule.enabled_start is None:
            continue
        value = decider.value(rule.enabled_start)
        if not isinstance(value, bool):
            undecided.append(rule.id)
            value = (rule.fail_mode or fail_mode) == "closed"
        if not value:
            off.add(index)
    shadowed = {
        index
        for index, rule in enumerate(program.rules)
        if rule.enforce_share < 1.0 and _lot(rule.id, *who) >= rule.enforce_share
    }
    facts = ExchangeFacts(context=context, request=request, off=frozenset(off), shadowed=frozenset(shadowed))
    return facts, tuple(undecided)


def _lot(rule_id: str, caller: str, user: str) -> float:
    """Return a number from 0 to 1 that is the same for equal rule, caller and user, and evenly spread."""
    digest = hashlib.sha256(f"{rule_id}\x00{caller}\x00{user}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big") / 2**64
