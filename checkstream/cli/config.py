"""`checkstream config init | check | schema | reference`: begin a configuration, check it, see what may stand in it."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

import msgspec

from checkstream.app import load
from checkstream.app.force import Loaded
from checkstream.cli.parser import Parser
from checkstream.cli.results import counted, write_json
from checkstream.config import json_schema, load_config, reference, sample, warnings
from checkstream.errors import ConfigError, Fault, FaultyFile

_EXAMPLES = """examples:
  checkstream config init --upstream http://127.0.0.1:8000
  checkstream config check checkstream.yaml
  checkstream config schema > checkstream.schema.json
  checkstream config reference
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command group `config` takes."""
    parser.describe(
        "Write a configuration to begin with, check one, and print what may stand in it.",
        examples=_EXAMPLES,
    )
    commands = parser.add_subparsers(dest="config_command", metavar="COMMAND", required=True)
    init = commands.add_parser(
        "init",
        help="write a commented configuration to begin with",
        description="Write what `serve --upstream` runs as a file in which every setting stands with what it is for. A "
        "file that is there is never overwritten. Exit 0: written. 2: it is there already, or can't be written.",
        epilog="example: checkstream config init checkstream.yaml --upstream http://127.0.0.1:8000",
    )
    init.add_argument(
        "file", metavar="FILE", nargs="?", default="checkstream.yaml", help="default: checkstream.yaml; `-` prints it"
    )
    init.add_argument("--upstream", metavar="URL", default="http://127.0.0.1:8000", help="the model server")
    check = commands.add_parser(
        "check",
        help="load a file with its policies and models; report every fault",
        description="Load a configuration with its policies, models and secrets. Exit 0: sound. 2: it has faults.",
        epilog="example: checkstream config check checkstream.yaml --json",
    )
    check.add_argument("file", metavar="FILE", type=Path)
    check.add_argument("--json", action="store_true", help="print the outcome as JSON")
    commands.add_parser(
        "schema",
        help="print the JSON Schema of the configuration",
        description="Print the JSON Schema of the configuration file, each setting with its description.",
        epilog="example: checkstream config schema > checkstream.schema.json",
    )
    commands.add_parser(
        "reference",
        help="print every setting with its default and what it is for",
        description="Print every setting of checkstream.yaml and models.yaml with its values, its default and what it "
        "is for, as a page of Markdown.",
        epilog="example: checkstream config reference | less",
    )


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    ok: bool
    faults: tuple[Fault, ...] = ()
    warnings: tuple[str, ...] = ()
    routes: int = 0
    policies: tuple[str, ...] = ()


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done; 2: the file has faults, or is there already.

    Raises:
        ConfigError: the upstream's url is none.
    """
    if args.config_command == "init":
        return _init(args.file, args.upstream)
    if args.config_command == "schema":
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2).decode() + "\n")
        return 0
    if args.config_command == "reference":
        sys.stdout.write(reference())
        return 0
    outcome = _check(args.file)
    if args.json:
        write_json(outcome)
    elif outcome.ok:
        policies = ", ".join(outcome.policies) or "no policies"
        sys.stdout.write(f"{args.file}: {counted(outcome.routes, 'route')}, {policies}\n")
    if not args.json:
        for warning in outcome.warnings:
            sys.stderr.write(f"warning: {warning}\n")
        for fault in outcome.faults:
            sys.stderr.write(fault.render() + "\n")
        if outcome.faults:
            sys.stderr.write(f"{counted(len(outcome.faults), 'fault')}\n")
    return 0 if outcome.ok else 2


def _init(name: str, upstream: str) -> int:
    """Write the file, unless it is there.

    Raises:
        ConfigError: the upstream's url is none.
    """
    try:
        text = sample(upstream, "checkstream.yaml" if name == "-" else name)
    except ValueError as error:
        raise ConfigError((Fault(file="command line", reason=str(error)),)) from error
    if name == "-":
        sys.stdout.write(text)
        return 0
    try:
        with Path(name).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        sys.stderr.write(f"checkstream config init: `{name}` is there already; remove it, or name another file\n")
        return 2
    except OSError as error:
        sys.stderr.write(f"checkstream config init: `{name}` can't be written: {(error.strerror or '').lower()}\n")
        return 2
    sys.stdout.write(f"{name}: written; `checkstream serve --config {shlex.quote(name)}` runs it\n")
    return 0


def _of_one_request(loaded: Loaded) -> list[str]:
    """Return a warning where rules name people, and nothing keeps the names for the next request."""
    names = any(program.placeholders is not None for program in loaded.programs.values())
    if loaded.config.pseudonyms is not None or not names:
        return []
    return ["`pseudonymise` names values for one request: add `pseudonyms:` to keep the names of a conversation"]


def _check(file: Path) -> _Outcome:
    """Load all that `serve` would load.

    Raises:
        ModelError: a model that is shipped can't be read.
    """
    try:
        loaded = load(lambda: load_config(file))
    except FaultyFile as error:
        return _Outcome(ok=False, faults=error.faults)
    return _Outcome(
        ok=True,
        warnings=(*warnings(loaded.config), *_of_one_request(loaded)),
        routes=len(loaded.config.routes),
        policies=loaded.packs,
    )
