"""Checked policies to a program: one signal per distinct detector, constants interned, code per rule and trigger.

The code of an entry says whether a rule fires now that one of its triggers holds: with the groups that the trigger
stands in, and with the rule's conditions. A trigger that fires its rule by itself has none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from checkstream.core.cel.ast import AND, CONDITION, NOT, OR, Call, Expr, Ident, Literal, balanced, transform
from checkstream.core.cel.code import Assembler
from checkstream.core.cel.verify import MAX_INSTRUCTIONS
from checkstream.core.policy.capabilities import Target
from checkstream.core.policy.check import AllOf, AnyOf, CheckedRule, Group, Leaf, Not, Trigger, check_policies
from checkstream.core.policy.classifiers import Installed
from checkstream.core.policy.nodes import Given
from checkstream.core.policy.program import ALWAYS, Entry, Program, RuleMeta, Signal
from checkstream.core.policy.signals import texts_of
from checkstream.core.policy.stored import assemble
from checkstream.core.policy.syntax import Pack, read_policies
from checkstream.core.policy.variables import found_name, peak_name, score_name, scored_name, variable_of
from checkstream.errors import Fault, PatternError, PolicyError


def compile_policies(
    packs: Sequence[Pack], classifiers: Sequence[Installed] = (), targets: Sequence[Target] = ()
) -> Program:
    """Compile policy files that have been read.

    Args:
        packs: What `load_policies` returned.
        classifiers: Every label and every entity of every model that is installed.
        targets: The routes that the program is for; a rule that one of them can't carry out is a fault.

    Raises:
        PolicyError: a rule can't be carried out; carries every fault of every file.
    """
    checked, faults = check_policies(packs, classifiers, targets)
    if faults:
        raise PolicyError(faults)
    return _program(packs, checked)


def compile_sources(
    sources: Sequence[Given],
    classifiers: Sequence[Installed] = (),
    targets: Sequence[Target] = (),
) -> Program:
    """Read, check and compile policy files in one go, so that faults of form and of meaning come together.

    Args:
        sources: File names (as faults will show them) and contents.
        classifiers: Every label and every entity of every model that is installed.
        targets: The routes that the program is for; a rule that one of them can't carry out is a fault.

    Raises:
        PolicyError: a file can't be used; carries every fault of every file, by file and line.
    """
    packs, faults = read_policies(sources)
    checked, more = check_policies(packs, classifiers, targets)
    order = {name: place for place, (name, _) in reversed(list(enumerate(sources)))}
    if faults or more:
        found: list[Fault] = sorted((*faults, *more), key=lambda f: (order[f.file], f.line, f.column))
        raise PolicyError(tuple(found))
    return _program(packs, checked)


def _program(packs: Sequence[Pack], checked: Sequence[CheckedRule]) -> Program:
    rules = _Rules()
    for rule in checked:
        rules.add(rule)
    code = rules.code.build()
    if len(code.instructions) > MAX_INSTRUCTIONS:
        reason = f"the rules come to {len(code.instructions):,} instructions, the limit is {MAX_INSTRUCTIONS:,}"
        raise PolicyError((Fault(file=packs[0].source.name, reason=reason, advice="use fewer or simpler rules"),))
    variables = tuple(variable_of(name, rules.signal) for name in code.variables)
    try:
        return assemble(
            signals=tuple(rules.signals),
            rules=tuple(rules.rules),
            constants=code.constants,
            variables=variables,
            code=code.instructions,
            entries=tuple(rules.entries),
            packs=tuple(f"{pack.name}@{pack.version}" for pack in packs),
            texts=texts_of(each.rule.triggers for each in checked if each.rule.triggers is not None),
        )
    except PatternError as error:  # each pattern alone was fine: together they are too much
        file = packs[0].source.name if packs else ""
        reason = f"the patterns of all rules can't be compiled together: {str(error).partition(chr(10))[0]}"
        raise PolicyError((Fault(file=file, reason=reason, advice="use fewer or simpler patterns"),)) from error


class _Rules:
    """Collects signals, code, rules and entries, sharing what is equal."""

    def __init__(self) -> None:
        self.signals: dict[Signal, int] = {}
        self.code = Assembler()
        self.rules: list[RuleMeta] = []
        self.entries: list[Entry] = []
        self._starts: dict[str, int] = {}

    def signal(self, signal: Signal) -> int:
        """Return the number of a detector."""
        return self.signals.setdefault(signal, len(self.signals))

    def add(self, checked: CheckedRule) -> None:
        """Add one rule."""
        rule, pack, metadata = checked.rule, checked.pack, checked.rule.metadata
        triggers, conditions = checked.triggers, tuple(condition.expr for condition in checked.conditions)
        number = len(self.rules)
        shared: dict[tuple[int, ...], int] = {}
        for at, around in sorted(_places(checked.group), key=lambda place: place[0]):
            trigger, key = triggers[at], tuple(map(id, around))
            start = shared.get(key) if not trigger.cases else None
            if start is None:
                needed = (*_own_terms(trigger), *(self._holds(triggers, group) for group in around), *conditions)
                start = self._start(needed) if needed else ALWAYS
                if not trigger.cases:
                    shared[key] = start
            floor = _floor(trigger)
            self.entries.append(Entry(rule=number, signal=self.signal(trigger.signal), start=start, floor=floor))
        if not triggers:
            self.entries.append(Entry(rule=number, start=self._start(conditions)))
        self.rules.append(
            RuleMeta(
                id=rule.id.value,
                name=rule.name.value,
                pack=pack.name,
                version=pack.version,
                stages=checked.stages,
                channels=checked.channels,
                mode=rule.mode,
                priority=rule.priority,
                actions=tuple(action.value for action in rule.actions),
                triggers=tuple(self.signal(trigger.signal) for trigger in triggers),
                thresholds=tuple(_floor(trigger) for trigger in triggers),
                shape=_shape(checked.group, triggers),
                alone=checked.group is None or _is_flat_any(checked.group),
                reads=tuple(self.signal(signal) for signal in checked.reads),
                waits=checked.waits,
                conditions=tuple(condition.text for condition in checked.conditions),
                condition_starts=tuple(self._start((condition,)) for condition in conditions),
                enabled_start=None if checked.enabled_when is None else self._start((checked.enabled_when.expr,)),
                enforce_share=rule.enforce_share,
                regulation=metadata.regulation,
                citation=metadata.citation,
                severity=metadata.severity,
                description=metadata.description,
                owner=metadata.owner,
                tags=rule.tags,
                fail_mode=rule.fail_mode,
            )
        )

    def _start(self, terms: Sequence[Expr]) -> int:
        """Return where the code starts that tells whether all of some expressions hold; equal ones share it."""
        whole = _all_of(terms)
        # The representation tells 1 from 1.0 and from true, which are equal to Python.
        written = repr(transform(whole, lambda node: msgspec.structs.replace(node, position=0)))
        start = self._starts.get(written)
        if start is None:
            start = self._starts[written] = self.code.add(whole)
        return start

    def _holds(self, triggers: Sequence[Trigger], group: Group) -> Expr:
        """Return the expression that tells whether a group holds, as far as the text is known."""
        match group:
            case Leaf(at):
                trigger = triggers[at]
                if trigger.threshold is None:
                    return _variable(found_name(trigger.signal))
                return _all_of((_variable(scored_name(trigger.signal)), _reaches(trigger, score_name(trigger.signal))))
            case AnyOf(items):
                return _any_of([self._holds(triggers, item) for item in items])
            case AllOf(items):
                return _all_of([self._holds(triggers, item) for item in items])
            case Not(item):
                return _negated(self._stands(triggers, item))

    def _stands(self, triggers: Sequence[Trigger], group: Group) -> Expr:
        """Return the expression that tells whether a group has held anywhere in the text, for what `not` asks."""
        match group:
            case Leaf(at):
                trigger = triggers[at]
                if trigger.threshold is None:
                    return _variable(found_name(trigger.signal))
                return _reaches(trigger, peak_name(trigger.signal))
            case AnyOf(items):
                return _any_of([self._stands(triggers, item) for item in items])
            case AllOf(items):
                return _all_of([self._stands(triggers, item) for item in items])
            case Not(item):
                return _negated(self._stands(triggers, item))


def _places(group: Group | None, around: tuple[AllOf, ...] = ()) -> Iterator[tuple[int, tuple[AllOf, ...]]]:
    """Yield each trigger that stands outside of `not`, at each of its places, and the groups `all` that it stands in.

    A trigger that has come fires its rule when all of those hold; that it holds itself is a part of that.
    """
    match group:
        case Leaf(trigger):
            yield trigger, around
        case AnyOf(items):
            for item in items:
                yield from _places(item, around)
        case AllOf(items):
            for item in items:
                yield from _places(item, (*around, group))
        case _:
            return


def _own_terms(trigger: Trigger) -> tuple[Expr, ...]:
    """Return what must still be asked of a trigger that has come; the entry's floor has asked for a fixed threshold."""
    score = _variable(score_name(trigger.signal))
    return (_at_least(score, _threshold(trigger)),) if trigger.cases else ()


def _reaches(trigger: Trigger, score: str) -> Expr:
    """Return whether a score reaches its threshold; below every threshold it doesn't, whatever the conditions err."""
    asked = _at_least(_variable(score), _threshold(trigger))
    if not trigger.cases:
        return asked
    return _all_of((_at_least(_variable(score), _constant(_floor(trigger) or 0.0)), asked))


def _threshold(trigger: Trigger) -> Expr:
    """Return the threshold as an expression: that of the first case whose condition holds."""
    whole = _constant(trigger.threshold or 0.0)
    for condition, threshold in reversed(trigger.cases):
        whole = _choice(condition, _constant(threshold), whole)
    return whole


def _floor(trigger: Trigger) -> float | None:
    if trigger.threshold is None:
        return None
    return min(trigger.threshold, *(threshold for _, threshold in trigger.cases), 1.0)


def _variable(name: str) -> Expr:
    return Ident(0, name)


def _constant(number: float) -> Expr:
    return Literal(0, float(number))


def _all_of(terms: Sequence[Expr]) -> Expr:
    return balanced(AND, terms)


def _any_of(terms: Sequence[Expr]) -> Expr:
    return balanced(OR, terms)


def _negated(term: Expr) -> Expr:
    return Call(0, NOT, None, (term,))


def _at_least(score: Expr, threshold: Expr) -> Expr:
    return Call(0, "_>=_", None, (score, threshold))


def _choice(condition: Expr, chosen: Expr, otherwise: Expr) -> Expr:
    return Call(0, CONDITION, None, (condition, chosen, otherwise))


def _is_flat_any(group: Group) -> bool:
    return isinstance(group, Leaf) or (isinstance(group, AnyOf) and all(map(_is_flat_any, group.items)))


def _shape(group: Group | None, triggers: Sequence[Trigger]) -> str:
    """Return how triggers combine, for people; the triggers themselves are known beside it."""
    if group is None:
        return "none"
    return "any" if isinstance(group, AnyOf) and _is_flat_any(group) else _spelled(group, triggers)


def _spelled(group: Group, triggers: Sequence[Trigger]) -> str:
    match group:
        case Leaf(at):
            return triggers[at].signal.title
        case AnyOf(items):
            return f"any({', '.join(_spelled(item, triggers) for item in items)})"
        case AllOf(items):
            return f"all({', '.join(_spelled(item, triggers) for item in items)})"
        case Not(item):
            return f"not({_spelled(item, triggers)})"
