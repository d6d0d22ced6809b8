"""`checkstream control`: look after many nodes: what each is to have in force, and what it has."""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import secrets
import sys
from pathlib import Path

from checkstream.cli.parser import Parser
from checkstream.config import load_control

_EXAMPLES = """examples:
  checkstream control key                                   # a key for a person, and what goes into control.yaml
  checkstream control serve --config control.yaml

The guide is checkstream/control/README.md.
"""


def add_arguments(parser: Parser) -> None:
    """Say what the command group `control` takes."""
    parser.describe("Serve as the control server of many nodes, or ask one.", examples=_EXAMPLES)
    commands = parser.add_subparsers(dest="control_command", metavar="COMMAND", required=True)
    serve = commands.add_parser(
        "serve", help="serve nodes and people", description="Serve nodes and people until SIGTERM or SIGINT."
    )
    serve.add_argument("--config", metavar="FILE", type=Path, required=True, help="a control.yaml")
    commands.add_parser(
        "key",
        help="make a key for a person",
        description="Print a fresh key on stdout, and on stderr what `people` of control.yaml needs to know it.",
    )


def run(args: argparse.Namespace) -> int:
    """Carry the command out and return its exit code.

    Returns:
        0: done.

    Raises:
        CheckstreamError: it can't be done; says why.
    """
    if args.control_command == "serve":
        return _serve(args.config)
    return _key()


def _serve(file: Path) -> int:
    import uvloop  # noqa: PLC0415 - only who serves

    from checkstream.app.control import run_control  # noqa: PLC0415 - clients need no server

    config = load_control(file)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(run_control(config))
    return 0


def _key() -> int:
    key = secrets.token_urlsafe(32)
    sys.stdout.write(f"{key}\n")
    sys.stdout.flush()
    sys.stderr.write(f"key_sha256: {hashlib.sha256(key.encode()).hexdigest()}\n")
    return 0
