"""The command line: one file per command group. Results go to stdout, all else to stderr.

Exit codes: 0 done, 1 the answer is no, 2 wrong use or configuration, 130 interrupted.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TextIO

import checkstream
from checkstream.cli import (
    audit,
    completion,
    config,
    demo,
    gate,
    ingest,
    jobs,
    models,
    policy,
    replay,
    score,
    serve,
    worker,
)
from checkstream.cli.parser import Parser
from checkstream.cli.workflow import as_text
from checkstream.errors import CheckstreamError

_EXAMPLES = """examples:
  checkstream serve --upstream http://127.0.0.1:8000
  checkstream serve --config checkstream.yaml
  checkstream config check checkstream.yaml
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = Parser(
        prog="checkstream",
        description="A guardrail proxy that checks an LLM's streamed answer before it is sent on.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"checkstream {checkstream.__version__}")
    parser.set_defaults(root=parser)  # what shells complete
    above: argparse.ArgumentParser = parser
    commands = above.add_subparsers(dest="command", metavar="COMMAND", required=True)
    runs: dict[str, Callable[[argparse.Namespace], int]] = {}
    for name, group in (
        ("serve", serve),
        ("demo", demo),
        ("config", config),
        ("policy", policy),
        ("replay", replay),
        ("audit", audit),
        ("models", models),
        ("score", score),
        ("gate", gate),
        ("worker", worker),
        ("jobs", jobs),
        ("ingest", ingest),
        ("completion", completion),
    ):
        group.add_parser(commands)
        runs[name] = group.run
    _open_outputs()
    parsed = parser.parse(arguments)
    try:
        code = runs[parsed.command](parsed)
        sys.stdout.flush()  # a pipe or disk that takes no more is found out here, not when the interpreter ends
    except CheckstreamError as error:
        with as_text(sys.stderr):
            print(f"checkstream: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130  # what a shell says of a program that ended so
    except BrokenPipeError:
        sys.stderr.close()  # who read our output has gone; there is nothing to say
        return 1
    except OSError as error:
        where = f"`{error.filename}`" if error.filename is not None else "the output"
        with as_text(sys.stderr):
            print(f"checkstream: {where}: {(error.strerror or 'it can not be used').lower()}", file=sys.stderr)
        sys.stdout = _nowhere()  # else the interpreter fails once more at what is still to be written
        return 2
    return code


def _open_outputs() -> None:
    """Make sure that whatever is said can be said: into closed outputs, and of names that are no text."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, _nowhere())
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _nowhere() -> TextIO:
    """Return an output that goes nowhere; it stays open until the process ends."""
    return Path(os.devnull).open("w", encoding="utf-8")
