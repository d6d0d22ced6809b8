"""Why each rule of a program fires on a text, or doesn't: for people who write policies.

The text is taken as a whole channel, as the guard sees it at its end. Where the guard scores windows
of a stream, the caller here gives one score per label.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

from checkstream.core.match.scan import Scan
from checkstream.core.policy.program import Program, RuleMeta, Scope
from checkstream.core.policy.vm import Machine
from checkstream.core.terms import Facts, Finding, Span, Stage


class TriggerReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one trigger of a rule."""

    detector: str
    """`entity:EMAIL`, `classifier:lexicon.toxicity`, ..."""
    held: bool
    spans: tuple[Span, ...] = ()
    views: tuple[str, ...] = ()
    """Beside each span, the view of the text in which it was found."""
    score: float | None = None
    threshold: float | None = None

    @property
    def reason(self) -> str:
        """The same in words."""
        if self.threshold is not None:
            if self.score is None:
                return "no score was given"
            return f"score {self.score:g} {'>=' if self.held else '<'} threshold {self.threshold:g}"
        if not self.spans:
            return "not found"
        return "found at " + ", ".join(
            f"{span.start}..{span.end}" + (f" ({view} view)" if view != "raw" else "")
            for span, view in zip(self.spans, self.views, strict=True)
        )


class RuleReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one rule."""

    rule_id: str
    outcome: Literal["fired", "shadow", "not_fired", "out_of_scope"]
    """`shadow`: it would have fired, and is only recorded."""
    reason: str
    actions: tuple[str, ...]
    triggers: tuple[TriggerReport, ...] = ()


def explain(
    program: Program, stage: Stage, channel: str, text: str, scores: Mapping[str, float] | None = None
) -> tuple[RuleReport, ...]:
    """Return a report on every rule of the program, in its order.

    Args:
        program: The compiled policies.
        stage: Where the text stands.
        channel: The kind of channel that the text is.
        text: The whole text of the channel.
        scores: `model.label` -> 0..1.

    Raises:
        KeyError: the stage has no such channel.
    """
    scope = program.scope(stage, channel)
    findings = list(dict.fromkeys([*_findings(Scan(scope.hold), text), *_findings(Scan(scope.watch), text)]))
    facts = Facts(stage=stage, channel=channel)
    for finding in findings:
        facts.counts[finding.signal] = facts.counts.get(finding.signal, 0) + 1
    for name, score in (scores or {}).items():
        if name in scope.score_signals:
            facts.scores[scope.score_signals[name]] = score
    machine = Machine(program, facts)
    fired = {
        entry.rule
        for signal in (*facts.counts, *facts.scores)
        for entry in scope.rules.get(signal, ())
        if machine.decide(entry)
    }
    return tuple(
        _report(program, scope, facts, findings, index, fired=index in fired) for index in range(len(program.rules))
    )


def _findings(scan: Scan, text: str) -> Iterable[Finding]:
    yield from scan.feed(text)
    yield from scan.end()


def _report(
    program: Program, scope: Scope, facts: Facts, findings: list[Finding], index: int, *, fired: bool
) -> RuleReport:
    rule = program.rules[index]
    actions = tuple(action.name for action in rule.actions)
    if index not in scope.active:
        return RuleReport(rule_id=rule.id, outcome="out_of_scope", reason=_why_not_here(rule, scope), actions=actions)
    triggers = []
    for signal, threshold in zip(rule.triggers, rule.thresholds, strict=True):
        detector, score = program.signals[signal].title, facts.scores.get(signal)
        hits = [finding for finding in findings if finding.signal == signal]
        triggers.append(
            TriggerReport(
                detector=detector,
                held=bool(hits) if threshold is None else score is not None and score >= threshold,
                spans=tuple(hit.span for hit in hits),
                views=tuple(hit.view for hit in hits),
                score=score,
                threshold=threshold,
            )
        )
    if fired:
        outcome: Literal["fired", "shadow"] = "shadow" if rule.mode == "shadow" else "fired"
        reason = "; ".join(f"{trigger.detector} {trigger.reason}" for trigger in triggers if trigger.held)
        return RuleReport(rule_id=rule.id, outcome=outcome, reason=reason, actions=actions, triggers=tuple(triggers))
    if rule.shape.startswith("all") and any(trigger.held for trigger in triggers):
        missing = "; ".join(f"{trigger.detector} {trigger.reason}" for trigger in triggers if not trigger.held)
        reason = f"`match: all` needs what is missing: {missing}"
    else:
        below = [f"{trigger.detector} {trigger.reason}" for trigger in triggers if trigger.threshold is not None]
        found = "none of its patterns, phrases and entities was found"
        reason = "; ".join(([found] if len(below) < len(triggers) else []) + below)
    return RuleReport(rule_id=rule.id, outcome="not_fired", reason=reason, actions=actions, triggers=tuple(triggers))


def _why_not_here(rule: RuleMeta, scope: Scope) -> str:
    if rule.mode == "disabled":
        return "the rule is disabled"
    if scope.stage not in rule.stages:
        return f"the rule runs at {', '.join(sorted(rule.stages))}, not at {scope.stage}"
    return f"the rule reads {', '.join(sorted(rule.channels))}, not {scope.channel}"
