"""`checkstream bundle test`: is a bundle whole, and does it do what its own cases say?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from checkstream.app.bundles import Files, compiled, opened, program_of
from checkstream.cli.parser import Commands, Parser
from checkstream.cli.policy_test import Tested, add_splits, show, tried
from checkstream.cli.results import write_json
from checkstream.cli.sources import installed_labels
from checkstream.control.bundles.index import Index
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
    failed = 0
    for tested in _tested(index, files, args.bundle, args.models, args.splits):
        failed += tested.failed
        if args.json:
            write_json(tested)
        else:
            show(tested)
    return 1 if failed else 0


def failing(index: Index, files: Files, folder: Path, models: Path | None) -> list[str]:
    """Return the names of the cases of a bundle that are not as they say.

    Args:
        index: What the bundle says of itself.
        files: Its files.
        folder: Where they are.
        models: A `models.yaml`, if there is one.

    Raises:
        BundleRefused: a program can't be used.
        CasesError: a file of cases can't be used.
        ConfigError: `models.yaml` holds faults.
        ModelError: a model can't be used.
    """
    tested = _tested(index, files, folder, models, splits=2)
    return [result.name for each in tested for result in each.results if not result.passed]


def _tested(index: Index, files: Files, folder: Path, models: Path | None, splits: int) -> Iterator[Tested]:
    labels = installed_labels(models)
    names = [label.name for label in labels]
    for test in (test for program in index.programs.values() for test in program.tests):
        program = program_of(test.policies, files, labels)
        place = folder / test.cases
        cases = read_cases(str(place), bytes(files[test.cases]), {rule.id for rule in program.rules}, names)
        yield tried(program, place, cases, names, splits)
