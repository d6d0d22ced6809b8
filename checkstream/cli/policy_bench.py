"""`checkstream policy bench`: what do these policies cost on this machine?"""

from __future__ import annotations

import argparse
import sys
import time

from checkstream.cli.parser import Commands, Parser
from checkstream.cli.results import write_json
from checkstream.cli.sources import installed_labels, read_sources
from checkstream.config import policy_file, read_file
from checkstream.core.policy.compile import compile_sources
from checkstream.trial.cases import Case, read_cases
from checkstream.trial.measure import Measure, measure

_MOST_RUNS = 1000


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `policy`."""
    parser = commands.add_parser(
        "bench",
        help="measure what policies cost on this machine",
        description="Compile policy files together and measure what they cost: medians, one core, in this process.",
        epilog="example: checkstream policy bench builtin:default ours.yaml --json",
    )
    parser.add_argument("--runs", metavar="N", type=_runs, default=15, help="how often each is measured (default: 15)")
    parser.add_argument("--json", action="store_true", help="print the numbers as JSON")
    return parser


def _runs(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or not 1 <= int(text) <= _MOST_RUNS:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of runs; write 1 to {_MOST_RUNS}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Measure and print.

    Returns:
        0: done.

    Raises:
        PolicyError: a policy can't be used.
        CasesError: the cases beside a policy can't be used.
        FileUnreadable: a file can't be read.
        ModelError: a model can't be used.
    """
    labels = installed_labels(args.models)
    sources = read_sources(args.files)
    began = time.perf_counter()
    program = compile_sources(sources, labels)
    first_s = time.perf_counter() - began
    rules, names = {rule.id for rule in program.rules}, [label.name for label in labels]
    cases: list[Case] = []
    for tests in (policy_file(file).parent / "tests.yaml" for file in args.files):
        if tests.is_file():
            cases += (case.value for case in read_cases(str(tests), read_file(tests), rules, names))
    found = measure(sources, labels, cases, first_s=first_s, runs=args.runs)
    if args.json:
        write_json({"packs": program.packs, "measures": found})
        return 0
    sys.stdout.write(", ".join(program.packs) + "\n\n")
    sys.stdout.write("\n".join(_table(found)) + "\n")
    return 0


def _table(found: tuple[Measure, ...]) -> list[str]:
    rows = [(row.name, f"{row.value:,.2f}" if row.unit in ("us", "ms") else f"{row.value:,.0f}", row) for row in found]
    name_width, value_width = max(len(name) for name, _, _ in rows), max(len(value) for _, value, _ in rows)
    return [
        f"{name:<{name_width}}  {value:>{value_width}} {row.unit:<5}"
        + (f"  median of {row.runs}" if row.runs > 1 else "")
        for name, value, row in rows
    ]
