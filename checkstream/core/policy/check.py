"""What a rule means, and whether it can be carried out: names, stages, channels, actions, bounds.

A rule that passes can run on every surface: what can't is refused here with the place where it is
written, never at run time (G8). Every fault of every rule is reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import msgspec

from checkstream.core.match.entities import ENTITIES
from checkstream.core.match.patterns import Pattern, PatternSet, phrase_refine, phrase_regex
from checkstream.core.policy.classifiers import ClassifierLabel, resolve
from checkstream.core.policy.fields import did_you_mean
from checkstream.core.policy.nodes import Place, Placed, Source, shown
from checkstream.core.policy.program import AnyAction, InjectDisclaimer, Signal
from checkstream.core.policy.syntax import ClassifierTrigger, Pack, Rule
from checkstream.core.terms import ANSWER_CHANNELS, INGRESS_CHANNELS, Stage
from checkstream.errors import Fault, PatternError, PatternSyntaxError

STAGE_CHANNELS: Mapping[Stage, tuple[str, ...]] = MappingProxyType(
    {Stage.INGRESS: INGRESS_CHANNELS, Stage.MIDSTREAM: ANSWER_CHANNELS, Stage.EGRESS: ANSWER_CHANNELS}
)
ACTION_STAGES: Mapping[str, tuple[Stage, ...]] = MappingProxyType(
    {
        "allow": (Stage.INGRESS, Stage.MIDSTREAM),
        "reject": (Stage.INGRESS,),
        "redact": (Stage.INGRESS, Stage.MIDSTREAM),
        "stop": (Stage.MIDSTREAM,),
        "inject_disclaimer": (Stage.INGRESS, Stage.MIDSTREAM, Stage.EGRESS),
        "log_event": (Stage.INGRESS, Stage.MIDSTREAM, Stage.EGRESS),
    }
)
"""The matrix of actions and stages. Every action runs on every channel of its stages."""
DEFAULT_STAGES = (Stage.INGRESS, Stage.MIDSTREAM)
"""Where a rule runs that doesn't say. Egress sees the text that midstream saw: a rule there says so."""
GROUPS = ("pii", "secret")
GROUP_PREFIX = "group:"


class Trigger(msgspec.Struct, frozen=True):
    """A detector that a rule asks for, and from which score on it counts (None: found or not)."""

    signal: Signal
    threshold: float | None = None


class CheckedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with its names resolved and its defaults filled in."""

    rule: Rule
    pack: Pack
    stages: frozenset[Stage]
    channels: frozenset[str]
    triggers: tuple[Trigger, ...]


def check_policies(
    packs: Sequence[Pack], classifiers: Sequence[ClassifierLabel] = ()
) -> tuple[tuple[CheckedRule, ...], tuple[Fault, ...]]:
    """Return the rules that can be carried out, and what is wrong with the others.

    Args:
        packs: Policy files as read.
        classifiers: Every label of every classifier that is installed.
    """
    checked: list[CheckedRule] = []
    names: set[str] = set()
    ids: dict[str, tuple[Source, Place]] = {}
    for pack in packs:
        if pack.name in names:
            pack.source.fault(None, f"pack {shown(pack.name)} is loaded twice", "give each pack its own name")
        names.add(pack.name)
        for rule in pack.rules:
            first = ids.setdefault(rule.id.value, (pack.source, rule.id.at))
            if rule.id.value and first[1] is not rule.id.at:
                where = f"{first[0].name}:{first[1].line}"
                reason = f"rule id {shown(rule.id.value)} stands twice"
                pack.source.fault(rule.id.at, reason, f"give each rule its own id; the first is at {where}")
            found = _RuleCheck(pack, rule, classifiers).run()
            if found is not None:
                checked.append(found)
    faults = tuple(fault for source in _sources(packs) for fault in source.faults)
    return tuple(checked), faults


def _sources(packs: Sequence[Pack]) -> Iterator[Source]:
    seen: list[Source] = []
    for pack in packs:
        if all(pack.source is not source for source in seen):
            seen.append(pack.source)
            yield pack.source


class _RuleCheck:
    """Checks one rule."""

    def __init__(self, pack: Pack, rule: Rule, classifiers: Sequence[ClassifierLabel]) -> None:
        self._pack = pack
        self._source = pack.source
        self._rule = rule
        self._classifiers = classifiers

    def run(self) -> CheckedRule | None:
        rule = self._rule
        before = len(self._source.faults)
        triggers = self._triggers()
        self._actions()
        stages = self._stages()
        channels = self._channels(stages)
        wanted = rule.classifiers or rule.patterns or rule.phrases or rule.entities
        if rule.conditions:
            at = rule.conditions[0].at
            self._source.fault(at, "`conditions` are not available yet in this version", "remove them")
        elif not wanted and not rule.incomplete:  # an incomplete rule has been reported already
            advice = "add `patterns`, `phrases`, `entities` or `classifiers`"
            self._source.fault(rule.at, f"rule {shown(rule.id.value)} has no trigger", advice)
        sound = len(self._source.faults) == before and not rule.incomplete
        if sound and rule.match is not None and rule.match.value == "all" and len(triggers) == 1:
            self._source.fault(rule.match.at, "`match: all` needs two triggers or more", "add one or remove the key")
        if len(self._source.faults) > before:
            return None
        return CheckedRule(rule=rule, pack=self._pack, stages=stages, channels=channels, triggers=triggers)

    def _triggers(self) -> tuple[Trigger, ...]:
        """Resolve all triggers, in the order entities, patterns, phrases, classifiers."""
        triggers: list[Trigger] = []
        for at, trigger in (*self._entities(), *self._patterns(), *self._phrases(), *self._scores()):
            if any(trigger.signal.title == other.signal.title for other in triggers):
                kind, name = trigger.signal.kind, shown(trigger.signal.name)
                self._source.fault(at, f"{kind} {name} stands twice in the rule", "keep one")
            else:
                triggers.append(trigger)
        return tuple(triggers)

    def _entities(self) -> Iterator[tuple[Place, Trigger]]:
        for name in self._rule.entities:
            if name.value.startswith(GROUP_PREFIX):
                members = self._group(name.value, name.at)
            elif name.value in ENTITIES:
                members = (name.value,)
            else:
                advice = did_you_mean(name.value, ENTITIES, "LANGUAGE.md lists the entities")
                self._source.fault(name.at, f"there is no entity {shown(name.value)}", advice)
                continue
            for member in members:
                entity = ENTITIES[member]
                signal = Signal(kind="entity", name=member, regex=entity.regex, max_chars=entity.max_chars)
                yield name.at, Trigger(signal)

    def _group(self, name: str, at: Place) -> tuple[str, ...]:
        group = name.removeprefix(GROUP_PREFIX)
        members = tuple(sorted(entity.name for entity in ENTITIES.values() if entity.group == group))
        if not members:
            known = ", ".join(f"`{GROUP_PREFIX}{known}`" for known in GROUPS)
            self._source.fault(at, f"there is no group of entities {shown(name)}", f"use {known}")
        elif self._rule.match is not None and self._rule.match.value == "all":
            reason = f"{shown(name)} with `match: all` would need every entity of the group"
            self._source.fault(at, reason, "name the entities that must all be found")
        return members

    def _patterns(self) -> Iterator[tuple[Place, Trigger]]:
        for pattern in self._rule.patterns:
            name, regex, max_chars = pattern.name.value, pattern.regex.value, pattern.max_chars
            try:
                PatternSet([Pattern(signal=0, name=name, regex=regex, max_chars=max_chars)])
            except PatternError as error:
                self._unusable("pattern", name, pattern.regex, error)
                continue
            yield pattern.name.at, Trigger(Signal(kind="pattern", name=name, regex=regex, max_chars=max_chars))

    def _phrases(self) -> Iterator[tuple[Place, Trigger]]:
        for phrase in self._rule.phrases:
            words = " ".join(phrase.value.split())
            try:
                regex = phrase_regex(words)
                PatternSet([Pattern(signal=0, name=words, regex=regex, refine=phrase_refine)])
            except PatternError as error:
                self._unusable("phrase", words, phrase, error)
                continue
            yield phrase.at, Trigger(Signal(kind="phrase", name=words, regex=regex))

    def _unusable(self, kind: str, name: str, regex: Placed[str], error: PatternError) -> None:
        """Report what the matcher says of a pattern, at the very character when the file shows it as it is."""
        at, said = regex.at, str(error).partition("\n")[0]
        own, words = f"`{name}` ", said.removeprefix(f"`{name}`: ")
        if isinstance(error.__cause__, PatternSyntaxError):
            words = error.__cause__.reason
            written = self._source.line(at.line)[at.column - 1 :]
            quote = 1 if written[:1] in {"'", '"'} else 0
            if written[quote:].startswith(regex.value):
                at = Place(at.line, at.column + quote + error.__cause__.position)
        reason, _, advice = words.partition("; ")
        what = reason.removeprefix(own) if reason.startswith(own) else f"can't be used: {reason}"
        self._source.fault(at, f"{kind} {shown(name)} {what}", advice)

    def _scores(self) -> Iterator[tuple[Place, Trigger]]:
        for trigger in self._rule.classifiers:
            name = trigger.name
            found = resolve(name.value, self._classifiers)
            if len(found) != 1:
                self._unclear(name.value, name.at, found)
                continue
            label = found[0]
            threshold = self._threshold(label, trigger)
            if threshold is not None:
                yield name.at, Trigger(Signal(kind="classifier", name=label.name), threshold)

    def _threshold(self, label: ClassifierLabel, trigger: ClassifierTrigger) -> float | None:
        if trigger.threshold is not None:
            return trigger.threshold.value
        if trigger.fpr is not None:
            threshold = label.threshold_at(trigger.fpr.value)
            if threshold is None:
                self._not_calibrated(label, trigger.fpr.value, trigger.fpr.at)
            return threshold
        if label.threshold is None:
            reason = f"classifier `{label.name}` has no threshold of its own"
            self._source.fault(trigger.name.at, reason, "add `threshold:`")
        return label.threshold

    def _unclear(self, name: str, at: Place, found: Sequence[ClassifierLabel]) -> None:
        if found:
            known = ", ".join(f"`{label.name}`" for label in found)
            self._source.fault(at, f"classifier {shown(name)} can mean more than one score", f"write one of {known}")
            return
        names = [label.name for label in self._classifiers]
        otherwise = "known: " + ", ".join(f"`{known}`" for known in names) if names else "no classifier is installed"
        short = {known.partition(".")[2]: known for known in names}
        advice = did_you_mean(name, [*names, *short], otherwise)
        self._source.fault(at, f"there is no classifier {shown(name)}", advice)

    def _not_calibrated(self, label: ClassifierLabel, fpr: float, at: Place) -> None:
        if label.calibration:
            lowest = min(label.calibration)[0]
            reason = f"classifier `{label.name}` is not calibrated for a rate of `{fpr:g}`"
            self._source.fault(at, reason, f"the lowest calibrated rate is {lowest:g}")
        else:
            self._source.fault(at, f"classifier `{label.name}` is not calibrated", "give `threshold` in place of `fpr`")

    def _actions(self) -> None:
        """Report actions that stand twice or contradict each other."""
        kinds: list[tuple[str, str]] = []
        for action in self._rule.actions:
            kind = (action.value.name, _position(action.value))
            if kind in kinds:
                self._source.fault(action.at, f"the action `{kind[0]}` stands twice in the rule", "keep one")
            kinds.append(kind)
        others = [action for action in self._rule.actions if action.value.name not in {"allow", "log_event"}]
        if others and any(name == "allow" for name, _ in kinds):
            reason = f"`allow` and `{others[0].value.name}` contradict each other"
            self._source.fault(others[0].at, reason, "only `log_event` may stand beside `allow`")

    def _stages(self) -> frozenset[Stage]:
        """Return the rule's stages; report each action that can't run at one that is named."""
        rule = self._rule
        if rule.stages:
            for placed in rule.stages:
                for action in rule.actions:
                    allowed = action_stages(action.value)
                    if placed.value not in allowed:
                        self._wrong_stage(action.value, action.at, placed.value, allowed)
            return frozenset(Stage(placed.value) for placed in rule.stages)
        stages = [stage for stage in DEFAULT_STAGES if all(stage in action_stages(a.value) for a in rule.actions)]
        if not stages:
            words = ", ".join(f"`{action.value.name}`" for action in rule.actions)
            self._source.fault(rule.actions[0].at, f"no stage can carry out {words} together", "make two rules of it")
        given = {placed.value for placed in rule.channels}
        if given:
            stages = [stage for stage in stages if given & set(STAGE_CHANNELS[stage])] or stages
        return frozenset(stages)

    def _wrong_stage(self, action: AnyAction, at: Place, stage: str, allowed: Sequence[Stage]) -> None:
        where = ", ".join(f"`{name}`" for name in allowed)
        if isinstance(action, InjectDisclaimer):
            reason = f"a rule of stage `{stage}` can't put a text before the answer"
            advice = "the answer has begun by then: use `position: end` or `stage: [ingress]`"
        else:
            reason = f"the action `{action.name}` can't run at stage `{stage}`"
            advice = f"it runs at {where}"
            if stage == Stage.EGRESS:
                advice += "; egress rules only add text or record"
        self._source.fault(at, reason, advice)

    def _channels(self, stages: frozenset[Stage]) -> frozenset[str]:
        """Return the rule's channels; report those that none of its stages has, and stages left without one."""
        known = {channel for stage in stages for channel in STAGE_CHANNELS[stage]}
        if not self._rule.channels:
            return frozenset(known)
        everywhere = (*INGRESS_CHANNELS, *ANSWER_CHANNELS)
        words = " or ".join(f"`{stage}`" for stage in STAGE_CHANNELS if stage in stages)
        for placed in self._rule.channels:
            if placed.value not in everywhere:
                otherwise = "channels: " + ", ".join(f"`{name}`" for name in everywhere)
                advice = did_you_mean(placed.value, everywhere, otherwise)
                self._source.fault(placed.at, f"there is no channel {shown(placed.value)}", advice)
            elif placed.value not in known and stages:
                names = ", ".join(
                    f"`{n}`" for stage in STAGE_CHANNELS if stage in stages for n in STAGE_CHANNELS[stage]
                )
                reason = f"stage {words} has no channel `{placed.value}`"
                self._source.fault(placed.at, reason, f"it has {names}")
        given = frozenset(placed.value for placed in self._rule.channels)
        for placed in self._rule.stages:
            if not given & set(STAGE_CHANNELS[Stage(placed.value)]) and given <= known:
                reason = f"stage `{placed.value}` has none of the rule's channels"
                self._source.fault(placed.at, reason, "remove the stage or add one of its channels")
        return given


def action_stages(action: AnyAction) -> tuple[Stage, ...]:
    """Return the stages at which an action can be carried out."""
    if isinstance(action, InjectDisclaimer) and action.position == "start":
        return (Stage.INGRESS,)
    return ACTION_STAGES[action.name]


def _position(action: AnyAction) -> str:
    return action.position if isinstance(action, InjectDisclaimer) else ""
