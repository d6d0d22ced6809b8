"""Checked policies to a program: one signal per distinct detector, thresholds as constants, code per rule.

The code of a rule says when it fires after one of its signals has come: with `match: any` when that
signal holds, with `match: all` when every trigger of the rule holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import Pattern, PatternSet, phrase_refine
from checkstream.core.policy.check import STAGE_CHANNELS, CheckedRule, Trigger, check_policies
from checkstream.core.policy.classifiers import ClassifierLabel
from checkstream.core.policy.program import (
    Entry,
    Instruction,
    Op,
    Program,
    RuleMeta,
    Scope,
    Signal,
    canonical_hash,
)
from checkstream.core.policy.syntax import Pack, read_policies
from checkstream.core.terms import Stage
from checkstream.errors import Fault, PatternError, PolicyError


def compile_policies(packs: Sequence[Pack], classifiers: Sequence[ClassifierLabel] = ()) -> Program:
    """Compile policy files that have been read.

    Args:
        packs: What `load_policies` returned.
        classifiers: Every label of every classifier that is installed.

    Raises:
        PolicyError: a rule can't be carried out; carries every fault of every file.
    """
    checked, faults = check_policies(packs, classifiers)
    if faults:
        raise PolicyError(faults)
    return _program(packs, checked)


def compile_sources(sources: Sequence[tuple[str, str | bytes]], classifiers: Sequence[ClassifierLabel] = ()) -> Program:
    """Read, check and compile policy files in one go, so that faults of form and of meaning come together.

    Args:
        sources: File names (as faults will show them) and contents.
        classifiers: Every label of every classifier that is installed.

    Raises:
        PolicyError: a file can't be used; carries every fault of every file, by file and line.
    """
    packs, faults = read_policies(sources)
    checked, more = check_policies(packs, classifiers)
    order = {name: place for place, (name, _) in reversed(list(enumerate(sources)))}
    if faults or more:
        found: list[Fault] = sorted((*faults, *more), key=lambda f: (order[f.file], f.line, f.column))
        raise PolicyError(tuple(found))
    return _program(packs, checked)


def _program(packs: Sequence[Pack], checked: Sequence[CheckedRule]) -> Program:
    assembler = _Assembler()
    for rule in checked:
        assembler.add(rule)
    signals, rules = tuple(assembler.signals), tuple(assembler.rules)
    constants, code = tuple(assembler.constants), tuple(assembler.code)
    entries = tuple(assembler.entries)
    names = tuple(f"{pack.name}@{pack.version}" for pack in packs)
    return Program(
        signals=signals,
        rules=rules,
        constants=constants,
        code=code,
        entries=entries,
        packs=names,
        hash=canonical_hash(signals=signals, rules=rules, constants=constants, code=code, packs=names),
        scopes=_scopes(packs, signals, rules, entries),
    )


class _Assembler:
    """Collects signals, constants, code and rules, sharing what is equal."""

    def __init__(self) -> None:
        self.signals: dict[Signal, int] = {}
        self.constants: dict[float, int] = {}
        self.code: list[Instruction] = []
        self.rules: list[RuleMeta] = []
        self.entries: list[tuple[int, ...]] = []

    def add(self, checked: CheckedRule) -> None:
        rule, pack, metadata = checked.rule, checked.pack, checked.rule.metadata
        match = "all" if rule.match is not None and rule.match.value == "all" else "any"
        if match == "all":
            entries = (self._emit(checked.triggers),) * len(checked.triggers)
        else:
            entries = tuple(self._emit((trigger,)) for trigger in checked.triggers)
        self.entries.append(entries)
        self.rules.append(
            RuleMeta(
                id=rule.id.value,
                name=rule.name.value,
                pack=pack.name,
                version=pack.version,
                stages=checked.stages,
                channels=checked.channels,
                mode=rule.mode,
                match="all" if match == "all" else "any",
                priority=rule.priority,
                actions=tuple(action.value for action in rule.actions),
                triggers=tuple(self._signal(trigger.signal) for trigger in checked.triggers),
                thresholds=tuple(trigger.threshold for trigger in checked.triggers),
                regulation=metadata.regulation,
                citation=metadata.citation,
                severity=metadata.severity,
                description=metadata.description,
                owner=metadata.owner,
                tags=rule.tags,
                fail_mode=rule.fail_mode,
            )
        )

    def _signal(self, signal: Signal) -> int:
        return self.signals.setdefault(signal, len(self.signals))

    def _emit(self, triggers: Sequence[Trigger]) -> int:
        """Add code that answers whether all `triggers` hold; return where it starts."""
        start = len(self.code)
        jumps = []
        for number, trigger in enumerate(triggers):
            if number:
                jumps.append(len(self.code))
                self.code.append((Op.JUMP_IF_FALSE, 0))
            signal = self._signal(trigger.signal)
            if trigger.threshold is None:
                self.code.append((Op.SEEN, signal))
            else:
                constant = self.constants.setdefault(trigger.threshold, len(self.constants))
                self.code += [(Op.SCORE, signal), (Op.CONST, constant), (Op.AT_LEAST, 0)]
        for jump in jumps:
            self.code[jump] = (Op.JUMP_IF_FALSE, len(self.code))
        self.code.append((Op.RETURN, 0))
        return start


def _scopes(
    packs: Sequence[Pack],
    signals: Sequence[Signal],
    rules: Sequence[RuleMeta],
    entries: Sequence[tuple[int, ...]],
) -> Mapping[tuple[Stage, str], Scope]:
    """Make the scope of every stage and channel; equal pattern sets are compiled once."""
    sets: dict[tuple[int, ...], PatternSet] = {}

    def pattern_set(numbers: set[int]) -> PatternSet:
        key = tuple(sorted(numbers))
        if key not in sets:
            try:
                sets[key] = PatternSet([pattern_of(number, signals[number]) for number in key])
            except PatternError as error:  # each pattern alone was fine: together they are too much
                file = packs[0].source.name if packs else ""
                reason = f"the patterns of all rules can't be compiled together: {str(error).partition(chr(10))[0]}"
                raise PolicyError((Fault(file=file, reason=reason, advice="use fewer or simpler patterns"),)) from error
        return sets[key]

    scopes: dict[tuple[Stage, str], Scope] = {}
    for stage, channels in STAGE_CHANNELS.items():
        for channel in channels:
            active = tuple(
                index
                for index, rule in enumerate(rules)
                if rule.mode != "disabled" and stage in rule.stages and channel in rule.channels
            )
            hold = {signal for index in active if rules[index].holds for signal in rules[index].triggers}
            every = {signal for index in active for signal in rules[index].triggers}
            scored = {signal for signal in every if signals[signal].kind == "classifier"}
            hold_classifiers = {signals[signal].classifier for signal in scored & hold}
            held = (hold - scored) | {signal for signal in scored if signals[signal].classifier in hold_classifiers}
            watched = frozenset(
                index for index in active if rules[index].match == "all" and not held.issuperset(rules[index].triggers)
            )
            watch = (every - held) | {signal for index in watched for signal in rules[index].triggers}
            asking = [
                rules[index] for index in active if rules[index].holds and scored.intersection(rules[index].triggers)
            ]
            by_signal: dict[int, list[Entry]] = {}
            for index in active:
                for signal, start in zip(rules[index].triggers, entries[index], strict=True):
                    by_signal.setdefault(signal, []).append(Entry(index, start))
            scopes[stage, channel] = Scope(
                stage=stage,
                channel=channel,
                hold=pattern_set(hold - scored),
                watch=pattern_set(watch - scored),
                hold_classifiers=tuple(sorted(hold_classifiers)),
                degradable=all(rule.match == "any" and not scored.issuperset(rule.triggers) for rule in asking),
                watch_classifiers=tuple(sorted({signals[signal].classifier for signal in scored & watch})),
                score_signals=MappingProxyType({signals[signal].name: signal for signal in sorted(scored)}),
                rules=MappingProxyType({signal: tuple(found) for signal, found in sorted(by_signal.items())}),
                active=active,
                held=frozenset(held),
                watched=watched,
            )
    return MappingProxyType(scopes)


def pattern_of(number: int, signal: Signal) -> Pattern:
    """Return what the matcher searches for a signal: the detector's regex with its validator and views."""
    regex = signal.regex or ""
    if signal.kind == "entity":
        entity = ENTITIES[signal.name]
        return Pattern(
            signal=number,
            name=signal.name,
            regex=regex,
            max_chars=signal.max_chars,
            refine=entity.refine,
            views=entity.views,
        )
    refine = phrase_refine if signal.kind == "phrase" else None
    return Pattern(signal=number, name=signal.name, regex=regex, max_chars=signal.max_chars, refine=refine)
