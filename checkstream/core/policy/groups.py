"""The tree of a rule's triggers, with names resolved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from checkstream.core.cel.ast import Expr
from checkstream.core.policy.program import Signal


class Trigger(msgspec.Struct, frozen=True):
    """A detector that a rule asks for, and from which score on it counts."""

    signal: Signal
    threshold: float | None = None
    """None: it is found or not."""
    cases: tuple[tuple[Expr, float], ...] = ()
    """Conditions and thresholds: that of the first condition that holds counts in place of `threshold`."""


class Leaf(msgspec.Struct, frozen=True, tag=True):
    """One trigger."""

    trigger: int
    """Its place among the rule's triggers."""


class AnyOf(msgspec.Struct, frozen=True, tag=True):
    """One of these, or more."""

    items: tuple[Group, ...]


class AllOf(msgspec.Struct, frozen=True, tag=True):
    """All of these."""

    items: tuple[Group, ...]


class Not(msgspec.Struct, frozen=True, tag=True):
    """That this does not stand in the whole text."""

    item: Group


Group = Leaf | AnyOf | AllOf | Not


def joined(kind: str, items: Sequence[Group]) -> Group | None:
    """Return `any` or `all` of some groups, as flat as it goes; None when there are none."""
    made = AllOf if kind == "all" else AnyOf
    flat: list[Group] = []
    for item in items:
        flat.extend(item.items if isinstance(item, made) else (item,))
    return (flat[0] if len(flat) == 1 else made(tuple(flat))) if flat else None


def has_not(group: Group | None) -> bool:
    """Tell whether the group asks that something does not stand in the text."""
    match group:
        case Not():
            return True
        case AnyOf(items) | AllOf(items):
            return any(has_not(item) for item in items)
        case _:
            return False


def leaves_outside_not(group: Group | None) -> frozenset[int]:
    """Return the triggers that are asked for themselves, not for their absence."""
    match group:
        case Leaf(trigger):
            return frozenset({trigger})
        case AnyOf(items) | AllOf(items):
            return frozenset[int]().union(*map(leaves_outside_not, items))
        case _:
            return frozenset()


def holds(group: Group, found: Iterable[int] = ()) -> bool:
    """Tell whether a group holds when exactly the triggers `found` do."""
    known = frozenset(found)
    match group:
        case Leaf(trigger):
            return trigger in known
        case AnyOf(items):
            return any(holds(item, known) for item in items)
        case AllOf(items):
            return all(holds(item, known) for item in items)
        case Not(item):
            return not holds(item, known)
