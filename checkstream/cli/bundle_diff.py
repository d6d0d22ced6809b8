"""`checkstream bundle diff`: which rules differ between two bundles, and which of them need approval."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import msgspec

from checkstream.app.bundles import compiled, opened
from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import counted, safe, write_json
from checkstream.control.bundles.difference import Difference, differences


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
        before=f"{old.name} {old.version}", after=f"{new.name} {new.version}", rules=tuple(differences(before, after))
    )
    if args.json:
        write_json(found)
    else:
        _show(found)
    return 1 if any(rule.needs_approval for rule in found.rules) else 0


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
