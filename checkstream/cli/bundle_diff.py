"""`checkstream bundle diff`: which rules differ between two bundles, and which of them need approval."""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from checkstream.app.bundles import compiled, opened
from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import counted, safe, write_json
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


class Differences(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between two bundles."""

    before: str
    after: str
    """Name and version."""
    rules: tuple[Difference, ...]


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `bundle`."""
    parser = commands.add_parser(
        "diff",
        help="show which rules differ between two bundles",
        description="Compare what two bundles compile to, rule by rule. Exit 1: what they enforce differs, and needs "
        "approval.",
    )
    parser.add_argument("before", metavar="BEFORE", type=Path, help="folder of a bundle")
    parser.add_argument("after", metavar="AFTER", type=Path, help="folder of another")
    parser.add_argument("--models", metavar="FILE", help="a models.yaml with models of your own")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser


def run(args: argparse.Namespace) -> int:
    """Compare two bundles.

    Returns:
        0: they enforce the same; 1: they don't.

    Raises:
        BundleRefused: a folder is no bundle, or can't be used here.
        ConfigError: `models.yaml` holds faults.
        ModelError: a model can't be used.
    """
    (old, old_files), (new, new_files) = opened(args.before), opened(args.after)
    before = compiled(old, old_files, args.models)
    after = compiled(new, new_files, args.models)
    found = Differences(
        before=f"{old.name} {old.version}", after=f"{new.name} {new.version}", rules=tuple(_differences(before, after))
    )
    if args.json:
        write_json(found)
    else:
        _show(found)
    return 1 if any(rule.needs_approval for rule in found.rules) else 0


def _differences(before: Mapping[str, Program], after: Mapping[str, Program]) -> Iterator[Difference]:
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


def _show(found: Differences) -> None:
    lines = [f"{found.before} -> {found.after}"]
    for rule in found.rules:
        approval = ", needs approval" if rule.needs_approval else ""
        lines.append(f"{rule.change} {rule.program}/{rule.rule}{approval}")
        for name, (old, new) in rule.fields.items():
            lines += [f"  {name}", f"    before  {old}", f"    after   {new}"]
        if rule.change == "changed" and not rule.fields:
            lines.append("  its code, or what it reads")
    weighs = sum(rule.needs_approval for rule in found.rules)
    lines.append(f"{counted(len(found.rules), 'rule')} differ, {weighs} of them in what is enforced")
    sys.stdout.write("\n".join(map(safe, lines)) + "\n")
