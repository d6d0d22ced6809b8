"""From the plain data of a program to what streams read: scopes with their pattern sets, and the loads of variables.

Compiling and loading a stored program end here alike, so that both run the same.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Literal

from checkstream.core.cel.code import Instruction, Op
from checkstream.core.cel.values import EvalError, Value
from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.match.patterns import NOTHING, Pattern, PatternSet
from checkstream.core.match.phrases import phrase_refine
from checkstream.core.match.placeholders import PLACEHOLDER, Placeholders
from checkstream.core.policy.action import (
    InjectDisclaimer,
    Redact,
    RequireDisclaimer,
    RewriteSpan,
    SafeMode,
    holds_text,
)
from checkstream.core.policy.program import READ_AS_ONE, Entry, RecitedTexts, RuleMeta, Scope, Signal, Variable, Waits
from checkstream.core.policy.signals import entity_signal
from checkstream.core.policy.variables import RECALLED
from checkstream.core.terms import STAGE_CHANNELS, Facts, Stage

_PLAIN_CHANNELS = frozenset({"tool_name", "tool_arguments", "extra"})
"""Edits here stay within the span: a name or a field is no sentence, and JSON has strings for words."""
_SILENT = frozenset({"allow", "log_event"})
"""Actions that change neither request nor answer."""
_STEADY = frozenset({"context", "request", "given", "conversation", "fired", *RECALLED})
"""Kinds of variables that are the same for a whole exchange, whenever they may be read."""
_ADDS_UP = Stage.INGRESS, "user"
"""Where the texts are whose scores add up over a conversation."""
_ANCHORS = ("^", "$", "\\A", "\\z")
"""What a pattern that was written for a text of its own may begin or end with."""
_ANY_SCORE = -1.0
"""Scores are never below it."""
_GRAINS: tuple[Literal["span", "word", "sentence"], ...] = ("span", "word", "sentence")


def scopes_of(
    signals: Sequence[Signal],
    rules: Sequence[RuleMeta],
    entries: Sequence[Entry],
    variables: Sequence[Variable],
    *,
    placeholders: Placeholders | None = None,
    recalled: frozenset[int] = frozenset(),
    texts: Mapping[str, Fingerprints] = MappingProxyType({}),
) -> Mapping[tuple[Stage, str], Scope]:
    """Return the scope of every stage and channel; equal pattern sets are compiled once.

    Args:
        signals: The program's.
        rules: The program's.
        entries: The program's.
        variables: The program's.
        placeholders: What stands for values that come back; None: none do.
        recalled: Signals of which rules ask what they came to in the conversation.
        texts: What must not be recited, by digest.

    Raises:
        PatternError: the patterns of one scope are too much together.
    """
    sets: dict[tuple[int, ...], PatternSet] = {}

    def pattern_set(numbers: set[int]) -> PatternSet:
        key = tuple(sorted(numbers))
        if key not in sets:
            sets[key] = PatternSet([pattern for number in key for pattern in patterns(number)])
        return sets[key]

    def patterns(number: int) -> tuple[Pattern, ...]:
        if number == PLACEHOLDER and placeholders is not None:
            return placeholders.patterns
        signal = signals[number]
        if isinstance(signal.texts, RecitedTexts):
            return (recital_of(number, signal.name, signal.texts, texts),)
        return (pattern_of(number, signal),)

    streamed = frozenset(variable.name for variable in variables if variable.kind == "stream")
    return MappingProxyType(
        {
            (stage, channel): _scope(
                stage,
                channel,
                signals,
                rules,
                entries,
                pattern_set=pattern_set,
                streamed=streamed,
                restores=placeholders is not None and stage is Stage.MIDSTREAM,
                recalled=recalled if (stage, channel) == _ADDS_UP else frozenset(),
            )
            for stage, channels in STAGE_CHANNELS.items()
            for channel in channels
        }
    )


def _scope(
    stage: Stage,
    channel: str,
    signals: Sequence[Signal],
    rules: Sequence[RuleMeta],
    entries: Sequence[Entry],
    *,
    pattern_set: Callable[[set[int]], PatternSet],
    streamed: frozenset[str],
    restores: bool,
    recalled: frozenset[int],
) -> Scope:
    active = [
        index
        for index, rule in enumerate(rules)
        if rule.mode != "disabled" and stage in rule.stages and channel in rule.channels
    ]
    here = [rules[index] for index in active]
    every = {signal for rule in here for signal in rule.needs}.union(recalled)
    asked = {signal for signal in every if signals[signal].classifier}
    hold = {signal for rule in here if rule.holds for signal in rule.needs}.union(recalled)
    hold_classifiers = {signals[signal].classifier for signal in asked & hold}
    held = (hold - asked) | {signal for signal in asked if signals[signal].classifier in hold_classifiers}
    watched = frozenset(index for index in active if _joins(rules[index]) and not held.issuperset(rules[index].needs))
    watch = (every - held) | {signal for index in watched for signal in rules[index].needs}
    asking = [rule for rule in here if rule.holds and asked & rule.needs]
    scored = {signal for signal in asked if signals[signal].kind == "classifier"}
    chosen = frozenset(active)
    by_signal: dict[int, list[Entry]] = {}
    for entry in entries:
        if entry.rule in chosen:
            by_signal.setdefault(entry.signal, []).append(entry)
    bare = by_signal.pop(-1, [])
    enforced = [action for rule in here if rule.mode == "enforce" for action in rule.actions]
    return Scope(
        stage=stage,
        channel=channel,
        hold=pattern_set(hold - asked),
        restored=pattern_set((hold - asked) | {PLACEHOLDER}) if restores else None,
        watch=pattern_set(watch - asked),
        hold_classifiers=tuple(sorted(hold_classifiers)),
        degradable=not recalled and all(_has_cheaper(rule, scored, asked) for rule in asking),
        watch_classifiers=tuple(sorted({signals[signal].classifier for signal in asked & watch})),
        score_signals=MappingProxyType(dict(sorted((signals[signal].name, signal) for signal in scored))),
        least=MappingProxyType({signal: _least(found, rules) for signal, found in by_signal.items()}),
        entity_signals=_by_name(signals, asked - scored),
        risk_labels=frozenset(
            signals[signal].name for rule in here if _acts(rule) for signal in scored.intersection(rule.needs)
        ),
        anchored=_is_anchored(signals, (hold | watch) - asked),
        rules=MappingProxyType({signal: tuple(found) for signal, found in sorted(by_signal.items())}),
        bare=tuple(bare) if stage is Stage.EGRESS and channel == "content" else (),
        active=tuple(active),
        held=frozenset(held),
        watched=watched,
        grain="span" if channel in _PLAIN_CHANNELS else max(map(_grain, here), key=_GRAINS.index, default="span"),
        reads_stream=bool(streamed),
        reads_language="language" in streamed,
        accumulates=MappingProxyType({signals[signal].name: signal for signal in sorted(recalled)}),
        changes=any(action.name not in _SILENT for action in enforced),
        requires=_required(rules, active),
        inserts=any(
            isinstance(action, InjectDisclaimer) and action.position == "after_sentence" for action in enforced
        ),
    )


def _is_anchored(signals: Sequence[Signal], numbers: Iterable[int]) -> bool:
    """Tell whether a pattern that a policy has written says where a text begins or ends."""
    written = (pattern_of(number, signals[number]).regex for number in numbers if signals[number].kind == "pattern")
    return any(mark in regex for regex in written for mark in _ANCHORS)


def _required(rules: Sequence[RuleMeta], active: Iterable[int]) -> tuple[tuple[int, str], ...]:
    """Return the disclaimers that answers have to have, each with the number of its rule."""
    return tuple(
        (index, action.text)
        for index in active
        for action in rules[index].actions
        if isinstance(action, RequireDisclaimer)
    )


def _least(entries: Sequence[Entry], rules: Sequence[RuleMeta]) -> float:
    """Return the score below which none of some rules fires, now or later."""
    floors = [entry.floor for entry in entries if rules[entry.rule].waits is not Waits.END]
    known = [floor for floor in floors if floor is not None]
    return min(known) if len(known) == len(entries) else _ANY_SCORE


def _joins(rule: RuleMeta) -> bool:
    """Tell whether the decision on a rule reads more than the one signal that has come."""
    return not rule.alone or bool(rule.reads)


def _has_cheaper(rule: RuleMeta, scored: set[int], asked: set[int]) -> bool:
    """Tell whether a rule can be decided without models. What only a model finds, nothing cheaper finds."""
    cheap = not asked.intersection(rule.reads) and not asked.intersection(rule.triggers).difference(scored)
    return rule.alone and cheap and not scored.issuperset(rule.triggers)


def _acts(rule: RuleMeta) -> bool:
    """Tell whether a rule acts against what it finds, or would: it doesn't just add to the answer or shape it."""
    names = {action.name for action in rule.actions}
    return "allow" not in names and any(holds_text(action) or action.name == "log_event" for action in rule.actions)


def _by_name(signals: Sequence[Signal], numbers: set[int]) -> Mapping[str, tuple[int, ...]]:
    found: dict[str, tuple[int, ...]] = {}
    for number in sorted(numbers):
        found[signals[number].name] = (*found.get(signals[number].name, ()), number)
    return MappingProxyType(found)


def _grain(rule: RuleMeta) -> Literal["span", "word", "sentence"]:
    """Return the largest scope of a rule's edits; only what is enforced holds text."""
    scopes = [action.scope for action in rule.actions if isinstance(action, Redact | RewriteSpan)]
    return max(scopes, key=_GRAINS.index) if scopes and rule.mode == "enforce" else "span"


def turns_of(rules: Sequence[RuleMeta]) -> bool:
    """Tell whether a rule may have an answer continued under stricter parameters."""
    return any(
        rule.mode == "enforce"
        and Stage.MIDSTREAM in rule.stages
        and any(isinstance(action, SafeMode) for action in rule.actions)
        for rule in rules
    )


def bare_of(rules: Sequence[RuleMeta], entries: Sequence[Entry]) -> tuple[Entry, ...]:
    """Return the entries of the rules without triggers that are decided on the request."""
    return tuple(
        entry
        for entry in entries
        if entry.signal < 0 and rules[entry.rule].mode != "disabled" and Stage.INGRESS in rules[entry.rule].stages
    )


_LOOSER = MappingProxyType({"PHONE": ("PHONE", "PHONE_LOOSE")})
"""What a caller writes needs no word beside it that says what it is: entity -> those that find it there."""
_NUMBER = r"[+(]?[0-9][0-9 \x{a0}().\-/]{5,24}[0-9]"
"""A telephone number in any form: what the caller has written is compared, and needs no proof that it is one."""


def remembered_of(signals: Sequence[Signal]) -> Mapping[str, tuple[PatternSet, tuple[str, ...]]]:
    """Return what of each ingress channel is remembered for the triggers that spare it.

    Raises:
        PatternError: the patterns are too much together.
    """
    wanted: dict[str, dict[str, None]] = {}
    for signal in signals:
        for channel in _asked_of(signal, by_model=False):
            wanted.setdefault(channel, {}).update(dict.fromkeys(_LOOSER.get(signal.name, (signal.name,))))
    return MappingProxyType({channel: _searched(tuple(names)) for channel, names in wanted.items()})


def worded_of(signals: Sequence[Signal]) -> frozenset[str]:
    """Return the ingress channels whose words are remembered for the triggers that spare what a model finds."""
    return frozenset(channel for signal in signals for channel in _asked_of(signal, by_model=True))


def _asked_of(signal: Signal, *, by_model: bool) -> tuple[str, ...]:
    return signal.spares.request if signal.spares is not None and by_model is (signal.model is not None) else ()


def _searched(names: tuple[str, ...]) -> tuple[PatternSet, tuple[str, ...]]:
    patterns = [pattern_of(number, entity_signal(name)) for number, name in enumerate(names)]
    if "PHONE" in names:
        patterns.append(Pattern(signal=len(names), name="number", regex=_NUMBER))
        names = (*names, "PHONE")
    return PatternSet(patterns), names


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
            skip=entity.skip,
            lead=entity.lead,
            views=entity.views,
        )
    refine = phrase_refine if signal.kind == "phrase" else None
    return Pattern(signal=number, name=signal.name, regex=regex, max_chars=signal.max_chars, refine=refine)


def recital_of(number: int, name: str, recited: RecitedTexts, texts: Mapping[str, Fingerprints]) -> Pattern:
    """Return what the matcher looks for that is a recital."""
    return Pattern(signal=number, name=name, texts=texts[recited.digest], words=recited.words)


def recent_of(
    scopes: Mapping[tuple[Stage, str], Scope], signals: Sequence[Signal], variables: Sequence[Variable]
) -> Scope | None:
    """Return what the user's last texts need when they are read as one: classifiers alone, which no rule hears of."""
    scope = scopes[_ADDS_UP]
    if not any(variable.kind in READ_AS_ONE for variable in variables) or not scope.accumulates:
        return None
    return Scope(
        stage=scope.stage,
        channel=scope.channel,
        hold=NOTHING,
        watch=NOTHING,
        hold_classifiers=tuple(sorted({signals[signal].classifier for signal in scope.accumulates.values()})),
        watch_classifiers=(),
        score_signals=MappingProxyType(dict(sorted(scope.accumulates.items()))),
        least=MappingProxyType({}),
        rules=MappingProxyType({}),
        active=(),
    )


def recalled_of(
    code: Sequence[Instruction], variables: Sequence[Variable], rules: Sequence[RuleMeta]
) -> Mapping[int, frozenset[int]]:
    """Return, for each rule in force that asks, the signals of which it reads what they came to in the conversation."""
    found: dict[int, frozenset[int]] = {}
    for number, rule in enumerate(rules):
        read = {variable for start in rule.condition_starts for variable in read_at(code, variables, start)}
        recalled = frozenset(variable.signal for variable in read if variable.kind in RECALLED)
        if recalled and rule.mode != "disabled":
            found[number] = recalled
    return found


def recalls_of(
    code: Sequence[Instruction], variables: Sequence[Variable], rules: Sequence[RuleMeta]
) -> Mapping[str, frozenset[str]]:
    """Return, by the id of each rule in force that asks for something of a conversation, what that is."""
    found: dict[str, frozenset[str]] = {}
    for rule in rules:
        read = {variable for start in rule.condition_starts for variable in read_at(code, variables, start)}
        named = {variable.name for variable in read if variable.kind == "conversation"}
        asked = named | {variable.kind for variable in read if variable.kind in {"fired", *RECALLED}}
        if asked and rule.mode == "enforce":
            found[rule.id] = frozenset(asked)
    return found


def read_at(code: Sequence[Instruction], variables: Sequence[Variable], start: int) -> Iterator[Variable]:
    """Yield the variables that the code at `start` loads."""
    for op, argument in itertools.takewhile(lambda each: each[0] != Op.RETURN, itertools.islice(code, start, None)):
        if op == Op.LOAD:
            yield variables[argument]


def steady_of(code: Sequence[Instruction], variables: Sequence[Variable], starts: Iterable[int]) -> frozenset[int]:
    """Return the starts of code that reads only the context and the request."""
    changing = {number for number, variable in enumerate(variables) if variable.kind not in _STEADY}
    found: set[int] = set()
    for start in starts:
        place = start
        while code[place][0] != Op.RETURN and not (code[place][0] == Op.LOAD and code[place][1] in changing):
            place += 1
        if code[place][0] == Op.RETURN:
            found.add(start)
    return frozenset(found)


def loads_of(variables: Sequence[Variable]) -> tuple[Callable[[Facts], Value], ...]:
    """Return, beside each variable, the function that takes its value from the facts."""
    return tuple(_load(variable) for variable in variables)


def _load(variable: Variable) -> Callable[[Facts], Value]:
    signal, name = variable.signal, variable.name
    match variable.kind:
        case "found":
            return lambda facts: signal in facts.counts
        case "count":
            return lambda facts: facts.counts.get(signal, 0)
        case "scored":
            return lambda facts: signal in facts.scores
        case "score":
            return lambda facts: facts.scores.get(signal, _UNSCORED)
        case "peak":
            return lambda facts: facts.peaks.get(signal, _UNSCORED)
        case "context":
            return lambda facts: facts.exchange.context
        case "given":
            return lambda facts: name in facts.exchange.request
        case "request":
            missing = EvalError(f"the request has no `{name}`")
            return lambda facts: facts.exchange.request.get(name, missing)
        case "stream":
            return lambda facts: getattr(facts.stream, name)
        case _:
            return _load_of_conversation(variable)


def _load_of_conversation(variable: Variable) -> Callable[[Facts], Value]:
    signal, name = variable.signal, variable.name
    match variable.kind:
        case "conversation":
            return lambda facts: getattr(facts.exchange.conversation, name)
        case "fired":
            return lambda facts: facts.exchange.conversation.fired.get(name, 0)
        case "risk":
            return lambda facts: facts.exchange.conversation.risks.get(signal, _UNSCORED)
        case "highest":
            return lambda facts: facts.exchange.conversation.peaks.get(signal, _UNSCORED)
        case "recent":
            return lambda facts: facts.exchange.conversation.recents.get(signal, _UNSCORED)
        case "short":
            return lambda facts: facts.exchange.conversation.shorts.get(signal, _UNSCORED)
        case unknown:
            raise AssertionError(f"nothing loads a variable of kind `{unknown}`")


_UNSCORED = EvalError("the score is not known")
