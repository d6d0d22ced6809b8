"""From the names of a rule's triggers to signals: entities, patterns, phrases and scores, and the tree of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import Pattern, check_pattern
from checkstream.core.policy.carets import point
from checkstream.core.policy.classifiers import ClassifierLabel, Installed, ModelEntity, resolve, resolve_entity
from checkstream.core.policy.conditions import Condition, Names, read_condition, unclear_score
from checkstream.core.policy.fields import did_you_mean
from checkstream.core.policy.groups import Group, Leaf, Not, Trigger, joined
from checkstream.core.policy.nodes import Place, Placed, Source, shown
from checkstream.core.policy.program import Signal
from checkstream.core.policy.signals import (
    entity_signal,
    model_entity_signal,
    pattern_signal,
    phrase_signal,
    recital_signal,
)
from checkstream.core.policy.spares_syntax import DOMAIN_ENTITIES, EntityTrigger, spares_for
from checkstream.core.policy.triggers import ClassifierTrigger, Detectors, PatternTrigger, ThresholdCase, WrittenGroup
from checkstream.errors import PatternError, PatternSyntaxError

GROUPS = ("pii", "secret")
GROUP_PREFIX = "group:"
_PII = "group:pii"
CASE_ROOTS = ("context", "request", "findings", "stream")
"""What the conditions of thresholds may read."""

_Key = tuple[Signal, float | None, tuple[tuple[str, float], ...]]


class TriggerCheck:
    """Resolves the triggers of one rule; what is wrong is reported at its place."""

    def __init__(self, source: Source, classifiers: Sequence[Installed], names: Names) -> None:
        """Start with no trigger."""
        self._source = source
        self._classifiers = classifiers
        self._names = names
        self._triggers: dict[_Key, int] = {}
        self._found: list[Trigger] = []
        self._titles: dict[tuple[str, str], Signal] = {}
        self.conditions: list[tuple[Placed[str], Condition]] = []
        """Conditions of thresholds, in the order of the file."""

    @property
    def triggers(self) -> tuple[Trigger, ...]:
        """The distinct triggers found so far, in the order of the file."""
        return tuple(self._found)

    def group(self, written: WrittenGroup) -> Group | None:
        """Return a tree of triggers with names resolved; None when nothing of it can be used."""
        items = list(self._leaves(written.detectors, match_all=written.kind == "all"))
        items.extend(item for item in map(self.group, written.items) if item is not None)
        if written.kind == "not":
            return Not(items[0]) if items else None
        return joined(written.kind, items)

    def _leaves(self, detectors: Detectors, *, match_all: bool) -> Iterator[Group]:
        seen: set[tuple[str, str]] = set()
        for at, trigger, cases in (
            *self._entities(detectors.entities, match_all=match_all),
            *self._patterns(detectors.patterns),
            *self._phrases(detectors.phrases),
            *((each.file.at, Trigger(recital_signal(each)), ()) for each in detectors.fingerprints),
            *self._scores(detectors.classifiers),
        ):
            signal = trigger.signal
            named = signal.title, signal.classifier
            if named in seen:
                self._source.fault(at, f"{signal.kind} {shown(signal.name)} stands twice in the rule", "keep one")
                continue
            seen.add(named)
            if self._titles.setdefault(named, signal) != signal:
                reason = f"two {signal.kind}s of the rule are called {shown(signal.name)}"
                self._source.fault(at, reason, "give each its own name")
                continue
            key = (signal, trigger.threshold, cases)
            if key not in self._triggers:
                self._triggers[key] = len(self._found)
                self._found.append(trigger)
            yield Leaf(self._triggers[key])

    def _entities(
        self, named: Sequence[EntityTrigger], *, match_all: bool
    ) -> Iterator[tuple[Place, Trigger, tuple[tuple[str, float], ...]]]:
        domains = next((each for each in named if each.spares is not None and each.spares.domains), None)
        if domains is not None and not any(_has_domain(each.name.value) for each in named):
            known = " and ".join(f"`{each}`" for each in DOMAIN_ENTITIES)
            reason = f"entity {shown(domains.name.value)} has no domain, and `allow` names some"
            self._source.fault(domains.name.at, reason, f"{known} have")
        for entity in named:
            name, written = entity.name, entity.spares
            if name.value.startswith(GROUP_PREFIX):
                for member in self._members(name.value, name.at, match_all=match_all):
                    yield name.at, Trigger(entity_signal(member, spares_for(member, written))), ()
            elif name.value in ENTITIES:
                yield name.at, Trigger(entity_signal(name.value, spares_for(name.value, written))), ()
            else:
                found = resolve_entity(name.value, self._classifiers)
                if len(found) != 1:
                    self._source.fault(name.at, *unclear_entity(name.value, found, self._classifiers))
                else:
                    spares = spares_for(found[0].name, written, by_model=True)
                    yield name.at, Trigger(model_entity_signal(found[0], spares)), ()

    def _members(self, name: str, at: Place, *, match_all: bool) -> tuple[str, ...]:
        group = name.removeprefix(GROUP_PREFIX)
        members = tuple(sorted(entity.name for entity in ENTITIES.values() if entity.group == group))
        if not members:
            known = ", ".join(f"`{GROUP_PREFIX}{known}`" for known in GROUPS)
            self._source.fault(at, f"there is no group of entities {shown(name)}", f"use {known}")
        elif match_all:
            reason = f"{shown(name)} with `match: all` would need every entity of the group"
            self._source.fault(at, reason, "name the entities that must all be found")
        return members

    def _patterns(
        self, patterns: Sequence[PatternTrigger]
    ) -> Iterator[tuple[Place, Trigger, tuple[tuple[str, float], ...]]]:
        for pattern in patterns:
            signal = pattern_signal(pattern)
            try:
                check_pattern(
                    Pattern(signal=0, name=signal.name, regex=pattern.regex.value, max_chars=signal.max_chars)
                )
            except PatternError as error:
                self._unusable("pattern", signal.name, pattern.regex, error)
                continue
            yield pattern.name.at, Trigger(signal), ()

    def _phrases(
        self, phrases: Sequence[Placed[str]]
    ) -> Iterator[tuple[Place, Trigger, tuple[tuple[str, float], ...]]]:
        for phrase in phrases:
            try:
                signal = phrase_signal(phrase.value)
            except PatternError as error:
                self._unusable("phrase", phrase.value, phrase, error)
                continue
            yield phrase.at, Trigger(signal), ()

    def _unusable(self, kind: str, name: str, regex: Placed[str], error: PatternError) -> None:
        """Report what the matcher says of a pattern, at the very character when the file shows it as it is."""
        at, said = regex.at, str(error).partition("\n")[0]
        own, words = f"`{name}` ", said.removeprefix(f"`{name}`: ")
        if isinstance(error.__cause__, PatternSyntaxError):
            words = error.__cause__.reason
            at = point(self._source, regex, error.__cause__.position)
        reason, _, advice = words.partition("; ")
        what = reason.removeprefix(own) if reason.startswith(own) else f"can't be used: {reason}"
        self._source.fault(at, f"{kind} {shown(name)} {what}", advice)

    def _scores(
        self, triggers: Sequence[ClassifierTrigger]
    ) -> Iterator[tuple[Place, Trigger, tuple[tuple[str, float], ...]]]:
        for trigger in triggers:
            name = trigger.name
            found = resolve(name.value, self._classifiers)
            if len(found) != 1:
                self._source.fault(name.at, *unclear_score(name.value, found, self._classifiers))
                continue
            label = found[0]
            threshold = self._threshold(label, trigger, name.at)
            cases = [self._case(label, case) for case in trigger.cases]
            sound = [case for case in cases if case is not None]
            if threshold is None or len(sound) < len(cases):
                continue
            made = Trigger(
                Signal(kind="classifier", name=label.name),
                threshold,
                tuple((condition.expr, number) for condition, number in sound),
            )
            yield name.at, made, tuple((condition.text, number) for condition, number in sound)

    def _case(self, label: ClassifierLabel, case: ThresholdCase) -> tuple[Condition, float] | None:
        condition = read_condition(self._source, case.condition, self._names, CASE_ROOTS, "a condition of `when`")
        threshold = self._threshold(label, case, case.condition.at)
        if condition is None or threshold is None:
            return None
        self.conditions.append((case.condition, condition))
        return condition, threshold

    def _threshold(self, label: ClassifierLabel, given: ClassifierTrigger | ThresholdCase, at: Place) -> float | None:
        if given.threshold is not None:
            return given.threshold.value
        if given.fpr is not None:
            threshold = label.threshold_at(given.fpr.value)
            if threshold is None:
                self._not_calibrated(label, given.fpr.value, given.fpr.at)
            return threshold
        if label.threshold is None:
            reason = f"classifier `{label.name}` has no threshold of its own"
            self._source.fault(at, reason, "add `threshold:`")
        return label.threshold

    def _not_calibrated(self, label: ClassifierLabel, fpr: float, at: Place) -> None:
        if label.calibration:
            lowest = min(label.calibration)[0]
            reason = f"classifier `{label.name}` is not calibrated for a rate of `{fpr:g}`"
            self._source.fault(at, reason, f"the lowest calibrated rate is {lowest:g}")
        else:
            self._source.fault(at, f"classifier `{label.name}` is not calibrated", "give `threshold` in place of `fpr`")


def _has_domain(name: str) -> bool:
    """Tell whether what an entity, a group or `model.ENTITY` finds may have a domain."""
    return name == _PII or name.rpartition(".")[2] in DOMAIN_ENTITIES


def unclear_entity(name: str, found: Sequence[ModelEntity], classifiers: Sequence[Installed]) -> tuple[str, str]:
    """Return what is wrong with the name of an entity that means none (`found` is empty) or several, and what to do."""
    if found:
        known = ", ".join(f"`{each.model}.{each.name}`" for each in found)
        return f"entity {shown(name)} can mean what more than one model finds", f"write one of {known}"
    names = [each.name for each in classifiers if isinstance(each, ModelEntity)]
    return f"there is no entity {shown(name)}", did_you_mean(
        name, [*ENTITIES, *names], "LANGUAGE.md lists the entities"
    )
