"""`checkstream policy test`: does a policy do what the cases beside it say, however an answer is cut?"""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkstream.cli.parser import Commands, Parser
from checkstream.cli.progress import progress
from checkstream.cli.results import safe, write_json
from checkstream.cli.sources import installed_labels, read_sources
from checkstream.config import policy_file, read_file
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.nodes import Placed
from checkstream.core.policy.program import Program
from checkstream.errors import FileUnreadable
from checkstream.trial.cases import Case, read_cases
from checkstream.trial.run import Mismatch, Result, run_case

_EPILOG = """examples:
  checkstream policy test builtin:default                      # the cases in tests.yaml beside the policy
  checkstream policy test ours.yaml builtin:default --tests ours-tests.yaml --splits 50

Each case runs through a real guard: whole, as a stream in one piece, and as a stream cut by chance (events and bytes).
Every cut must come to the same. Exit 0: every case is as it says. 1: some are not. 2: a file or the command is wrong.
"""
_MOST_SPLITS = 10_000


class Tested(msgspec.Struct, frozen=True, kw_only=True):
    """What the cases of one program came to."""

    packs: tuple[str, ...]
    tests: str
    """The file of the cases."""
    results: tuple[Result, ...]
    untested: tuple[str, ...]
    """Rules that no case speaks of."""

    @property
    def failed(self) -> int:
        """How many cases are not as they say."""
        return sum(not result.passed for result in self.results)


def add_parser(commands: Commands) -> Parser:
    """Register the command with the group `policy`."""
    parser = commands.add_parser(
        "test",
        help="run the test cases beside policy files",
        description="Run test cases against policy files.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--tests", metavar="FILE", help="cases for all the policy files together (default: tests.yaml beside each)"
    )
    add_splits(parser)
    parser.add_argument("--json", action="store_true", help="print the outcome as JSON, one line for each file")
    return parser


def add_splits(parser: Parser) -> None:
    """Let a command that runs cases say how often each is cut by chance."""
    parser.add_argument("--splits", metavar="N", type=_splits, default=8, help="random cuts of each case (default: 8)")


def _splits(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or len(text) > 5 or int(text) > _MOST_SPLITS:
        raise argparse.ArgumentTypeError(f"`{text}` is no number of cuts; write 0 to {_MOST_SPLITS}")
    return int(text)


def run(args: argparse.Namespace) -> int:
    """Run the cases and print what they came to.

    Returns:
        0: every case is as it says; 1: some are not.

    Raises:
        PolicyError: a policy can't be used.
        CasesError: a file of cases can't be used.
        FileUnreadable: a file can't be read.
        ModelError: a model can't be used.
    """
    labels = installed_labels(args.models)
    names = [label.name for label in labels]
    groups = [(args.files, Path(args.tests))] if args.tests else [([file], _beside(file)) for file in args.files]
    loaded: list[tuple[Program, Path, tuple[Placed[Case], ...]]] = []
    for files, tests in groups:  # all that is wrong with files is said before anything runs long
        program = compile_sources(read_sources(files), labels)
        rules = {rule.id for rule in program.rules}
        loaded.append((program, tests, read_cases(str(tests), _content(tests), rules, names)))
    failed = 0
    for program, tests, cases in loaded:
        tested = tried(program, tests, cases, names, args.splits)
        failed += tested.failed
        if args.json:
            write_json(tested)
        else:
            show(tested)
    return 1 if failed else 0


def _beside(file: str) -> Path:
    return policy_file(file).parent / "tests.yaml"


def _content(path: Path) -> bytes:
    try:
        return read_file(path)
    except OSError as error:
        reason = (error.strerror or "it can't be opened").lower()
        raise FileUnreadable(
            f"can't read `{path}`: {reason}; cases stand in tests.yaml beside a policy, or give --tests"
        ) from error


def tried(program: Program, tests: Path, cases: Sequence[Placed[Case]], labels: Sequence[str], splits: int) -> Tested:
    """Run cases against a program.

    Args:
        program: The compiled policies.
        tests: The file of the cases.
        cases: What stands in it.
        labels: As `run_case` takes them.
        splits: Random cuts of each case.
    """
    results = tuple(
        msgspec.structs.replace(run_case(case.value, program, labels, splits=splits), line=case.at.line)
        for case in progress(cases, "cases")
    )
    spoken = {rule for case in cases for rule in case.value.rules}
    untested = tuple(rule.id for rule in program.rules if rule.mode != "disabled" and rule.id not in spoken)
    return Tested(packs=program.packs, tests=str(tests), results=results, untested=untested)


def show(tested: Tested) -> None:
    """Print what the cases came to, for people."""
    lines = []
    for result in tested.results:
        if not result.passed:
            lines.append(f"FAIL {tested.tests}:{result.line}: {result.name}")
            lines += [f"  {line}" for mismatch in result.mismatches for line in explained_mismatch(mismatch)]
            lines += [f"  fired: {verdict}" for verdict in result.verdicts]
            lines += [f"  the caller was told: {result.error}"] if result.error else []
    count = len(tested.results)
    packs = ", ".join(tested.packs)
    lines.append(f"{packs}: {count - tested.failed} of {count} cases passed")
    if tested.untested:
        lines.append(f"{packs}: no case for {', '.join(tested.untested)}")
    sys.stdout.write("\n".join(map(safe, lines)) + "\n")


def explained_mismatch(mismatch: Mismatch) -> list[str]:
    """Return a mismatch in lines; of long texts only where they differ."""
    head = f"{mismatch.field} ({mismatch.cut})"
    expected, got = _written(mismatch.expected), _written(mismatch.got)
    if max(len(expected), len(got)) <= 200:
        return [f"{head}: expected {expected}", f"{' ' * len(head)}       got {got}"]
    lines = difflib.unified_diff(_lines(mismatch.expected), _lines(mismatch.got), "expected", "got", n=1, lineterm="")
    return [f"{head}:", *(f"  {line}" for line in lines)]


def _written(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _lines(value: object) -> list[str]:
    if isinstance(value, str):
        return value.splitlines()
    return msgspec.json.format(msgspec.json.encode(value), indent=1).decode().splitlines()
