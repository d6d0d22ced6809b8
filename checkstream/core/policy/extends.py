"""What `extends` means: rules put together with the rules that they extend.

A rule takes over what it doesn't say itself. One that extends a rule of its own id stands in place of that rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, cast

import msgspec

from checkstream.core.policy.fields import did_you_mean
from checkstream.core.policy.nodes import Place, Placed, shown
from checkstream.core.policy.syntax import TRIGGER_KEYS, Pack, Rule

MAX_CHAIN = 8
"""Rules that may extend each other in a row."""
MAX_TAKEN_OVER = 100_000
"""Detectors that rules may take over from each other, all together: no more than files can hold."""

_FIELDS = {
    "name": ("name",),
    "stage": ("stages",),
    "channels": ("channels",),
    "mode": ("mode",),
    "conditions": ("conditions",),
    "enabled_when": ("enabled_when",),
    "enforce_share": ("enforce_share", "enforce_share_at"),
    "actions": ("actions",),
    "priority": ("priority",),
    "metadata": ("metadata",),
    "tags": ("tags",),
    "fail_mode": ("fail_mode",),
}
"""Per key of a rule: the fields that come from the other rule when it isn't there. `triggers` has several keys."""

T = TypeVar("T")


class Extended(msgspec.Struct, frozen=True, kw_only=True):
    """A rule with all that it takes over."""

    pack: Pack
    rule: Rule
    place: int
    """Number of the rule over all packs, in the order of the files."""
    parent: int | None = None
    """The place of the rule that it extends."""
    replaced: bool = False
    """Another rule stands in its place: it is checked, and not carried out."""

    @property
    def detectors(self) -> int:
        """How many detectors the rule names."""
        return 0 if self.rule.triggers is None else self.rule.triggers.count


def extend_rules(packs: Sequence[Pack]) -> tuple[Extended, ...]:
    """Return every rule with what it takes over, those that others extend before them.

    A rule that can't be put together is left out, and reported at its file.
    """
    family = _Family(packs)
    family.report_doubled()
    made: dict[int, Extended] = {}
    taken_over = 0
    for place in family.in_order():
        pack, rule = family.rules[place]
        parent = family.parents[place]
        if parent is not None and parent not in made:
            continue  # what is wrong has been reported there
        if parent is not None and rule.extends is not None:
            if not rule.given & TRIGGER_KEYS:
                taken_over += made[parent].detectors
            if taken_over > MAX_TAKEN_OVER:
                reason = f"rules take over more than {MAX_TAKEN_OVER:,} triggers from each other"
                pack.source.fault(rule.extends.at, reason, "let fewer rules extend those with long lists")
                break
            rule = _merged(made[parent].rule, rule, rule.extends.at)
        made[place] = Extended(pack=pack, rule=rule, place=place, parent=parent, replaced=family.is_replaced(place))
    return tuple(made.values())


class _Family:
    """All rules, who extends whom, and who stands in for whom."""

    def __init__(self, packs: Sequence[Pack]) -> None:
        self.rules = [(pack, rule) for pack in packs for rule in pack.rules]
        self._versions: dict[str, list[int]] = {}
        """Id -> the first rule of this id, then those that stand in for it, each for the one before."""
        self._doubled: list[int] = []
        for replacing in (False, True):
            for place, (_, rule) in enumerate(self.rules):
                if _replaces(rule) == replacing and rule.id.value:
                    versions = self._versions.setdefault(rule.id.value, [])
                    (self._doubled if versions and not replacing else versions).append(place)
        self._lost: set[int] = set()
        """Rules whose other rule can't be found."""
        self.parents = {place: self._parent(place) for place in range(len(self.rules))}

    def is_replaced(self, place: int) -> bool:
        """Tell whether another rule stands in for this one."""
        versions = self._versions.get(self.rules[place][1].id.value, [])
        return place in versions[:-1]

    def report_doubled(self) -> None:
        """Report ids that stand twice without one rule extending the other."""
        for place in self._doubled:
            pack, rule = self.rules[place]
            first_pack, first = self.rules[self._versions[rule.id.value][0]]
            where = f"{first_pack.source.name}:{first.id.at.line}"
            name = shown(rule.id.value)
            advice = (
                f"give each rule its own id, or write `extends: {rule.id.value}` to replace it; the first is at {where}"
            )
            pack.source.fault(rule.id.at, f"rule id {name} stands twice", advice)

    def in_order(self) -> list[int]:
        """Return the rules that can be put together, each after the one that it extends; report the others."""
        depths: dict[int, int] = {}
        for start in self.parents:
            chain: list[int] = []
            place: int | None = start
            while place is not None and place not in depths and place not in self._lost:
                if place in chain:
                    self._report_circle(chain[chain.index(place) :])
                    self._lost.update(chain)
                    break
                chain.append(place)
                place = self.parents[place]
            if place in self._lost:
                self._lost.update(chain)
                continue
            depth = -1 if place is None else depths[place]
            for step in reversed(chain):
                depth += 1
                depths[step] = depth
                if depth == MAX_CHAIN:
                    self._report_long(step)
        return sorted(
            (place for place in depths if depths[place] < MAX_CHAIN), key=lambda place: (depths[place], place)
        )

    def _parent(self, place: int) -> int | None:
        """Return the rule that a rule extends; None when it extends none, or none that can be found."""
        pack, rule = self.rules[place]
        if rule.extends is None:
            if "extends" in rule.given:
                self._lost.add(place)
            return None
        wanted = rule.extends.value
        versions = self._versions.get(wanted, [])
        if _replaces(rule):
            versions = versions[: versions.index(place)]
        if versions:
            return versions[-1]
        self._lost.add(place)
        if _replaces(rule):
            reason = f"there is no other rule {shown(wanted)} to replace"
            pack.source.fault(rule.extends.at, reason, "load the file that has it, or remove `extends`")
        else:
            others = [known for known in self._versions if known != rule.id.value]
            advice = did_you_mean(wanted, others, "load the file that has it, or mend the id")
            pack.source.fault(rule.extends.at, f"there is no rule {shown(wanted)}", advice)
        return None

    def _report_circle(self, circle: Sequence[int]) -> None:
        pack, rule = self.rules[circle[0]]
        if rule.extends is not None:
            shown_ids = [shown(self.rules[place][1].id.value) for place in (*circle[:MAX_CHAIN], circle[0])]
            reason = f"rules extend each other in a circle: {' -> '.join(shown_ids)}"
            pack.source.fault(rule.extends.at, reason, "let one of them say everything itself")

    def _report_long(self, place: int) -> None:
        pack, rule = self.rules[place]
        if rule.extends is not None:
            reason = f"rules extend each other, more than {MAX_CHAIN} in a row"
            pack.source.fault(rule.extends.at, reason, "extend a rule nearer to the first")


def _replaces(rule: Rule) -> bool:
    return rule.extends is not None and rule.extends.value == rule.id.value


def _merged(parent: Rule, rule: Rule, at: Place) -> Rule:
    """Return `rule` with what only `parent` says. What is taken over stands at `at`, where the rule asks for it."""
    taken: dict[str, Any] = {}
    not_enforced = "mode" in rule.given and rule.mode != "enforce"
    for key, names in _FIELDS.items():
        if key not in rule.given and not (key == "enforce_share" and not_enforced):
            taken |= {name: _placed_at(getattr(parent, name), at) for name in names}
    given = rule.given | parent.given
    if not rule.given & TRIGGER_KEYS:
        taken["triggers"] = _placed_at(parent.triggers, at)
    else:
        given -= TRIGGER_KEYS - rule.given
    return msgspec.structs.replace(rule, **taken, given=given, incomplete=rule.incomplete or parent.incomplete)


def _placed_at(value: T, at: Place) -> T:
    """Return a value with every place in it changed to `at`."""
    if isinstance(value, Place):
        return cast("T", at)
    if isinstance(value, tuple):
        return cast("T", tuple(_placed_at(item, at) for item in value))
    if isinstance(value, Placed):
        return cast("T", Placed(value.value, at))
    if isinstance(value, msgspec.Struct):
        names = value.__struct_fields__
        return cast(
            "T", msgspec.structs.replace(value, **{name: _placed_at(getattr(value, name), at) for name in names})
        )
    return value
