"""Which rules differ between two sets of programs, and which of those differ in what is enforced. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from checkstream.control.bundles.weight import weighty
from checkstream.core.policy.program import Program, RuleMeta, Signal


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What differs of a rule."""

    program: str
    rule: str
    change: str
    """`added`, `removed` or `changed`."""
    fields: dict[str, tuple[str, str]] = {}
    """Field -> before and after, in words."""
    needs_approval: bool
    """What is enforced differs."""


def differences(before: Mapping[str, Program], after: Mapping[str, Program]) -> Iterator[Difference]:
    """Yield what differs, rule by rule, in a fixed order.

    Args:
        before: Name -> program, of a bundle.
        after: The same of another.
    """
    heavy = [{(each.program, each.rule): each.digest for each in weighty(side)} for side in (before, after)]
    rules = [
        {(name, rule.id): (program, rule) for name, program in side.items() for rule in program.rules}
        for side in (before, after)
    ]
    for key in sorted({*rules[0], *rules[1]}):
        old, new = (side.get(key) for side in rules)
        said = [None if each is None else _said(*each) for each in (old, new)]
        weighs = heavy[0].get(key) != heavy[1].get(key)
        if said[0] == said[1] and not weighs:
            continue
        change = "added" if said[0] is None else "removed" if said[1] is None else "changed"
        yield Difference(
            program=key[0],
            rule=key[1],
            change=change,
            fields=_fields(said[0] or {}, said[1] or {}),
            needs_approval=weighs,
        )


def _said(program: Program, rule: RuleMeta) -> dict[str, str]:
    """Return each field of a rule in words."""
    found = {
        name: msgspec.json.encode(value, order="deterministic").decode()
        for name in rule.__struct_fields__
        if (value := getattr(rule, name)) not in (None, "", (), frozenset())
    }
    for name in ("triggers", "reads"):
        if name in found:
            signals = [program.signals[number] for number in getattr(rule, name)]
            found[name] = ", ".join(map(_title, signals))
    for name in ("enabled_start", "condition_starts", "thresholds", "shape"):
        found.pop(name, None)
    if any(threshold is not None for threshold in rule.thresholds):
        found["thresholds"] = ", ".join("-" if each is None else f"{each:g}" for each in rule.thresholds)
    if rule.enabled_start is not None:
        found["enabled_when"] = "set"
    return found


def _title(signal: Signal) -> str:
    """Return a detector in words, with what it is exactly where its name doesn't tell."""
    exact = msgspec.json.encode(signal, order="deterministic")
    return f"{signal.title} ({hashlib.sha256(exact).hexdigest()[:8]})"


def _fields(old: Mapping[str, str], new: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    if not old or not new:
        return {}
    names = dict.fromkeys((*old, *new))
    return {name: (old.get(name, ""), new.get(name, "")) for name in names if old.get(name) != new.get(name)}
