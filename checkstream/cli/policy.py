"""`checkstream policy check | test | explain | bench | disassemble`: is a policy sound, and what would it do?"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from checkstream.app.lists import given
from checkstream.cli import policy_bench, policy_explain, policy_test
from checkstream.cli.parser import Parser
from checkstream.cli.results import counted, write_json
from checkstream.cli.sources import add_models, installed_labels, read_sources
from checkstream.core.match.fingerprints import Fingerprints
from checkstream.core.policy.compile import compile_sources
from checkstream.core.policy.listing import disassemble
from checkstream.core.policy.program import Program
from checkstream.core.policy.stored import load, stored
from checkstream.errors import FaultyFile, FileUnreadable, FingerprintsInvalid, ModelError, ProgramInvalid

_EXAMPLES = """examples:
  checkstream policy check policies/ours.yaml
  checkstream policy test builtin:default
  checkstream policy explain builtin:default --stage midstream --channel content --text 'mail joe@example.com'
  checkstream policy bench ours.yaml
  checkstream policy explain ours.yaml --text - --score lexicon.toxicity=0.9 < answer.txt
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command group `policy` takes."""
    parser.describe(
        "Check policy files and explain what they do to a text.",
        examples=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="policy_command", metavar="COMMAND", required=True)
    check = commands.add_parser(
        "check",
        help="compile policy files; every fault is reported with its place",
        description="Compile policy files together. Exit 0: they are sound. 2: they are not, each fault is shown.",
        epilog="example: checkstream policy check builtin:default policies/ours.yaml --write programs/",
    )
    listed = commands.add_parser(
        "disassemble",
        help="print the compiled program",
        description="Print the signals, constants and code that policy files compile to, or of a stored program.",
        epilog="example: checkstream policy disassemble builtin:default",
    )
    others = [policy_test.add_parser(commands), policy_explain.add_parser(commands), policy_bench.add_parser(commands)]
    for command in (check, listed, *others):
        command.add_argument("files", metavar="FILE", nargs="+", help="policy file, or builtin:NAME")
    add_models(check, listed, *others)
    check.add_argument("--json", action="store_true", help="print the outcome as JSON")
    check.add_argument("--write", metavar="DIR", type=Path, help="keep the compiled program there, as HASH.json")


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 1: a test case failed; 2: a policy or the command itself is wrong.
    """
    try:
        if args.policy_command == "test":
            return policy_test.run(args)
        if args.policy_command == "bench":
            return policy_bench.run(args)
        program = _program(args)
        if args.policy_command == "check":
            return _checked(args, program)
        if args.policy_command == "disassemble":
            sys.stdout.write(disassemble(program))
            return 0
        return policy_explain.run(args, program)
    except FaultyFile as error:
        if getattr(args, "json", False):
            write_json({"ok": False, "faults": error.faults})
        else:
            sys.stderr.write(f"{error}\n{counted(len(error.faults), 'fault')}\n")
        return 2
    except (FileUnreadable, ModelError, ProgramInvalid, argparse.ArgumentTypeError) as error:
        sys.stderr.write(f"checkstream policy: {error}\n")
        return 2


def _program(args: argparse.Namespace) -> Program:
    """Return what policy files compile to.

    `disassemble` also takes a stored program, which must have its name's hash, and the fingerprints that it names.

    Raises:
        PolicyError: a policy can't be used.
        ProgramInvalid: a stored program can't be loaded.
        FileUnreadable: a file is not there or can't be read.
    """
    first = Path(args.files[0])
    if args.policy_command == "disassemble" and first.suffix == ".json":
        ((_, content),) = read_sources(args.files[:1])
        return load(bytes(content), expected=first.stem, texts=_texts(args.files[1:]))
    return compile_sources(read_sources(args.files), installed_labels(args.models))


def _texts(files: Sequence[str]) -> dict[str, Fingerprints]:
    """Return the fingerprints of some files, by digest.

    Raises:
        ProgramInvalid: a file is none.
        FileUnreadable: a file is not there or can't be read.
    """
    found: dict[str, Fingerprints] = {}
    for name in files:
        try:
            texts = Fingerprints(given(Path(name)))
        except OSError as error:
            reason = (error.strerror or "it can't be opened").lower()
            raise FileUnreadable(f"can't read `{name}`: {reason}; check the path") from error
        except FingerprintsInvalid as error:
            raise ProgramInvalid(f"`{name}` can't be used: {error}") from error
        found[texts.digest] = texts
    return found


def _write(program: Program, folder: Path) -> None:
    """Keep a program in a folder under its hash, whole or not at all.

    Raises:
        FileUnreadable: it can't be written.
    """
    part = folder / f".{program.hash}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        part.write_bytes(stored(program))
        part.replace(folder / f"{program.hash}.json")
    except OSError as error:
        raise FileUnreadable(f"can't write to `{folder}`: {(error.strerror or 'no reason given').lower()}") from error


def _checked(args: argparse.Namespace, program: Program) -> int:
    if args.write is not None:
        _write(program, args.write)
    rules, signals = len(program.rules), len(program.signals)
    if args.json:
        write_json({"ok": True, "packs": program.packs, "rules": rules, "signals": signals, "program": program.hash})
    else:
        packs = ", ".join(program.packs)
        sys.stdout.write(
            f"{packs}: {counted(rules, 'rule')}, {counted(signals, 'detector')}, program {program.hash[:12]}\n"
        )
    return 0
