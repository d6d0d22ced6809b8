"""`checkstream bundle check`: is a folder of policies sound, what differs from another, and what would it have done?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from checkstream.cli.checking import checked
from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import counted, safe, write_json
from checkstream.control.drafts.found import Found, WhatIf


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `bundle`."""
    parser = commands.add_parser(
        "check",
        help="check a folder of policies, and say what differs from another",
        description="Compile every program that a `bundle.yaml` in FOLDER names, run its cases, and with --against say "
        "which rules and texts differ from another folder. Files outside of the folder are not read. "
        "Exit 1: a case fails. 2: there are faults, each is shown.",
    )
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="sources of bundles, such as a checkout of Git")
    parser.add_argument("--against", metavar="FOLDER", type=Path, help="hold it against these sources")
    parser.add_argument("--recordings", metavar="DIR", type=Path, help="say what becomes of these recorded exchanges")
    parser.add_argument("--program", metavar="BUNDLE/PROGRAM", help="run the recordings through this program alone")
    parser.add_argument(
        "--seconds", metavar="N", type=float, default=3600.0, help="so long for recordings (default: 3600)"
    )
    parser.add_argument("--models", metavar="FILE", type=Path, help="a models.yaml, in place of those of bundles")
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON")
    return parser


def run(args: argparse.Namespace) -> int:
    """Check a folder.

    Returns:
        0: it is sound; 1: a case is not as it says; 2: there are faults.

    Raises:
        CheckstreamError: a folder can't be read, or the models can't be used.
    """
    found = checked(
        args.folder,
        args.against,
        models=args.models,
        recordings=args.recordings,
        program=args.program,
        seconds=args.seconds,
    )
    if args.json:
        write_json(found)
    else:
        sys.stdout.write("\n".join(map(safe, told(found))) + "\n")
    return 2 if found.faults else 1 if found.failed else 0


def told(found: Found) -> Iterator[str]:
    """Yield what was found, line by line, for people."""
    for fault in found.faults:
        yield from fault.render().split("\n")
    for program in found.programs:
        yield f"{program.name}: {counted(program.rules, 'rule')}, {counted(program.cases, 'case')} run"
        for case in program.failed:
            yield f"FAIL {case.file}:{case.line}: {case.name}"
            yield from (f"  {line}" for line in case.lines)
        if program.untested:
            yield f"  no case for {', '.join(program.untested)}"
    if found.before:
        yield f"what it is held against has faults: {found.before.partition(chr(10))[0]}"
    for text in found.texts:
        yield f"{text.change} {text.path}"
        yield from (f"  {line}" for line in text.lines)
    for rule in found.differences:
        yield f"{rule.change} {rule.program}/{rule.rule}{', needs approval' if rule.needs_approval else ''}"
    for each in found.what_if:
        yield from _what_if(each)
    yield f"{counted(len(found.faults), 'fault')}, {counted(found.failed, 'failed case')}"


def _what_if(found: WhatIf) -> Iterator[str]:
    changed = f"{found.changed} of {counted(found.looked_at, 'recording')} would have gone another way"
    yield f"{found.program}: {changed} (of {found.there} in the folder)"
    for rule, (before, after) in found.rules.items():
        yield f"  {rule}: {before} -> {after}"
    for example in found.examples:
        yield f"  {example.file}: {'; '.join(example.why)}"
        yield from (f"    {line}" for line in example.lines)
