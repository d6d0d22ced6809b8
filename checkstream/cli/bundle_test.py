"""`checkstream bundle test`: is a bundle whole, and does it do what its own cases say?"""

from __future__ import annotations

import argparse
from pathlib import Path

from checkstream.app.bundles import compiled, opened, program_of
from checkstream.cli.parser import Commands, Parser
from checkstream.cli.policy_test import add_splits, show, tried
from checkstream.cli.results import write_json
from checkstream.cli.sources import installed_labels
from checkstream.trial.cases import read_cases


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `bundle`."""
    parser = commands.add_parser(
        "test",
        help="run the cases that a bundle carries",
        description="Compile a bundle, hold it to what it says of itself, and run the cases that it carries. Exit 1: "
        "some fail.",
    )
    parser.add_argument("bundle", metavar="BUNDLE", type=Path, help="folder of a bundle")
    parser.add_argument("--models", metavar="FILE", type=Path, help="a models.yaml with models of your own")
    add_splits(parser)
    parser.add_argument(
        "--json", action="store_true", help="print the outcome as JSON, one line for each file of cases"
    )
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the cases.

    Returns:
        0: every case is as it says; 1: some are not.

    Raises:
        BundleRefused: the folder is no bundle, or can't be used here.
        CasesError: a file of cases can't be used.
        ConfigError: `models.yaml` holds faults.
        ModelError: a model can't be used.
    """
    index, files = opened(args.bundle)
    compiled(index, files, None if args.models is None else str(args.models))
    labels = installed_labels(args.models)
    names = [label.name for label in labels]
    failed = 0
    for test in (test for program in index.programs.values() for test in program.tests):
        program = program_of(test.policies, files, labels)
        place = args.bundle / test.cases
        cases = read_cases(str(place), bytes(files[test.cases]), {rule.id for rule in program.rules}, names)
        tested = tried(program, place, cases, names, args.splits)
        failed += tested.failed
        if args.json:
            write_json(tested)
        else:
            show(tested)
    return 1 if failed else 0
