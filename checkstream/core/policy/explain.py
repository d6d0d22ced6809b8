"""Why each rule of a program fires on a text, or doesn't: for people who write policies.

The text is taken as a whole channel, as the guard sees it at its end. Where the guard scores windows
of a stream, the caller here gives one score per label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from checkstream.core.cel.values import EvalError, from_json
from checkstream.core.events import EntityFound
from checkstream.core.match.scan import AnyScan, scanning
from checkstream.core.policy.definite import missing_guard
from checkstream.core.policy.program import Entry, Program, RuleMeta, Scope
from checkstream.core.policy.spares import covers, spared_with
from checkstream.core.policy.vm import Machine, counts_undecided
from checkstream.core.terms import ExchangeFacts, Facts, Finding, Span, Stage, StreamFacts

_NOT = "not("
"""Stands in the shape of a rule that asks for what is not there."""
_STEPS = 20
"""Halvings in the search for the score from which a rule fires: one millionth."""


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What is known besides the text."""

    scores: Mapping[str, float] = {}
    """`model.label` -> 0..1."""
    entities: Sequence[EntityFound] = ()
    """What models have found in the text."""
    exchange: ExchangeFacts = ExchangeFacts(context=from_json({}))
    """The caller's facts, the request, and the rules that take no part (`vm.exchange_facts`)."""
    stream: StreamFacts = msgspec.field(default_factory=StreamFacts)
    fail_mode: Literal["open", "closed"] = "closed"


class SparedReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a trigger has found and what counts for nothing."""

    span: Span
    why: str


class TriggerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one trigger of a rule."""

    detector: str
    """`entity:EMAIL`, `classifier:lexicon.toxicity`, ..."""
    held: bool
    spans: tuple[Span, ...] = ()
    views: tuple[str, ...] = ()
    """Beside each span, the view of the text in which it was found."""
    spared: tuple[SparedReport, ...] = ()
    score: float | None = None
    threshold: float | None = None
    """The lowest score that can count."""
    counts_from: float | None = None
    """The score from which it counts here, where conditions choose the threshold."""

    @property
    def reason(self) -> str:
        """The same in words."""
        if self.threshold is not None:
            if self.score is None:
                return "no score was given"
            counted = self.threshold if self.counts_from is None else self.counts_from
            here = "" if counted == self.threshold else " that conditions choose here"
            return (
                f"score {_plain(self.score)} {'>=' if self.score >= counted else '<'} threshold {_plain(counted)}{here}"
            )
        found = ", ".join(
            f"{span.start}..{span.end}" + (f" ({view} view)" if view != "raw" else "")
            for span, view in zip(self.spans, self.views, strict=True)
        )
        spared = ", ".join(f"{each.span.start}..{each.span.end} spared ({each.why})" for each in self.spared)
        return ", ".join(filter(None, (f"found at {found}" if found else "", spared))) or "not found"


def _plain(score: float) -> str:
    return f"{score:.6f}".rstrip("0").rstrip(".")


class ConditionReport(msgspec.Struct, frozen=True, kw_only=True):
    """What a condition of a rule comes to."""

    condition: str
    """As written."""
    value: Literal["true", "false", "undecided"]
    reason: str = ""
    """Why it can't be decided."""
    advice: str = ""
    """How to write it so that it can be."""

    def __str__(self) -> str:
        """Return the same in words."""
        why = "; ".join(filter(None, (self.reason, self.advice)))
        return f"`{self.condition}` is {self.value}" + (f" ({why})" if why else "")


class RuleReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule."""

    rule_id: str
    outcome: Literal["fired", "shadow", "not_fired", "out_of_scope"]
    """`shadow`: it would have fired, and is only recorded."""
    reason: str
    actions: tuple[str, ...]
    triggers: tuple[TriggerReport, ...] = ()
    conditions: tuple[ConditionReport, ...] = ()
    undecided: bool = False
    """The conditions can't be decided, so that the fail mode decides."""


def explain(
    program: Program, stage: Stage, channel: str, text: str, circumstances: Circumstances | None = None
) -> tuple[RuleReport, ...]:
    """Return a report on every rule of the program, in its order.

    Args:
        program: The compiled policies.
        stage: Where the text stands.
        channel: The kind of channel that the text is.
        text: The whole text of the channel.
        circumstances: What is known besides it; None: nothing.

    Raises:
        KeyError: the stage has no such channel.
    """
    looked = _Look(program, program.scope(stage, channel), text, circumstances or Circumstances())
    return tuple(looked.report(index) for index in range(len(program.rules)))


class _Look:
    """A text under a program, all of it known."""

    def __init__(self, program: Program, scope: Scope, text: str, circumstances: Circumstances) -> None:
        self._program = program
        self._scope = scope
        self._fail_mode = circumstances.fail_mode
        self._exchange = circumstances.exchange
        self._findings: list[Finding] = []
        self._spared: dict[Finding, str] = {}
        """What counts for nothing, and why."""
        for patterns in (scope.hold, scope.watch):
            self._sift(tuple(_findings(scanning(patterns), text)), text)
        for finding in _by_models(program, scope, circumstances.entities):
            self._sift((finding,), text)
        self._facts = Facts(
            stage=scope.stage, channel=scope.channel, exchange=circumstances.exchange, stream=circumstances.stream
        )
        for finding in self._findings:
            self._facts.counts[finding.signal] = self._facts.counts.get(finding.signal, 0) + 1
        for name, score in circumstances.scores.items():
            if name in scope.score_signals:
                signal = scope.score_signals[name]
                self._facts.scores[signal] = self._facts.peaks[signal] = score
        self._machine = Machine(program, self._facts)
        self._bare = {entry.rule: entry for entry in (*scope.bare, *(program.bare if scope.stage == "ingress" else ()))}

    def _sift(self, found: Sequence[Finding], text: str) -> None:
        """Part what counts of what was found together from what is spared, as the pages of a guard do."""
        why = {finding: self._let_pass(finding, text) for finding in found}
        spared = [finding.span for finding in found if covers(why[finding])]
        for finding in found:
            if not why[finding] and self._program.signals[finding.signal].spares is not None:
                whole = spared_with(finding.span, spared)
                why[finding] = "" if whole is None else f"it is a part of what is spared at {whole.start}..{whole.end}"
            if why[finding]:
                self._spared[finding] = why[finding]
            elif finding not in self._findings:
                self._findings.append(finding)

    def _let_pass(self, finding: Finding, text: str) -> str:
        signal = self._program.signals[finding.signal]
        if signal.spares is None or not finding.exact:
            return ""
        return signal.lets_pass(text[finding.span.start : finding.span.end], self._exchange.told)

    def report(self, index: int) -> RuleReport:
        """Return what became of one rule."""
        rule = self._program.rules[index]
        actions = tuple(action.name for action in rule.actions)
        if index not in self._scope.active and index not in self._bare:
            reason = _why_not_here(rule, self._scope)
            return RuleReport(rule_id=rule.id, outcome="out_of_scope", reason=reason, actions=actions)
        entries = self._entries(index)
        triggers = tuple(self._trigger(rule, place, entries) for place in range(len(rule.triggers)))
        conditions = tuple(map(self._condition, rule.conditions, rule.condition_starts))
        if index in self._exchange.off:
            return RuleReport(
                rule_id=rule.id,
                outcome="not_fired",
                reason=f"`enabled_when` leaves the rule out of this exchange{self._about_enabled(rule)}",
                actions=actions,
                triggers=triggers,
                conditions=conditions,
            )
        come = [entry for entry in entries if entry.signal < 0 or self._has_come(entry.signal)]
        decisions = [self._machine.decide(entry) for entry in come]
        undecided = True not in decisions and None in decisions
        fired = True in decisions or (undecided and counts_undecided(rule, self._fail_mode))
        shadow = rule.mode == "shadow" or index in self._exchange.shadowed
        outcome: Literal["fired", "shadow", "not_fired"] = ("shadow" if shadow else "fired") if fired else "not_fired"
        why = _why(rule, triggers, conditions) if fired else _why_not(rule, triggers, conditions)
        if undecided:
            counts = "lets it count" if fired else "lets it pass"
            why += f"; it can't be decided, and the fail mode {counts}"
        doubt = self._about_enabled(rule)
        why += f"; `enabled_when` lets the rule in{doubt}" if doubt else ""
        if fired and index in self._exchange.shadowed:
            why += f"; `enforce_share: {rule.enforce_share:g}` leaves this caller out"
        return RuleReport(
            rule_id=rule.id,
            outcome=outcome,
            reason=why,
            actions=actions,
            triggers=triggers,
            conditions=conditions,
            undecided=undecided,
        )

    def _has_come(self, signal: int) -> bool:
        return signal in self._facts.counts or signal in self._facts.scores

    def _entries(self, index: int) -> list[Entry]:
        if index in self._bare:
            return [self._bare[index]]
        return [entry for entries in self._scope.rules.values() for entry in entries if entry.rule == index]

    def _trigger(self, rule: RuleMeta, place: int, entries: Sequence[Entry]) -> TriggerReport:
        signal, threshold = rule.triggers[place], rule.thresholds[place]
        score = self._facts.scores.get(signal)
        hits = [finding for finding in self._findings if finding.signal == signal]
        counts_from = None if score is None or threshold is None else self._counts_from(entries, signal, threshold)
        return TriggerReport(
            detector=self._program.signals[signal].title,
            held=bool(hits)
            if threshold is None
            else score is not None and score >= (threshold if counts_from is None else counts_from),
            spans=tuple(hit.span for hit in hits),
            views=tuple(hit.view for hit in hits),
            spared=tuple(
                SparedReport(span=finding.span, why=why)
                for finding, why in self._spared.items()
                if finding.signal == signal
            ),
            score=score,
            threshold=threshold,
            counts_from=counts_from,
        )

    def _counts_from(self, entries: Sequence[Entry], signal: int, threshold: float) -> float | None:
        """Return the least score that makes a difference to the rule while all else stays, None when none does.

        Outside of `not` it is the score from which the rule fires, within `not` the one from which it doesn't.
        """
        scores, peaks = self._facts.scores, self._facts.peaks
        kept = scores[signal]
        own = [entry for entry in entries if entry.signal == signal]
        come = own or [entry for entry in entries if self._has_come(entry.signal)]

        def fires(score: float) -> bool:
            scores[signal] = peaks[signal] = score
            return any(self._machine.decide(entry) is True for entry in come)

        try:
            counting = fires(1.0)
            if counting is fires(0.0):
                return None
            if fires(threshold) is counting:
                return threshold
            low, high = threshold, 1.0
            for _ in range(_STEPS):
                middle = (low + high) / 2
                low, high = (low, middle) if fires(middle) is counting else (middle, high)
            return round(high, 5)
        finally:
            scores[signal] = peaks[signal] = kept

    def _about_enabled(self, rule: RuleMeta) -> str:
        """Return why `enabled_when` can't be decided, empty when it can."""
        value = True if rule.enabled_start is None else self._machine.value(rule.enabled_start)
        if isinstance(value, bool):
            return ""
        reason = value.reason if isinstance(value, EvalError) else "it is neither true nor false"
        return f" (it can't be decided: {reason}; the fail mode decides)"

    def _condition(self, condition: str, start: int) -> ConditionReport:
        value = self._machine.value(start)
        if isinstance(value, bool):
            return ConditionReport(condition=condition, value="true" if value else "false")
        reason = value.reason if isinstance(value, EvalError) else "it is neither true nor false"
        guard = missing_guard(condition, {"context": self._exchange.context, "request": dict(self._exchange.request)})
        advice = f"write `{guard} && ...` if that is to mean no" if guard else ""
        return ConditionReport(condition=condition, value="undecided", reason=reason, advice=advice)


def _findings(scan: AnyScan, text: str) -> Iterable[Finding]:
    yield from scan.feed(text)
    yield from scan.end()


def _by_models(program: Program, scope: Scope, entities: Iterable[EntityFound]) -> Iterable[Finding]:
    for entity in entities:
        for signal in scope.entity_signals.get(entity.entity, ()):
            if entity.score >= (program.signals[signal].threshold or 0.0):
                yield Finding(signal, Span(entity.start, entity.end))


def _why(rule: RuleMeta, triggers: Iterable[TriggerReport], conditions: Iterable[ConditionReport]) -> str:
    """Return what made a rule fire."""
    counted = [f"{trigger.detector} {trigger.reason}" for trigger in triggers if trigger.held or _NOT in rule.shape]
    if counted and _NOT in rule.shape:
        counted[0] = f"{rule.shape} holds: {counted[0]}"
    return "; ".join((*counted, *map(str, conditions))) or "it has neither triggers nor conditions"


def _why_not(rule: RuleMeta, triggers: tuple[TriggerReport, ...], conditions: tuple[ConditionReport, ...]) -> str:
    """Return what kept a rule from firing."""
    failed = "; ".join(str(condition) for condition in conditions if condition.value != "true")
    if failed and (not triggers or any(trigger.held for trigger in triggers)):
        return failed
    if rule.shape != "any" and any(trigger.held for trigger in triggers):
        there = "; ".join(f"{trigger.detector} {trigger.reason}" for trigger in triggers)
        return f"it asks for {rule.shape}: {there}"
    scored = [f"{trigger.detector} {trigger.reason}" for trigger in triggers if trigger.threshold is not None]
    spared = [f"{trigger.detector} {trigger.reason}" for trigger in triggers if trigger.spared]
    found = spared or ["none of its patterns, phrases and entities was found"]
    return "; ".join((found if len(scored) < len(triggers) else []) + scored)


def _why_not_here(rule: RuleMeta, scope: Scope) -> str:
    if rule.mode == "disabled":
        return "the rule is disabled"
    if scope.stage not in rule.stages:
        return f"the rule runs at {', '.join(sorted(rule.stages))}, not at {scope.stage}"
    return f"the rule reads {', '.join(sorted(rule.channels))}, not {scope.channel}"
