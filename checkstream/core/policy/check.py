"""What a rule means, and whether it can be carried out: names, stages, channels, actions, conditions, bounds.

A rule that passes can run on every route that the policy is for: what can't is refused here with the place where it
is written, never at run time (G8). Every fault of every rule is reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from checkstream.core.policy.action import InjectDisclaimer, Pseudonymise, holds_text
from checkstream.core.policy.capabilities import Target, missing
from checkstream.core.policy.classifiers import Installed
from checkstream.core.policy.conditions import MAX_COST, Condition, Names, read_condition
from checkstream.core.policy.detectors import TriggerCheck
from checkstream.core.policy.extends import Extended, extend_rules
from checkstream.core.policy.groups import (
    AllOf,
    AnyOf,
    Group,
    Leaf,
    Not,
    Trigger,
    has_not,
    holds,
    leaves_outside_not,
)
from checkstream.core.policy.nodes import Place, Placed, Source, shown
from checkstream.core.policy.placing import SPAN_ACTIONS, channels_of, stages_of
from checkstream.core.policy.program import Signal, Waits
from checkstream.core.policy.signals import findings_of
from checkstream.core.policy.syntax import Pack, Rule
from checkstream.core.policy.triggers import WrittenGroup
from checkstream.core.policy.variables import ROOTS
from checkstream.core.terms import STAGE_CHANNELS, Stage
from checkstream.errors import Fault

__all__ = [
    "STAGE_CHANNELS",
    "AllOf",
    "AnyOf",
    "CheckedRule",
    "Condition",
    "Group",
    "Leaf",
    "Not",
    "Trigger",
    "check_policies",
]

REQUEST_ROOTS = ("context", "request")
"""What is known before any text is read."""
BARE_ROOTS = (*REQUEST_ROOTS, "conversation")
"""What rules on the request as a whole may read."""


class CheckedRule(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with its names resolved and its defaults filled in."""

    rule: Rule
    """With all that it takes over from the rule that it extends."""
    pack: Pack
    stages: frozenset[Stage]
    channels: frozenset[str]
    """Without triggers: `content` at egress, none at ingress."""
    triggers: tuple[Trigger, ...]
    """Distinct, in the order of the file."""
    group: Group | None = None
    """How the triggers combine; None: there are none."""
    conditions: tuple[Condition, ...] = ()
    enabled_when: Condition | None = None
    reads: tuple[Signal, ...] = ()
    """Signals that conditions read, also those of thresholds; triggers may be among them."""
    waits: Waits = Waits.NO


def check_policies(
    packs: Sequence[Pack], classifiers: Sequence[Installed] = (), targets: Sequence[Target] = ()
) -> tuple[tuple[CheckedRule, ...], tuple[Fault, ...]]:
    """Return the rules that can be carried out, and what is wrong with the others.

    Args:
        packs: Policy files as read.
        classifiers: Every label and every entity of every model that is installed.
        targets: The routes on which the rules will run.
    """
    names: set[str] = set()
    for pack in packs:
        if pack.name in names:
            pack.source.fault(None, f"pack {shown(pack.name)} is loaded twice", "give each pack its own name")
        names.add(pack.name)
    extended = extend_rules(packs)
    known = _names(extended, classifiers)
    checked: dict[int, CheckedRule] = {}
    sound: set[int] = set()
    for item in extended:
        before = len(item.pack.source.faults)
        found = _RuleCheck(item, known[item.pack.name], () if item.replaced else targets).run()
        if found is not None:
            sound.add(item.place)
            if not item.replaced:
                checked[item.place] = found
        elif item.parent is not None and item.parent not in sound:
            _forget_inherited(item, before)
    faults = tuple(fault for source in _sources(packs) for fault in source.faults)
    return tuple(checked[place] for place in sorted(checked)), faults


def _names(extended: Sequence[Extended], classifiers: Sequence[Installed]) -> dict[str, Names]:
    """Return what the conditions of each pack may name."""
    groups: dict[str, list[WrittenGroup]] = {}
    for item in extended:
        groups.setdefault(item.pack.name, []).extend(() if item.rule.triggers is None else (item.rule.triggers,))
    rules = frozenset(item.rule.id.value for item in extended)
    return {
        name: Names(classifiers=classifiers, findings=findings_of(iter(written)), rules=rules)
        for name, written in groups.items()
    }


def _forget_inherited(item: Extended, before: int) -> None:
    """Drop what was reported of the part of a rule that comes from a faulty one: it has been reported there."""
    faults, extends = item.pack.source.faults, item.rule.extends
    if extends is not None:
        at = (extends.at.line, extends.at.column)
        faults[before:] = [fault for fault in faults[before:] if (fault.line, fault.column) != at]


def _sources(packs: Sequence[Pack]) -> Iterator[Source]:
    seen: list[Source] = []
    for pack in packs:
        if all(pack.source is not source for source in seen):
            seen.append(pack.source)
            yield pack.source


class _RuleCheck:
    """Checks one rule."""

    def __init__(self, item: Extended, names: Names, targets: Sequence[Target]) -> None:
        self._pack = item.pack
        self._source = item.pack.source
        self._rule = item.rule
        self._names = names
        self._targets = targets
        self._triggers = TriggerCheck(self._source, names.classifiers, names)
        self._cost = 0

    def run(self) -> CheckedRule | None:
        rule = self._rule
        before = len(self._source.faults)
        bare = rule.triggers is None and not rule.incomplete
        group = None if rule.triggers is None else self._triggers.group(rule.triggers)
        triggers = self._triggers.triggers
        self._actions(bare=bare)
        stages = stages_of(self._source, rule, bare=bare)
        channels = channels_of(self._source, rule, stages, bare=bare)
        if len(self._source.faults) == before and not rule.incomplete:
            self._tree(group, stages)
            self._unless(stages, channels)
            self._named()
            self._reach(stages)
        for placed, condition in self._triggers.conditions:
            self._charge(placed, condition)
        conditions = self._conditions(stages, bare=bare)
        enabled_when = self._condition(rule.enabled_when, REQUEST_ROOTS, "`enabled_when`")
        if rule.enforce_share_at is not None and rule.mode != "enforce":
            reason = f"`enforce_share` has no meaning with `mode: {rule.mode}`"
            self._source.fault(rule.enforce_share_at, reason, "remove one of the two keys")
        if len(self._source.faults) > before:
            return None
        read = (*self._triggers.conditions, *zip(rule.conditions, conditions, strict=False))
        return CheckedRule(
            rule=rule,
            pack=self._pack,
            stages=stages,
            channels=channels,
            triggers=triggers,
            group=group,
            conditions=conditions,
            enabled_when=enabled_when,
            reads=tuple(dict.fromkeys(signal for _, condition in read for signal in condition.reads)),
            waits=_waits(group, triggers, conditions),
        )

    def _actions(self, *, bare: bool) -> None:
        """Report actions that stand twice, contradict each other, or have no span to act on."""
        kinds: list[tuple[str, str]] = []
        for action in self._rule.actions:
            kind = (action.value.name, action.value.position if isinstance(action.value, InjectDisclaimer) else "")
            if kind in kinds:
                self._source.fault(action.at, f"the action `{kind[0]}` stands twice in the rule", "keep one")
            elif bare and self._rule.conditions and kind[0] in SPAN_ACTIONS:
                reason = f"the action `{kind[0]}` needs something that was found, and the rule has no trigger"
                self._source.fault(action.at, reason, _TRIGGER_ADVICE)
            kinds.append(kind)
        others = [action for action in self._rule.actions if action.value.name not in {"allow", "log_event"}]
        if others and any(name == "allow" for name, _ in kinds):
            reason = f"`allow` and `{others[0].value.name}` contradict each other"
            self._source.fault(others[0].at, reason, "only `log_event` may stand beside `allow`")

    def _tree(self, group: Group | None, stages: frozenset[Stage]) -> None:
        """Report a tree of triggers that can't be decided as it is written."""
        rule, written = self._rule, self._rule.triggers
        if group is None or written is None:
            if not rule.conditions:
                self._source.fault(rule.at, f"rule {shown(rule.id.value)} has no trigger", _RULE_ADVICE)
            return
        if written.kind == "all" and isinstance(group, Leaf):
            if not written.items:
                self._source.fault(written.at, "`match: all` needs two triggers or more", "add one or remove the key")
            return
        if not has_not(group):
            return
        at = _first_not(written) or written.at
        if not leaves_outside_not(group):
            self._source.fault(at, "the rule asks only for what does not stand in the text", _OUTSIDE_ADVICE)
        elif holds(group):
            self._source.fault(at, "the rule would hold for a text in which nothing is found", _OUTSIDE_ADVICE)
        held = [action for action in rule.actions if holds_text(action.value)]
        if Stage.MIDSTREAM in stages and rule.mode == "enforce" and held:
            reason = (
                f"`not` is known at the end of the answer, and `{held[0].value.name}` holds text until it is decided"
            )
            advice = (
                "run the rule at `ingress` or `egress`, or ask for what was found so far, as in the condition "
                "`findings.EMAIL == 0`"
            )
            self._source.fault(at, reason, advice)

    def _unless(self, stages: frozenset[Stage], channels: frozenset[str]) -> None:
        """Report a rule that reads only messages in which all that it could find is spared."""
        written = self._rule.triggers
        spares = [trigger.signal.spares for trigger in self._triggers.triggers]
        if written is None or stages != {Stage.INGRESS} or not spares:
            return
        if all(each is not None and channels.issubset(each.request) for each in spares):
            named = ", ".join(f"`{channel}`" for channel in sorted(channels))
            reason = f"the rule reads {named} at `ingress`, and what stands there counts for nothing"
            self._source.fault(written.at, reason, "run it at `midstream`, name other `channels`, or change `in`")

    def _named(self) -> None:
        """Report values that can't be given a name: a score is of a whole text."""
        action = next((each for each in self._rule.actions if isinstance(each.value, Pseudonymise)), None)
        scored = next((each for each in self._triggers.triggers if each.signal.kind == "classifier"), None)
        if action is not None and scored is not None:
            reason = f"`pseudonymise` needs a value that is found, and {shown(scored.signal.name)} is a score of a text"
            self._source.fault(action.at, reason, "use `entities`, `patterns` or `phrases`, or make two rules of it")

    def _reach(self, stages: frozenset[Stage]) -> None:
        """Report what the routes on which the rule runs can't do."""
        rule, said = self._rule, set[tuple[str, ...]]()
        if rule.mode == "disabled":
            return
        for action in rule.actions:
            for stage in sorted(stages):
                for target in self._targets:
                    for lack in missing(action.value, stage, target):
                        reason = f"the action `{action.value.name}` of rule {shown(rule.id.value)} needs {lack.need}"
                        reason += f", which route {shown(target.route)} with upstream {shown(target.upstream)} has not"
                        key = (lack.need, action.value.name, target.upstream, target.surface)
                        if key not in said:
                            said.add(key)
                            self._source.fault(action.at, reason, lack.advice)

    def _conditions(self, stages: frozenset[Stage], *, bare: bool) -> tuple[Condition, ...]:
        roots: Sequence[str] = ROOTS
        where = "a condition"
        if bare and Stage.INGRESS in stages:
            roots, where = BARE_ROOTS, "a condition of a rule without triggers, at `ingress`,"
        found = [(placed, self._condition(placed, roots, where)) for placed in self._rule.conditions]
        for placed, condition in found:
            if condition is not None and condition.recalls and not bare and Stage.INGRESS in stages:
                reason = "what scores come to in the conversation is known when all of the prompt has been read"
                self._source.fault(placed.at, reason, _RECALL_ADVICE)
        return tuple(condition for _, condition in found if condition is not None)

    def _condition(self, placed: Placed[str] | None, roots: Sequence[str], where: str) -> Condition | None:
        if placed is None:
            return None
        found = read_condition(self._source, placed, self._names, roots, where)
        if found is not None:
            self._charge(placed, found)
        return found

    def _charge(self, placed: Placed[str], condition: Condition) -> None:
        """Add what a condition may cost to the rule's account; report the one that passes the limit."""
        before, self._cost = self._cost, self._cost + condition.cost
        if before <= MAX_COST < self._cost:
            own = " with those before it" if before else ""
            reason = f"the condition may take {self._cost:,} steps{own}, and a rule may take {MAX_COST:,}"
            self._source.fault(placed.at, reason, "loop over less, don't nest loops, or make two rules of it")


_RULE_ADVICE = "add `patterns`, `phrases`, `entities`, `classifiers` or `conditions`"
_TRIGGER_ADVICE = "add `patterns`, `phrases`, `entities` or `classifiers`"
_RECALL_ADVICE = "take the triggers out, so that the rule is decided then, or run it at `midstream`"
_OUTSIDE_ADVICE = "put what must be found beside the `not`, in a group `all`"


def _first_not(written: WrittenGroup) -> Place | None:
    """Return where the first `not` of a tree stands."""
    if written.kind == "not":
        return written.at
    return next((at for item in written.items if (at := _first_not(item)) is not None), None)


def _waits(group: Group | None, triggers: Sequence[Trigger], conditions: Sequence[Condition]) -> Waits:
    if has_not(group):
        return Waits.END
    reads_scores = any(condition.reads_scores for condition in conditions)
    found = any(trigger.threshold is None for trigger in triggers)
    return Waits.CHECK if reads_scores and found else Waits.NO
